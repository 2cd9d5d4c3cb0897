/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes of a large directory's names are requested one by one: those of a link, then those
 * of the name that it leads to. But the target can often be guessed: libz.so.1 is a link to
 * libz.so.1.2.13, python3 one to python3.11. So together with a link, the node requests the
 * shortest name that continues after a dot where the link's own name ends. If the link leads
 * elsewhere, that costs the storage the attributes of one name and saves nothing. */
#include "tree/fetch/fetch_priv.h"

#include <dirent.h>
#include <string.h>

/* Each link searches all names, so a directory of nothing but links costs the square of their
 * number. Directories of libraries and programs have a few thousand. */
#define NAMES_MAX 8192

bool cop_fetch_may_have_target(const struct cop_fetch *c, const struct cop_ask *ask)
{
	return c->conf.bundle && ask->kind == COP_ASK_ENTRY && !ask->background && !ask->along;
}

static bool goes_on(const struct cop_listing_entry *link, const struct cop_listing_entry *e)
{
	return e->name_len > link->name_len + 1 && e->name[link->name_len] == '.' &&
	       !memcmp(e->name, link->name, link->name_len) &&
	       (e->type == DT_REG || e->type == DT_LNK);
}

/* False if the name is no link, its attributes came with the listing, or no name continues it. */
static bool find_target(const void *names, const char *name, struct cop_listing_entry *found)
{
	uint32_t count = cop_listing_count(names);
	struct cop_listing_entry link, e;

	if (count > NAMES_MAX || !cop_listing_find(names, name, strlen(name), &link) ||
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

static void ask_target(struct cop_fetch *c, const char *link, const char *name, size_t name_len)
{
	const char *slash = strrchr(link, '/');
	size_t dir_len = slash ? (size_t)(slash + 1 - link) : 0;
	char path[4096];
	struct cop_ask ask = {
		.kind = COP_ASK_ENTRY, .path = path, .along = true, .first = cop_fetch_may_come(c)};
	struct cop_obj *obj;

	if (dir_len + name_len >= sizeof(path))
		return;
	memcpy(path, link, dir_len);
	memcpy(path + dir_len, name, name_len);
	path[dir_len + name_len] = '\0';
	if (cop_fetch_get_for(c, &ask, NULL, true, &obj) == 1)
		cop_obj_put(c->conf.cache, obj);
}

void cop_fetch_bring_target(struct cop_fetch *c, const char *link)
{
	const char *slash = strrchr(link, '/'), *name = slash ? slash + 1 : link;
	size_t dir_len = slash ? (size_t)(slash - link) : 0;
	struct cop_listing_entry e;
	struct cop_obj *names;
	char dir[4096];

	memcpy(dir, link, dir_len);
	dir[dir_len] = '\0';
	names = cop_fetch_names_of(c, dir);
	if (!names)
		return;
	if (!atomic_load(&names->disproved) && find_target(names->data, name, &e))
		ask_target(c, link, e.name, e.name_len);
	cop_obj_put(c->conf.cache, names);
}

/* A program that looks at a directory on its way goes into it. So where its attributes are not in
 * the listing, its own listing is requested together with them. */
static void bring_listing(struct cop_fetch *c, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct cop_ask ask = {.kind = COP_ASK_LISTING, .path = path, .along = true};
	size_t dir_len = slash ? (size_t)(slash - path) : 0;
	struct cop_listing_entry e;
	struct cop_obj *names, *obj;
	char dir[4096];
	bool is_dir;

	memcpy(dir, path, dir_len);
	dir[dir_len] = '\0';
	names = cop_fetch_names_of(c, dir);
	if (!names)
		return;
	is_dir = cop_listing_find(names->data, name, strlen(name), &e) && e.type == DT_DIR &&
		 !e.has_attr;
	cop_obj_put(c->conf.cache, names);
	if (is_dir && !cop_fetch_has(c, &ask) && cop_fetch_get_for(c, &ask, NULL, true, &obj) == 1)
		cop_obj_put(c->conf.cache, obj);
}

/* The flight may be over before the other begins, so this keeps what the other needs of it. */
void cop_fetch_reserve_with_target(struct flight *f)
{
	struct cop_fetch *c = f->coop;
	struct cop_obj *obj = cop_obj_get(f->obj);

	cop_fetch_cork(c);
	cop_fetch_reserve(f);
	cop_fetch_bring_target(c, obj->key.path);
	cop_fetch_bring_compiled(c, obj->key.path);
	bring_listing(c, obj->key.path);
	cop_fetch_uncork(c);
	cop_obj_put(c->conf.cache, obj);
}
