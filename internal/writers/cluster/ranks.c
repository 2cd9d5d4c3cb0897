/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread walks the directory and queues the ranks; the others read the ranks' files. On a
 * parallel file system open takes most of the time, so there may be more readers than processors,
 * but another one starts only when the running ones do not keep up. The directory may have tens of
 * thousands of names, and ranks share no files, so no list of names is kept.
 *
 * The lock protects the queue, its counters and the sums. Threads read files without the lock and
 * add them up under it. */
#include <dirent.h>
#include <fcntl.h>
#include <time.h>

#include "writers/cluster/cluster_priv.h"

#define READERS_MAX 64u
#define QUEUE_MAX 256u
#define LOOK_AGAIN_MS 200 /* progress interval */

struct work {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	char queue[QUEUE_MAX][RANK_NAME_MAX]; /* a ring of <host>-<pid> */
	unsigned first, waiting;
	bool closed;
	int failed;    /* the first -errno of any thread */
	uint64_t read; /* ranks read so far */
	uint64_t told_ms;
	int dir, tables;                /* tables: directory of the raw tables; -1: none */
	uint64_t every_path, most_used; /* ranks with all paths; ranks with only the most used */
	struct ranks_result *out;
	struct cop_observed_faults
		no_top; /* missing top paths files; faults only if other ranks have them */
	pthread_t reader[READERS_MAX];
	unsigned readers;
};

/* Moves the next rank to stem. Returns false at the end of the queue. */
static bool next_stem(struct work *w, char stem[RANK_NAME_MAX])
{
	bool got;

	pthread_mutex_lock(&w->lock);
	while (!w->waiting && !w->closed)
		pthread_cond_wait(&w->filled, &w->lock);
	got = w->waiting;
	if (got) {
		strcpy(stem, w->queue[w->first]);
		w->first = (w->first + 1) % QUEUE_MAX;
		w->waiting--;
		pthread_cond_signal(&w->emptied);
	}
	pthread_mutex_unlock(&w->lock);
	return got;
}

static void fail_work(struct work *w, int rc)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failed)
		w->failed = rc;
	pthread_mutex_unlock(&w->lock);
}

static int add_paths(struct cop_pathset *s, const struct cop_buf *paths)
{
	int rc = 0;

	for (size_t at = 0, len; at < paths->len && !rc; at += len + 1) {
		const char *path = paths->data + at;

		len = strlen(path);
		if (s->arena.bytes < RANKS_PATHS_BYTES)
			rc = cop_observed_pathset_add(s, path, len,
				cop_observed_pathset_hash(s, path, len),
				&(struct cop_path_counts){0});
		else
			s->full = true;
	}
	return rc;
}

/* Adds this rank's metrics to the range across ranks. */
static int add_values(struct work *w, const struct rank_reader *r, const char *stem)
{
	static const struct nodes none;
	struct cop_buf name = {0};
	int64_t rank = cop_report_nodes_rank(
		w->out->nodes ? w->out->nodes : &none, stem, strlen(stem), &name);
	int rc = name.failed ? -ENOMEM
			     : cop_report_range_add(
				       w->out->sums, rank, name.data, name.len, &r->file->metrics);

	cop_buf_free(&name);
	return rc;
}

static int add_file(struct work *w, const struct rank_reader *r, const char *stem,
	enum cop_report_kind kind, bool every_path)
{
	int rc;

	pthread_mutex_lock(&w->lock);
	rc = cop_report_cluster_merge(w->out->sums, r->file);
	if (!rc && kind == COP_REPORT_AGGREGATE)
		rc = add_values(w, r, stem);
	w->most_used += !rc && kind == COP_REPORT_TOP_PATHS && !every_path;
	if (!rc && w->out->top)
		rc = add_paths(w->out->top, &r->paths);
	w->out->files[kind] += rc == 0;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void read_one(struct work *w, struct rank_reader *r, const char *stem,
	enum cop_report_kind kind, bool every_path)
{
	struct cop_buf why = {0};
	char name[RANK_NAME_MAX + 32];
	int rc;

	snprintf(name, sizeof(name), "%s-%s", stem, cop_report_kind_name(kind));
	rc = cop_report_read_file(r, w->dir, name, kind, &why);
	if (!rc && every_path) {
		cop_pathclass_totals_free(&r->file->classes);
		cop_report_hot_clear(&r->file->hot);
	}
	if (!rc)
		rc = add_file(w, r, stem, kind, every_path);
	if (rc == -ENOBUFS)
		cop_buf_str(&why, "it has too many names that other files do not have");
	if (rc == -ENOMEM)
		fail_work(w, rc);
	else if (rc == -ENOENT)
		cop_observed_faults_add(kind == COP_REPORT_TOP_PATHS ? &w->no_top : &w->out->faults,
			name, "it is missing, although other files of this rank exist");
	else if (rc)
		cop_observed_faults_add(&w->out->faults, name, why.data ? why.data : strerror(-rc));
	else if (r->doubts)
		cop_observed_faults_add(&w->out->doubts, name,
			r->doubt.data ? r->doubt.data : "a value was corrected or left out");
	cop_buf_free(&why);
}

/* A rank's complete tables take precedence over its list of most used paths. */
static bool add_tables(struct work *w, struct rank_reader *r, const char *stem)
{
	bool whole = w->tables >= 0 && cop_report_read_tables(r, w->tables, stem);
	int rc;

	if (!whole)
		return false;
	pthread_mutex_lock(&w->lock);
	rc = cop_report_cluster_merge(w->out->sums, r->tables);
	w->every_path++;
	if (rc && !w->failed)
		w->failed = rc;
	pthread_mutex_unlock(&w->lock);
	return true;
}

static void read_rank(struct work *w, struct rank_reader *r, const char *stem)
{
	bool every_path = add_tables(w, r, stem);

	for (unsigned k = 0; k < COP_REPORT_KINDS; k++)
		read_one(w, r, stem, k, every_path);
	pthread_mutex_lock(&w->lock);
	w->read++;
	pthread_cond_signal(&w->emptied);
	pthread_mutex_unlock(&w->lock);
}

static void *read_ranks(void *arg)
{
	struct work *w = arg;
	struct rank_reader r;
	char stem[RANK_NAME_MAX];
	int rc = cop_report_reader_open(&r);

	if (rc)
		fail_work(w, rc);
	while (next_stem(w, stem))
		if (!rc)
			read_rank(w, &r, stem);
	cop_report_reader_close(&r);
	return NULL;
}

/* Waits for a change, and reports progress. Called with the lock held, which it releases while
 * waiting. */
static void wait_a_while(struct work *w, const struct cop_report_aggregate *what)
{
	struct timespec until = cop_moment(cop_now_ns() + LOOK_AGAIN_MS * COP_NS_PER_MS);

	pthread_cond_timedwait(&w->emptied, &w->lock, &until);
	if (what->progress && cop_now_ms() - w->told_ms >= LOOK_AGAIN_MS) {
		uint64_t read = w->read;

		w->told_ms = cop_now_ms();
		pthread_mutex_unlock(&w->lock);
		what->progress(what->arg, "ranks", read);
		pthread_mutex_lock(&w->lock);
	}
}

/* Starts another reader if there is none, or if the queue grows. Failure is fatal only if none is
 * running. */
static int add_reader(struct work *w)
{
	int rc = cop_thread_start(&w->reader[w->readers], "aggregate", read_ranks, w);

	w->readers += rc == 0;
	return w->readers ? 0 : rc;
}

static int queue_stem(
	struct work *w, const char *stem, size_t len, const struct cop_report_aggregate *what)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (!w->readers || (w->waiting >= 8 && w->readers < READERS_MAX))
		rc = add_reader(w);
	while (!rc && w->waiting == QUEUE_MAX)
		wait_a_while(w, what);
	if (!rc) {
		char *slot = w->queue[(w->first + w->waiting) % QUEUE_MAX];

		memcpy(slot, stem, len);
		slot[len] = '\0';
		w->waiting++;
		w->out->found++;
		pthread_cond_signal(&w->filled);
		rc = w->failed;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* Names of final files have no tag; names of snapshot files contain that of their directory. Treats
 * a directory as one or the other, so that no rank is added twice. */
static int find_tag(DIR *d, const char *dir, char tag[RANK_NAME_MAX])
{
	const char *slash = strrchr(dir, '/');
	enum cop_report_kind kind;
	struct dirent *e;
	size_t len;

	snprintf(tag, RANK_NAME_MAX, "%s", slash ? slash + 1 : dir);
	while ((errno = 0, e = readdir(d)) && *tag)
		if (cop_report_rank_name(e->d_name, "", &len, &kind))
			*tag = '\0';
	if (!e && errno)
		return -errno;
	rewinddir(d);
	return 0;
}

static int queue_all(
	struct work *w, DIR *d, const char *tag, const struct cop_report_aggregate *what)
{
	struct cop_pathset seen = {.seed = cop_now_ns()};
	struct dirent *e;
	int rc = 0;

	while (!rc && (errno = 0, e = readdir(d))) {
		enum cop_report_kind kind;
		size_t len, met;

		if (!cop_report_rank_name(e->d_name, tag, &len, &kind))
			continue;
		met = seen.table.count;
		rc = cop_observed_pathset_add(&seen, e->d_name, len,
			cop_observed_pathset_hash(&seen, e->d_name, len),
			&(struct cop_path_counts){0});
		if (!rc && seen.full)
			rc = -E2BIG;
		if (rc || seen.table.count == met)
			continue;
		if (w->out->nodes)
			cop_report_nodes_met(w->out->nodes, e->d_name, len);
		rc = queue_stem(w, e->d_name, len, what);
	}
	if (!rc)
		rc = -errno;
	cop_observed_pathset_free(&seen);
	return rc;
}

static void wait_for_readers(struct work *w, const struct cop_report_aggregate *what)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_cond_broadcast(&w->filled);
	while (w->readers && w->read < w->out->found && !w->failed)
		wait_a_while(w, what);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->readers; i++)
		pthread_join(w->reader[i], NULL);
}

/* A missing top paths file is a fault only if other ranks have one, because -N is optional. */
static void add_top_faults(struct work *w)
{
	struct cop_observed_faults *all = &w->out->faults;

	if (!w->out->files[COP_REPORT_TOP_PATHS])
		return;
	for (unsigned i = 0; i < w->no_top.named; i++)
		cop_observed_faults_add(all, w->no_top.first[i].name, w->no_top.first[i].why);
	all->count += w->no_top.count - w->no_top.named;
}

static struct work *work_new(struct ranks_result *out)
{
	struct work *w = calloc(1, sizeof(*w));

	cop_observed_faults_init(&out->faults);
	cop_observed_faults_init(&out->doubts);
	out->sums = cop_report_cluster_new();
	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->filled, NULL);
	cop_cond_init(&w->emptied);
	cop_observed_faults_init(&w->no_top);
	w->out = out;
	w->tables = -1;
	return w;
}

static void work_free(struct work *w)
{
	if (!w)
		return;
	if (w->tables >= 0)
		close(w->tables);
	cop_observed_faults_fini(&w->no_top);
	pthread_cond_destroy(&w->filled);
	pthread_cond_destroy(&w->emptied);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Opens the directory of the raw tables that belong to the final rank files, if it exists. */
static int open_tables(const char *dir)
{
	static const char place[] = "/profiling/final", event[] = "_cache_event.output";
	size_t len = strlen(dir);
	struct dirent *e;
	bool any = false;
	char *path;
	int fd = -1;
	DIR *d;

	if (len < strlen(place) || strcmp(dir + len - strlen(place), place) != 0 ||
		asprintf(&path, "%.*s/tables/final", (int)(len - strlen(place)), dir) < 0)
		return -1;
	d = opendir(path);
	while (d && !any && (e = readdir(d))) {
		len = strlen(e->d_name);
		any = len > strlen(event) && strcmp(e->d_name + len - strlen(event), event) == 0;
	}
	if (any)
		fd = fcntl(dirfd(d), F_DUPFD_CLOEXEC, 0);
	if (d)
		closedir(d);
	free(path);
	return fd;
}

int cop_report_read_ranks(const char *dir, const struct cop_report_aggregate *what,
	struct ranks_result *out, struct cop_err *err)
{
	struct work *w = work_new(out);
	char tag[RANK_NAME_MAX];
	DIR *d = opendir(dir);
	int rc = 0;

	if (!d) {
		rc = cop_err_set(err, errno, "cannot read %s: %s", dir, strerror(errno));
	} else if (!w || !out->sums) {
		rc = cop_err_set(err, ENOMEM, "no memory to read %s", dir);
	} else {
		w->dir = dirfd(d);
		w->tables = open_tables(dir);
		rc = find_tag(d, dir, tag);
		rc = rc ? rc : queue_all(w, d, tag, what);
		wait_for_readers(w, what);
		rc = rc ? rc : w->failed;
		if (rc)
			cop_err_set(err, -rc, "reading %s: %s", dir, strerror(-rc));
		else
			add_top_faults(w);
		out->sums->every_path = w->every_path && !w->most_used;
		out->sums->of_lists = w->most_used;
	}
	if (d)
		closedir(d);
	work_free(w);
	return rc;
}

void cop_report_ranks_fini(struct ranks_result *out)
{
	cop_observed_faults_fini(&out->faults);
	cop_observed_faults_fini(&out->doubts);
	cop_report_cluster_free(out->sums);
}
