/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories. One pass reads the names, then the attributes of the children in batches over the pool; the batch that
 * ends last compares the directory's attributes with those from before the pass and either answers or, when the directory
 * moved meanwhile, begins another pass on its own thread. Nobody waits for anybody, so one worker is enough.
 *
 * How many names a batch has follows from what a statx took lately: about a millisecond of work, since on a slow
 * file system 32 names one after another make a lookup wait that long, and on a fast one a handover costs more than
 * a statx. (30 names at 1 ms per operation: 11 ms; in batches of 32 always: 69 ms.) */
#include "origin/origin_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_MIN 2
#define BATCH_MAX 32
#define BATCH_NS COP_NS_PER_MS
#define REREADS 3
#define BLOCK (64 * COP_KIB)
/* What fits no blob (wire.h) need not be read to its end: a record there takes 32 bytes and the name. */
#define BLOB_MAX (64 * COP_MIB)
#define RECORD_BYTES 32

struct child {
	uint64_t ino;
	uint32_t name; /* offset in names */
	uint8_t name_len, type;
	bool has_attr, gone;
	struct cop_attr *attr; /* where to put them; NULL: not wanted */
	char *target;
	size_t target_len;
};

struct batch {
	struct cop_origin_job job;
	struct listing *l;
	uint32_t first, count;
};

struct listing {
	struct cop_origin_task task;
	bool names_only;
	int fd;
	unsigned passes;
	struct cop_attr before; /* of the directory */
	uint64_t dev;
	bool left_out; /* there are names that a listing cannot hold */
	struct cop_buf names, children;
	uint32_t count;
	struct cop_attr *attrs;
	struct batch *batch;
	_Atomic uint32_t pending;
	_Atomic int error;
};

static struct child *children(struct listing *l)
{
	return (struct child *)(void *)l->children.data;
}

static void forget_pass(struct listing *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(children(l)[i].target);
	cop_buf_free(&l->names);
	cop_buf_free(&l->children);
	free(l->attrs);
	free(l->batch);
	l->attrs = NULL;
	l->batch = NULL;
	l->count = 0;
	l->left_out = false;
}

static void end(struct listing *l, int rc, void *blob, size_t len)
{
	if (!rc)
		cop_stats_add(l->task.o->stats, COP_ORIGIN_LISTS, 1);
	forget_pass(l);
	if (l->fd >= 0)
		close(l->fd);
	cop_origin_task_end(&l->task, rc, blob, len);
	free(l);
}

/* ---- names ---- */

static uint8_t known_type(uint8_t type)
{
	switch (type) {
	case DT_FIFO:
	case DT_CHR:
	case DT_DIR:
	case DT_BLK:
	case DT_REG:
	case DT_LNK:
	case DT_SOCK:
		return type;
	default:
		return DT_UNKNOWN;
	}
}

static int add_name(struct listing *l, const struct dirent64 *d)
{
	size_t len = strlen(d->d_name);
	struct child c = {.ino = cop_origin_ino(l->task.o, l->dev, d->d_ino),
		.name = (uint32_t)l->names.len,
		.name_len = (uint8_t)len,
		.type = known_type(d->d_type)};

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	if (len == 0 || len > 255) {
		l->left_out = true;
		return 0;
	}
	if ((!l->names_only && l->count >= l->task.o->listing_max) ||
	    l->names.len + len + (l->count + 1) * RECORD_BYTES > BLOB_MAX)
		return -E2BIG;
	cop_buf_add(&l->names, d->d_name, len);
	cop_buf_add(&l->children, &c, sizeof(c));
	if (l->names.failed || l->children.failed)
		return -ENOMEM;
	l->count++;
	return 0;
}

static int read_names(struct listing *l)
{
	char *block = malloc(BLOCK);
	int rc = block ? 0 : -ENOMEM;

	while (!rc) {
		ssize_t n;

		cop_origin_count(l->task.o);
		n = getdents64(l->fd, block, BLOCK);
		if (n <= 0) {
			rc = n < 0 ? -errno : 0;
			break;
		}
		for (ssize_t at = 0; at < n && !rc;) {
			const struct dirent64 *d = (const void *)(block + at);

			rc = add_name(l, d);
			at += d->d_reclen;
		}
	}
	free(block);
	return rc;
}

/* ---- attributes of the children ---- */

static void read_child(struct listing *l, struct child *c)
{
	struct cop_origin_real *o = l->task.o;
	char name[256];
	int rc;

	memcpy(name, l->names.data + c->name, c->name_len);
	name[c->name_len] = '\0';
	cop_stats_add(o->stats, COP_ORIGIN_STATS, 1);
	rc = cop_origin_statx(o, l->fd, name, c->attr, NULL);
	c->gone = rc == -ENOENT;
	c->has_attr = rc == 0;
	if (!rc && S_ISLNK(c->attr->mode))
		cop_origin_readlink(o, l->fd, name, &c->target, &c->target_len);
}

static void finish_pass(struct listing *l);

static void batch_done(struct listing *l)
{
	if (atomic_fetch_sub(&l->pending, 1) == 1)
		finish_pass(l);
}

static void run_batch(struct cop_origin_job *job, int rc)
{
	struct batch *b = COP_CONTAINER_OF(job, struct batch, job);
	struct listing *l = b->l;
	struct cop_origin_real *o = l->task.o;
	uint64_t begin = cop_now_ns(), each;
	unsigned done = 0;

	if (rc)
		l->error = rc;
	for (uint32_t i = b->first; i < b->first + b->count && !l->error; i++) {
		if (children(l)[i].attr) {
			read_child(l, &children(l)[i]);
			done++;
		}
	}
	if (done) {
		cop_origin_took(o, begin);
		each = (cop_now_ns() - begin) / done;
		/* A running mean; that two batches may overwrite each other's does no harm. */
		o->stat_ns = o->stat_ns ? (3 * o->stat_ns + each) / 4 : each;
	}
	batch_done(l);
}

static uint32_t batch_size(const struct cop_origin_real *o)
{
	uint64_t ns = o->stat_ns;
	uint64_t n = ns ? BATCH_NS / ns : BATCH_MAX;

	return (uint32_t)COP_MIN(COP_MAX(n, BATCH_MIN), BATCH_MAX);
}

/* Such a name is taken for one whose type the directory does not tell. */
static void mark_mounted(void *arg, const char *name)
{
	struct listing *l = arg;
	size_t len = strlen(name);

	for (uint32_t i = 0; i < l->count; i++) {
		struct child *c = &children(l)[i];

		if (c->name_len == len && memcmp(l->names.data + c->name, name, len) == 0)
			c->type = DT_UNKNOWN;
	}
}

/* Gives every child whose attributes are wanted a place for them; returns how many, or -ENOMEM. Past listing_attrs
 * those are the children of which the directory does not tell the type, or not the number since something is mounted there. */
static int64_t want_attrs(struct listing *l)
{
	bool all = l->count <= l->task.o->listing_attrs;
	uint32_t wanted = 0;

	if (l->names_only)
		return 0;
	if (!all)
		cop_origin_mounted(l->fd, mark_mounted, l);
	for (uint32_t i = 0; i < l->count; i++)
		wanted += all || children(l)[i].type == DT_UNKNOWN;
	if (!wanted)
		return 0;
	l->attrs = calloc(wanted, sizeof(*l->attrs));
	if (!l->attrs)
		return -ENOMEM;
	for (uint32_t i = 0, n = 0; i < l->count; i++)
		if (all || children(l)[i].type == DT_UNKNOWN)
			children(l)[i].attr = &l->attrs[n++];
	return wanted;
}

/* Hands the batches to the pool, before the jobs that wait there, and runs the first one here. */
static int start_batches(struct listing *l)
{
	struct cop_origin_real *o = l->task.o;
	uint32_t size = batch_size(o), n = (l->count + size - 1) / size;

	l->batch = calloc(n, sizeof(*l->batch));
	if (!l->batch)
		return -ENOMEM;
	l->pending = n;
	for (uint32_t i = 0; i < n; i++)
		l->batch[i] = (struct batch){.job = {.fn = run_batch, .later = l->task.job.later, .path = l->task.path, .to = UINT64_MAX},
			.l = l,
			.first = i * size,
			.count = COP_MIN(size, l->count - i * size)};
	/* The first batch is not done yet, so l stays. */
	for (uint32_t i = n - 1; i > 0; i--)
		cop_origin_pool_submit(&o->pool, &l->batch[i].job, true);
	run_batch(&l->batch[0].job, 0);
	return 0;
}

/* ---- passes ---- */

static void start_pass(struct listing *l)
{
	uint64_t begin = cop_now_ns();
	int64_t wanted;
	int rc;

	forget_pass(l);
	rc = cop_origin_statx(l->task.o, l->fd, "", &l->before, &l->dev);
	if (!rc && l->passes++ && lseek(l->fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (!rc)
		rc = read_names(l);
	cop_origin_took(l->task.o, begin);
	if (rc) {
		end(l, rc, NULL, 0);
		return;
	}
	wanted = want_attrs(l);
	rc = wanted > 0 ? start_batches(l) : (int)wanted;
	if (rc)
		end(l, rc, NULL, 0);
	else if (!wanted)
		finish_pass(l);
}

static int add_child(struct listing *l, struct cop_listing_builder *b, const struct child *c)
{
	const struct cop_attr *attr = c->has_attr ? c->attr : NULL;
	const char *name = l->names.data + c->name;
	uint8_t type = attr ? known_type(IFTODT(attr->mode)) : c->type;

	if (!attr)
		return cop_listing_add_bare(b, name, c->name_len, type, c->ino);
	return cop_listing_add(b, name, c->name_len, type, attr, type == DT_LNK ? c->target : NULL,
		c->target_len);
}

/* A name that was read and then was not there: the directory changed. Where its stamps prove that it did not, one of the two answers was
 * wrong, so the name stands in the listing without attributes, and whoever looks it up asks again. */
static int assemble(struct listing *l, bool moved, void **blob, size_t *len)
{
	struct cop_listing_builder b = {0};
	bool complete = !moved && !l->left_out &&
		!cop_origin_is_autofs(l->task.o, l->fd, l->dev);
	int rc = 0;

	for (uint32_t i = 0; i < l->count && !rc; i++) {
		const struct child *c = &children(l)[i];

		if (c->gone && (moved || cop_version_is_young(l->before.version)))
			continue;
		rc = add_child(l, &b, c);
		if (rc == -EINVAL) {
			complete = false;
			rc = 0;
		}
	}
	if (rc) {
		cop_listing_builder_free(&b);
		return rc;
	}
	return cop_listing_build(&b, &l->before, complete ? COP_LISTING_COMPLETE : 0, blob, len);
}

/* Everything of this pass is read. */
static void finish_pass(struct listing *l)
{
	bool last = l->passes > REREADS, moved = false;
	struct cop_attr after;
	void *blob = NULL;
	size_t len = 0;
	int rc = l->error;

	if (!rc) {
		uint64_t begin = cop_now_ns();

		rc = cop_origin_statx(l->task.o, l->fd, "", &after, NULL);
		cop_origin_took(l->task.o, begin);
	}
	if (!rc) {
		moved = !cop_version_same(after.version, l->before.version);
		if (!moved || last)
			rc = assemble(l, moved, &blob, &len);
		/* A name that came twice: the directory changed under the reader. */
		moved |= rc == -EEXIST;
		if (rc == -EEXIST && last)
			rc = -EIO;
	}
	if (moved && !last)
		start_pass(l);
	else
		end(l, rc, blob, len);
}

static void list_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_task *t = COP_CONTAINER_OF(job, struct cop_origin_task, job);
	struct listing *l = COP_CONTAINER_OF(t, struct listing, task);

	if (!rc)
		rc = t->path_error;
	if (!rc) {
		uint64_t begin = cop_now_ns();

		l->fd = cop_origin_open_read(t->o, t->path, O_DIRECTORY);
		cop_origin_took(t->o, begin);
		rc = l->fd < 0 ? l->fd : 0;
	}
	if (rc)
		end(l, rc, NULL, 0);
	else
		start_pass(l);
}

void cop_origin_real_list(struct cop_origin *o, const char *path, bool names_only,
	cop_origin_done *done, void *arg)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l || cop_origin_task_init(&l->task, o, path, done, arg)) {
		free(l);
		done(arg, -ENOMEM, NULL, 0);
		return;
	}
	l->fd = -1;
	l->names_only = names_only;
	l->task.job.fn = list_job;
	cop_origin_pool_submit(&l->task.o->pool, &l->task.job, false);
}
