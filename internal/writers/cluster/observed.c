/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling thread reads the directory, a few thousand names at a time. Several threads then read
 * these files, because on a parallel file system open takes most of the time. Each collects paths
 * without the lock, and adds them under the lock, a batch at a time. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "writers/cluster/cluster.h"

#define NAMES 2048u
#define FILE_MAX_BYTES (16 * COP_GIB)
#define BATCH_BYTES (256 * COP_KIB)

struct reading {
	struct cop_observed *o;
	int dir;
	char *name[NAMES];
	unsigned n;
	uint64_t found;
	pthread_mutex_t lock; /* protects o->set, o->files, o->paths and rc */
	int rc;
	void (*tick)(void *arg, uint64_t files);
	void *arg;
};

/* One path of a batch, followed by its bytes. */
struct item {
	uint64_t hash;
	struct cop_path_counts counts;
	size_t len;
};
struct batch {
	struct reading *r;
	struct cop_buf items;
};

static int add_batch(struct batch *b)
{
	struct cop_pathset *s = &b->r->o->set;
	int rc = b->items.failed ? -ENOMEM : 0;

	pthread_mutex_lock(&b->r->lock);
	for (size_t at = 0; !rc && at < b->items.len;) {
		struct item item;

		memcpy(&item, b->items.data + at, sizeof(item));
		at += sizeof(item);
		rc = cop_observed_pathset_add(
			s, b->items.data + at, item.len, item.hash, &item.counts);
		at += item.len;
	}
	pthread_mutex_unlock(&b->r->lock);
	b->items.len = 0;
	return rc;
}

static int take_path(void *arg, const char *path, size_t len, const struct cop_path_counts *c)
{
	struct batch *b = arg;
	struct item item = {cop_observed_pathset_hash(&b->r->o->set, path, len), *c, len};

	cop_buf_add(&b->items, &item, sizeof(item));
	cop_buf_add(&b->items, path, len);
	return b->items.failed || b->items.len > BATCH_BYTES ? add_batch(b) : 0;
}

/* Reads at most the size that the file had when it was opened, even if it is still growing. */
struct source {
	int fd;
	uint64_t left;
};

static ssize_t read_source(void *arg, void *data, size_t len)
{
	struct source *s = arg;

	return cop_read_left(s->fd, &s->left, data, len);
}

/* Returns NULL, or why it failed. */
static const char *open_table(int dir, const char *name, struct source *s)
{
	s->fd = cop_open_regular(dir, name, &s->left);
	if (s->fd == -EINVAL || s->fd == -EISDIR)
		return "it is not a regular file";
	if (s->fd < 0)
		return strerror(-s->fd);
	return s->left > FILE_MAX_BYTES ? "it is larger than any table" : NULL;
}

static const char *verdict_text(const struct cop_table_result *t, char text[80])
{
	switch (t->verdict) {
	case COP_OBSERVED_EMPTY:
		return "it is empty";
	case COP_OBSERVED_NONE:
		return "it is not a raw table";
	case COP_OBSERVED_CUT:
		return "it is truncated; the rest of it is used";
	default:
		snprintf(text, 80,
			"a number is above 2^64-1 and counts as 2^64-1 (line %" PRIu64 ")",
			t->cut_line);
		if (t->cut_line && !t->odd)
			return text;
		return t->odd ? "some of its lines are not paths and were skipped" : NULL;
	}
}

static void read_one(void *arg, size_t i)
{
	struct reading *r = arg;
	struct batch batch = {.r = r};
	struct cop_table_result table = {0};
	struct source source;
	const char *wrong = open_table(r->dir, r->name[i], &source);
	char text[80];
	int rc = 0;

	if (!wrong)
		rc = cop_observed_table_read(read_source, &source,
			cop_observed_table_kind(r->name[i]), take_path, &batch, &table);
	if (!rc)
		rc = add_batch(&batch);
	if (!wrong)
		wrong = rc ? strerror(-rc) : verdict_text(&table, text);
	if (source.fd >= 0)
		close(source.fd);
	cop_buf_free(&batch.items);
	if (wrong)
		cop_observed_faults_add(&r->o->faults, r->name[i], wrong);
	pthread_mutex_lock(&r->lock);
	r->o->paths += table.paths;
	r->o->files +=
		table.paths || ((!wrong || table.cut_line) && table.verdict == COP_OBSERVED_WHOLE);
	if (rc == -ENOMEM)
		r->rc = rc;
	pthread_mutex_unlock(&r->lock);
}

static void report_progress(void *arg)
{
	struct reading *r = arg;

	r->tick(r->arg, r->found);
}

static int read_names(struct reading *r)
{
	int rc = r->n ? cop_walk_parallel(r->n, read_one, r->tick ? report_progress : NULL, r) : 0;

	for (unsigned i = 0; i < r->n; i++)
		free(r->name[i]);
	r->n = 0;
	return rc ? rc : r->rc;
}

static bool is_table(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && end != name && strcmp(end, ".output") == 0;
}

static int read_files(struct reading *r, DIR *d)
{
	struct dirent *e;
	int rc = 0;

	r->dir = dirfd(d);
	while (!rc && (errno = 0, e = readdir(d))) {
		if (!is_table(e->d_name))
			continue;
		r->name[r->n] = strdup(e->d_name);
		rc = r->name[r->n] ? 0 : -ENOMEM;
		r->n += !rc;
		r->found += !rc;
		if (!rc && r->n == NAMES)
			rc = read_names(r);
	}
	if (!rc && errno)
		rc = -errno;
	return read_names(r) ?: rc;
}

void cop_observed_init(struct cop_observed *o)
{
	*o = (struct cop_observed){0};
	cop_observed_faults_init(&o->faults);
	o->set.seed = cop_now_ns() ^ (uintptr_t)o;
}

int cop_observed_read(
	struct cop_observed *o, const char *dir, void (*tick)(void *arg, uint64_t files), void *arg)
{
	struct reading *r = calloc(1, sizeof(*r));
	DIR *d = r ? opendir(dir) : NULL;
	int rc = d ? 0 : r ? -errno : -ENOMEM;

	if (!rc) {
		r->o = o;
		r->tick = tick;
		r->arg = arg;
		pthread_mutex_init(&r->lock, NULL);
		rc = read_files(r, d);
		pthread_mutex_destroy(&r->lock);
	}
	if (!rc && !o->files)
		rc = r->found ? -ENODATA : -ENOENT;
	if (d)
		closedir(d);
	free(r);
	return rc;
}

void cop_observed_free(struct cop_observed *o)
{
	cop_observed_pathset_free(&o->set);
	cop_observed_faults_fini(&o->faults);
}
