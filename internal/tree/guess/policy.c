/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/guess/policy_priv.h"

/* Misses in a directory before siblings are fetched. */
#define MISSES 2
/* Initial number of files to fetch of a kind without credit; doubles each time. */
#define FIRST_FILES 4u
/* A kind has credit after this many fetched files, if at least half of them were used. */
#define CREDIT_FILES 8
/* Allowed excess of unused over used files fetched from collections. */
#define MENTIONED_UNUSED 32u
/* Files per kind to fetch with their entries before usage decides. */
#define FIRST_TRIES 2

uint64_t cop_bundle_kind(const char *name, size_t len)
{
	const char *dot = len > 1 ? memrchr(name + 1, '.', len - 1) : NULL;
	size_t n = dot ? len - (size_t)(dot + 1 - name) : 0;

	return n ? cop_hash64(dot + 1, n, 1) | 1 : 0;
}

struct cop_bundle_id cop_bundle_id(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	uint64_t kind = cop_bundle_kind(name, strlen(name));

	return (struct cop_bundle_id){.kind = kind,
		.place = cop_hash64(path, slash ? (size_t)(slash - path) : 0, kind) | 1};
}

static struct cop_bundle_place *place_of(struct cop_bundle *b, struct cop_bundle_id id)
{
	struct cop_bundle_place *p = &b->place[(id.place >> 32) % COP_BUNDLE_PLACES];

	if (p->key != id.place)
		*p = (struct cop_bundle_place){.key = id.place};
	return p;
}

static struct cop_bundle_credit *of_kind(struct cop_bundle_credit *all, uint64_t kind)
{
	struct cop_bundle_credit *c = &all[(kind >> 32) % COP_BUNDLE_KINDS];

	if (c->kind != kind)
		*c = (struct cop_bundle_credit){.kind = kind};
	return c;
}

static struct cop_bundle_credit *credit_of(struct cop_bundle *b, struct cop_bundle_id id)
{
	return of_kind(b->credit, id.kind);
}

static bool has_proved_itself(uint64_t brought, uint64_t used)
{
	return 2 * used >= brought;
}

static bool is_proved(struct cop_bundle *b, struct cop_bundle_id id)
{
	const struct cop_bundle_credit *c = credit_of(b, id);

	return c->brought >= CREDIT_FILES && has_proved_itself(c->brought, c->used);
}

/* After the first bundle from a directory, half of its files must be used before the next. */
static bool may_bring(struct cop_bundle *b, struct cop_bundle_id id)
{
	const struct cop_bundle_place *p = place_of(b, id);

	return !p->collection && p->missed >= (is_proved(b, id) ? 1 : MISSES) &&
	       has_proved_itself(p->brought, p->used);
}

bool cop_bundle_missed(struct cop_bundle *b, struct cop_bundle_id id)
{
	struct cop_bundle_place *p;

	if (!id.kind)
		return false;
	p = place_of(b, id);
	p->missed += p->missed < MISSES;
	return may_bring(b, id);
}

/* Bytes that may still be wasted. */
static uint64_t waste_left(const struct cop_bundle *b)
{
	uint64_t most = COP_BUNDLE_WASTE + b->used_bytes / 7 * 3;
	uint64_t unused = b->brought_bytes - b->used_bytes;

	return most > unused ? most - unused : 0;
}

size_t cop_bundle_allow(
	struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings, unsigned *files)
{
	struct cop_bundle_place *p;

	*files = 0;
	if (!id.kind)
		return 0;
	p = place_of(b, id);
	p->counted = true;
	p->collection |= siblings > COP_BUNDLE_MOST_FILES;
	if (!may_bring(b, id))
		return 0;
	*files = is_proved(b, id)
			 ? COP_BUNDLE_MOST_FILES
			 : COP_MIN(FIRST_FILES << COP_MIN(p->times, 4u), COP_BUNDLE_MOST_FILES);
	return (size_t)COP_MIN((uint64_t)COP_BUNDLE_MOST_BYTES, waste_left(b));
}

void cop_bundle_brought(struct cop_bundle *b, struct cop_bundle_id id, unsigned files, size_t bytes)
{
	place_of(b, id)->brought += files;
	place_of(b, id)->times++;
	credit_of(b, id)->brought += files;
	b->brought_bytes += bytes;
}

bool cop_bundle_is_counted(struct cop_bundle *b, struct cop_bundle_id id)
{
	return !id.kind || place_of(b, id)->counted;
}

/* Many are fetched before the first of them can be used. */
bool cop_bundle_mentioned(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes, bool soon)
{
	struct cop_bundle_place *p = place_of(b, id);
	uint64_t left = waste_left(b), kept = soon ? 0 : COP_BUNDLE_WASTE / 4;

	if ((p->collection && p->brought - p->used >= MENTIONED_UNUSED + p->used) ||
		bytes + kept > left)
		return false;
	p->brought++;
	b->brought_bytes += bytes;
	return true;
}

static void count_used_bytes(struct cop_bundle *b, size_t bytes)
{
	b->used_bytes += COP_MIN((uint64_t)bytes, b->brought_bytes - b->used_bytes);
}

void cop_bundle_used(struct cop_bundle *b, struct cop_bundle_id id, size_t bytes)
{
	struct cop_bundle_place *p = place_of(b, id);
	struct cop_bundle_credit *c = credit_of(b, id);

	/* A slot that was overwritten in between has lost the fetch of this file. */
	p->used += p->used < p->brought;
	/* Usage of a collection does not predict usage of small directories. */
	if (!p->collection) {
		c->brought += c->used == c->brought;
		c->used++;
	}
	count_used_bytes(b, bytes);
}

/* ---- first bytes, with an entry ---- */

bool cop_bundle_may_come(const struct cop_bundle *b)
{
	return waste_left(b) >= COP_BUNDLE_FILE_BYTES;
}

bool cop_bundle_may_ask_first(struct cop_bundle *b, uint64_t kind)
{
	const struct cop_bundle_credit *c = of_kind(b->first, kind);

	return kind && cop_bundle_may_come(b) &&
	       (c->brought < FIRST_TRIES || has_proved_itself(c->brought, c->used));
}

void cop_bundle_came_first(struct cop_bundle *b, uint64_t kind, size_t bytes)
{
	if (kind)
		of_kind(b->first, kind)->brought++;
	b->brought_bytes += bytes;
}

void cop_bundle_used_first(struct cop_bundle *b, uint64_t kind, size_t bytes)
{
	struct cop_bundle_credit *c = of_kind(b->first, kind);

	c->used += c->used < c->brought;
	count_used_bytes(b, bytes);
}

/* ---- listings ---- */

/* A companion was listed at least this often, and is at least one in this many listed directories.
 * */
#define COMPANION_TIMES 3
#define COMPANION_PART 4
/* Listings to fetch, per name and in total, before usage decides. Few, because an unneeded listing
 * of an existing directory costs the storage a directory read. */
#define COMPANION_TRIES 2
#define COMPANION_TRIES_ALL 3
/* Allowed excess of unused over used listings of mentioned directories. */
#define MENTIONED_LISTINGS 24u

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct cop_bundle_below *find_below(struct cop_bundle *b, const char *name)
{
	for (unsigned i = 0; i < COP_BUNDLE_BELOW; i++)
		if (!strcmp(b->below[i].name, name))
			return &b->below[i];
	return NULL;
}

/* Evicts the least often listed name; the oldest if there are several. */
static struct cop_bundle_below *add_below(struct cop_bundle *b, const char *name)
{
	struct cop_bundle_below *least = &b->below[0];

	for (unsigned i = 1; i < COP_BUNDLE_BELOW && *least->name; i++) {
		struct cop_bundle_below *w = &b->below[i];

		if (w->listed < least->listed ||
			(w->listed == least->listed && w->since < least->since))
			least = w;
	}
	*least = (struct cop_bundle_below){.since = b->listed};
	memcpy(least->name, name, strlen(name) + 1);
	return least;
}

/* A program has listed this directory. NULL if its name is not counted. */
static struct cop_bundle_below *count_listed(struct cop_bundle *b, const char *path)
{
	const char *own = last_name(path);
	struct cop_bundle_below *w;

	if (!*own || strlen(own) >= COP_BUNDLE_BELOW_NAME)
		return NULL;
	w = find_below(b, own);
	if (!w)
		w = add_below(b, own);
	w->listed++;
	b->listed++;
	return w;
}

static bool is_companion(const struct cop_bundle *b, const struct cop_bundle_below *w)
{
	return w->listed >= COMPANION_TIMES &&
	       w->listed * (uint64_t)COMPANION_PART >= b->listed - w->since;
}

static bool may_bring_listing(const struct cop_bundle *b, const struct cop_bundle_below *w)
{
	return is_companion(b, w) &&
	       (w->brought < COMPANION_TRIES || has_proved_itself(w->brought, w->used)) &&
	       (b->listings < COMPANION_TRIES_ALL ||
		       has_proved_itself(b->listings, b->used_listings));
}

unsigned cop_bundle_companions(const struct cop_bundle *b, const char *path, bool mentioned,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME])
{
	const char *own = last_name(path);
	unsigned n = 0;

	for (unsigned i = 0; i < COP_BUNDLE_BELOW && n < COP_BUNDLE_COMPANIONS; i++) {
		const struct cop_bundle_below *w = &b->below[i];

		/* A directory is not a companion of a parent with the same name. */
		if (!strcmp(w->name, own) && is_companion(b, w))
			return 0;
		if (strcmp(w->name, own) != 0 &&
			(mentioned ? is_companion(b, w) : may_bring_listing(b, w)))
			memcpy(name[n++], w->name, COP_BUNDLE_BELOW_NAME);
	}
	return n;
}

unsigned cop_bundle_listed(struct cop_bundle *b, const char *path,
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME])
{
	if (!count_listed(b, path))
		return 0;
	return cop_bundle_companions(b, path, false, name);
}

/* Bit 0 is always set, bit 1 never. */
static uint64_t path_hash(const char *path)
{
	return (cop_hash64(path, strlen(path), 2) & ~(uint64_t)3) | 1;
}

bool cop_bundle_may_list_mentioned(const struct cop_bundle *b)
{
	return b->mentioned - b->used_mentioned < MENTIONED_LISTINGS + b->used_mentioned;
}

void cop_bundle_expect(struct cop_bundle *b, const char *path, bool mentioned)
{
	struct cop_bundle_below *w = find_below(b, last_name(path));

	if (w)
		w->brought++;
	b->listings += !mentioned;
	b->mentioned += mentioned;
	b->expected[b->expected_at++ % COP_BUNDLE_EXPECTED] = path_hash(path) | (mentioned ? 2 : 0);
}

bool cop_bundle_is_mentioned(const struct cop_bundle *b, const char *path)
{
	uint64_t hash = path_hash(path) | 2;

	for (unsigned i = 0; i < COP_BUNDLE_EXPECTED; i++)
		if (b->expected[i] == hash)
			return true;
	return false;
}

bool cop_bundle_met(struct cop_bundle *b, const char *path)
{
	uint64_t hash = path_hash(path);
	struct cop_bundle_below *w;
	bool mentioned;

	for (unsigned i = 0; i < COP_BUNDLE_EXPECTED; i++) {
		if ((b->expected[i] & ~(uint64_t)2) != hash)
			continue;
		mentioned = b->expected[i] >> 1 & 1;
		b->expected[i] = 0;
		w = count_listed(b, path);
		if (w)
			w->used += w->used < w->brought;
		b->used_listings += !mentioned;
		b->used_mentioned += mentioned;
		return true;
	}
	return false;
}
