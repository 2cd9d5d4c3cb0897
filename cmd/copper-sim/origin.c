/* SPDX-License-Identifier: BSD-3-Clause */
/* origin.h as the tree/fetch of a simulated node sees it, over one storage for all nodes. A root
 * behaves like internal/storage/origin: as many operations in flight; a directory as an open, a
 * read of names, and then its children's attributes in batches beside the read that finds no
 * more names (as on a storage that takes a quarter of a millisecond or more); a descriptor that
 * is kept between the reads of a file. Attributes cached by the root's storage client (before
 * and after) count as system calls and take no time. */
#include "sim.h"

#define KEPT 64u
#define KEPT_NS (2 * COP_NS_PER_S)
#define BATCH_MAX 32u
#define BATCH_US 1000u
/* For a listing, besides its children: an open, two reads, attributes twice. The first two that
 * take time are followed by the other one and the children. */
#define LIST_CALLS 5u
#define LIST_FIRST 2u

struct job {
	struct cop_list link;
	struct sim_node *node;
	const struct sim_line *line; /* NULL: file data */
	cop_origin_done *done;
	void *arg;
	uint64_t file, offset, bytes, size;
	bool background, listing; /* listing: its first part is not finished */
	unsigned children, tasks; /* children with unread attributes; tasks in progress */
};

/* Operations that run one after another in one slot of the pool. */
struct task {
	struct cop_list link;
	struct job *job;
	uint64_t ops, bytes;
	bool background; /* as it was when it started */
};

struct origin_pool {
	struct cop_list urgent, background; /* tasks */
	uint64_t running, running_background;
	bool knows_device; /* it has checked, once, whether the file system is autofs */
	struct {
		uint64_t file, until;
	} kept[KEPT];
};

/* ---- the storage ---- */

void cop_sim_storage_open(struct sim *s)
{
	if (cop_model_storage_open(&s->storage, &s->conf.model))
		abort();
}

void cop_sim_storage_close(struct sim *s)
{
	cop_model_storage_close(&s->storage);
}

static uint64_t op_ns(const struct sim *s)
{
	return s->conf.model.storage_op_us * 1000;
}

/* ---- the pool of a root ---- */

static struct origin_pool *pool_of(struct sim_node *n)
{
	struct origin_pool *p = n->origin.pool;

	if (p)
		return p;
	p = n->origin.pool = cop_sim_alloc(1, sizeof(*p));
	cop_list_init(&p->urgent);
	cop_list_init(&p->background);
	n->sim->storage.clients++;
	return p;
}

void cop_sim_origin_close(struct sim_node *n)
{
	free(n->origin.pool);
}

static void start_tasks(struct sim_node *n);
static void end_job(struct job *j);

static void next_operation(void *arg, uint64_t unused)
{
	struct task *t = arg;
	struct job *j = t->job;
	struct sim_node *n = j->node;
	struct origin_pool *p = n->origin.pool;
	uint64_t bytes;

	(void)unused;
	if (t->ops && !cop_sim_is_dead(n)) {
		bytes = t->bytes / t->ops;
		t->bytes -= bytes;
		t->ops--;
		cop_sim_at(
			cop_model_served_at(&n->sim->storage, cop_sim_now(), op_ns(n->sim), bytes),
			next_operation, t, 0);
		return;
	}
	p->running--;
	p->running_background -= t->background;
	free(t);
	j->tasks--;
	if (!j->tasks)
		end_job(j); /* this may free j */
	start_tasks(n);
}

static struct task *next_task(struct sim_node *n)
{
	struct origin_pool *p = n->origin.pool;
	uint64_t most = n->sim->conf.model.origin_ops;
	struct cop_list *l;

	if (p->running >= most)
		return NULL;
	l = cop_list_pop_front(&p->urgent);
	if (!l && p->running_background < COP_MAX(most - most / 4, (uint64_t)1))
		l = cop_list_pop_front(&p->background);
	return l ? COP_CONTAINER_OF(l, struct task, link) : NULL;
}

static void start_tasks(struct sim_node *n)
{
	struct task *t;

	while ((t = next_task(n))) {
		n->origin.pool->running++;
		t->background = t->job->background;
		n->origin.pool->running_background += t->background;
		cop_sim_at(
			cop_sim_now() + n->sim->conf.model.origin_us * 1000, next_operation, t, 0);
	}
}

static void add_task(struct job *j, uint64_t ops, uint64_t bytes)
{
	struct origin_pool *p = pool_of(j->node);
	struct task *t = cop_sim_alloc(1, sizeof(*t));

	t->job = j;
	t->ops = ops;
	t->bytes = bytes;
	j->tasks++;
	cop_list_push_back(j->background ? &p->background : &p->urgent, &t->link);
}

/* ---- jobs ---- */

static void add_children(struct job *j)
{
	uint64_t op_us =
		COP_MAX(cop_model_service_ns(&j->node->sim->storage, op_ns(j->node->sim)) / 1000,
			(uint64_t)1);
	unsigned batch = (unsigned)COP_MIN(COP_MAX(BATCH_US / op_us, (uint64_t)1), BATCH_MAX);

	j->listing = false;
	add_task(j, 1, 0);
	for (unsigned left = j->children; left; left -= COP_MIN(left, batch))
		add_task(j, COP_MIN(left, batch), 0);
	j->children = 0;
	start_tasks(j->node);
}

static void keep_file(struct job *j)
{
	struct origin_pool *p = j->node->origin.pool;
	unsigned slot = (unsigned)(j->file % KEPT);

	p->kept[slot].file = j->file;
	p->kept[slot].until = j->offset + j->bytes < j->size ? cop_sim_now() + KEPT_NS : 0;
}

/* After a listing come its children. */
static void end_job(struct job *j)
{
	const struct sim_line *l = j->line;
	int rc = l ? l->ret : 0;

	if (j->listing && !cop_sim_is_dead(j->node)) {
		add_children(j);
		return;
	}
	if (cop_sim_is_dead(j->node))
		j->done(j->arg, -ECANCELED, NULL, 0);
	else if (l)
		j->done(j->arg, rc, rc ? NULL : l->blob, rc ? 0 : l->bytes);
	else {
		keep_file(j);
		j->done(j->arg, 0, NULL, j->bytes);
	}
	free(j);
}

static struct job *new_job(struct cop_origin *o, cop_origin_done *done, void *arg)
{
	struct job *j = cop_sim_alloc(1, sizeof(*j));

	j->node = o->node;
	j->background = o->background;
	j->done = done;
	j->arg = arg;
	return j;
}

static void begin_job(struct job *j, uint64_t calls, uint64_t ops)
{
	j->node->sim->storage_ops += calls;
	add_task(j, ops, j->bytes);
	start_tasks(j->node);
}

static void read_missing(void *arg, uint64_t unused)
{
	struct job *j = arg;

	(void)unused;
	j->done(j->arg, -ENOENT, NULL, 0);
	free(j);
}

static void queue_ask(struct cop_origin *o, enum cop_ask_kind kind, const char *path,
	cop_origin_done *done, void *arg)
{
	struct job *j = new_job(o, done, arg);
	uint64_t ops = 1;

	j->line = cop_sim_trace_find(o->node->sim->conf.trace, kind, path);
	if (!j->line) {
		cop_sim_at(cop_sim_now(), read_missing, j, 0);
		return;
	}
	if (kind == COP_ASK_LISTING || kind == COP_ASK_NAMES) {
		j->listing = !j->line->ret;
		ops = COP_MIN(j->line->calls, LIST_FIRST);
		j->children = j->line->calls - COP_MIN(j->line->calls, LIST_CALLS);
	} else if (kind == COP_ASK_ENTRY && !j->line->ret) {
		ops = COP_MAX(j->line->calls, 2u) - 1; /* all but the open of its directory */
	}
	begin_job(j, j->line->calls, ops);
	if (kind == COP_ASK_LISTING && !o->node->origin.pool->knows_device) {
		o->node->origin.pool->knows_device = true;
		o->node->sim->storage_ops++;
	}
}

void cop_origin_list(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	queue_ask(o, COP_ASK_LISTING, path, done, arg);
}

/* No simulated node has a pack. */
void cop_origin_list_known(
	struct cop_origin *o, const char *path, const void *known, cop_origin_done *done, void *arg)
{
	(void)known;
	cop_origin_list(o, path, done, arg);
}

void cop_origin_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg)
{
	(void)o;
	fn(arg, -EOPNOTSUPP);
}

void cop_origin_names(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	queue_ask(o, COP_ASK_NAMES, path, done, arg);
}

/* A recorded program requests only listings and single names from tree/fetch; no page was
 * recorded. */
void cop_origin_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg)
{
	(void)page;
	(void)names;
	queue_ask(o, COP_ASK_PAGE, path, done, arg);
}

void cop_origin_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	queue_ask(o, COP_ASK_ENTRY, path, done, arg);
}

void cop_origin_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg)
{
	(void)version;
	queue_ask(o, COP_ASK_HOLES, path, done, arg);
}

void cop_origin_statfs(struct cop_origin *o, cop_origin_done *done, void *arg)
{
	queue_ask(o, COP_ASK_STATFS, "", done, arg);
}

void cop_origin_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg)
{
	struct sim *s = o->node->sim;
	uint64_t unit = s->conf.model.storage_read_kib * COP_KIB;
	struct origin_pool *p = pool_of(o->node);
	struct job *j = new_job(o, done, arg);
	unsigned slot;
	bool kept;

	(void)version;
	for (int i = 0; i < n_iov; i++)
		j->bytes += iov[i].iov_len;
	j->file = cop_hash64(path, strlen(path), 0);
	j->offset = offset;
	j->size = size;
	slot = (unsigned)(j->file % KEPT);
	kept = p->kept[slot].file == j->file && p->kept[slot].until > cop_sim_now();
	s->storage_bytes += j->bytes;
	begin_job(j, 2 + !kept, !kept + (j->bytes + unit - 1) / unit);
}

struct cop_origin *cop_origin_background(struct cop_origin *o)
{
	return &o->node->behind;
}

/* In the simulation, these jobs are urgent ones. */
struct cop_origin *cop_origin_soon(struct cop_origin *o)
{
	return o;
}

/* Moves jobs that have not begun to the urgent ones. */
void cop_origin_raise_priority(struct cop_origin *o, const char *path, uint64_t offset)
{
	struct origin_pool *p = pool_of(o->node);
	uint64_t file = cop_hash64(path, strlen(path), 0);

	for (struct cop_list *l = p->background.next, *next; l != &p->background; l = next) {
		struct task *t = COP_CONTAINER_OF(l, struct task, link);
		struct job *j = t->job;

		next = l->next;
		if (j->line ? strcmp(j->line->path, path) != 0
			    : j->file != file || offset < j->offset ||
					offset >= j->offset + j->bytes)
			continue;
		cop_list_remove(l);
		cop_list_push_back(&p->urgent, l);
		j->background = false;
	}
}
