/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and listings that are fetched because a file that a program has read mentions them.
 *
 * From a collection, as Python's own modules, programs read few files, and no order of their names
 * says which; nor does any order say which package they go to next. But a compiled module names the
 * modules that it imports (mention.c). So when a program reads one for the first time, the node
 * notes which files and directories these names lead to (modules.c); a file that was fetched before
 * a program asked for it is looked at as soon as it arrives. What was noted leaves with the next
 * request that a program waits for, in one message: if none follows, all that the program needs is
 * here. From there on these are background flights like siblings (siblings.c).
 *
 * A wrong guess costs the storage one small file. policy_priv.h decides how many may go unused. */
#include "tree/guess/guess_priv.h"

#include "base/log/log.h"

/* So many that may not be fetched yet are looked at with each request. */
#define REFUSALS 8

/* ---- what is noted ---- */

/* Whether a is fetched before b. What the program has just read is followed by what that mentions;
 * what came ahead of the program is followed in the order in which it came. */
static bool is_sooner(const struct mention *a, const struct mention *b)
{
	if (a->soon != b->soon)
		return a->soon;
	return a->soon ? a->turn > b->turn : a->turn < b->turn;
}

/* A free place, or that of the one whose turn comes last, if it comes after this one. */
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

/* Only the imports of such modules are not followed, so it is worth one line for a node. */
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

/* ---- what is fetched ---- */

/* Only a program that misses something new probably goes on. One that is started again asks whether
 * directories have changed. */
static bool is_about_something_new(enum cop_ask_kind kind)
{
	return kind == COP_ASK_LISTING || kind == COP_ASK_ENTRY || kind == COP_ASK_CHUNK;
}

bool cop_guess_has_mentions(struct cop_guess *g, const struct cop_ask *ask)
{
	return is_about_something_new(ask->kind) && !ask->background && !ask->along &&
	       atomic_load_explicit(&g->mentions, memory_order_relaxed);
}

/* Whether this one may be fetched now, or its turn comes later. */
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
		/* Without attributes the bytes are counted when they come. */
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

/* The attributes of a name, with the first bytes, and those of the one that it links to. */
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

/* The listing, and those of its companions; none if too many went unused. */
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

/* False: its turn comes later. */
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

/* Takes the mention whose turn is next, of those that have not been taken in this round; false if
 * there is none. */
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
