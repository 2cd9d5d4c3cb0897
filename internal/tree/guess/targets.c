/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes of names in a large directory are requested one by one: first those of a symlink,
 * then those of its target. The target can often be guessed: libz.so.1 is a link to libz.so.1.2.13,
 * python3 one to python3.11. Together with a link, the node requests the shortest name that extends
 * the link's name by a dot and more. If the link has another target, this costs the storage the
 * attributes of one name and saves nothing. */
#include "tree/guess/guess_priv.h"

#include <dirent.h>

/* Each link searches all names, so a directory that consists of links costs quadratic time.
 * Directories of libraries and programs have a few thousand names. */
#define NAMES_MAX 8192

static bool goes_on(const struct cop_listing_entry *link, const struct cop_listing_entry *e)
{
	return e->name_len > link->name_len + 1 && e->name[link->name_len] == '.' &&
	       !memcmp(e->name, link->name, link->name_len) &&
	       (e->type == DT_REG || e->type == DT_LNK);
}

/* False if the name is not a link, its attributes are in the listing, or no other name extends it.
 * */
static bool find_target(
	const void *names, const char *name, size_t name_len, struct cop_listing_entry *found)
{
	uint32_t count = cop_listing_count(names);
	struct cop_listing_entry link, e;

	if (count > NAMES_MAX || !cop_listing_find(names, name, name_len, &link) ||
		link.type != DT_LNK || link.has_attr)
		return false;
	found->name_len = SIZE_MAX;
	for (uint32_t i = 0; i < count; i++) {
		cop_listing_at(names, i, &e);
		if (goes_on(&link, &e) && e.name_len < found->name_len)
			*found = e;
	}
	return found->name_len != SIZE_MAX && !found->has_attr;
}

void cop_guess_bring_target(struct cop_guess *g, const struct cop_fetch_name *link)
{
	struct cop_obj *names = cop_fetch_names_of(g->fetch, link->path, link->dir_len);
	struct cop_listing_entry e;
	char path[4096];
	struct cop_ask ask = {.kind = COP_ASK_ENTRY, .path = path, .along = true};

	if (!names)
		return;
	if (!atomic_load(&names->disproved) &&
		find_target(names->data, link->name, link->name_len, &e) &&
		cop_guess_path(path, link->path, link->dir_len, e.name, e.name_len)) {
		ask.first = cop_guess_may_come(g);
		cop_guess_ask(g, &ask);
	}
	cop_obj_put(g->conf->cache, names);
}

/* A program that looks up a directory will enter it. If its attributes are not in the parent's
 * listing because that is large, its own listing is requested together with them. Attributes
 * missing from a small listing did not arrive in time: the storage may never answer for this
 * name, and a second operation would occupy a second worker. */
static void bring_listing(struct cop_guess *g, const struct cop_fetch_name *dir)
{
	struct cop_ask ask = {.kind = COP_ASK_LISTING, .path = dir->path, .along = true};
	struct cop_obj *names = cop_fetch_names_of(g->fetch, dir->path, dir->dir_len);
	struct cop_listing_entry e;
	bool is_dir;

	if (!names)
		return;
	is_dir = cop_listing_count(names->data) > COP_ORIGIN_LISTING_ATTRS &&
		 cop_listing_find(names->data, dir->name, dir->name_len, &e) && e.type == DT_DIR &&
		 !e.has_attr;
	cop_obj_put(g->conf->cache, names);
	if (is_dir && !cop_fetch_has(g->fetch, &ask))
		cop_guess_ask(g, &ask);
}

void cop_guess_targets(struct cop_guess *g, const char *path)
{
	struct cop_fetch_name at = cop_fetch_split(path);

	cop_guess_bring_target(g, &at);
	cop_guess_bring_compiled(g, &at);
	bring_listing(g, &at);
}
