/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the modules that a compiled module of Python imports are. Module x below BASE is one of
 *
 *	BASE/x/__pycache__/__init__.TAG.pyc    a package
 *	BASE/__pycache__/x.TAG.pyc
 *	BASE/x.TAG2.so                         an extension
 *
 * TAG is that of the importing module; TAG2 that of extensions that programs have looked up:
 * Python tries an extension first for each name. BASE is the package of the importing module, the
 *parent of the package that the name begins with, or the base of a collection: a directory of many
 *modules from which programs have read. Only cached listings are searched; this file sends no
 *requests.
 *
 * Modules that Python imports before the first line of any program are skipped: since 3.11 they are
 * part of the interpreter, and in older versions their files have already been read.
 *
 * A directory without a cached listing is recorded only if a program has read the importing module:
 * few of the packages that other modules import are needed. */
#include "tree/guess/guess_priv.h"

#include <dirent.h>
#include <sys/stat.h>

#define COMPILED ".pyc"
#define COMPILED_DIR "__pycache__"
#define EXTENSION ".so"
#define PACKAGE "__init__"
/* The read permission bits of a mode. */
#define READERS 0444u
/* Space for a path plus a name. */
#define PATH_ROOM (COLLECTION_DIR + 2 * MENTION_NAME)

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !memcmp(name + len - n, end, n);
}

static bool is_compiled(const char *path, size_t len)
{
	return ends_with(path, len, COMPILED);
}

/* Length of the package path if this directory (len bytes with a trailing slash) holds the
 * package's compiled modules; else SIZE_MAX. */
static size_t package_len(const char *dir, size_t len)
{
	static const char last[] = COMPILED_DIR "/";
	size_t n = sizeof(last) - 1;

	if (len < n || memcmp(dir + len - n, last, n) || (len > n && dir[len - n - 1] != '/'))
		return SIZE_MAX;
	return len > n ? len - n - 1 : 0;
}

/* ---- collections ---- */

void cop_guess_add_collection(struct cop_guess *g, const struct bundle *b)
{
	unsigned n = atomic_load(&g->collections);
	struct collection *to = &g->collection[n % COLLECTIONS];
	const char *name = b->at.name, *ending = strchr(name, '.');
	size_t len = b->at.name_len, dir_len = (size_t)(b->at.name - b->at.path);

	for (unsigned i = 0; i < COLLECTIONS; i++)
		if (g->collection[i].id.place == b->id.place)
			return;
	if (!ending || strlen(ending) >= MENTION_NAME || dir_len >= COLLECTION_DIR)
		return;
	if (is_compiled(name, len) ? package_len(b->at.path, dir_len) == SIZE_MAX
				   : !ends_with(name, len, EXTENSION))
		return;
	*to = (struct collection){.id = b->id};
	memcpy(to->dir, b->at.path, dir_len);
	memcpy(to->ending, ending, strlen(ending) + 1);
	atomic_store(&g->collections, n + 1);
}

/* ---- files ---- */

void cop_guess_looked_for(struct cop_guess *g, const char *name, size_t len)
{
	const char *ending = ends_with(name, len, EXTENSION) ? memchr(name, '.', len) : NULL;

	if (!ending || strlen(ending) >= MENTION_NAME || !g->conf->bundle)
		return;
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < EXTENSIONS && ending; i++)
		if (!strcmp(g->extension[i], ending))
			ending = NULL;
	if (ending)
		memcpy(g->extension[g->extensions++ % EXTENSIONS], ending, strlen(ending) + 1);
	pthread_mutex_unlock(&g->lock);
}

bool cop_guess_may_mention(const struct cop_guess *g, const struct cop_key *key)
{
	return g->conf->bundle && key->table == COP_TABLE_DATA && key->index == 0 &&
	       key->size <= COP_MIN((uint64_t)COP_BUNDLE_FILE_BYTES, g->conf->chunk_bytes) &&
	       is_compiled(key->path, key->path_len);
}

struct cop_obj *cop_guess_names_below(struct cop_guess *g, const char *dir, size_t len)
{
	struct cop_obj *list = cop_fetch_listed(g->fetch, dir, len - (len > 0));

	if (list && (list->error || atomic_load(&list->disproved))) {
		cop_obj_put(g->conf->cache, list);
		list = NULL;
	}
	return list;
}

bool cop_guess_may_fetch(
	struct cop_guess *g, const struct mention *m, const struct cop_listing_entry *e)
{
	const struct cop_attr *a = &e->attr;
	uint64_t most = m->soon ? g->conf->chunk_bytes : cop_fetch_largest_small(g->fetch);
	char path[COLLECTION_DIR + 256];
	struct cop_ask ask = {
		.kind = COP_ASK_CHUNK, .path = path, .version = a->version, .size = a->size};

	snprintf(path, sizeof(path), "%s%.*s", m->dir, (int)e->name_len, e->name);
	if (!e->has_attr)
		return e->type == DT_REG && !cop_fetch_has_first(g->fetch, path);
	return S_ISREG(a->mode) && a->size > 0 && a->size <= most && a->blocks > 0 &&
	       (a->mode & READERS) == (m->attr.mode & READERS) && a->uid == m->attr.uid &&
	       a->gid == m->attr.gid && !cop_version_is_young(a->version) &&
	       !cop_fetch_has(g->fetch, &ask);
}

/* dir (len bytes) ends with a slash. */
static void note_file(
	const struct module *m, const char *dir, size_t len, const struct cop_listing_entry *e)
{
	struct mention what = {
		.kind = MENTION_FILE, .attr = m->attr, .soon = m->used, .turn = m->turn};

	if (len >= sizeof(what.dir) || e->name_len >= sizeof(what.name))
		return;
	memcpy(what.dir, dir, len);
	memcpy(what.name, e->name, e->name_len);
	if (cop_guess_may_fetch(m->guess, &what, e))
		cop_guess_note(m->guess, &what);
}

/* A directory and its listing, if cached. */
struct dir {
	const char *path; /* with trailing slash, unless it is the source */
	size_t len;
	struct cop_obj *list; /* NULL: not cached */
};

static struct dir open_dir(const struct module *m, const char *path, size_t len)
{
	return (struct dir){path, len, cop_guess_names_below(m->guess, path, len)};
}

static void close_dir(const struct module *m, struct dir *d)
{
	if (d->list)
		cop_obj_put(m->guess->conf->cache, d->list);
}

static bool has_name(const struct dir *d, const char *name, size_t n, struct cop_listing_entry *e)
{
	return d->list && cop_listing_find(d->list->data, name, n, e);
}

/* Records the file stem + ending if it exists in d. */
static bool find_in(const struct module *m, const struct dir *d, const char *stem, size_t stem_len,
	const char *ending)
{
	size_t end = strlen(ending);
	struct cop_listing_entry e;
	char name[MENTION_NAME];

	if (stem_len + end >= sizeof(name))
		return false;
	memcpy(name, stem, stem_len);
	memcpy(name + stem_len, ending, end);
	if (!has_name(d, name, stem_len + end, &e))
		return false;
	note_file(m, d->path, d->len, &e);
	return true;
}

/* The same for a directory that is searched only once. */
static bool find_file(const struct module *m, const char *path, size_t len, const char *stem,
	size_t stem_len, const char *ending)
{
	struct dir d = open_dir(m, path, len);
	bool found = find_in(m, &d, stem, stem_len, ending);

	close_dir(m, &d);
	return found;
}

/* ---- packages ---- */

static void note_dir(
	const struct module *m, const char *dir, size_t len, const char *name, size_t name_len)
{
	struct mention what = {.kind = MENTION_DIR, .soon = m->used, .turn = m->turn};

	if (len >= sizeof(what.dir) || name_len >= sizeof(what.name))
		return;
	memcpy(what.dir, dir, len);
	memcpy(what.name, name, name_len);
	cop_guess_note(m->guess, &what);
}

/* Appends /__pycache__/ to dir, which has length len and no trailing slash. */
static size_t add_compiled_dir(char *dir, size_t len)
{
	return len +
	       (size_t)snprintf(dir + len, PATH_ROOM - len, "%s" COMPILED_DIR "/", len ? "/" : "");
}

/* Records the package in the directory dir (no trailing slash) or, without its listing, the
 * directory. False if dir is not in the cached listing of its parent. */
static bool find_package(const struct module *m, char *dir, size_t len, size_t above)
{
	size_t name = above + (above > 0), whole;
	bool listed;

	dir[len] = '\0';
	listed = cop_fetch_has(
		m->guess->fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = dir});
	if (!listed)
		note_dir(m, dir, above, dir + name, len - name);
	if (!listed)
		return false;
	whole = add_compiled_dir(dir, len);
	find_file(m, dir, whole, PACKAGE, sizeof(PACKAGE) - 1, m->ending);
	return true;
}

/* ---- names ---- */

/* See Python/frozen.c of Python 3.11: the startup stages for importlib and for site. */
static bool is_imported_at_start(const char *name, size_t n)
{
	static const char *const start[] = {"_collections_abc", "_sitebuiltins", "abc", "codecs",
		"genericpath", "io", "os", "posixpath", "site", "stat"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(start); i++)
		if (strlen(start[i]) == n && !memcmp(start[i], name, n))
			return true;
	return false;
}

/* Whether this is the directory of the standard library, by the same landmark file that Python
 * uses. */
static bool is_standard_library(const struct dir *d)
{
	static const char landmark[] = "os.py";
	struct cop_listing_entry e;

	return has_name(d, landmark, sizeof(landmark) - 1, &e);
}

/* The first component of a name, as an entry of d; its path has space for more. */
static bool find_module(const struct module *m, const struct dir *d, const char *name, size_t n)
{
	char compiled[PATH_ROOM];
	size_t len = d->len ? d->len - 1 : 0;

	if (is_imported_at_start(name, n) && is_standard_library(d))
		return true;
	for (unsigned i = 0; i < EXTENSIONS; i++)
		if (m->extension[i][0] && find_in(m, d, name, n, m->extension[i]))
			return true;
	memcpy(compiled, d->path, len);
	len = add_compiled_dir(compiled, len);
	return find_file(m, compiled, len, name, n, m->ending);
}

/* The name of a module or package, as an entry of dir. */
enum found { NOTHING, MODULE, DIRECTORY };

static enum found find_part(
	const struct module *m, const char *dir, size_t len, const char *name, size_t n)
{
	struct dir d = open_dir(m, dir, len);
	struct cop_listing_entry e;
	enum found found = NOTHING;

	if (has_name(&d, name, n, &e) && e.type == DT_DIR)
		found = DIRECTORY;
	else if (find_module(m, &d, name, n))
		found = MODULE;
	close_dir(m, &d);
	return found;
}

/* Looks up a name component by component, starting at base. False if not even the first one exists.
 * */
static bool look_from(const struct module *m, const char *base, size_t len, const char *name)
{
	char dir[PATH_ROOM];
	bool found = false;

	if (len >= COLLECTION_DIR)
		return false;
	memcpy(dir, base, len);
	for (;;) {
		size_t n = strcspn(name, "."), above = len;
		enum found part;

		if (len)
			dir[len++] = '/';
		if (!n || len + n >= COLLECTION_DIR)
			return found;
		part = find_part(m, dir, len, name, n);
		/* Components after a module are its attributes, as in os.path. */
		if (part != DIRECTORY)
			return part == MODULE || found;
		found = true;
		memcpy(dir + len, name, n);
		len += n;
		if (!find_package(m, dir, len, above) || !name[n])
			return true;
		name += n + 1;
	}
}

/* Starts at the parent of the package that the name begins with, if the module is in that package.
 * */
static bool look_from_top(const struct module *m, size_t len, const char *name)
{
	size_t n = strcspn(name, ".");

	for (size_t end = len; end > 0;) {
		size_t begin = end;

		while (begin > 0 && m->path[begin - 1] != '/')
			begin--;
		if (end - begin == n && !memcmp(m->path + begin, name, n))
			return look_from(m, m->path, begin ? begin - 1 : 0, name);
		end = begin ? begin - 1 : 0;
	}
	return false;
}

static bool look_in_collection(
	const struct module *m, const struct collection *from, const char *name)
{
	size_t len = strlen(from->dir), package = package_len(from->dir, len);

	if (package != SIZE_MAX)
		return look_from(m, from->dir, package, name);
	return !strchr(name, '.') && find_file(m, from->dir, len, name, strlen(name), from->ending);
}

static void look_in_collections(const struct module *m, const char *name)
{
	struct cop_guess *g = m->guess;
	struct collection from;
	bool found = false;

	for (unsigned i = 0; i < COLLECTIONS && i < atomic_load(&g->collections) && !found; i++) {
		pthread_mutex_lock(&g->lock);
		from = g->collection[i];
		pthread_mutex_unlock(&g->lock);
		found = look_in_collection(m, &from, name);
	}
}

static bool find_attr(struct module *m, size_t dir_len)
{
	struct dir d = open_dir(m, m->path, dir_len);
	const char *name = m->path + dir_len;
	struct cop_listing_entry e;
	bool found;

	found = has_name(&d, name, strlen(name), &e) && cop_guess_find_attr(m->guess, m->path, &e);
	if (found)
		m->attr = e.attr;
	close_dir(m, &d);
	return found;
}

void cop_guess_look_up_modules(struct module *m)
{
	const char *name = cop_fetch_split(m->path).name;
	size_t dir_len = (size_t)(name - m->path), package = package_len(m->path, dir_len);
	struct cop_guess *g = m->guess;
	bool known;

	m->ending = strchr(name, '.');
	if (!m->ending || strlen(m->ending) >= MENTION_NAME || package == SIZE_MAX)
		return;
	known = find_attr(m, dir_len);
	pthread_mutex_lock(&g->lock);
	/* Bytes that arrive with an entry are cached before it. They are compared with the last
	 * module that a program read. */
	if (!known)
		m->attr = g->module_attr;
	known |= *g->module_ending != '\0';
	m->turn = ++g->turns;
	memcpy(m->extension, g->extension, sizeof(m->extension));
	if (m->used && known) {
		memcpy(g->module_ending, m->ending, strlen(m->ending) + 1);
		g->module_attr = m->attr;
	}
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < m->names && known; i++)
		if (!look_from(m, m->path, package, m->name[i]) &&
			!look_from_top(m, package, m->name[i]))
			look_in_collections(m, m->name[i]);
}

void cop_guess_listed_mentioned(struct cop_guess *g, const struct cop_obj *obj, const void *list)
{
	const char *path = obj->key.path;
	size_t len = obj->key.path_len;
	char ending[MENTION_NAME], name[sizeof(PACKAGE) + MENTION_NAME], dir[COLLECTION_DIR];
	struct module m = {.guess = g};
	struct cop_listing_entry e;
	bool mentioned;

	if (!ends_with(path, len, "/" COMPILED_DIR) || len + 1 >= sizeof(dir))
		return;
	pthread_mutex_lock(&g->lock);
	mentioned = cop_bundle_is_mentioned(&g->policy, path);
	memcpy(ending, g->module_ending, sizeof(ending));
	m.attr = g->module_attr;
	m.turn = g->turns;
	pthread_mutex_unlock(&g->lock);
	if (!mentioned || !*ending)
		return;
	memcpy(dir, path, len);
	dir[len] = '/';
	snprintf(name, sizeof(name), PACKAGE "%s", ending);
	if (cop_listing_find(list, name, strlen(name), &e))
		note_file(&m, dir, len + 1, &e);
}
