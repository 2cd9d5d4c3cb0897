/* SPDX-License-Identifier: BSD-3-Clause */
/* copper trace merge and copper trace timeline: one timeline, as JSON or as a page. */
#include "cmd.h"
#include "trace.h"
#include "trace_out.h"
#include "trace/timeline/timeline.h"

struct args {
	struct trace_select select; /* first */
	const char *output;
	uint64_t limit;
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "output", struct args, output,
		"the timeline; compressed if FILE ends in .gz", .letter = 'o', .arg = "FILE"),
	TRACE_SELECT_EVENT_ROWS,
};
static const struct cop_opt page_rows[] = {
	COP_OPT(STRING, "output", struct args, output, "the page", .letter = 'o', .arg = "FILE"),
	COP_OPT(U64, "limit", struct args, limit, "draw at most the N longest spans", .arg = "N",
		.min = 1000, .max = 4000000, .initial = "1000000"),
	TRACE_SELECT_EVENT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_merge_options = {.command = "copper trace merge",
	.summary = "merge all traces into one timeline, for Perfetto and Chromium's viewer",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
const struct cop_opt_table cop_cmd_trace_timeline_options = {.command = "copper trace timeline",
	.summary = "write the timeline as one HTML page, for any browser",
	COP_OPT_ROWS(page_rows),
	COP_OPT_OPERANDS(operands)};

/* Receives the events and writes the timeline. */
struct form {
	const struct cop_opt_table *table;
	void *(*make)(unsigned threads, const char *dir, size_t limit);
	void (*free)(void *it);
	int (*add)(void *it, unsigned worker, const struct cop_trace_event *e);
	int (*write)(void *it, const struct cop_trace_files *files, cop_merge_write_fn *write,
		void *arg);
};

static void *merge_make(unsigned threads, const char *dir, size_t limit)
{
	(void)limit;
	return cop_merge_new(threads, dir);
}
static void merge_free(void *it)
{
	cop_merge_free(it);
}
static int merge_add(void *it, unsigned worker, const struct cop_trace_event *e)
{
	return cop_merge_add(it, worker, e);
}
static int merge_write(
	void *it, const struct cop_trace_files *files, cop_merge_write_fn *write, void *arg)
{
	return cop_merge_write(it, files, write, arg);
}
static const struct form merged = {
	&cop_cmd_trace_merge_options, merge_make, merge_free, merge_add, merge_write};

static void *page_make(unsigned threads, const char *dir, size_t limit)
{
	return cop_timeline_new(threads, dir, limit);
}
static void page_free(void *it)
{
	cop_timeline_free(it);
}
static int page_add(void *it, unsigned worker, const struct cop_trace_event *e)
{
	return cop_timeline_add(it, worker, e);
}
static int page_write(
	void *it, const struct cop_trace_files *files, cop_merge_write_fn *write, void *arg)
{
	return cop_timeline_write(it, files, write, arg);
}
static const struct form page = {
	&cop_cmd_trace_timeline_options, page_make, page_free, page_add, page_write};

struct job {
	struct trace_run run;
	const struct form *form;
	const char *path;
	size_t limit;
	void *it;
	struct trace_out *out;
	int out_rc; /* error of writing it */
	uint64_t bytes;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	job->form->free(job->it);
	job->it = job->form->make(run->threads, cop_cmd_trace_temp(), job->limit);
	return job->it ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return job->form->add(job->it, worker, e);
}

static int put(void *arg, const char *data, size_t len)
{
	struct job *job = arg;

	job->bytes += len;
	cop_cmd_trace_progress(&job->run, job->bytes / COP_MIB, "MiB written");
	job->out_rc = cop_trace_out_put(job->out, data, len);
	return job->out_rc;
}

/* Closes the file in any case, to report a failure of close, too. */
static int write_output(struct job *job)
{
	struct cop_err err = {0};
	int written = job->form->write(job->it, job->run.files, put, job);
	int rc = cop_trace_out_close(job->out, written);

	job->out = NULL;
	cop_cmd_trace_progress_end(&job->run);
	if (!rc)
		return 0;
	if (written && !job->out_rc)
		cop_err_set(&err, -written, "the events cannot be put in order in %s: %s",
			cop_cmd_trace_temp(), strerror(-written));
	else
		cop_err_set(&err, -rc, "%s cannot be written: %s", job->path, strerror(-rc));
	return cop_cmd_trace_fail(&job->run, &err);
}

/* The output may be in a directory that is being read. */
static int open_output(struct job *job)
{
	struct cop_err err = {0};

	if (cop_trace_files_leave_out(job->run.files, job->path))
		fprintf(stderr, "%s: %s is not read, because it is the output\n",
			job->form->table->command, job->path);
	if (!cop_trace_files_count(job->run.files))
		cop_err_set(&err, ENOENT, "there is no file to read");
	else
		cop_trace_out_open(job->path, &job->out, &err);
	return err.text[0] ? cop_cmd_trace_fail(&job->run, &err) : 0;
}

static int run(const struct form *form, int argc, char **argv)
{
	struct args a = {0};
	struct job job = {.form = form};
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(form->table, argc, argv, &a, &code))
		return code;
	if (!a.output || !*a.output) {
		cop_err_set(&err, EINVAL,
			"-o FILE is missing: name the file that receives the timeline");
		return cop_opt_misuse(form->table, &err);
	}
	job.path = a.output;
	job.limit = (size_t)a.limit;
	code = cop_cmd_trace_open(&job.run, form->table, &a.select, &a.paths);
	if (!code)
		code = open_output(&job);
	if (!code)
		code = cop_cmd_trace_read(&job.run, &(struct trace_reading){.names = true,
							    .whole = true,
							    .make = make,
							    .add = add_event,
							    .arg = &job,
							    .temp = cop_cmd_trace_temp()});
	if (!code)
		code = write_output(&job);
	cop_trace_out_close(job.out, -ECANCELED);
	form->free(job.it);
	cop_cmd_trace_close(&job.run);
	return code;
}

int cop_cmd_trace_merge(int argc, char **argv)
{
	return run(&merged, argc, argv);
}

int cop_cmd_trace_timeline(int argc, char **argv)
{
	return run(&page, argc, argv);
}
