/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the files that the user means. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/read/read_priv.h"
#include "base/walk/walk.h"

/* A file may be reached by more than one path. */
struct seen {
	struct cop_hlink link;
	dev_t dev;
	ino_t ino;
};
struct find {
	struct cop_trace_files *files;
	struct cop_htab seen;
	const char *given, *walked; /* a directory, as the user gave it and as it is walked */
};

/* 1: it is seen for the first time. -ENOMEM. */
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
	size_t cap = files->cap ? 2 * files->cap : 64;
	struct file *grown;

	if (files->n < files->cap)
		return 0;
	if (files->n >= COP_TRACE_FILES_MAX)
		return -E2BIG;
	grown = reallocarray(files->file, cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	files->file = grown;
	files->cap = cap;
	return 0;
}

/* Whether it has a name that writers of DFTracer's and PerfFlowAspect's formats give, as nodes
 * do. */
static bool is_called_a_trace(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (dot && dot - name >= 4 && !strcmp(dot, ".gz"))
		return !strncmp(dot - 4, ".pfw", 4);
	return dot && !strcmp(dot, ".pfw");
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
			f->files->file[f->files->n++] = (struct file){
				.name = name, .meant = given || is_called_a_trace(name)};
			return 0;
		}
	}
	free(name);
	return rc;
}

/* The name is reported below the directory as the user gave it. */
static int visit(void *arg, const struct cop_walk_entry *e, const char *path, size_t len)
{
	struct find *f = arg;
	size_t skip = strlen(f->walked), given = strlen(f->given);
	char *name;

	if (e->dir || e->type != DT_REG || len <= skip)
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

static int one(struct find *f, const char *path, struct cop_buf *notes, struct cop_err *err)
{
	struct stat st;

	if (stat(path, &st)) {
		cop_buf_printf(notes, "%s: %s\n", path, strerror(errno));
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return walk(f, path, err);
	if (!S_ISREG(st.st_mode)) {
		cop_buf_printf(notes, "%s: neither a file nor a directory\n", path);
		return 0;
	}
	return add_trace_file(f, strdup(path), true);
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
	if (rc)
		rc = explain(rc, err);
	else if (!f.files->n)
		rc = cop_err_set(err, ENOENT, "there is no file to read");
	if (rc) {
		cop_trace_files_free(f.files);
		return rc;
	}
	*out = f.files;
	return 0;
}

void cop_trace_files_free(struct cop_trace_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->file[i].name);
	free(f->file);
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
		free(f->file[i].name);
		memmove(&f->file[i], &f->file[i + 1], (--f->n - i) * sizeof(f->file[0]));
		return true;
	}
	return false;
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
	const struct file **lost = calloc(f->n + 1, sizeof(struct file *));
	size_t n = 0;

	if (!lost)
		j->out->failed = true;
	for (size_t i = 0; i < f->n && lost; i++)
		if (f->file[i].why || f->file[i].broken)
			lost[n++] = &f->file[i];
	if (n)
		qsort(lost, n, sizeof(struct file *), by_name);
	cop_json_array(j, key);
	for (size_t i = 0; i < n; i++)
		put_lost(j, lost[i]);
	cop_json_end(j);
	free(lost);
}
