/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/stat.h>

#include "cmd.h"
#include "report_spans.h"
#include "report/jobdata/jobdata.h"
#include "base/opt/opt.h"
#include "report/html/html.h"
#include "writers/runs/runs.h"

#define COMPARED_MAX 5
#define RUNS_LOOKED_AT 200 /* most recent runs in the store */

struct args {
	const char *job_dir, *output, *store;
	bool force;
	struct cop_opt_list compare;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "output", struct args, output, "the page; - is stdout", .letter = 'o',
		.arg = "FILE", .shown = "JOBDIR/report.html"),
	COP_OPT(FLAG, "force", struct args, force, "replace FILE if it exists"),
	COP_OPT(STRING, "store", struct args, store, "compare with the previous run", .arg = "FILE",
		.shown = "$COPPER_STORE"),
	COP_OPT(LIST, "compare", struct args, compare,
		"plot the metrics of this run as well; repeatable", .arg = "ID"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, job_dir), .required = true}};

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;
	const char *store = a->store ? a->store : getenv("COPPER_STORE");

	if (a->compare.n > COMPARED_MAX)
		return cop_err_set(err, EINVAL, "--compare: at most %d runs can be drawn beside",
			COMPARED_MAX);
	return a->compare.n && (!store || !*store)
		       ? cop_err_set(err, EINVAL, "--compare needs --store FILE, or $COPPER_STORE")
		       : 0;
}

static const struct cop_opt_table table = {.command = "copper report",
	.check = check,
	.summary = "write an HTML report of a finished job",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

static int print_failure(const char *text)
{
	fprintf(stderr, "%s: %s\n", table.command, text);
	return 1;
}

/* ---- the run store ---- */

static bool is_param(const struct cop_runrec *r, const char *key, const char *value)
{
	const char *has = cop_runrec_value(r, COP_RUNREC_PARAM, key);

	return has && value && strcmp(has, value) == 0;
}

/* Whether the run's job directory is this one, even if spelled differently. */
static bool is_of(const struct cop_runrec *r, const char *dir)
{
	const char *has = cop_runrec_value(r, COP_RUNREC_PARAM, "job-dir");
	char *real = has ? realpath(has, NULL) : NULL;
	bool same = has && (strcmp(has, dir) == 0 || (real && strcmp(real, dir) == 0));

	free(real);
	return same;
}

/* The list is newest first: finds this job's run, then the next one of the same source. */
static void find_runs(struct cop_store *s, const char *dir, struct cop_runrec *run,
	struct cop_runrec *before, struct cop_err *err)
{
	struct cop_store_filter all = {0};
	struct cop_store_runs runs = {0};
	int rc = cop_store_runs(s, &all, &runs, err);

	for (size_t i = 0; !rc && i < runs.n && i < RUNS_LOOKED_AT && !*before->id; i++) {
		struct cop_runrec one = {0};

		rc = cop_store_load(s, runs.at[i].id, &one, err);
		if (!rc && !*run->id && is_of(&one, dir))
			*run = one;
		else if (!rc && *run->id &&
			 is_param(
				 &one, "source", cop_runrec_value(run, COP_RUNREC_PARAM, "source")))
			*before = one;
		else
			cop_runrec_free(&one);
	}
	cop_store_runs_free(&runs);
}

/* Loads the runs to compare with. */
static int load_compared(
	struct cop_store *s, const struct args *a, struct cop_runrec *out, struct cop_err *err)
{
	char id[COP_RUNREC_ID_LEN + 1];
	int rc = 0;

	for (unsigned i = 0; i < a->compare.n && !rc; i++) {
		rc = cop_store_find(s, a->compare.at[i], id, err);
		rc = rc ? rc : cop_store_load(s, id, &out[i], err);
	}
	return rc;
}

/* An unreadable store is reported in a section of the page and is not an error. */
static int look_into_store(const struct args *a, struct cop_page *page, struct cop_runrec *run,
	struct cop_runrec *before, struct cop_runrec *compared)
{
	struct cop_store *s = NULL;
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = 0;

	if (!cop_store_open(page->store, &s, &notes, &err)) {
		find_runs(s, page->job->dir, run, before, &err);
		rc = load_compared(s, a, compared, &err);
	}
	if (notes.data)
		fputs(notes.data, stderr);
	if (err.code)
		print_failure(err.text);
	cop_buf_free(&notes);
	cop_store_close(s);
	page->run = *run->id ? run : NULL;
	page->before = *before->id ? before : NULL;
	page->compared = compared;
	page->compared_n = a->compare.n;
	return rc;
}

/* ---- the file ---- */

static int check_output(const char *file, bool force)
{
	struct stat st;

	if (lstat(file, &st))
		return errno == ENOENT ? 0
				       : (fprintf(stderr, "%s: %s: %s\n", table.command, file,
						  strerror(errno)),
						 1);
	if (S_ISDIR(st.st_mode)) {
		fprintf(stderr, "%s: %s is a directory: name a file with -o\n", table.command,
			file);
		return 1;
	}
	if (force)
		return 0;
	fprintf(stderr, "%s: %s exists: --force replaces it, -o FILE names another\n",
		table.command, file);
	return 1;
}

static int write_page(const char *file, const struct cop_buf *text)
{
	int rc;

	if (strcmp(file, "-") == 0)
		return cop_cmd_print(table.command, text, NULL);
	rc = cop_write_file(file, text->data, text->len, 0644);
	if (rc) {
		fprintf(stderr, "%s: cannot write %s: %s; -o FILE names another place\n",
			table.command, file, strerror(-rc));
		return 1;
	}
	printf("%s\n", file);
	return fflush(stdout) ? 1 : 0;
}

static int make_page(const struct args *a, const struct cop_jobdata *job, struct cop_buf *out)
{
	struct cop_page_spans spans = {0};
	struct cop_page page = {.job = job, .store = a->store, .spans = &spans};
	struct cop_runrec run = {0}, before = {0}, compared[COMPARED_MAX] = {0};
	int rc = 0;

	if (!page.store)
		page.store = getenv("COPPER_STORE");
	if (page.store && !*page.store)
		page.store = NULL;
	if (page.store)
		rc = look_into_store(a, &page, &run, &before, compared);
	if (!rc && (cop_cmd_report_spans(job, &spans) || cop_page_write(&page, out)))
		rc = print_failure("out of memory");
	cop_cmd_report_spans_free(&spans);
	cop_runrec_free(&run);
	cop_runrec_free(&before);
	for (unsigned i = 0; i < COMPARED_MAX; i++)
		cop_runrec_free(&compared[i]);
	return rc ? 1 : 0;
}

int cop_cmd_report(int argc, char **argv)
{
	struct cop_jobdata job = {0};
	struct cop_buf text = {0};
	struct cop_err err = {0};
	struct args a = {0};
	char *file = NULL;
	int code;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (asprintf(&file, a.output ? "%s" : "%s/report.html", a.output ? a.output : a.job_dir) <
		0)
		return print_failure("out of memory");
	code = cop_jobdata_read(a.job_dir, &job, &err) ? print_failure(err.text) : 0;
	if (!code && strcmp(file, "-") != 0)
		code = check_output(file, a.force);
	code = code ? code : make_page(&a, &job, &text);
	code = code ? code : write_page(file, &text);
	cop_buf_free(&text);
	cop_jobdata_free(&job);
	free(file);
	return code;
}
