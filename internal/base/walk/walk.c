/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/walk/walk_priv.h"

/* The threads mostly wait for storage, so there may be more of them than processors. */
#define THREADS 16u
#define THREADS_MAX 64u
#define TICK_NS 200000000L

/* Lock held. Last in, first out: the stack then holds one path down the tree and its siblings, not
 * a whole level. */
static int push_batches(struct walk *walk, const struct walk_batch *batch, size_t n)
{
	size_t cap = walk->cap ? walk->cap : 256;
	struct walk_batch *grown;

	while (cap < walk->batches + n)
		cap *= 2;
	if (cap > walk->cap) {
		grown = reallocarray(walk->batch, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		walk->batch = grown;
		walk->cap = cap;
	}
	memcpy(walk->batch + walk->batches, batch, n * sizeof(*batch));
	walk->batches += n;
	return 0;
}

/* Lock held. Waits for a batch; false if the walk has ended. */
static bool next_batch(struct walk *walk, struct walk_batch *batch)
{
	while (!walk->batches && walk->running && !walk->rc) {
		walk->idle++;
		pthread_cond_wait(&walk->more, &walk->lock);
		walk->idle--;
	}
	if (walk->rc || !walk->batches)
		return false;
	*batch = walk->batch[--walk->batches];
	walk->running++;
	return true;
}

/* Lock held. Call this when other threads can take n more batches, or the walk has ended. */
static void wake_idle(struct walk *walk, size_t n)
{
	if (walk->rc || (!walk->running && !walk->batches)) {
		pthread_cond_broadcast(&walk->more);
		pthread_cond_signal(&walk->over);
		return;
	}
	for (n = COP_MIN(n, walk->idle); n; n--)
		pthread_cond_signal(&walk->more);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct walk *walk = w->walk;
	struct walk_batch batch;

	pthread_mutex_lock(&walk->lock);
	while (next_batch(walk, &batch)) {
		int rc;

		pthread_mutex_unlock(&walk->lock);
		rc = cop_walk_run(w, &batch);
		pthread_mutex_lock(&walk->lock);
		if (!rc && w->batches)
			rc = push_batches(walk, w->batch, w->batches);
		if (rc && !walk->rc)
			walk->rc = rc;
		walk->running--;
		wake_idle(walk, w->batches ? w->batches - 1 : 0);
	}
	walk->tree->files += w->files;
	walk->tree->dirs += w->dirs;
	walk->tree->bytes += w->bytes;
	walk->tree->skipped += w->skipped;
	pthread_mutex_unlock(&walk->lock);
	return NULL;
}

/* ---- roots ---- */

/* A root may be a link or a file; links below it are not followed. */
static int open_root(struct walk *walk, uint32_t i)
{
	const char *path = walk->conf->root[i];
	struct cop_walk_entry *e = &walk->tree->top.entry[i];
	struct walk_root *r = &walk->root[i];
	struct walk_batch batch = {0};
	struct stat st;

	*e = (struct cop_walk_entry){.name = path, .len = (uint16_t)strlen(path)};
	r->fd = -1;
	if (stat(path, &st))
		return lstat(path, &st) ? 0
					: (e->type = IFTODT(st.st_mode), walk->tree->files++, 0);
	e->type = IFTODT(st.st_mode);
	if (e->type != DT_DIR) {
		e->size = e->type == DT_REG ? (uint64_t)st.st_size : 0;
		walk->tree->files++;
		walk->tree->bytes += e->size;
		return 0;
	}
	walk->tree->dirs++;
	batch.dir = cop_walk_arena_alloc(walk->tree->arena, sizeof(*batch.dir));
	r->real = realpath(path, NULL);
	if (!r->real)
		r->real = strdup(path);
	if (!batch.dir || !r->real)
		return -ENOMEM;
	*batch.dir = (struct cop_walk_dir){.parent = &walk->tree->top, .in_parent = i, .fd = -1};
	e->dir = batch.dir;
	r->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->fd < 0) {
		cop_walk_fault(walk, batch.dir, path, errno);
		return 0;
	}
	walk->no_openat2 |= !cop_has_openat2(r->fd);
	return push_batches(walk, &batch, 1);
}

static int open_roots(struct walk *walk)
{
	const struct cop_walk_conf *conf = walk->conf;
	struct cop_walk_dir *top = &walk->tree->top;
	int rc = 0;

	top->entry = cop_walk_arena_alloc(walk->tree->arena, conf->roots * sizeof(*top->entry));
	walk->root = calloc(conf->roots, sizeof(*walk->root));
	if (!top->entry || !walk->root)
		return -ENOMEM;
	top->n = (uint32_t)conf->roots;
	for (uint32_t i = 0; i < top->n; i++)
		walk->root[i].fd = -1;
	for (uint32_t i = 0; !rc && i < top->n; i++) {
		size_t len = strlen(conf->root[i]);
		char *copy = cop_walk_arena_copy(walk->tree->arena, conf->root[i], len);

		rc = !copy ? -ENOMEM : len > UINT16_MAX ? -ENAMETOOLONG : open_root(walk, i);
		top->entry[i].name = copy;
	}
	return rc;
}

/* ---- all of it ---- */

/* The calling thread only reports progress. */
static void wait_for_end(struct walk *walk)
{
	struct timespec until;

	pthread_mutex_lock(&walk->lock);
	while (!walk->rc && (walk->batches || walk->running)) {
		until = cop_moment(cop_now_ns() + TICK_NS);
		if (pthread_cond_timedwait(&walk->over, &walk->lock, &until) != ETIMEDOUT ||
			!walk->conf->tick)
			continue;
		pthread_mutex_unlock(&walk->lock);
		walk->conf->tick(walk->conf->arg, atomic_load(&walk->entries));
		pthread_mutex_lock(&walk->lock);
	}
	pthread_mutex_unlock(&walk->lock);
}

static int run_workers(struct walk *walk, unsigned threads)
{
	struct worker *worker = calloc(threads, sizeof(*worker));
	pthread_t *thread = calloc(threads, sizeof(*thread));
	unsigned started = 0;
	int rc = worker && thread ? 0 : -ENOMEM;

	while (!rc && started < threads) {
		worker[started].walk = walk;
		worker[started].arena = &walk->tree->arena[started];
		rc = cop_thread_start(&thread[started], "walk", run_worker, &worker[started]);
		started += !rc;
	}
	if (started)
		rc = 0; /* if the user's thread limit is low, one thread is enough */
	if (rc) {
		pthread_mutex_lock(&walk->lock);
		walk->rc = rc;
		pthread_cond_broadcast(&walk->more);
		pthread_mutex_unlock(&walk->lock);
	}
	wait_for_end(walk);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(thread[i], NULL);
		free(worker[i].buffer);
		free(worker[i].entry);
		free(worker[i].batch);
	}
	free(worker);
	free(thread);
	return walk->rc ? walk->rc : rc;
}

/* Closes the descriptors of batches that never ran. */
static void forget_tasks(struct walk *walk)
{
	for (size_t i = 0; i < walk->batches; i++)
		if (walk->batch[i].n && atomic_fetch_sub(&walk->batch[i].dir->batches, 1) == 1)
			close(walk->batch[i].dir->fd);
	free(walk->batch);
	for (size_t i = 0; walk->root && i < walk->conf->roots; i++) {
		if (walk->root[i].fd >= 0)
			close(walk->root[i].fd);
		free(walk->root[i].real);
	}
	free(walk->root);
}

static int walk_roots(struct walk *walk, unsigned threads)
{
	int rc;

	pthread_mutex_init(&walk->lock, NULL);
	pthread_cond_init(&walk->more, NULL);
	cop_cond_init(&walk->over);
	rc = cop_walk_mounts_load(&walk->mounts);
	if (!rc)
		rc = open_roots(walk);
	if (!rc)
		rc = run_workers(walk, threads);
	forget_tasks(walk);
	cop_walk_mounts_free(&walk->mounts);
	pthread_cond_destroy(&walk->over);
	pthread_cond_destroy(&walk->more);
	pthread_mutex_destroy(&walk->lock);
	return rc;
}

static int explain_failure(const struct cop_walk_conf *conf, int rc, struct cop_err *err)
{
	if (rc == -E2BIG)
		return cop_err_set(err, E2BIG,
			"there are more than %" PRIu64
			" names below the usage roots; name smaller ones with "
			"--usage-root, and leave out the home directory with --skip-home-inference",
			conf->max_entries);
	return cop_err_set(err, -rc, "the usage roots cannot be walked: %s", strerror(-rc));
}

int cop_walk(const struct cop_walk_conf *conf, struct cop_walk_tree **out, struct cop_err *err)
{
	struct cop_walk_conf mine = *conf;
	struct walk walk = {.conf = &mine, .no_openat2 = conf->no_openat2};
	struct cop_walk_tree *t = calloc(1, sizeof(*t));
	int rc = -ENOMEM;

	if (!mine.max_entries)
		mine.max_entries = COP_WALK_ENTRIES_MAX;
	mine.threads = mine.threads ? COP_MIN(mine.threads, THREADS_MAX) : THREADS;
	walk.tree = t;
	if (t && (t->arena = calloc(mine.threads, sizeof(*t->arena)))) {
		t->arenas = mine.threads;
		rc = mine.roots ? walk_roots(&walk, mine.threads) : 0;
	}
	if (rc) {
		cop_walk_tree_free(t);
		return explain_failure(&mine, rc, err);
	}
	*out = t;
	return 0;
}

void cop_walk_tree_free(struct cop_walk_tree *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->arenas; i++)
		cop_walk_arena_free(&t->arena[i]);
	free(t->arena);
	for (unsigned i = 0; i < t->faults; i++)
		free(t->fault[i].path);
	free(t);
}
