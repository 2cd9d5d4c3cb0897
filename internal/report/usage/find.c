/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds size lists below a directory. A job may have several per node: the final one, one from just
 * before the end, and one per snapshot. Each node counts once, with its latest list. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base/grow.h"
#include "report/usage/usage.h"
#include "writers/cluster/cluster.h"

#define DEPTH_MAX 16

struct found {
	char *path; /* relative to the directory named by the user */
	enum cop_usage_table table;
	size_t node, node_len; /* <host>-<pid> in path; node_len 0: unidentifiable */
	bool tagged;           /* from a snapshot, so not final */
};
struct finds {
	struct found *file;
	size_t n, cap;
	struct cop_observed_faults faults;
	int root; /* descriptor of the directory named by the user */
};

/* ---- names ---- */

/* Matches "host-4711-data_cache_size.output", or the name without the prefix; Copper appends .txt
 * if it wrote the list without a request. len: the length before the table's name. */
static bool is_list(const char *name, enum cop_usage_table *table, size_t *len)
{
	for (unsigned t = 0; t < COP_USAGE_TABLES; t++) {
		const char *dot = strrchr(name, '.'), *want = cop_usage_name(t);
		size_t stem = strlen(want) - strlen(".output"),
		       all = dot ? (size_t)(dot - name) : 0;

		if (!dot || (strcmp(dot, ".output") && strcmp(dot, ".txt")) || all < stem ||
			memcmp(dot - stem, want, stem))
			continue;
		if (all > stem && name[all - stem - 1] != '-')
			continue;
		*table = t;
		*len = all > stem ? all - stem - 1 : 0;
		return true;
	}
	return false;
}

/* Cuts -<tag> off the end of a name. */
static bool cut_tag(const char *name, size_t *len, const char *tag, size_t tag_len)
{
	if (!tag_len || *len <= tag_len || name[*len - tag_len - 1] != '-' ||
		memcmp(name + *len - tag_len, tag, tag_len))
		return false;
	*len -= tag_len + 1;
	return true;
}

/* The tag is the name of the folder, or one of those that Copper uses. */
static void find_node(struct found *f, size_t base, size_t len)
{
	static const char *const tags[] = {
		"pre-destroy", "runtime-snapshot", "ioctl-snapshot", "pre-reset"};
	const char *name = f->path + base;
	size_t folder = base ? base - 1 : 0;

	while (folder && f->path[folder - 1] != '/')
		folder--;
	if (base)
		f->tagged = cut_tag(name, &len, f->path + folder, base - 1 - folder);
	for (size_t i = 0; i < COP_ARRAY_SIZE(tags) && !f->tagged; i++)
		f->tagged = cut_tag(name, &len, tags[i], strlen(tags[i]));
	f->node = base;
	f->node_len = cop_observed_is_host_and_pid(name, len) ? len : 0;
}

/* ---- looking ---- */

static int add_find(
	struct finds *all, const char *path, size_t base, enum cop_usage_table table, size_t len)
{
	struct found f = {.path = strdup(path), .table = table};

	if (!f.path || !COP_GROW(all->file, all->n, all->cap)) {
		free(f.path);
		return -ENOMEM;
	}
	find_node(&f, base, len);
	all->file[all->n++] = f;
	return 0;
}

static bool is_directory(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return !fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Whether this is the tables folder of a job directory; other folders may contain copies. */
static bool has_tables(int dir)
{
	struct stat st;

	return !fstatat(dir, "tables", &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* path: the directory; empty for the one named by the user. */
static int search_dir(struct finds *all, struct cop_buf *path, unsigned depth)
{
	int fd = openat(all->root, path->len ? path->data : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
	    rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t len = path->len, list_len;
	bool only_tables;
	struct dirent *e;

	if (!d) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		if (depth)
			cop_observed_faults_add(&all->faults, path->data, strerror(-rc));
		return depth && rc != -ENOMEM ? 0 : rc;
	}
	only_tables = !depth && has_tables(fd);
	while (!rc && (errno = 0, e = readdir(d))) {
		enum cop_usage_table table;

		path->len = len;
		cop_buf_printf(path, "%s%s", len ? "/" : "", e->d_name);
		if (path->failed)
			rc = -ENOMEM;
		else if (is_list(e->d_name, &table, &list_len))
			rc = add_find(
				all, path->data, path->len - strlen(e->d_name), table, list_len);
		else if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && depth < DEPTH_MAX &&
			 (!only_tables || strcmp(e->d_name, "tables") == 0) && is_directory(fd, e))
			rc = search_dir(all, path, depth + 1);
	}
	if (!rc && errno)
		rc = -errno;
	closedir(d);
	return rc;
}

/* ---- choosing ---- */

static int by_node(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = memcmp(x->path + x->node, y->path + y->node, COP_MIN(x->node_len, y->node_len));

	if (order || x->node_len != y->node_len)
		return order ? order : x->node_len < y->node_len ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->tagged != y->tagged ? (x->tagged ? 1 : -1) : strcmp(x->path, y->path);
}

static int64_t written_ns(const struct finds *all, const struct found *f)
{
	struct stat st;

	if (fstatat(all->root, f->path, &st, 0))
		return INT64_MIN;
	return (int64_t)st.st_mtim.tv_sec * (int64_t)COP_NS_PER_S + st.st_mtim.tv_nsec;
}

static bool is_of_same_node(const struct found *a, const struct found *b)
{
	return a->node_len && a->node_len == b->node_len && a->table == b->table &&
	       memcmp(a->path + a->node, b->path + b->node, a->node_len) == 0;
}

/* Chooses among the files of one node and table, which begin at first: the final one, else the
 * latest. Sets *next to the first file after them. */
static const struct found *choose_found(const struct finds *all, size_t first, size_t *next)
{
	const struct found *best = &all->file[first];
	int64_t best_ns = 0;

	for (*next = first + 1; *next < all->n && is_of_same_node(best, &all->file[*next]);
		++*next) {
		const struct found *f = &all->file[*next];
		int64_t ns;

		if (f->tagged != best->tagged)
			continue;
		best_ns = best_ns ? best_ns : written_ns(all, best);
		ns = written_ns(all, f);
		if (ns > best_ns) {
			best = f;
			best_ns = ns;
		}
	}
	return best;
}

/* ---- reading ---- */

static ssize_t read_fd(void *arg, void *data, size_t len)
{
	ssize_t n;

	do
		n = read(*(const int *)arg, data, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int add_file(struct cop_usage *u, struct finds *all, const struct found *file)
{
	const char *why = NULL;
	uint64_t size;
	int fd = cop_open_regular(all->root, file->path, &size), rc;

	if (fd < 0) {
		cop_observed_faults_add(&all->faults, file->path,
			fd == -EINVAL || fd == -EISDIR ? "it is not a regular file"
						       : strerror(-fd));
		return 0;
	}
	rc = cop_usage_add(u, file->table, read_fd, &fd, &why);
	close(fd);
	if (rc == -ENOMEM)
		return rc;
	if (rc || why)
		cop_observed_faults_add(&all->faults, file->path, why ? why : strerror(-rc));
	return 0;
}

static int read_finds(struct cop_usage *u, struct finds *all)
{
	struct cop_buf path = {0};
	int rc = search_dir(all, &path, 0);

	cop_buf_free(&path);
	if (all->n)
		qsort(all->file, all->n, sizeof(*all->file), by_node);
	for (size_t i = 0, next; !rc && i < all->n; i = next) {
		const struct found *file = choose_found(all, i, &next);

		rc = add_file(u, all, file);
	}
	return rc;
}

static bool has_files(const struct cop_usage *u)
{
	for (unsigned t = 0; t < COP_USAGE_TABLES; t++)
		if (u->table[t].files)
			return true;
	return false;
}

int cop_usage_read(struct cop_usage *u, const char *dir, struct cop_err *err)
{
	struct finds all = {.root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	int rc = all.root < 0 ? -errno : 0;

	cop_observed_faults_init(&all.faults);
	if (!rc)
		rc = read_finds(u, &all);
	u->faults = all.faults.count;
	cop_observed_faults_list(&all.faults, &u->named);
	cop_observed_faults_fini(&all.faults);
	if (all.root >= 0)
		close(all.root);
	for (size_t i = 0; i < all.n; i++)
		free(all.file[i].path);
	free(all.file);
	if (rc)
		return cop_err_set(err, -rc, "cannot read %s: %s", dir, strerror(-rc));
	if (!all.n)
		return cop_err_set(err, ENOENT,
			"no *_cache_size.output files in %s nor below it; copper cache-stats writes them with --snapshot or "
			"--output-dir while a job runs, a job with --profile-paths-full writes *_cache_size.txt at its end",
			dir);
	if (!has_files(u))
		return cop_err_set(
			err, ENODATA, "none of the *_cache_size files in %s can be used", dir);
	return 0;
}
