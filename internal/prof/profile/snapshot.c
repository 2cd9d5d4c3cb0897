/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which files are written, and their names and directories. */
#include <sys/stat.h>

#include "prof/profile/profile_priv.h"

#define TAG_BYTES 64

enum wanted { ALWAYS, WITH_STATS, WITH_TOP, WITH_PATHS, WITH_SIZES };

static const struct file {
	const char *folder, *name;
	enum wanted wanted;
	fill_fn *fill;
	unsigned type;
	bool of_sums; /* also written for a job's sums */
} files[] = {
	{"profiling", "profiling_operations.csv", ALWAYS, cop_prof_fill_operations, 0, false},
	{"profiling", "profiling_aggregate.csv", ALWAYS, cop_prof_fill_aggregate, 0, false},
	{"profiling", "profiling_latency.csv", ALWAYS, cop_prof_fill_latency, 0, true},
	{"profiling", "profiling_fabric.csv", WITH_STATS, cop_prof_fill_fabric, 0, true},
	{"profiling", "profiling_top_paths.csv", WITH_TOP, cop_prof_fill_top_paths, 0, true},
	{"profiling", "profiling_summary.md", ALWAYS, cop_prof_fill_summary, 0, false},
	{"tables", "data_table_cache_event.output", WITH_PATHS, cop_prof_fill_events, CATEGORY_DATA,
		false},
	{"tables", "tree_table_cache_event.output", WITH_PATHS, cop_prof_fill_events, CATEGORY_TREE,
		false},
	{"tables", "md_table_cache_event.output", WITH_PATHS, cop_prof_fill_events,
		CATEGORY_METADATA, false},
	{"tables", "md_ttl_cache_event.output", WITH_PATHS, cop_prof_fill_events, CATEGORY_TTL,
		false},
	{"profiling", "profiling_first_touch.csv", WITH_PATHS, cop_prof_fill_first_touch, 0, false},
	{"tables", "data_cache_size.output", WITH_SIZES, cop_prof_fill_sizes, COP_PROF_DATA, false},
	{"tables", "tree_cache_size.output", WITH_SIZES, cop_prof_fill_sizes, COP_PROF_TREE, false},
	{"tables", "md_cache_size.output", WITH_SIZES, cop_prof_fill_sizes, COP_PROF_METADATA,
		false},
};

static bool is_wanted(const struct report *r, enum wanted w)
{
	switch (w) {
	case ALWAYS:
		return true;
	case WITH_STATS:
		return r->stats;
	case WITH_TOP:
		return r->top_n;
	case WITH_PATHS:
		return r->p && r->p->paths;
	case WITH_SIZES:
		return r->sizes;
	}
	return false;
}

static int no_memory(struct cop_err *err)
{
	return cop_err_set(err, ENOMEM,
		"no memory to write the profile; nothing that was counted is lost, try again later");
}

static int write_report(
	const struct report *r, const struct file *f, const char *path, struct cop_err *err)
{
	struct cop_buf text = {0};
	int rc = f->fill(r, f->type, &text);

	if (!rc && text.failed)
		rc = -ENOMEM;
	if (rc) {
		no_memory(err);
	} else {
		rc = cop_write_file(path, text.data ? text.data : "", text.len, 0644);
		if (rc)
			cop_err_set(err, -rc,
				"cannot write %s: %s; the other files of this profile may exist, but not this one%s",
				path, strerror(-rc),
				rc == -ENOSPC || rc == -EDQUOT ? "; make room in the job directory"
							       : "");
	}
	cop_buf_free(&text);
	return rc;
}

/* Hides files that Copper 1.0 wrote only on request from the scripts that read them. */
static void name_of(const struct report *r, const struct file *f, char *out, size_t size)
{
	size_t stem = strlen(f->name) - strlen(".output");

	if (f->wanted == WITH_SIZES && !r->sizes->asked)
		snprintf(out, size, "%.*s.txt", (int)stem, f->name);
	else
		snprintf(out, size, "%s", f->name);
}

static int write_file(const struct report *r, const struct file *f, struct cop_err *err)
{
	const char *tag = r->tag ? r->tag : "final";
	char *folder = NULL, *path = NULL, name[64];
	int rc;

	name_of(r, f, name, sizeof(name));
	if (asprintf(&folder, "%s/%s/%s", r->p->job_dir, f->folder, tag) < 0)
		return no_memory(err);
	if (asprintf(&path, "%s/%s%s%s-%s", folder, r->p->stem, r->tag ? "-" : "",
		    r->tag ? r->tag : "", name) < 0) {
		free(folder);
		return no_memory(err);
	}
	/* Create directories on first use, so that a level without tables creates no directory for
	 * them. */
	rc = cop_make_dirs_said(folder, 0755, err);
	if (!rc)
		rc = write_report(r, f, path, err);
	free(path);
	free(folder);
	return rc;
}

static int write_of_sums(const struct report *r, const struct file *f, const char *dir,
	const char *prefix, struct cop_err *err)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s-%s", dir, prefix, f->name) < 0)
		return no_memory(err);
	rc = write_report(r, f, path, err);
	free(path);
	return rc;
}

/* dir: where to write a job's sums; NULL: write this rank's files. Reports only the first
 * failure. */
static int write_reports(
	const struct report *r, const char *dir, const char *prefix, struct cop_err *err)
{
	int first = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(files); i++) {
		struct cop_err one = {0};
		int rc;

		if (!is_wanted(r, files[i].wanted) || (dir && !files[i].of_sums))
			continue;
		rc = dir ? write_of_sums(r, &files[i], dir, prefix, &one)
			 : write_file(r, &files[i], &one);
		if (rc && !first) {
			first = rc;
			if (err)
				*err = one;
		}
	}
	return first;
}

static int choose_tag(const char *tag, char **out, struct cop_err *err)
{
	*out = NULL;
	if (!tag || !*tag)
		return 0;
	*out = cop_prof_text_reduce(tag, "", TAG_BYTES);
	if (!*out)
		return no_memory(err);
	if (strcmp(*out, "final") && strcmp(*out, "cluster"))
		return 0;
	free(*out);
	*out = NULL;
	return cop_err_set(err, EINVAL,
		"a snapshot cannot be tagged \"%s\": that folder is for other files; choose another tag",
		tag);
}

/* If all paths are recorded, collects all of them for the classes. */
static int collect_top(struct report *r)
{
	size_t limit = r->p->paths ? SIZE_MAX : r->p->top_n;
	int rc = 0;

	r->with_top = r->p->top_n || r->p->paths;
	for (unsigned c = 0; c < CATEGORIES && r->with_top && !rc; c++)
		rc = cop_prof_rows_top(r->p, c, limit, &r->top[c]);
	return rc;
}

int cop_prof_snapshot(struct cop_prof *p, const char *tag, const struct cop_prof_sizes *sizes,
	struct cop_err *err)
{
	struct report r = {.p = p, .sizes = sizes};
	struct cop_prof_sum *sum;
	char *clean, *name = NULL;
	int rc;

	if (cop_prof_level(p) == COP_PROF_OFF)
		return 0;
	if (!p->job_dir)
		return cop_err_set(err, EINVAL,
			"there is no job directory for the profile; name one with --job-dir");
	rc = choose_tag(tag, &clean, err);
	if (rc)
		return rc;
	r.root = p->root;
	r.stats = p->stats;
	r.top_n = p->top_n;
	r.tag = clean;
	r.sum = sum = cop_prof_sum_new();
	if (!sum || asprintf(&name, "%s%s%s-profiling_top_paths.csv", p->stem, clean ? "-" : "",
			    clean ? clean : "") < 0) {
		name = NULL;
		rc = no_memory(err);
		goto out;
	}
	r.top_paths_name = name;
	cop_prof_sum_counts(sum, p);
	rc = collect_top(&r);
	rc = rc ? no_memory(err) : write_reports(&r, NULL, NULL, err);
out:
	for (unsigned c = 0; c < CATEGORIES; c++)
		cop_prof_rows_free(&r.top[c]);
	cop_prof_sum_free(sum);
	free(name);
	free(clean);
	return rc;
}

int cop_prof_write_sums(const struct cop_prof_sum *s, const char *dir, const char *prefix,
	const char *source, const struct cop_stats *stats, struct cop_err *err)
{
	char *root = cop_prof_root_dup(source);
	struct report r = {.sum = s,
		.stats = stats,
		.root = root,
		.top_n = (uint32_t)s->top_n,
		.cluster = true};
	int rc = root ? 0 : -ENOMEM;

	for (unsigned c = 0; c < CATEGORIES && !rc && r.top_n; c++) {
		rc = cop_prof_sketch_rows(&s->top[c], &r.top[c]);
		cop_prof_rows_busiest(&r.top[c], r.top_n);
	}
	rc = rc ? no_memory(err) : write_reports(&r, dir, prefix, err);
	for (unsigned c = 0; c < CATEGORIES; c++)
		cop_prof_rows_free(&r.top[c]);
	free(root);
	return rc;
}

int cop_prof_sizes_text(enum cop_prof_table table, const char *source,
	const struct cop_prof_sizes *sizes, struct cop_buf *out)
{
	char *root = cop_prof_root_dup(source);
	struct report r = {.sizes = sizes, .root = root};
	int rc = root ? cop_prof_fill_sizes(&r, table, out) : -ENOMEM;

	free(root);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
