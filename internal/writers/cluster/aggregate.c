/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "job/dir/dir.h"
#include "writers/cluster/cluster_priv.h"

/* The job's own warnings, written when it stopped. The rank files do not contain them. */

#define WARNINGS_FILE "/profiling/cluster/cluster_warnings.csv"
#define WARNINGS_BYTES_MAX COP_MIB
#define WARNINGS_MAX 64

struct text {
	const char *at;
	size_t left;
};

static ssize_t read_text(void *arg, void *data, size_t len)
{
	struct text *t = arg;

	len = COP_MIN(len, t->left);
	memcpy(data, t->at, len);
	t->at += len;
	t->left -= len;
	return (ssize_t)len;
}

/* Adds one line, sanitized because the file is untrusted. */
static void add_item(const char *sentence, struct cop_buf *out)
{
	cop_buf_str(out, "- ");
	for (; *sentence; sentence++)
		cop_buf_add(out, (unsigned char)*sentence < ' ' ? " " : sentence, 1);
	cop_buf_str(out, "\n");
}

static int find_sentence(const struct cop_csv_record *head)
{
	for (unsigned i = 0; i < head->n; i++)
		if (!strcmp(head->field[i].text, "sentence"))
			return (int)i;
	return -1;
}

static void add_items(struct text *t, struct cop_buf *out)
{
	struct cop_csv csv = {0};
	struct cop_csv_record r;
	int column = -1;

	if (!cop_csv_open(&csv, read_text, t) && cop_csv_next(&csv, &r) > 0)
		column = find_sentence(&r);
	for (unsigned n = 0; column >= 0 && n < WARNINGS_MAX && cop_csv_next(&csv, &r) > 0; n++)
		if ((unsigned)column < r.n && !r.cut)
			add_item(r.field[column].text, out);
	cop_csv_free(&csv);
}

/* Appends a section with the warnings that the job wrote when it stopped, if any. */
static void warnings(const char *job_dir, struct cop_buf *out)
{
	struct cop_buf items = {0};
	char *path, *data = NULL;
	size_t len;

	if (asprintf(&path, "%s" WARNINGS_FILE, job_dir) < 0)
		return;
	if (!cop_read_file(path, WARNINGS_BYTES_MAX, &data, &len))
		add_items(&(struct text){data, len}, &items);
	if (items.len)
		cop_buf_printf(out, "\n## Warnings\n\n%s", items.data);
	cop_buf_free(&items);
	free(data);
	free(path);
}

static int no_memory(struct cop_err *err)
{
	return cop_err_set(err, ENOMEM, "no memory to aggregate");
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Chooses the input and output directories. */
static int choose_directories(const char *job_dir, const char *output_dir,
	struct cop_report_aggregated *out, struct cop_err *err)
{
	char *job = out->job = realpath(job_dir, NULL);
	int rc = 0;

	if (!job)
		return cop_err_set(err, errno, "cannot read the job directory %s: %s", job_dir,
			strerror(errno));
	if (!is_directory(job))
		rc = cop_err_set(err, ENOTDIR,
			"%s is not a directory: name the job directory that was given to copper mount -d",
			job_dir);
	else if (asprintf(&out->input, "%s/profiling/final", job) < 0)
		out->input = NULL;
	else if (asprintf(&out->output, output_dir ? "%s" : "%s/profiling/cluster",
			 output_dir ? output_dir : job) < 0)
		out->output = NULL;
	if (!rc && (!out->input || !out->output))
		rc = no_memory(err);
	if (!rc && !output_dir)
		rc = cop_job_dir_check(job, err);
	if (!rc && !is_directory(out->input))
		*strstr(out->input + strlen(job), "/profiling/final") = '\0';
	return rc;
}

/* The number of ranks that the existing cluster file covers; 0 if there is no readable one. */
static uint64_t ranks_there(const char *output, const char *prefix)
{
	char *path, *data = NULL, *at;
	uint64_t ranks = 0, size;
	size_t len;
	int fd;

	if (asprintf(&path, "%s/%s-profiling_aggregate.csv", output, prefix) < 0)
		return 0;
	fd = cop_open_regular(AT_FDCWD, path, &size);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !cop_read_file(path, COP_MIB, &data, &len)) {
		at = strstr(data, "\nranks_with_aggregate_files,");
		if (at)
			ranks = strtoull(strchr(at, ',') + 1, NULL, 10);
	}
	free(data);
	free(path);
	return ranks;
}

/* Says what exists: a job that was stopped may have written only its sums, and few or no rank
 * files. */
static void say_what_is_there(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_buf *text)
{
	uint64_t ranks = ranks_there(a->output, prefix);

	if (ranks)
		cop_buf_printf(text,
			"\n  but %s/%s-profiling_aggregate.csv, -profiling_operations.csv and -profiling_summary.md are there: sums over "
			"%" PRIu64
			" ranks, as the job wrote them when it stopped, or an earlier copper aggregate",
			a->output, prefix, ranks);
}

static int nothing_found(const struct cop_report_aggregated *a, const char *prefix, bool useless,
	struct cop_err *err)
{
	struct cop_buf text = {0};

	cop_buf_printf(&text, "failed to find profiling csv files under: %s\n", a->input);
	cop_buf_str(&text,
		useless ? "  none of the files found is usable: the disk was full, or they are not Copper's"
			: "  likely: the job was not started with profiling (copper mount -P, -N n or -A); this is not its directory (-d); it was not "
			  "stopped yet (copper stop); it died before it could write; or it kept no files of ranks (--rank-files none)");
	say_what_is_there(a, prefix, &text);
	cop_observed_name_snapshots(a->job, "profiling", "copper aggregate", &text);
	cop_err_set(err, useless ? ENODATA : ENOENT, "%s", text.data ? text.data : "no memory");
	cop_buf_free(&text);
	return useless ? -ENODATA : -ENOENT;
}

/* Sums over part of a job must not replace sums over all of it. */
static int check_there(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_err *err)
{
	uint64_t there = ranks_there(a->output, prefix), found = a->files[COP_REPORT_AGGREGATE];

	if (there <= found)
		return 0;
	return cop_err_set(err, EEXIST,
		"%s/%s-profiling_aggregate.csv sums up %" PRIu64 " ranks, and files of %" PRIu64
		" were found: it is left as "
		"it is; give another PREFIX, or remove it",
		a->output, prefix, there, found);
}

/* Reads the job's list of hosts. */
static int load_nodes(const char *input, struct nodes *n)
{
	char *path, *real;
	int rc;

	if (asprintf(&path, "%s/../../logs/node_file.txt", input) < 0)
		return -ENOMEM;
	real = realpath(path, NULL);
	rc = cop_report_nodes_load(n, real ? real : path);
	free(real);
	free(path);
	return rc;
}

void cop_report_aggregated_missing(const struct cop_report_aggregated *a, struct cop_buf *out)
{
	if (a->missing)
		cop_buf_printf(out,
			"%" PRIu64 " of the %" PRIu64
			" nodes of the job left no file at all, and the sums do not include them: %s",
			a->missing, a->nodes, a->missing_named.data ? a->missing_named.data : "");
}

void cop_report_aggregated_mixed(const struct cop_report_aggregated *a, struct cop_buf *out)
{
	if (a->nodes && a->found > a->nodes)
		cop_buf_printf(out,
			"%" PRIu64
			" ranks left files in this job directory, and its last run had %" PRIu64
			": several runs, or nodes that were "
			"started again, are added up",
			a->found, a->nodes);
}

void cop_report_aggregated_ending(const struct cop_report_aggregated *a, struct cop_buf *out)
{
	if (a->ending.data && a->end != COP_REPORT_END_STOPPED)
		cop_buf_printf(out, "the job: %s", a->ending.data);
}

static void list_lines(const struct cop_buf *text, struct cop_buf *out)
{
	for (const char *line = text->data; line && *line;) {
		size_t len = strcspn(line, "\n");

		cop_buf_str(out, "  - ");
		cop_csv_markdown(out, line, len);
		cop_buf_str(out, "\n");
		line += len + !!line[len];
	}
}

static void notes(const struct cop_report_aggregated *a, struct cop_buf *out)
{
	struct cop_buf mixed = {0}, missing = {0}, ending = {0};

	cop_report_aggregated_ending(a, &ending);
	if (ending.data)
		cop_buf_printf(out, "- %s\n", ending.data);
	cop_buf_free(&ending);
	cop_report_aggregated_mixed(a, &mixed);
	if (mixed.data)
		cop_buf_printf(out, "- %s\n", mixed.data);
	cop_report_aggregated_missing(a, &missing);
	if (missing.data)
		cop_buf_printf(out, "- %s\n", missing.data);
	cop_buf_free(&missing);
	cop_buf_free(&mixed);
	if (a->doubts) {
		cop_buf_printf(out,
			"- Files with values that were corrected or left out: %" PRIu64 "\n",
			a->doubts);
		list_lines(&a->doubted, out);
	}
	if (!a->faults)
		return;
	cop_buf_printf(out,
		"- Files used: %" PRIu64 " of aggregates, %" PRIu64 " of operations, %" PRIu64
		" of top paths\n",
		a->files[COP_REPORT_AGGREGATE], a->files[COP_REPORT_OPERATIONS],
		a->files[COP_REPORT_TOP_PATHS]);
	cop_buf_printf(out, "- Files missing or unusable: %" PRIu64 "\n", a->faults);
	list_lines(&a->named, out);
}

/* Like the rank files, raw tables are either in a final directory (tables/final) or in the job
 * directory itself. */
static int cover(const struct cop_report_aggregate *what, const struct cop_pathset *top,
	struct cop_buf *out, struct cop_err *err)
{
	char *tables;
	int rc;

	if (what->no_coverage)
		return 0;
	if (asprintf(&tables, "%s/tables/final", what->job_dir) < 0)
		return no_memory(err);
	if (!is_directory(tables))
		*strstr(tables + strlen(what->job_dir), "/tables/final") = '\0';
	rc = cop_report_coverage(what, tables, top, out, err);
	free(tables);
	return rc;
}

/* Suggests another output directory if this one is not writable or full. */
static void name_other_place(int rc, struct cop_err *err)
{
	size_t len = strlen(err->text);

	if (rc == -EACCES || rc == -EPERM || rc == -EROFS || rc == -ENOSPC || rc == -EDQUOT)
		snprintf(err->text + len, sizeof(err->text) - len,
			"; --output-dir names another place");
}

/* The file that a job writes when it stops is more exact than the sum of its ranks' lists, and has
 * one more column. */
static bool is_exact(int dir, const char *name)
{
	char head[256] = "";
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : cop_read_full(fd, head, sizeof(head) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(head, strcspn(head, "\n"), "too_low_by_at_most", 18);
}

/* Replaces the paths in the sums with those in this file. */
static bool take_paths(struct cop_report_cluster *c, int dir, const char *name)
{
	struct rank_reader r;
	struct cop_buf why = {0};
	int rc = cop_report_reader_open(&r);

	if (!rc)
		rc = cop_report_read_file(&r, dir, name, COP_REPORT_TOP_PATHS, &why);
	if (!rc) {
		cop_report_hot_clear(&c->hot);
		c->hot = r.file->hot;
		r.file->hot = (struct hot){0};
		c->of_lists = false;
	}
	cop_report_reader_close(&r);
	cop_buf_free(&why);
	return !rc;
}

/* Returns whether the existing file of the most used paths is exact and must be kept. */
static bool take_exact_paths(const struct cop_report_aggregated *a, const char *prefix)
{
	int dir = open(a->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[256];
	bool exact;

	snprintf(name, sizeof(name), "%s-profiling_top_paths.csv", prefix);
	exact = dir >= 0 && ranks_there(a->output, prefix) == a->files[COP_REPORT_AGGREGATE] &&
		is_exact(dir, name);
	if (exact && a->cluster->of_lists)
		exact = take_paths(a->cluster, dir, name);
	if (dir >= 0)
		close(dir);
	return exact;
}

static int write_paths(const struct cop_report_aggregate *what, struct cop_report_aggregated *out,
	struct cop_err *err)
{
	int rc = cop_report_cluster_write_paths(out->cluster, out->output, what->prefix, err);

	out->paths_written = !rc;
	return rc;
}

static int write_outputs(const struct cop_report_aggregate *what, struct cop_report_aggregated *out,
	const struct cop_pathset *top, struct cop_err *err)
{
	struct cop_buf head = {0}, coverage = {0};
	struct cop_err why = {0};
	bool exact = take_exact_paths(out, what->prefix);
	int rc = cover(what, top, &coverage, err);

	notes(out, &head);
	warnings(out->job, &head);
	if (!rc && (head.failed || coverage.failed))
		rc = no_memory(err);
	if (!rc) {
		rc = cop_report_cluster_write(out->cluster, out->output, what->prefix, out->input,
			head.data, coverage.data, &why);
		if (!rc && out->cluster->rows_most && !exact)
			rc = write_paths(what, out, &why);
		name_other_place(rc, &why);
		if (rc && err)
			*err = why;
	}
	cop_buf_free(&head);
	cop_buf_free(&coverage);
	return rc;
}

int cop_report_aggregate(const struct cop_report_aggregate *what, struct cop_report_aggregated *out,
	struct cop_err *err)
{
	struct cop_pathset top = {.seed = cop_now_ns()};
	struct nodes nodes = {0};
	struct ranks_result ranks = {.top = what->no_coverage ? NULL : &top, .nodes = &nodes};
	int rc;

	*out = (struct cop_report_aggregated){0};
	rc = cop_report_check_prefix(what->prefix, err);
	if (!rc)
		rc = choose_directories(what->job_dir, what->output_dir, out, err);
	if (rc)
		return rc;
	rc = load_nodes(out->input, &nodes) ? no_memory(err)
					    : cop_report_read_ranks(out->input, what, &ranks, err);
	if (!rc) {
		memcpy(out->files, ranks.files, sizeof(out->files));
		out->faults = ranks.faults.count;
		cop_observed_faults_list(&ranks.faults, &out->named);
		out->doubts = ranks.doubts.count;
		cop_observed_faults_list(&ranks.doubts, &out->doubted);
		out->cluster = ranks.sums;
		ranks.sums = NULL;
		out->found = ranks.found;
		out->end = cop_report_ending(out->job, &out->ending);
		out->nodes = nodes.lines;
		out->missing = cop_report_nodes_missing(&nodes, &out->missing_named);
	}
	if (!rc && !(out->files[0] + out->files[1] + out->files[2]))
		rc = nothing_found(out, what->prefix, ranks.found, err);
	if (!rc)
		rc = check_there(out, what->prefix, err);
	if (!rc)
		rc = write_outputs(what, out, &top, err);
	cop_observed_pathset_free(&top);
	cop_report_nodes_free(&nodes);
	cop_report_ranks_fini(&ranks);
	return rc;
}

void cop_report_aggregated_free(struct cop_report_aggregated *a)
{
	free(a->job);
	free(a->input);
	free(a->output);
	cop_buf_free(&a->named);
	cop_buf_free(&a->doubted);
	cop_buf_free(&a->missing_named);
	cop_buf_free(&a->ending);
	cop_report_cluster_free(a->cluster);
	*a = (struct cop_report_aggregated){0};
}
