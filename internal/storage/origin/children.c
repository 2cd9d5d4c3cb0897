/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the attributes of a directory's children in batches on the worker pool; the batch that
 * finishes last completes the listing. No worker waits for another, so the pool may consist of a
 * single one.
 *
 * A batch is sized to take about a millisecond, judging by the recent duration of a statx. On a
 * slow file system, a batch of 32 names would delay a lookup by 32 operations; on a fast one,
 * handing over a batch costs more than a statx. (Listing 30 names at 1 ms per operation takes 9 ms;
 * it takes 11 ms with batches of two and 69 ms with batches of 32.)
 *
 * A single inode may hang (its server is down) while all others answer. After a second, its worker
 * is abandoned, another one takes over the rest of the batch, and the listing is returned without
 * these attributes. If most workers hang, as when a whole server is down, a listing uses only one
 * worker, and is returned as it is when that worker hangs, too. If the storage as a whole is slow,
 * the answers received so far show it, and the timeout is extended. A name without an answer is
 * recorded until the answer arrives; in the meantime, other listings do not request its
 * attributes. */
#include "storage/origin/list_priv.h"

#include <dirent.h>
#include <sys/stat.h>

#define BATCH_MAX 32
/* The initial batch size: if the storage turns out to be slow, a batch should not be long. */
#define BATCH_FIRST 4
#define BATCH_NS COP_NS_PER_MS
/* An operation that takes this long costs more than handing over a batch. */
#define SLOW_NS (COP_NS_PER_MS / 4)
/* An answer is late once it takes this many times the usual duration, up to a maximum. */
#define SLOWER 4
#define PATIENCE_MAX_MS 10000
/* If several names hang one after another, the listing is returned as it is after this many
 * checks. */
#define LOOKS_MAX 3

/* ---- unanswered names ---- */

static uint64_t name_key(struct pass *p, const struct child *c)
{
	uint64_t dir = cop_hash64(p->l->path, strlen(p->l->path), 0);
	uint64_t key = cop_hash64(p->names.data + c->name, c->name_len, dir);

	return key ? key : 1;
}

static bool is_unanswered(struct cop_origin_unanswered *u, uint64_t key)
{
	bool found = false;

	pthread_mutex_lock(&u->lock);
	for (unsigned i = 0; i < COP_ORIGIN_UNANSWERED && !found; i++)
		found = u->name[i] == key;
	pthread_mutex_unlock(&u->lock);
	return found;
}

/* Replaces one key with another if it is in the table. */
static bool swap_child(struct cop_origin_unanswered *u, uint64_t from, uint64_t to)
{
	bool found = false;

	pthread_mutex_lock(&u->lock);
	for (unsigned i = 0; i < COP_ORIGIN_UNANSWERED && !found; i++) {
		found = u->name[i] == from;
		if (found)
			u->name[i] = to;
	}
	if (found)
		atomic_fetch_add(&u->count, to ? 1 : -1u);
	pthread_mutex_unlock(&u->lock);
	return found;
}

/* ---- one child ---- */

struct got {
	struct cop_attr attr;
	char *target;
	size_t target_len;
	int rc;
	uint64_t ms;
};

static struct child *claim_child(struct batch *b)
{
	struct pass *p = b->p;
	struct child *c = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->over && !p->error && !c && b->next < b->end) {
		c = &cop_origin_children(p)[b->next++];
		if (!c->attr)
			c = NULL;
	}
	b->child = c;
	b->since_ms = cop_now_ms();
	pthread_mutex_unlock(&p->lock);
	return c;
}

static void read_child(struct pass *p, const struct child *c, struct got *g)
{
	struct cop_origin_real *o = p->l->request.o;
	uint64_t begin = cop_now_ms();
	char name[256];

	*g = (struct got){.target = NULL};
	memcpy(name, p->names.data + c->name, c->name_len);
	name[c->name_len] = '\0';
	cop_stats_add(o->stats, COP_ORIGIN_STATS, 1);
	g->rc = cop_origin_statx(o, p->l->fd, name, &g->attr, NULL);
	if (!g->rc && S_ISLNK(g->attr.mode))
		cop_origin_readlink(o, p->l->fd, name, &g->target, &g->target_len);
	g->ms = cop_now_ms() - begin;
}

/* Stores the result. False: the answer came too late, and another worker has taken over the
 * batch. */
static bool accept_result(struct batch *b, struct child *c, const struct got *g)
{
	struct pass *p = b->p;
	bool wanted;

	pthread_mutex_lock(&p->lock);
	wanted = b->child == c;
	if (wanted) {
		*c->attr = g->attr;
		c->has_attr = g->rc == 0;
		c->gone = g->rc == -ENOENT;
		c->target = g->target;
		c->target_len = g->target_len;
		b->child = NULL;
		p->slowest_ms = COP_MAX(p->slowest_ms, g->ms);
	}
	pthread_mutex_unlock(&p->lock);
	if (wanted)
		return true;
	free(g->target);
	swap_child(&p->l->request.o->unanswered, name_key(p, c), 0);
	return false;
}

/* ---- batches ---- */

/* Updates a running mean. Two batches may overwrite each other's value, which is harmless. */
static void note_time(struct cop_origin_real *o, uint64_t begin_ns, unsigned names)
{
	uint64_t each = (cop_now_ns() - begin_ns) / names;

	cop_origin_took(o, begin_ns);
	o->stat_ns = o->stat_ns ? (3 * o->stat_ns + each) / 4 : each;
}

static void end_batch(struct pass *p, int rc)
{
	struct listing *l = p->l;
	bool last;

	pthread_mutex_lock(&p->lock);
	if (rc)
		p->error = rc;
	last = !p->over && --p->pending == 0;
	p->over |= last;
	pthread_mutex_unlock(&p->lock);
	if (last)
		cop_origin_pass_done(l);
}

static void run_batch(struct cop_origin_job *job, int rc)
{
	struct batch *b = COP_CONTAINER_OF(job, struct batch, job);
	struct pass *p = b->p;
	uint64_t begin = cop_now_ns();
	bool ours = true;
	unsigned done = 0;
	struct child *c;
	struct got g;

	while (!rc && ours && (c = claim_child(b))) {
		read_child(p, c, &g);
		ours = accept_result(b, c, &g);
		done += ours;
	}
	if (done && ours)
		note_time(p->l->request.o, begin, done);
	if (ours)
		end_batch(p, rc);
	cop_origin_pass_put(p);
}

/* ---- abandoned operations ---- */

static bool is_late(const struct pass *p, const struct batch *b)
{
	uint64_t usual_ms = p->l->request.o->stat_ns / COP_NS_PER_MS;
	uint64_t patience =
		COP_MAX(SLOWER * COP_MAX(p->slowest_ms, usual_ms), (uint64_t)COP_ORIGIN_ATTR_MS);

	return b->child &&
	       cop_now_ms() >= b->since_ms + COP_MIN(patience, (uint64_t)PATIENCE_MAX_MS);
}

static unsigned count_late(struct pass *p)
{
	unsigned late = 0;

	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->batches; i++)
		late += is_late(p, &p->batch[i]);
	p->looks += late > 0;
	pthread_mutex_unlock(&p->lock);
	return late;
}

/* Called with the lock held. */
static void leave_batch(struct pass *p, struct batch *b)
{
	swap_child(&p->l->request.o->unanswered, 0, name_key(p, b->child));
	b->child = NULL;
	p->gave_up = true;
}

/* Abandons the child that this batch is waiting for if it is late. Returns true if another worker
 * must take over the rest of the batch. */
static bool leave_late(struct pass *p, struct batch *b)
{
	bool rest = false;

	pthread_mutex_lock(&p->lock);
	if (!p->over && is_late(p, b)) {
		leave_batch(p, b);
		while (b->next < b->end && !cop_origin_children(p)[b->next].attr)
			b->next++;
		rest = b->next < b->end;
		p->refs += rest;
		p->pending -= !rest;
	}
	pthread_mutex_unlock(&p->lock);
	return rest;
}

/* Abandons every unanswered child. Returns false if the pass was already over. */
static bool leave_all(struct pass *p, int rc)
{
	bool last;

	pthread_mutex_lock(&p->lock);
	last = !p->over;
	for (uint32_t i = 0; i < p->batches && last; i++)
		if (p->batch[i].child)
			leave_batch(p, &p->batch[i]);
	if (last)
		p->over = p->gave_up = true;
	if (last && rc)
		p->error = rc;
	pthread_mutex_unlock(&p->lock);
	return last;
}

/* Ends the pass, or schedules the next check. */
static void continue_pass(struct pass *p)
{
	bool last, again;

	pthread_mutex_lock(&p->lock);
	last = !p->over && p->pending == 0;
	p->over |= last;
	again = !p->over;
	p->refs += again;
	pthread_mutex_unlock(&p->lock);
	if (last)
		cop_origin_pass_done(p->l);
	else if (again)
		cop_origin_pool_alarm(&p->l->request.o->pool, &p->alarm, COP_ORIGIN_CLOCK_MS);
}

static bool has_all_names(struct pass *p)
{
	bool all;

	pthread_mutex_lock(&p->lock);
	all = p->at_end;
	pthread_mutex_unlock(&p->lock);
	return all;
}

/* More workers would not help if most of them wait for answers already, or if several names hang
 * one after another. */
static void check_progress(struct cop_origin_job *job, int rc)
{
	struct pass *p = COP_CONTAINER_OF(
		COP_CONTAINER_OF(job, struct cop_origin_alarm, job), struct pass, alarm);
	struct cop_origin_pool *pool = &p->l->request.o->pool;
	unsigned late = count_late(p);
	bool last = false;

	if (rc || (late && (p->looks > LOOKS_MAX || cop_origin_pool_is_short(pool, late))))
		last = (rc || has_all_names(p)) && leave_all(p, rc);
	for (uint32_t i = 0; i < p->batches && late && !last; i++)
		if (leave_late(p, &p->batch[i]))
			cop_origin_pool_submit(pool, &p->batch[i].job, true);
	if (last)
		cop_origin_pass_done(p->l);
	else
		continue_pass(p);
	cop_origin_pass_put(p);
}

/* ---- start ---- */

static uint32_t batch_size(const struct cop_origin_real *o)
{
	uint64_t ns = o->stat_ns;
	uint64_t n = ns ? BATCH_NS / ns : BATCH_FIRST;

	return (uint32_t)COP_MIN(COP_MAX(n, 1u), BATCH_MAX);
}

/* Treats a mount point like a name of unknown type. */
static void mark_mounted(void *arg, const char *name)
{
	struct pass *p = arg;
	size_t len = strlen(name);

	for (uint32_t i = 0; i < p->count; i++) {
		struct child *c = &cop_origin_children(p)[i];

		if (c->name_len == len && memcmp(p->names.data + c->name, name, len) == 0)
			c->type = DT_UNKNOWN;
	}
}

/* all: the directory has at most listing_attrs children, or the wanted names are known. */
static bool is_wanted(const struct child *c, bool all)
{
	return c->type == DT_UNKNOWN || (all && !c->bare);
}

/* In a directory with more than listing_attrs children, attributes are read only for names whose
 * type is unknown or whose inode number is hidden by a mount. */
static uint32_t count_wanted(struct pass *p, bool all)
{
	uint32_t wanted = 0;

	if (all && !p->l->known)
		return p->count;
	cop_origin_mounted(p->l->fd, mark_mounted, p);
	for (uint32_t i = 0; i < p->count; i++)
		wanted += is_wanted(&cop_origin_children(p)[i], all);
	return wanted;
}

/* Allocates attributes for every child that needs them, except those with an earlier unanswered
 * request. Returns their number, or -ENOMEM. */
static int64_t want_attrs(struct pass *p)
{
	struct cop_origin_real *o = p->l->request.o;
	bool all = p->l->page.pages || p->l->known || p->count <= o->listing_attrs;
	uint32_t most = p->l->names_only ? 0 : count_wanted(p, all), wanted = 0;

	if (!most)
		return 0;
	p->attrs = calloc(most, sizeof(*p->attrs));
	if (!p->attrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->count; i++) {
		struct child *c = &cop_origin_children(p)[i];

		if (is_wanted(c, all) && !(atomic_load(&o->unanswered.count) &&
						 is_unanswered(&o->unanswered, name_key(p, c))))
			c->attr = &p->attrs[wanted++];
	}
	return wanted;
}

bool cop_origin_reads_ahead(struct cop_origin_real *o)
{
	return o->stat_ns >= SLOW_NS && !atomic_load(&o->in_pieces) &&
	       !cop_origin_pool_is_short(&o->pool, 0);
}

/* The directory may contain more names: checks this while other workers read attributes. */
static void check_end(struct pass *p)
{
	int rc = cop_origin_check_end(p);

	pthread_mutex_lock(&p->lock);
	p->at_end = true;
	if (rc)
		p->error = rc;
	pthread_mutex_unlock(&p->lock);
	end_batch(p, rc);
	cop_origin_pass_put(p);
}

static void submit_batches(struct pass *p, uint32_t from)
{
	/* Put ahead of the jobs that wait in the queue. */
	for (uint32_t i = p->batches; i > from; i--)
		cop_origin_pool_submit(&p->l->request.o->pool, &p->batch[i - 1].job, true);
}

static int make_batches(struct pass *p, uint32_t size)
{
	struct listing *l = p->l;
	uint32_t n = (p->count + size - 1) / size;

	p->batch = calloc(n, sizeof(*p->batch));
	if (!p->batch)
		return -ENOMEM;
	p->batches = n;
	p->pending = n + !p->at_end;
	p->refs += n + 1 + !p->at_end;
	for (uint32_t i = 0; i < n; i++)
		p->batch[i] = (struct batch){.job = {.fn = run_batch,
						     .background = l->request.job.background,
						     .soon = l->request.job.soon,
						     .path = l->path,
						     .to = UINT64_MAX,
						     .patience_ms = COP_ORIGIN_ATTR_MS},
			.p = p,
			.next = i * size,
			.end = COP_MIN((i + 1) * size, p->count)};
	return 0;
}

int cop_origin_read_children(struct pass *p)
{
	struct cop_origin_real *o = p->l->request.o;
	int64_t wanted = want_attrs(p);
	bool at_end = p->at_end;

	if (wanted <= 0)
		return wanted || at_end ? (int)wanted : cop_origin_check_end(p);
	if (make_batches(p, cop_origin_pool_is_short(&o->pool, 0) ? p->count : batch_size(o)))
		return -ENOMEM;
	p->alarm.job = (struct cop_origin_job){.fn = check_progress};
	cop_origin_pool_alarm(&o->pool, &p->alarm, COP_ORIGIN_ATTR_MS);
	/* Runs the first batch, or the check, on this thread; until it finishes, the pass
	 * exists. */
	submit_batches(p, at_end);
	if (at_end)
		run_batch(&p->batch[0].job, 0);
	else
		check_end(p);
	return 1;
}
