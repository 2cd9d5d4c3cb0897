/* SPDX-License-Identifier: BSD-3-Clause */
/* The most used paths: of the whole job, or summed from the files of the ranks. */
#include <dirent.h>

#include "base/base/htab.h"
#include "report/jobdata/jobdata_priv.h"

#define FILE_END "profiling_top_paths.csv"

static const char *const names[] = {"metadata", "data", "tree", "metadata_ttl"};

struct entry {
	struct cop_hlink link;
	struct cop_jobdata_path path;
};
struct top {
	struct cop_htab table;
	uint64_t seed;
	size_t n;
	bool cut;
};

static struct entry *find_entry(const struct top *t, uint64_t hash, const char *text, size_t len,
	enum cop_jobdata_category c)
{
	struct cop_hlink *l = cop_htab_first(&t->table, hash);

	for (; l; l = cop_htab_next(l)) {
		struct entry *e = COP_CONTAINER_OF(l, struct entry, link);

		if (e->path.category == c && e->path.len == len &&
			memcmp(e->path.text, text, len) == 0)
			return e;
	}
	return NULL;
}

static struct entry *add_entry(
	struct top *t, uint64_t hash, const char *text, size_t len, enum cop_jobdata_category c)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->path = (struct cop_jobdata_path){
		.text = cop_jobdata_copy(text, len), .len = len, .category = c};
	if (!e->path.text) {
		free(e);
		return NULL;
	}
	e->path.len = strlen(e->path.text);
	cop_htab_add(&t->table, &e->link, hash);
	t->n++;
	return e;
}

static int top_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct top *t = arg;
	const char *category = cop_jobdata_text(s, r, 0, NULL), *text;
	struct entry *e;
	unsigned c = 0;
	uint64_t hash;
	size_t len;

	while (c < COP_JOBDATA_CATEGORIES && strcmp(category, names[c]) != 0)
		c++;
	text = cop_jobdata_text(s, r, 1, &len);
	if (c == COP_JOBDATA_CATEGORIES || !len || len > 65535)
		return 0;
	hash = cop_hash64(text, len, t->seed + c);
	e = find_entry(t, hash, text, len, c);
	if (!e && t->n >= COP_JOBDATA_PATHS_MAX) {
		t->cut = true;
		return 0;
	}
	e = e ? e : add_entry(t, hash, text, len, c);
	if (!e)
		return -ENOMEM;
	e->path.events += cop_jobdata_count(s, r, 2);
	e->path.misses += cop_jobdata_count(s, r, 3);
	return 0;
}

static bool is_top_file(const char *name)
{
	size_t len = strlen(name), end = strlen(FILE_END);

	return len > end + 1 && strcmp(name + len - end, FILE_END) == 0;
}

static int read_folder(struct sheet *s, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int rc = 0;

	while (d && rc != -ENOMEM && (e = readdir(d)))
		if (is_top_file(e->d_name))
			rc = cop_jobdata_sheet(s, folder, e->d_name);
	if (d)
		closedir(d);
	return rc == -ENOMEM ? rc : 0;
}

/* Reads the ranks' own files, for sums without paths from an older copper aggregate. */
static int read_ranks(struct sheet *s, const struct cop_jobdata *j)
{
	char *folder;
	int rc;

	if (asprintf(&folder, "%s/profiling/final", j->dir) < 0)
		return -ENOMEM;
	rc = read_folder(s, folder);
	free(folder);
	return rc;
}

static int by_use(const void *a, const void *b)
{
	const struct cop_jobdata_path *x = a, *y = b;

	if (x->category != y->category)
		return x->category < y->category ? -1 : 1;
	if (x->events != y->events)
		return x->events < y->events ? 1 : -1;
	return strcmp(x->text, y->text);
}

/* Moves the entries into the result and frees those that do not fit. */
static int collect_paths(struct cop_jobdata *j, struct top *t)
{
	struct cop_jobdata_path *all = calloc(t->n + 1, sizeof(*all));
	struct cop_hlink *l = cop_htab_after(&t->table, NULL), *next;

	j->path = all;
	for (; l; l = next) {
		struct entry *e = COP_CONTAINER_OF(l, struct entry, link);

		next = cop_htab_after(&t->table, l);
		if (all)
			all[j->paths++] = e->path;
		else
			free(e->path.text);
		free(e);
	}
	cop_htab_fini(&t->table);
	if (all)
		qsort(all, j->paths, sizeof(*all), by_use);
	j->paths_cut = t->cut;
	return all ? 0 : -ENOMEM;
}

static int classify_paths(struct cop_jobdata *j)
{
	int rc = 0;

	for (size_t i = 0; i < j->paths && !rc; i++) {
		const struct cop_jobdata_path *p = &j->path[i];

		rc = cop_pathclass_add(
			&j->classes, p->category == COP_JOBDATA_ABSENT, p->text, p->len, p->events);
	}
	return rc;
}

int cop_jobdata_top(struct cop_jobdata *j)
{
	static const char *const columns[] = {
		"category", "path", "total_events", "cache_misses", NULL};
	struct top top = {.seed = cop_now_ns()};
	struct sheet s = {.column = columns, .row = top_row, .arg = &top};
	int rc = 0, collected;

	if (!j->folder)
		return 0;
	if (j->from == COP_JOBDATA_CLUSTER)
		rc = cop_jobdata_sheet(&s, j->folder, "cluster-" FILE_END);
	else
		rc = read_folder(&s, j->folder);
	if (j->from == COP_JOBDATA_CLUSTER && rc != -ENOMEM && !top.n)
		rc = read_ranks(&s, j);
	collected = collect_paths(j, &top);
	if (rc == -ENOMEM || collected)
		return -ENOMEM;
	return classify_paths(j);
}
