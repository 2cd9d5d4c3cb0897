/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches files and listings mentioned in a file that a program has read.
 *
 * From a collection such as Python's own modules, programs read few files, and the order of names
 * predicts neither these files nor the next package. But a compiled module names the modules that
 * it imports (mention.c). When a program reads one for the first time, the node records the files
 * and directories that these names refer to (modules.c); a prefetched file is scanned on arrival.
 * The recorded requests are sent in one message with the next request that a program waits for:
 * without such a request, the program already has everything it needs. From then on they are
 * background flights like siblings (siblings.c).
 *
 * A wrong guess costs the storage one small file. policy_priv.h limits the number of unused ones.
 * */
#include "tree/guess/guess_priv.h"

#include "base/log/log.h"

/* Number of mentions, not yet allowed by the policy, that are examined per request. */
#define REFUSALS 8

/* ---- recording ---- */

/* Whether to fetch a before b. Mentions in files that the program has read come first, latest file
 * first; those in prefetched files follow in order of arrival. */
static bool is_sooner(const struct mention *a, const struct mention *b)
{
	if (a->soon != b->soon)
		return a->soon;
	return a->soon ? a->turn > b->turn : a->turn < b->turn;
}

/* A free slot, or the slot with the last turn, if that is later than this one. */
static struct mention *place_for(struct cop_guess *g, const struct mention *what)
{
	struct mention *last = g->mention;

	for (struct mention *m = g->mention; m < g->mention + MENTIONS; m++) {
		if (m->kind == MENTION_NONE)
			return m;
		if (is_sooner(last, m))
			last = m;
	}
	return is_sooner(what, last) ? last : NULL;
}

void cop_guess_note(struct cop_guess *g, const struct mention *what)
{
	struct mention *m;

	pthread_mutex_lock(&g->lock);
	for (m = g->mention; m < g->mention + MENTIONS; m++)
		if (m->kind == what->kind && !strcmp(m->name, what->name) &&
			!strcmp(m->dir, what->dir))
			break;
	if (m == g->mention + MENTIONS)
		m = place_for(g, what);
	else if (!is_sooner(what, m))
		m = NULL;
	if (m) {
		atomic_fetch_add(&g->mentions, m->kind == MENTION_NONE);
		*m = *what;
	}
	pthread_mutex_unlock(&g->lock);
}

static void add_name(void *arg, const char *name, size_t len)
{
	struct module *m = arg;

	if (len >= MODULE_NAME || m->names == MODULE_NAMES)
		return;
	memcpy(m->name[m->names], name, len);
	m->name[m->names++][len] = '\0';
}

/* Without a known version, only the imports of such modules are not followed; one log line per node
 * suffices. */
static void note_new_python(
	struct cop_guess *g, const struct cop_key *key, const void *data, size_t len)
{
	unsigned magic = cop_mention_new_python(data, len);

	if (magic && !atomic_exchange(&g->new_python, true))
		cop_log_debug(
			"imports are not followed: unknown version of Python magic=%u path=%s",
			magic, key->path);
}

void cop_guess_note_mentions(struct cop_guess *g, const struct cop_key *key, const void *data,
	size_t len, bool packed, bool used)
{
	struct module *m = malloc(sizeof(*m));
	void *raw = NULL;

	if (m && packed) {
		len = (size_t)key->size;
		raw = malloc(len);
		if (raw && cop_pack_read(data, 0, len, raw)) {
			free(raw);
			raw = NULL;
		}
		data = raw;
	}
	if (m && data) {
		m->guess = g;
		m->path = key->path;
		m->used = used;
		m->names = 0;
		if (!cop_mention_python(data, len, add_name, m))
			note_new_python(g, key, data, len);
		if (m->names || used)
			cop_guess_look_up_modules(m);
	}
	free(raw);
	free(m);
}

/* ---- fetching ---- */

/* Only a miss on a new object predicts further misses. A program that is restarted checks
 * directories for changes. */
static bool is_about_something_new(enum cop_ask_kind kind)
{
	return kind == COP_ASK_LISTING || kind == COP_ASK_ENTRY || kind == COP_ASK_CHUNK;
}

bool cop_guess_has_mentions(struct cop_guess *g, const struct cop_ask *ask)
{
	return is_about_something_new(ask->kind) && !ask->background && !ask->along &&
	       atomic_load_explicit(&g->mentions, memory_order_relaxed);
}

/* Whether the file may be fetched now; if not, it is deferred. */
static bool may_bring_file(struct cop_guess *g, const char *path, uint64_t size, bool soon)
{
	bool may;

	pthread_mutex_lock(&g->lock);
	may = cop_bundle_mentioned(&g->policy, cop_bundle_id(path), size, soon);
	pthread_mutex_unlock(&g->lock);
	return may;
}

/* False if it may not be fetched yet. */
static bool bring_file(struct cop_guess *g, const struct mention *m)
{
	size_t dir_len = strlen(m->dir), name_len = strlen(m->name);
	char path[COLLECTION_DIR + MENTION_NAME];
	struct bundle b = {.guess = g, .mentioned = true};
	struct cop_listing_entry e;
	struct cop_obj *list = cop_guess_names_below(g, m->dir, dir_len);
	bool later = false;
	size_t size;

	if (!list)
		return true;
	memcpy(path, m->dir, dir_len);
	memcpy(path + dir_len, m->name, name_len + 1);
	b.at = cop_fetch_split(path);
	if (cop_listing_find(list->data, m->name, name_len, &e) && cop_guess_may_fetch(g, m, &e)) {
		/* Without attributes, the bytes are counted on arrival. */
		size = e.has_attr ? e.attr.size : 0;
		if (cop_cache_has_headroom(g->conf->cache, size)) {
			later = !may_bring_file(g, path, size, m->soon);
			if (!later) {
				cop_guess_ask_sibling(&b, &e);
				cop_guess_bring_source(g, m->dir, m->name);
			}
		}
	}
	cop_obj_put(g->conf->cache, list);
	return !later;
}

/* The attributes of a name, with the first bytes, and those of its symlink target. */
static void bring_entry(struct cop_guess *g, const struct mention *m)
{
	char path[COLLECTION_DIR + MENTION_NAME + 1];
	struct cop_ask ask = {
		.kind = COP_ASK_ENTRY, .path = path, .along = true, .first = cop_guess_may_come(g)};
	struct cop_fetch_name link;

	snprintf(path, sizeof(path), "%s%s%s", m->dir, *m->dir ? "/" : "", m->name);
	if (cop_fetch_has(g->fetch, &ask))
		return;
	cop_guess_ask(g, &ask);
	link = cop_fetch_split(path);
	cop_guess_bring_target(g, &link);
}

/* The listing and those of its companions; nothing if too many were unused. */
static void bring_listing(struct cop_guess *g, const struct mention *m)
{
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];
	char path[COLLECTION_DIR + MENTION_NAME + 1];
	unsigned n = 0;
	bool may;

	snprintf(path, sizeof(path), "%s%s%s", m->dir, *m->dir ? "/" : "", m->name);
	pthread_mutex_lock(&g->lock);
	may = cop_bundle_may_list_mentioned(&g->policy);
	if (may)
		n = cop_bundle_companions(&g->policy, path, true, name);
	pthread_mutex_unlock(&g->lock);
	if (may)
		cop_guess_listing(g, m->dir, m->name, true);
	for (unsigned i = 0; i < n; i++)
		cop_guess_listing(g, path, name[i], true);
}

/* False: deferred. */
static bool bring(struct cop_guess *g, const struct mention *m)
{
	switch (m->kind) {
	case MENTION_FILE:
		return bring_file(g, m);
	case MENTION_DIR:
		bring_listing(g, m);
		break;
	case MENTION_ENTRY:
		bring_entry(g, m);
		break;
	case MENTION_NONE:
		break;
	}
	return true;
}

/* Takes the next mention that was not taken in this round; false if there is none. */
static bool take_next(struct cop_guess *g, uint64_t round, struct mention *out)
{
	struct mention *next = NULL;

	pthread_mutex_lock(&g->lock);
	for (struct mention *m = g->mention; m < g->mention + MENTIONS; m++)
		if (m->kind != MENTION_NONE && m->round != round && (!next || is_sooner(m, next)))
			next = m;
	if (next) {
		*out = *next;
		out->round = round;
		next->kind = MENTION_NONE;
		atomic_fetch_sub(&g->mentions, 1);
	}
	pthread_mutex_unlock(&g->lock);
	return next != NULL;
}

void cop_guess_bring_mentioned(struct cop_guess *g)
{
	unsigned refused = 0;
	struct mention m;
	uint64_t round;

	pthread_mutex_lock(&g->lock);
	round = ++g->rounds;
	pthread_mutex_unlock(&g->lock);
	while (refused < REFUSALS && take_next(g, round, &m))
		if (!bring(g, &m)) {
			refused++;
			cop_guess_note(g, &m);
		}
}
