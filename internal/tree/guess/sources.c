/* SPDX-License-Identifier: BSD-3-Clause */
/* A compiled Python module costs two lookups: the program checks the source's attributes, then
 * reads the compiled file in the __pycache__ next to it. If the listings have no attributes, each
 * lookup costs a request. Therefore the node requests both together: with a source that a program
 * looks up, the compiled file, and with a compiled file that another file mentions, the entry of
 * the source, under the rule for mentioned files (mentions.c, policy_priv.h). The names of compiled
 * files are known once a program has read one. */
#include "tree/guess/guess_priv.h"

#include <dirent.h>

#define SOURCE ".py"
#define SOURCE_LEN (sizeof(SOURCE) - 1)
#define COMPILED_DIR "__pycache__/"
#define COMPILED_DIR_LEN (sizeof(COMPILED_DIR) - 1)
#define PATH_MAX_BYTES (COLLECTION_DIR + 2 * MENTION_NAME)

/* Whether the file is in a listing without attributes. dir ends with a slash, or is empty. */
static bool is_listed_bare(struct cop_guess *g, const char *dir, const char *name)
{
	size_t len = strlen(dir);
	struct cop_listing_entry e;
	struct cop_obj *list = cop_fetch_listed(g->fetch, dir, len - (len > 0));
	bool is_bare;

	if (!list)
		return false;
	is_bare = !list->error && !atomic_load(&list->disproved) &&
		  cop_listing_find(list->data, name, strlen(name), &e) && !e.has_attr &&
		  e.type == DT_REG;
	cop_obj_put(g->conf->cache, list);
	return is_bare;
}

/* The directory (with trailing slash) and the name of the file compiled from this source; false if
 * the name is not that of a source. */
static bool find_compiled(const struct cop_fetch_name *source, const char *ending,
	char dir[COLLECTION_DIR], char name[MENTION_NAME])
{
	size_t dir_len = (size_t)(source->name - source->path), len = source->name_len;
	size_t stem = len - SOURCE_LEN;

	if (len <= SOURCE_LEN || memcmp(source->name + stem, SOURCE, SOURCE_LEN) != 0 ||
		dir_len + COMPILED_DIR_LEN >= COLLECTION_DIR ||
		stem + strlen(ending) >= MENTION_NAME)
		return false;
	memcpy(dir, source->path, dir_len);
	memcpy(dir + dir_len, COMPILED_DIR, COMPILED_DIR_LEN + 1);
	memcpy(name, source->name, stem);
	memcpy(name + stem, ending, strlen(ending) + 1);
	return true;
}

void cop_guess_bring_compiled(struct cop_guess *g, const struct cop_fetch_name *source)
{
	char ending[MENTION_NAME], dir[COLLECTION_DIR], name[MENTION_NAME], path[PATH_MAX_BYTES];
	bool may;

	pthread_mutex_lock(&g->lock);
	memcpy(ending, g->module_ending, sizeof(ending));
	pthread_mutex_unlock(&g->lock);
	if (!*ending || !find_compiled(source, ending, dir, name))
		return;
	snprintf(path, sizeof(path), "%s%s", dir, name);
	if (!is_listed_bare(g, dir, name) || cop_fetch_has_first(g->fetch, path))
		return;
	pthread_mutex_lock(&g->lock);
	may = cop_bundle_mentioned(&g->policy, cop_bundle_id(path), 0, true);
	pthread_mutex_unlock(&g->lock);
	if (may)
		cop_fetch_ask_first(g->fetch, path, true);
}

void cop_guess_bring_source(struct cop_guess *g, const char *dir, const char *compiled)
{
	size_t len = strlen(dir), stem = strcspn(compiled, ".");
	char above[COLLECTION_DIR], name[MENTION_NAME], path[PATH_MAX_BYTES];
	struct cop_ask ask = {
		.kind = COP_ASK_ENTRY, .path = path, .background = true, .along = true};

	if (len < COMPILED_DIR_LEN || stem + SOURCE_LEN >= sizeof(name) ||
		strcmp(dir + len - COMPILED_DIR_LEN, COMPILED_DIR) != 0)
		return;
	snprintf(above, sizeof(above), "%.*s", (int)(len - COMPILED_DIR_LEN), dir);
	snprintf(name, sizeof(name), "%.*s" SOURCE, (int)stem, compiled);
	snprintf(path, sizeof(path), "%s%s", above, name);
	if (is_listed_bare(g, above, name) && !cop_fetch_has(g->fetch, &ask) &&
		cop_cache_has_headroom(g->conf->cache, COP_FETCH_ENTRY_BYTES))
		cop_guess_ask(g, &ask);
}
