/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a manifest: the objects that one program needs from the source, identified by the
 * first file of the part.
 *
 * Parts are learned from jobs, without any declaration. A part has begun when a program opens its
 * first file. Objects that a job needed outside of begun parts become a new part or, if there are
 * few, join the last part that began. Objects of a begun part that a job did not need belong to
 * another program that starts the same way, such as another script for the same interpreter: if
 * there are many, they become a new part. Parts are refined in this way until each one is needed as
 * a whole. */
#include "tree/prefetch/prefetch_priv.h"

/* A new part requires at least this many items, and this share of the bytes or of the items,
 * because even a small item costs storage operations. */
#define PART_ITEMS 8
#define PART_SHARE 10
#define PART_ITEMS_SHARE 20
/* Weight of an item without bytes. */
#define ITEM_BYTES 4096

/* ---- which parts have begun ---- */

static uint64_t hash_of(const char *path)
{
	return cop_hash64(path, strlen(path), 0) | 1;
}

/* Whether this is the first file of a part that has not begun. */
static bool is_first(struct cop_prefetch *p, uint64_t hash)
{
	uint64_t begun = atomic_load(&p->begun);
	unsigned parts = atomic_load(&p->parts);

	for (unsigned i = 0; i < parts; i++)
		if (p->part[i] == hash && !(begun >> i & 1))
			return true;
	return false;
}

static void begin_part_of(struct cop_prefetch *p, uint64_t hash)
{
	unsigned parts = atomic_load(&p->parts);

	for (unsigned i = 0; i < parts; i++)
		if (p->part[i] == hash)
			atomic_fetch_or(&p->begun, 1ULL << i);
}

bool cop_prefetch_know_parts(struct cop_prefetch *p)
{
	unsigned parts = COP_MAX(p->reader.parts, 1);

	p->todo = calloc(p->n_items ? p->n_items : 1, sizeof(*p->todo));
	if (!p->todo)
		return false;
	if (!p->conf.by_part || parts == 1)
		p->at_once = UINT64_MAX;
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->parts, parts);
	for (unsigned i = 0; i < p->n_early; i++)
		begin_part_of(p, p->early[i]);
	pthread_mutex_unlock(&p->lock);
	return true;
}

void cop_prefetch_opened(struct cop_prefetch *p, const char *path)
{
	uint64_t hash;

	if (!p)
		return;
	hash = hash_of(path);
	if (atomic_load(&p->parts) && !is_first(p, hash))
		return;
	pthread_mutex_lock(&p->lock);
	if (atomic_load(&p->parts))
		begin_part_of(p, hash);
	else if (p->n_early < EARLY)
		p->early[p->n_early++] = hash;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

uint64_t cop_prefetch_begun(struct cop_prefetch *p)
{
	return p ? atomic_load(&p->begun) : 0;
}

bool cop_prefetch_has_begun(struct cop_prefetch *p)
{
	return ((atomic_load(&p->begun) | p->at_once) & ~p->asked) != 0 && atomic_load(&p->parts) &&
	       !p->over;
}

void cop_prefetch_take_begun(struct cop_prefetch *p)
{
	uint64_t begun;

	if (!cop_prefetch_has_begun(p))
		return;
	begun = (atomic_load(&p->begun) | p->at_once) & ~p->asked;
	for (size_t i = 0; i < p->n_items; i++)
		if (begun >> cop_prefetch_item(p, i)->part & 1)
			p->todo[p->n_todo++] = i;
	p->asked |= begun;
	cop_prefetch_more_files(p);
}

/* ---- the next manifest ---- */

struct part {
	struct cop_manifest_set *set, *unseen; /* unseen: not needed although the part began */
	uint64_t bytes;                        /* total of set and unseen */
	size_t items;                          /* the same */
	unsigned idle;
	char *first;
};

struct next {
	struct part part[COP_MANIFEST_PARTS];
	unsigned parts;
	struct cop_manifest_set *record, *all; /* all: the old manifest */
	uint64_t begun;
	bool hidden, failed;
	struct cop_manifest_set *beside; /* needed by the job outside of begun parts */
	struct cop_buf *out;
	uint64_t *items;
	unsigned written, unused;
};

static uint64_t bytes_of(const struct cop_manifest_item *item)
{
	uint64_t bytes = ITEM_BYTES;

	for (unsigned i = 0; i < item->ranges; i++)
		bytes += item->range[i].end - item->range[i].start;
	return bytes;
}

static int add_bytes(void *arg, struct cop_manifest_item *item)
{
	*(uint64_t *)arg += bytes_of(item);
	return 0;
}

static uint64_t set_bytes(struct cop_manifest_set *s)
{
	uint64_t bytes = 0;

	cop_manifest_set_each(s, add_bytes, &bytes);
	return bytes;
}

/* Whether the set is large compared with this many items and bytes. */
static bool is_much(struct cop_manifest_set *s, size_t items, uint64_t bytes)
{
	size_t count = cop_manifest_set_count(s);

	return count >= PART_ITEMS &&
	       (count >= items / PART_ITEMS_SHARE || set_bytes(s) >= bytes / PART_SHARE);
}

static struct cop_manifest_set *new_set(struct next *n)
{
	struct cop_manifest_set *s = cop_manifest_set_new(UINT64_MAX);

	n->failed |= !s;
	return s;
}

static void add(struct next *n, struct cop_manifest_set *to, const struct cop_manifest_item *item)
{
	n->failed |= cop_manifest_set_add(to, item, 0) == -ENOMEM;
}

static bool has_begun(const struct next *n, unsigned part)
{
	return n->begun >> part & 1;
}

/* An item of the old manifest. Unneeded items are kept for a few more jobs; if it is unknown which
 * items were needed, all are kept. */
static void take_old(struct next *n, const struct cop_manifest_item *item)
{
	struct part *p = &n->part[item->part];
	struct cop_manifest_item seen;
	unsigned unused = item->unused;

	p->bytes += bytes_of(item);
	p->items++;
	add(n, n->all, item);
	if (has_begun(n, item->part) && cop_manifest_set_find(n->record, item, &seen)) {
		if (n->hidden)
			for (unsigned i = 0; i < item->ranges; i++)
				cop_manifest_range_add(
					&seen, item->range[i].start, item->range[i].end);
		add(n, p->set, &seen);
		return;
	}
	if (!unused && has_begun(n, item->part) && !n->hidden) {
		add(n, p->unseen, item);
		return;
	}
	unused += has_begun(n, item->part) && !n->hidden;
	if (!unused)
		add(n, p->set, item);
	else if (unused < COP_MANIFEST_UNUSED_JOBS)
		cop_manifest_set_keep(p->set, item, unused);
}

static bool begin_old(struct next *n, const struct cop_manifest_reader *r)
{
	struct part *p = &n->part[n->parts++];

	p->idle = r->idle;
	p->first = strdup(r->part_path);
	p->set = new_set(n);
	p->unseen = new_set(n);
	n->failed |= !p->first;
	return !n->failed;
}

static void read_old(struct next *n, const char *body, size_t len)
{
	struct cop_manifest_reader *r = calloc(1, sizeof(*r));
	struct cop_manifest_item item;

	n->failed |= !r;
	if (r) {
		r->data = body;
		r->len = len;
	}
	while (!n->failed && cop_manifest_next(r, &item)) {
		while (n->parts <= item.part && begin_old(n, r))
			;
		if (!n->failed)
			take_old(n, &item);
	}
	free(r);
}

static int take_beside(void *arg, struct cop_manifest_item *item)
{
	struct next *n = arg;

	for (unsigned i = 0; i < n->parts; i++)
		if (has_begun(n, i) && cop_manifest_set_find(n->part[i].set, item, NULL))
			return 0;
	add(n, n->beside, item);
	return n->failed ? -ENOMEM : 0;
}

static int keep_item(void *set, struct cop_manifest_item *item)
{
	return cop_manifest_set_keep(set, item, item->unused + 1);
}

static int add_item(void *set, struct cop_manifest_item *item)
{
	return cop_manifest_set_add(set, item, 0);
}

/* The first file of a part; preferably one that is in no other part, so that no other program
 * begins this part. */
struct first {
	struct cop_manifest_set *others;
	char *path;
	bool own;
};

static int find_first(void *arg, struct cop_manifest_item *item)
{
	struct first *f = arg;
	bool own;

	if (item->kind != COP_MANIFEST_FILE)
		return 0;
	own = !f->others || !cop_manifest_set_find(f->others, item, NULL);
	if (f->path && !own)
		return 0;
	free(f->path);
	f->path = strdup(item->path);
	return own || !f->path;
}

/* A single part gets no line of its own: a manifest without such lines is one part. */
static void write_part(
	struct next *n, struct cop_manifest_set *set, unsigned idle, const char *path, bool alone)
{
	if (n->failed || !cop_manifest_set_count(set) || n->written == COP_MANIFEST_PARTS)
		return;
	n->written++;
	if (!alone)
		cop_manifest_part(n->out, &n->unused, idle, path, strlen(path));
	n->failed |= cop_manifest_set_write(set, n->out, n->items, &n->unused) != 0;
}

static void write_new(struct next *n, struct cop_manifest_set *set, unsigned idle,
	struct cop_manifest_set *others)
{
	struct first f = {.others = others};

	cop_manifest_set_each(set, find_first, &f);
	/* A part without files cannot be begun. */
	if (f.path)
		write_part(n, set, idle, f.path, false);
	free(f.path);
}

/* Adds the objects needed outside of begun parts to the last part that began, or makes a new part.
 * */
static void place_beside(struct next *n)
{
	struct part *last = NULL;
	uint64_t bytes = 0;
	size_t items = 0;

	for (unsigned i = 0; i < n->parts; i++)
		if (has_begun(n, i)) {
			last = &n->part[i];
			bytes += last->bytes;
			items += last->items;
		}
	if (!last || is_much(n->beside, items, bytes))
		return;
	cop_manifest_set_each(n->beside, add_item, last->set);
	cop_manifest_set_free(n->beside);
	n->beside = new_set(n);
}

static void place_unseen(struct next *n)
{
	for (unsigned i = 0; i < n->parts; i++) {
		struct part *p = &n->part[i];

		if (is_much(p->unseen, p->items, p->bytes) && cop_manifest_set_count(p->set))
			continue;
		cop_manifest_set_each(p->unseen, keep_item, p->set);
		cop_manifest_set_free(p->unseen);
		p->unseen = new_set(n);
	}
}

/* Number of parts in the next manifest. */
static unsigned count_parts(const struct next *n)
{
	unsigned parts = cop_manifest_set_count(n->beside) > 0;

	for (unsigned i = 0; i < n->parts; i++)
		parts += (cop_manifest_set_count(n->part[i].set) > 0) +
			 (cop_manifest_set_count(n->part[i].unseen) > 0);
	return parts;
}

/* A manifest with one part does not store the part's first file, which is the one on the first file
 * line. */
static void write_old(struct next *n, const struct part *p, bool begun, bool alone)
{
	struct first f = {.path = NULL};
	unsigned idle = begun ? 0 : p->idle + 1;

	if (!*p->first)
		cop_manifest_set_each(p->set, find_first, &f);
	if (*p->first || f.path || alone)
		if (idle < COP_MANIFEST_IDLE_JOBS)
			write_part(n, p->set, idle, f.path ? f.path : p->first, alone);
	free(f.path);
}

static void write_next(struct next *n)
{
	bool alone = count_parts(n) == 1;

	for (unsigned i = 0; i < n->parts && !n->failed; i++) {
		write_old(n, &n->part[i], has_begun(n, i), alone);
		write_new(n, n->part[i].unseen, 1, n->record);
	}
	if (n->failed || !cop_manifest_set_count(n->beside))
		return;
	if (alone)
		write_part(n, n->beside, 0, "", true);
	else
		write_new(n, n->beside, 0, n->all);
}

/* A single part is fetched at once. It counts as begun if the job needed its first file. If the
 * recording lacks this file because the kernel already had it, the part counts as begun unless the
 * job needed much outside of it. */
static void guess_begun(struct next *n, const char *body, size_t len)
{
	struct cop_manifest_reader *r = calloc(1, sizeof(*r));
	uint64_t bytes = 0, beside = set_bytes(n->record);
	struct cop_manifest_item item;
	bool first = true;

	n->failed |= !r;
	if (r) {
		r->data = body;
		r->len = len;
	}
	while (r && cop_manifest_next(r, &item)) {
		bool seen = cop_manifest_set_find(n->record, &item, NULL);

		bytes += bytes_of(&item);
		beside -= seen ? COP_MIN(bytes_of(&item), beside) : 0;
		if (first && item.kind == COP_MANIFEST_FILE) {
			n->begun |= seen;
			first = false;
		}
	}
	if (r && r->parts > 1)
		n->begun = 0;
	else if (n->hidden)
		n->begun |= beside < bytes / PART_SHARE;
	free(r);
}

static void free_next(struct next *n)
{
	for (unsigned i = 0; i < n->parts; i++) {
		cop_manifest_set_free(n->part[i].set);
		cop_manifest_set_free(n->part[i].unseen);
		free(n->part[i].first);
	}
	cop_manifest_set_free(n->all);
	cop_manifest_set_free(n->beside);
	free(n);
}

int cop_prefetch_next_parts(const char *body, size_t len, struct cop_manifest_set *record,
	uint64_t begun, bool hidden, struct cop_buf *out, uint64_t *items)
{
	struct next *n = calloc(1, sizeof(*n));
	bool failed;

	if (!n)
		return -ENOMEM;
	*n = (struct next){
		.record = record, .begun = begun, .hidden = hidden, .out = out, .items = items};
	n->all = new_set(n);
	n->beside = new_set(n);
	if (!n->failed && !begun)
		guess_begun(n, body, len);
	if (!n->failed)
		read_old(n, body, len);
	if (!n->failed)
		cop_manifest_set_each(record, take_beside, n);
	if (!n->failed)
		place_beside(n);
	if (!n->failed)
		place_unseen(n);
	if (!n->failed)
		write_next(n);
	failed = n->failed;
	free_next(n);
	return failed ? -ENOMEM : 0;
}
