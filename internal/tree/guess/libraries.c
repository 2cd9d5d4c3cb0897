/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches shared libraries needed by a file that a program has read.
 *
 * The loader opens a program's libraries one after another, and looks up each name in a directory
 * that is too large for attributes in its listing. But the first bytes of each file name all
 * libraries that it needs (mention.c). The loader's first request for one of them reveals the
 * directory: from then on, needed names are looked up there, and requested together with the next
 * request that a program waits for (mentions.c). */
#include "tree/guess/guess_priv.h"

#include <dirent.h>

#define LIBRARY ".so"

static bool is_library(const char *name)
{
	return strstr(name, LIBRARY) != NULL;
}

/* Records the name if it is in this directory. */
static bool look_for_library(struct cop_guess *g, const char *dir, const char *name, uint64_t turn)
{
	struct mention what = {.kind = MENTION_ENTRY, .soon = true, .turn = turn};
	struct cop_obj *names = cop_fetch_names_of(g->fetch, dir, strlen(dir));
	struct cop_listing_entry e;
	bool found;

	if (!names)
		return false;
	found = !atomic_load(&names->disproved) &&
		cop_listing_find(names->data, name, strlen(name), &e);
	if (found && !e.has_attr && (e.type == DT_REG || e.type == DT_LNK)) {
		memcpy(what.dir, dir, strlen(dir) + 1);
		memcpy(what.name, name, strlen(name) + 1);
		cop_guess_note(g, &what);
	}
	cop_obj_put(g->conf->cache, names);
	return found;
}

/* With the lock held. */
static void add_needed(struct needed *n, const char *name, size_t len)
{
	for (unsigned i = 0; i < NEEDED_NAMES; i++)
		if (strlen(n->name[i]) == len && !memcmp(n->name[i], name, len))
			return;
	memcpy(n->name[n->at], name, len);
	n->name[n->at][len] = '\0';
	n->at = (n->at + 1) % NEEDED_NAMES;
}

struct file {
	struct cop_guess *guess;
	uint64_t turn;
};

static void needs(void *arg, const char *name, size_t len)
{
	struct file *f = arg;
	struct needed *n = &f->guess->needed;
	char dir[NEEDED_DIRS][COLLECTION_DIR], text[MENTION_NAME];
	bool found = false;

	if (len >= sizeof(text))
		return;
	memcpy(text, name, len);
	text[len] = '\0';
	pthread_mutex_lock(&f->guess->lock);
	memcpy(dir, n->dir, sizeof(dir));
	pthread_mutex_unlock(&f->guess->lock);
	for (unsigned i = 0; i < NEEDED_DIRS && !found; i++)
		found = dir[i][0] && look_for_library(f->guess, dir[i] + 1, text, f->turn);
	if (found)
		return;
	pthread_mutex_lock(&f->guess->lock);
	add_needed(n, name, len);
	pthread_mutex_unlock(&f->guess->lock);
}

static void look_at(struct cop_guess *g, const void *data, size_t len)
{
	struct file f = {.guess = g};

	if (!cop_mention_is_elf(data, len))
		return;
	pthread_mutex_lock(&g->lock);
	f.turn = ++g->turns;
	pthread_mutex_unlock(&g->lock);
	cop_mention_elf(data, len, needs, &f);
}

void cop_guess_note_libraries(struct cop_guess *g, const struct cop_obj *obj)
{
	size_t len = COP_MIN(
		cop_fetch_chunk_len(g->fetch, obj->key.size, 0), (size_t)COP_MENTION_ELF_BYTES);
	void *raw = NULL;

	if (!g->conf->bundle || obj->key.index)
		return;
	if (obj->packed) {
		raw = malloc(len);
		if (raw && cop_pack_read(obj->data, 0, len, raw) == 0)
			look_at(g, raw, len);
		free(raw);
	} else if (obj->len >= len) {
		look_at(g, obj->data, len);
	}
}

/* If this name is needed, moves the needed names to *out and records the directory. */
static bool take_needed(struct cop_guess *g, const char *dir, const char *name, struct needed *out)
{
	struct needed *n = &g->needed;
	bool found = false;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < NEEDED_NAMES && !found; i++)
		found = strcmp(n->name[i], name) == 0;
	if (found) {
		*out = *n;
		memset(n->name, 0, sizeof(n->name));
		/* The first byte distinguishes the source itself from a free slot. */
		n->dir[n->dirs % NEEDED_DIRS][0] = '/';
		memcpy(n->dir[n->dirs++ % NEEDED_DIRS] + 1, dir, strlen(dir) + 1);
		out->turn = ++g->turns;
	}
	pthread_mutex_unlock(&g->lock);
	return found;
}

void cop_guess_met_library(struct cop_guess *g, const struct cop_ask *ask)
{
	struct cop_fetch_name at = cop_fetch_split(ask->path);
	char dir[COLLECTION_DIR];
	struct needed needed;

	if (!is_library(at.name) || at.dir_len + 1 >= sizeof(dir))
		return;
	memcpy(dir, at.path, at.dir_len);
	dir[at.dir_len] = '\0';
	if (!take_needed(g, dir, at.name, &needed))
		return;
	for (unsigned i = 0; i < NEEDED_NAMES; i++)
		if (needed.name[i][0] && strcmp(needed.name[i], at.name))
			look_for_library(g, dir, needed.name[i], needed.turn);
}
