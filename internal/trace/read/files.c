/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the trace files named by the user. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base/grow.h"
#include "trace/read/read_priv.h"
#include "base/walk/walk.h"

/* A file that is already in the list, since more than one path may lead to it. */
struct seen {
	struct cop_hlink link;
	dev_t dev;
	ino_t ino;
};
struct find {
	struct cop_trace_files *files;
	struct cop_htab seen;
	const char *given, *walked; /* a directory, as the user named it and as it is walked */
};

/* Returns 1 if the file is new; -ENOMEM. */
static int is_new(struct find *f, const struct stat *st)
{
	const uint64_t key[] = {st->st_dev, st->st_ino};
	uint64_t hash = cop_hash64(key, sizeof(key), 0);
	struct cop_hlink *l = cop_htab_first(&f->seen, hash);
	struct seen *s;

	for (; l; l = cop_htab_next(l)) {
		s = COP_CONTAINER_OF(l, struct seen, link);
		if (s->dev == st->st_dev && s->ino == st->st_ino)
			return 0;
	}
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->dev = st->st_dev;
	s->ino = st->st_ino;
	cop_htab_add(&f->seen, &s->link, hash);
	return 1;
}

static int grow_files(struct cop_trace_files *files)
{
	if (files->n >= COP_TRACE_FILES_MAX)
		return -E2BIG;
	return COP_GROW(files->file, files->n, files->cap) ? 0 : -ENOMEM;
}

static bool ends_in(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !memcmp(name + len - n, end, n);
}

/* The length of the name without a compression suffix. */
static size_t plain_length(const char *name)
{
	static const char *const ends[] = {".gz", ".zst", ".zip"};
	size_t len = strlen(name);

	for (size_t i = 0; i < COP_ARRAY_SIZE(ends); i++)
		if (ends_in(name, len, ends[i]))
			return len - strlen(ends[i]);
	return len;
}

/* Whether the name is one that DFTracer, PerfFlowAspect and Copper's nodes use for traces. */
static bool is_called_a_trace(const char *name)
{
	return ends_in(name, plain_length(name), ".pfw");
}

/* Whether the name is one that both traces and other files have. */
static bool may_be_a_trace(const char *name)
{
	static const char *const ends[] = {".json", ".jsonl", ".trace"};
	size_t len = plain_length(name);

	for (size_t i = 0; i < COP_ARRAY_SIZE(ends); i++)
		if (ends_in(name, len, ends[i]))
			return true;
	return false;
}

/* Takes ownership of the name. */
static int add_trace_file(struct find *f, char *name, bool given)
{
	struct stat st;
	int rc = name ? 0 : -ENOMEM;

	if (!rc && (stat(name, &st) || (!given && !S_ISREG(st.st_mode)))) {
		free(name);
		return 0;
	}
	if (!rc)
		rc = is_new(f, &st);
	if (rc > 0) {
		rc = grow_files(f->files);
		if (!rc) {
			f->files->file[f->files->n++] = (struct file){.name = name,
				.fd = -1,
				.meant = given || is_called_a_trace(name),
				.likely = may_be_a_trace(name)};
			return 0;
		}
	}
	free(name);
	return rc;
}

/* Reports the path below the directory as the user named it. */
static int visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	struct find *f = arg;
	size_t skip = strlen(f->walked), given = strlen(f->given);
	char *name;

	if (e->dir || e->type != DT_REG || len <= skip || ends_in(path, len, COP_TRACE_INDEX_END))
		return 0;
	while (given > 1 && f->given[given - 1] == '/')
		given--;
	name = malloc(given + len - skip + 2);
	if (!name)
		return -ENOMEM;
	memcpy(name, f->given, given);
	if (skip == 1 && given && f->given[given - 1] != '/')
		name[given++] = '/';
	if (skip == 1)
		skip = f->given[given - 1] == '/';
	memcpy(name + given, path + skip, len - skip + 1);
	return add_trace_file(f, name, false);
}

static int walk(struct find *f, const char *path, struct cop_err *err)
{
	char *real = realpath(path, NULL);
	const char *root[] = {real};
	struct cop_walk_tree *tree = NULL;
	int rc;

	if (!real)
		return -errno;
	f->given = path;
	f->walked = real;
	rc = cop_walk(&(struct cop_walk_conf){.root = root, .roots = 1}, &tree, err);
	if (!rc)
		rc = cop_walk_tree_each(tree, visit, f);
	cop_walk_tree_free(tree);
	free(real);
	return rc;
}

/* ---- pipes ---- */

static int temp_file(void)
{
	const char *dir = getenv("TMPDIR");
	char *name;
	int fd;

	dir = dir && *dir ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (asprintf(&name, "%s/copper-trace.XXXXXX", dir) < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}

static int copy_all(int from, int to)
{
	char data[64 * COP_KIB];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			n = cop_write_full(to, data, (size_t)n);
		if (n < 0)
			return n == -1 ? -errno : (int)n;
	}
	return 0;
}

/* Traces are read more than once and by several threads, so copy data from a pipe to an unnamed
 * file. */
static int add_pipe(struct find *f, const char *path, struct cop_err *err)
{
	bool input = !strcmp(path, "-");
	int from =
		input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
	int to = temp_file(), rc = from < 0 ? -errno : to < 0 ? to : copy_all(from, to);
	char *name = strdup(path);

	if (!rc)
		rc = name ? grow_files(f->files) : -ENOMEM;
	if (from >= 0)
		close(from);
	if (!rc) {
		f->files->file[f->files->n++] =
			(struct file){.name = name, .fd = to, .meant = true};
		return 0;
	}
	if (to >= 0)
		close(to);
	free(name);
	return cop_err_set(err, -rc, "%s cannot be copied to a temporary file: %s",
		input ? "standard input" : path, strerror(-rc));
}

static int add_absent(struct find *f, const char *path, const char *why, struct cop_buf *notes)
{
	struct cop_trace_files *files = f->files;
	void *grown = COP_GROW_PLAIN(files->absent, files->absents);
	char *name = grown ? strdup(path) : NULL;

	cop_buf_printf(notes, "%s: %s\n", path, why);
	if (!name)
		return -ENOMEM;
	files->absent[files->absents++] = (struct file){.name = name, .why = why, .whole = true};
	return 0;
}

static int one(struct find *f, const char *path, struct cop_buf *notes, struct cop_err *err)
{
	bool input = !strcmp(path, "-");
	struct stat st;

	if (input ? fstat(STDIN_FILENO, &st) : stat(path, &st))
		return add_absent(f, path, strerror(errno), notes);
	if (S_ISDIR(st.st_mode) && !input)
		return walk(f, path, err);
	if (ends_in(path, strlen(path), COP_TRACE_INDEX_END))
		return 0; /* probably matched by a shell glob */
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return add_pipe(f, path, err);
	if (!S_ISREG(st.st_mode))
		return add_absent(f, path, "neither a file nor a directory nor a pipe", notes);
	return add_trace_file(f, strdup(input ? "/dev/stdin" : path), true);
}

static void seen_free(struct cop_htab *t)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(t, NULL); l; l = next) {
		next = cop_htab_after(t, l);
		free(COP_CONTAINER_OF(l, struct seen, link));
	}
	cop_htab_fini(t);
}

static int explain(int rc, struct cop_err *err)
{
	if (rc == -E2BIG)
		return cop_err_set(err, E2BIG, "more than %zu files: name fewer directories",
			COP_TRACE_FILES_MAX);
	if (rc == -ENOMEM)
		return cop_err_set(err, ENOMEM, "no memory for the list of files");
	return cop_err_set(err, -rc, "the traces cannot be listed: %s", strerror(-rc));
}

int cop_trace_files_new(char *const *path, size_t n, struct cop_trace_files **out,
	struct cop_buf *notes, struct cop_err *err)
{
	struct find f = {.files = calloc(1, sizeof(*f.files))};
	int rc = f.files ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		rc = one(&f, path[i], notes, err);
	seen_free(&f.seen);
	if (rc && !(err && err->text[0]))
		rc = explain(rc, err);
	if (!rc && !f.files->n)
		rc = cop_err_set(err, ENOENT, "there is no file to read");
	if (rc) {
		cop_trace_files_free(f.files);
		return rc;
	}
	*out = f.files;
	return 0;
}

static void forget_file(struct file *file)
{
	free(file->name);
	if (file->fd >= 0)
		close(file->fd);
}

void cop_trace_files_free(struct cop_trace_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		forget_file(&f->file[i]);
	for (size_t i = 0; i < f->absents; i++)
		free(f->absent[i].name);
	free(f->file);
	free(f->absent);
	cop_trace_clocks_free(f->clocks);
	free(f);
}

const char *cop_trace_files_name(const struct cop_trace_files *f, size_t source)
{
	return f->file[source].name;
}

size_t cop_trace_files_count(const struct cop_trace_files *f)
{
	return f->n;
}

bool cop_trace_files_leave_out(struct cop_trace_files *f, const char *path)
{
	struct stat mine, st;

	if (stat(path, &mine))
		return false;
	for (size_t i = 0; i < f->n; i++) {
		if (stat(f->file[i].name, &st) || st.st_dev != mine.st_dev ||
			st.st_ino != mine.st_ino)
			continue;
		forget_file(&f->file[i]);
		memmove(&f->file[i], &f->file[i + 1], (--f->n - i) * sizeof(f->file[0]));
		return true;
	}
	return false;
}

/* Whether the file is the one at path or below it. */
static bool is_at(const struct file *file, const char *path, const struct stat *there)
{
	size_t len = strlen(path);
	struct stat st;

	if (!stat(file->name, &st) && st.st_dev == there->st_dev && st.st_ino == there->st_ino)
		return true;
	while (len > 1 && path[len - 1] == '/')
		len--;
	return S_ISDIR(there->st_mode) && !strncmp(file->name, path, len) && file->name[len] == '/';
}

size_t cop_trace_files_shift(struct cop_trace_files *f, const char *path, int64_t ns)
{
	struct stat there;
	size_t n = 0;

	if (stat(path, &there))
		return 0;
	for (size_t i = 0; i < f->n; i++) {
		if (!is_at(&f->file[i], path, &there))
			continue;
		f->file[i].shift_ns += ns;
		n++;
	}
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		(*(const struct file *const *)a)->name, (*(const struct file *const *)b)->name);
}

static void put_lost(struct cop_json *j, const struct file *file)
{
	cop_json_object(j, NULL);
	cop_json_str(j, "file", file->name);
	cop_json_str(j, "why", file->why ? file->why : "some lines or events could not be read");
	cop_json_bool(j, "whole", file->whole);
	cop_json_u64(j, "broken", file->broken);
	cop_json_end(j);
}

void cop_trace_files_put_lost(const struct cop_trace_files *f, struct cop_json *j, const char *key)
{
	const struct file **lost = calloc(f->n + f->absents + 1, sizeof(struct file *));
	size_t n = 0;

	if (!lost)
		j->out->failed = true;
	for (size_t i = 0; i < f->n && lost; i++)
		if (f->file[i].why || f->file[i].broken)
			lost[n++] = &f->file[i];
	for (size_t i = 0; i < f->absents && lost; i++)
		lost[n++] = &f->absent[i];
	if (n)
		qsort(lost, n, sizeof(struct file *), by_name);
	cop_json_array(j, key);
	for (size_t i = 0; i < n; i++)
		put_lost(j, lost[i]);
	cop_json_end(j);
	free(lost);
}
