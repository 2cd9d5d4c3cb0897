/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake origin: a tree in memory whose jobs wait until a test completes them. Requests are
 * counted when they are made, not when they complete. Times are taken from a counter, so every run
 * is identical. Missing parent directories of a new path are created. */
#include "base/base/htab.h"
#include "storage/origin/origin_priv.h"

#include <assert.h>
#include <dirent.h>
#include <sys/stat.h>

struct node {
	struct cop_hlink link;
	struct cop_list children, sibling; /* children includes removed nodes */
	char *path;
	char *content; /* of a file, or the target of a link */
	size_t len;
	struct cop_attr attr;
	bool gone; /* removed; exists only to return its forced error */
	int error;
};

struct fake {
	struct cop_origin base;
	pthread_mutex_t lock; /* protects the queue */
	struct cop_list jobs;
	struct cop_htab nodes; /* by path */
	unsigned queued;
	uint64_t clock; /* also the source of inode numbers */
	bool young;     /* versions in answers from now on are young */
	struct cop_origin_fake_counts counts;
};

struct fake_job {
	struct cop_list link;
	void (*fn)(struct fake *f, struct fake_job *j, int rc);
	char *path;
	uint64_t version, size, offset;
	struct iovec *iov;
	int n_iov;
	bool names_only;
	struct cop_listing_page page;
	cop_origin_done *done;
	void (*run)(void *arg, int rc);
	void *arg;
};

static struct fake *fake(struct cop_origin *o)
{
	return COP_CONTAINER_OF(o, struct fake, base);
}

/* ---- the tree ---- */

static struct node *find_any(struct fake *f, const char *path, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&f->nodes, cop_hash64(path, len, 0));

	for (; l; l = cop_htab_next(l)) {
		struct node *n = COP_CONTAINER_OF(l, struct node, link);

		if (strlen(n->path) == len && memcmp(n->path, path, len) == 0)
			return n;
	}
	return NULL;
}

static size_t parent_len(const char *path, size_t len)
{
	while (len > 0 && path[--len] != '/')
		;
	return len;
}

/* Parent directories become nodes as well, but count as gone until a test creates something in
 * them. */
static struct node *make_node(struct fake *f, const char *path, size_t len)
{
	struct node *n = find_any(f, path, len);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	assert(n);
	n->path = strndup(path, len);
	assert(n->path);
	n->gone = true;
	cop_list_init(&n->children);
	cop_list_init(&n->sibling);
	if (len > 0)
		cop_list_push_back(
			&make_node(f, path, parent_len(path, len))->children, &n->sibling);
	cop_htab_add(&f->nodes, &n->link, cop_hash64(path, len, 0));
	return n;
}

static void set_attr(struct fake *f, struct node *n, uint32_t mode, size_t len)
{
	uint64_t now = ++f->clock;

	n->attr = (struct cop_attr){.ino = n->attr.ino ? n->attr.ino : now,
		.size = len,
		.blocks = (len + 511) / 512,
		.atime_s = (int64_t)now,
		.mtime_s = (int64_t)now,
		.ctime_s = (int64_t)now,
		.mode = mode,
		.nlink = S_ISDIR(mode) ? 2 : 1,
		.blksize = 4096};
	n->attr.version = cop_attr_version(&n->attr);
}

/* Marks the parent directory of path as changed. */
static void touch_parent(struct fake *f, const char *path)
{
	struct node *n;

	if (!*path)
		return;
	n = make_node(f, path, parent_len(path, strlen(path)));
	if (n->gone) {
		n->gone = false;
		touch_parent(f, n->path);
	}
	set_attr(f, n, S_IFDIR | 0755, 4096);
}

void cop_origin_fake_put(
	struct cop_origin *o, const char *path, uint32_t mode, const void *content, size_t len)
{
	struct fake *f = fake(o);
	struct node *n = make_node(f, path, strlen(path));
	bool was_there = !n->gone;

	free(n->content);
	n->content = NULL;
	n->len = 0;
	n->gone = !content && !S_ISDIR(mode);
	if (content) {
		n->content = calloc(1, len + 1);
		assert(n->content);
		memcpy(n->content, content, len);
		n->len = len;
	}
	set_attr(f, n, mode, S_ISDIR(mode) ? 4096 : len);
	if (was_there == n->gone)
		touch_parent(f, path);
}

void cop_origin_fake_fail(struct cop_origin *o, const char *path, int error)
{
	make_node(fake(o), path, strlen(path))->error = error;
}

void cop_origin_fake_young(struct cop_origin *o, bool young)
{
	fake(o)->young = young;
}

/* Each subdirectory counts as a link of its parent. */
static struct cop_attr attr_now(const struct fake *f, const struct node *n)
{
	struct cop_attr attr = n->attr;

	attr.version |= f->young;
	if (!S_ISDIR(attr.mode))
		return attr;
	for (const struct cop_list *i = n->children.next; i != &n->children; i = i->next) {
		const struct node *m = COP_CONTAINER_OF(i, struct node, sibling);

		attr.nlink += S_ISDIR(m->attr.mode) && !m->gone;
	}
	return attr;
}

/* Finds the node of path; 0 or the error that the real origin would return. */
static int look_up(struct fake *f, const char *path, struct node **out)
{
	struct node *n = find_any(f, path, strlen(path));
	int rc = cop_origin_path_check(path);

	if (rc)
		return rc;
	if (n && n->error)
		return -abs(n->error);
	if (n && !n->gone) {
		*out = n;
		return 0;
	}
	for (size_t len = strlen(path); len > 0;) {
		len = parent_len(path, len);
		n = find_any(f, path, len);
		if (n && !n->gone)
			return S_ISLNK(n->attr.mode)   ? -ELOOP
			       : S_ISDIR(n->attr.mode) ? -ENOENT
						       : -ENOTDIR;
	}
	return -ENOENT;
}

/* ---- the jobs ---- */

static void submit(struct cop_origin *o, const struct fake_job *job, const char *path)
{
	struct fake *f = fake(o);
	struct fake_job *j = malloc(sizeof(*j));

	assert(j);
	*j = *job;
	j->path = strdup(path);
	assert(j->path);
	pthread_mutex_lock(&f->lock);
	cop_list_push_back(&f->jobs, &j->link);
	f->queued++;
	pthread_mutex_unlock(&f->lock);
}

static bool is_large(const struct node *folder)
{
	unsigned n = 0;

	for (struct cop_list *i = folder->children.next; i != &folder->children; i = i->next)
		n += !COP_CONTAINER_OF(i, struct node, sibling)->gone;
	return n > COP_ORIGIN_LISTING_ATTRS;
}

/* page: lists only its names; pages == 0: all names, without attributes if there are many. */
static int build_listing(struct fake *f, const struct node *folder, bool names_only,
	const struct cop_listing_page *page, void **blob, size_t *len)
{
	struct cop_attr dir = attr_now(f, folder), attr;
	struct cop_listing_builder b = {0};

	names_only |= !page->pages && is_large(folder);

	for (struct cop_list *i = folder->children.next; i != &folder->children; i = i->next) {
		const struct node *n = COP_CONTAINER_OF(i, struct node, sibling);
		const char *name = n->path + (*folder->path ? strlen(folder->path) + 1 : 0);
		bool target = S_ISLNK(n->attr.mode) && !names_only;

		if (n->gone)
			continue;
		attr = attr_now(f, n);
		if (!page->pages ||
			cop_listing_page_of(name, strlen(name), page->pages) == page->index)
			cop_listing_add(&b, name, strlen(name), IFTODT(n->attr.mode),
				names_only ? NULL : &attr, target ? n->content : NULL, n->len);
	}
	return cop_listing_build(&b, &dir, page->pages ? 0 : COP_LISTING_COMPLETE, blob, len);
}

static void list_fn(struct fake *f, struct fake_job *j, int rc)
{
	struct node *n = NULL;
	void *blob = NULL;
	size_t len = 0;

	if (!rc)
		rc = look_up(f, j->path, &n);
	if (!rc && !S_ISDIR(n->attr.mode))
		rc = -ENOTDIR;
	if (!rc && j->page.pages && !cop_version_same(n->attr.version, j->page.version))
		rc = -ESTALE;
	if (!rc)
		rc = build_listing(f, n, j->names_only, &j->page, &blob, &len);
	j->done(j->arg, rc, blob, len);
}

static void fake_list(
	struct cop_origin *o, const char *path, bool names_only, cop_origin_done *done, void *arg)
{
	fake(o)->counts.lists++;
	submit(o,
		&(struct fake_job){
			.fn = list_fn, .names_only = names_only, .done = done, .arg = arg},
		path);
}

/* known saves work on a real storage, but makes no difference here. */
static void fake_list_known(
	struct cop_origin *o, const char *path, const void *known, cop_origin_done *done, void *arg)
{
	(void)known;
	fake(o)->counts.known++;
	submit(o, &(struct fake_job){.fn = list_fn, .done = done, .arg = arg}, path);
}

/* names saves work on a real storage, but makes no difference here. */
static void fake_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg)
{
	(void)names;
	fake(o)->counts.pages++;
	submit(o, &(struct fake_job){.fn = list_fn, .page = *page, .done = done, .arg = arg}, path);
}

static void stat_fn(struct fake *f, struct fake_job *j, int rc)
{
	struct cop_attr attr = {0};
	struct node *n = NULL;
	void *blob = NULL;
	size_t len = 0;

	if (!rc)
		rc = look_up(f, j->path, &n);
	if (!rc)
		attr = attr_now(f, n);
	if (!rc)
		rc = cop_entry_build(
			&attr, S_ISLNK(n->attr.mode) ? n->content : NULL, n->len, &blob, &len);
	j->done(j->arg, rc, blob, len);
}

static void fake_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	fake(o)->counts.stats++;
	submit(o, &(struct fake_job){.fn = stat_fn, .done = done, .arg = arg}, path);
}

static int look_up_file(struct fake *f, const struct fake_job *j, struct node **n)
{
	int rc = look_up(f, j->path, n);

	if (rc)
		return rc;
	if (!S_ISREG((*n)->attr.mode))
		return S_ISDIR((*n)->attr.mode)   ? -EISDIR
		       : S_ISLNK((*n)->attr.mode) ? -ELOOP
						  : -EINVAL;
	return j->version && !cop_version_same(j->version, (*n)->attr.version) ? -ESTALE : 0;
}

static void read_fn(struct fake *f, struct fake_job *j, int rc)
{
	struct node *n = NULL;
	size_t got = 0;

	if (!rc)
		rc = look_up_file(f, j, &n);
	if (!rc && j->version && j->size != n->attr.size)
		rc = -ESTALE;
	for (int i = 0; !rc && i < j->n_iov && j->offset < n->len; i++) {
		size_t len = COP_MIN(j->iov[i].iov_len, n->len - j->offset);

		if (len)
			memcpy(j->iov[i].iov_base, n->content + j->offset, len);
		j->offset += len;
		got += len;
	}
	j->done(j->arg, rc, NULL, got);
}

static void fake_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg)
{
	struct fake_job j = {.fn = read_fn,
		.version = version,
		.size = size,
		.offset = offset,
		.iov = calloc((size_t)n_iov + 1, sizeof(*iov)),
		.n_iov = n_iov,
		.done = done,
		.arg = arg};

	assert(j.iov);
	for (int i = 0; i < n_iov; i++)
		j.iov[i] = iov[i];
	fake(o)->counts.reads++;
	for (int i = 0; i < n_iov; i++)
		fake(o)->counts.read_bytes += iov[i].iov_len;
	submit(o, &j, path);
}

/* The fake's files have no holes. */
static void holes_fn(struct fake *f, struct fake_job *j, int rc)
{
	struct node *n = NULL;
	struct cop_extent *e = NULL;

	if (!rc)
		rc = look_up_file(f, j, &n);
	if (!rc && n->len) {
		e = malloc(sizeof(*e));
		assert(e);
		*e = (struct cop_extent){0, n->len};
	}
	j->done(j->arg, rc, e, e ? sizeof(*e) : 0);
}

static void fake_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg)
{
	submit(o, &(struct fake_job){.fn = holes_fn, .version = version, .done = done, .arg = arg},
		path);
}

static void statfs_fn(struct fake *f, struct fake_job *j, int rc)
{
	struct cop_statfs *fs = rc ? NULL : calloc(1, sizeof(*fs));

	(void)f;
	if (fs)
		*fs = (struct cop_statfs){.bsize = 4096,
			.frsize = 4096,
			.blocks = 1000000,
			.bfree = 500000,
			.bavail = 400000,
			.files = 100000,
			.ffree = 50000,
			.favail = 50000,
			.namemax = 255};
	j->done(j->arg, rc, fs, fs ? sizeof(*fs) : 0);
}

static void fake_statfs(struct cop_origin *o, cop_origin_done *done, void *arg)
{
	submit(o, &(struct fake_job){.fn = statfs_fn, .done = done, .arg = arg}, "");
}

static void run_fn(struct fake *f, struct fake_job *j, int rc)
{
	(void)f;
	j->run(j->arg, rc);
}

static void fake_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg)
{
	submit(o, &(struct fake_job){.fn = run_fn, .run = fn, .arg = arg}, "");
}

static void fake_raise_priority(struct cop_origin *o, const char *path, uint64_t offset)
{
	(void)path;
	(void)offset;
	fake(o)->counts.raises++;
}

static void fake_load(struct cop_origin *o, unsigned *queued, unsigned *running)
{
	pthread_mutex_lock(&fake(o)->lock);
	*queued = fake(o)->queued;
	*running = 0;
	pthread_mutex_unlock(&fake(o)->lock);
}

static size_t run_jobs(struct fake *f, size_t max, int rc)
{
	size_t n = 0;

	for (; n < max; n++) {
		struct cop_list *item;
		struct fake_job *j;

		pthread_mutex_lock(&f->lock);
		item = cop_list_pop_front(&f->jobs);
		f->queued -= item != NULL;
		pthread_mutex_unlock(&f->lock);
		if (!item)
			break;
		j = COP_CONTAINER_OF(item, struct fake_job, link);
		j->fn(f, j, rc);
		free(j->iov);
		free(j->path);
		free(j);
	}
	return n;
}

size_t cop_origin_fake_run(struct cop_origin *o, size_t max)
{
	return run_jobs(fake(o), max, 0);
}

struct cop_origin_fake_counts cop_origin_fake_counts(const struct cop_origin *o)
{
	return ((const struct fake *)(const void *)((const char *)o - offsetof(struct fake, base)))
		->counts;
}

static bool fake_close(struct cop_origin *o)
{
	struct fake *f = fake(o);
	struct cop_hlink *next;

	run_jobs(f, SIZE_MAX, -ECANCELED);
	for (struct cop_hlink *l = cop_htab_after(&f->nodes, NULL); l; l = next) {
		struct node *n = COP_CONTAINER_OF(l, struct node, link);

		next = cop_htab_after(&f->nodes, l);
		free(n->path);
		free(n->content);
		free(n);
	}
	cop_htab_fini(&f->nodes);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return true;
}

static const struct cop_origin_ops fake_ops = {
	.close = fake_close,
	.list = fake_list,
	.list_known = fake_list_known,
	.page = fake_page,
	.stat = fake_stat,
	.read = fake_read,
	.holes = fake_holes,
	.statfs = fake_statfs,
	.run = fake_run,
	.raise_priority = fake_raise_priority,
	.load = fake_load,
};

struct cop_origin *cop_origin_fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct node *root;

	if (!f)
		return NULL;
	f->base = (struct cop_origin){.ops = &fake_ops, .dirfd = -1};
	f->clock = 1;
	pthread_mutex_init(&f->lock, NULL);
	cop_list_init(&f->jobs);
	root = make_node(f, "", 0);
	root->gone = false;
	set_attr(f, root, S_IFDIR | 0755, 4096);
	return &f->base;
}
