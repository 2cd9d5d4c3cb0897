/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"
#include "trace_out.h"
#include "trace/timeline/timeline.h"

struct args {
	struct trace_select select; /* first */
	const char *output;
	struct cop_opt_many paths;
};

#define AT(field) .offset = offsetof(struct args, field)
static const struct cop_opt rows[] = {
	{.name = "output",
		.letter = 'o',
		.kind = COP_OPT_STRING,
		AT(output),
		.arg = "FILE",
		.help = "the timeline; compressed if FILE ends in .gz"},
	TRACE_SELECT_EVENT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", AT(paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_merge_options = {.command = "copper trace merge",
	.summary = "one timeline of all of them, for Perfetto and Chromium's viewer",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_merge_options;

struct job {
	struct trace_run run;
	const char *path;
	struct cop_merge *merge;
	struct trace_out *out;
	int out_rc; /* why it could not be written */
	uint64_t bytes;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_merge_free(job->merge);
	job->merge = cop_merge_new(run->threads, cop_cmd_trace_temp());
	return job->merge ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return cop_merge_add(job->merge, worker, e);
}

static int put(void *arg, const char *data, size_t len)
{
	struct job *job = arg;

	job->bytes += len;
	cop_cmd_trace_progress(&job->run, job->bytes / COP_MIB, "MiB written");
	job->out_rc = cop_trace_out_put(job->out, data, len);
	return job->out_rc;
}

/* Closes the file in any case, so that a failure to close is reported, too. */
static int write_output(struct job *job)
{
	struct cop_err err = {0};
	int merged = cop_merge_write(job->merge, job->run.files, put, job);
	int rc = cop_trace_out_close(job->out, merged);

	job->out = NULL;
	cop_cmd_trace_progress_end(&job->run);
	if (!rc)
		return 0;
	if (merged && !job->out_rc)
		cop_err_set(&err, -merged, "the events cannot be put in order in %s: %s",
			cop_cmd_trace_temp(), strerror(-merged));
	else
		cop_err_set(&err, -rc, "%s cannot be written: %s", job->path, strerror(-rc));
	return cop_cmd_trace_fail(&job->run, &err);
}

/* The output may be in a directory that is being read. */
static int open_output(struct job *job)
{
	struct cop_err err = {0};

	if (cop_trace_files_leave_out(job->run.files, job->path))
		fprintf(stderr, "%s: %s is not read, because it is the output\n", table->command,
			job->path);
	if (!cop_trace_files_count(job->run.files))
		cop_err_set(&err, ENOENT, "there is no file to read");
	else
		cop_trace_out_open(job->path, &job->out, &err);
	return err.text[0] ? cop_cmd_trace_fail(&job->run, &err) : 0;
}

int cop_cmd_trace_merge(int argc, char **argv)
{
	struct args a = {0};
	struct job job = {0};
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	if (!a.output || !*a.output) {
		cop_err_set(&err, EINVAL,
			"-o FILE is missing: name the file that receives the timeline");
		return cop_opt_misuse(table, &err);
	}
	job.path = a.output;
	code = cop_cmd_trace_open(&job.run, table, &a.select, &a.paths);
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
	cop_merge_free(job.merge);
	cop_cmd_trace_close(&job.run);
	return code;
}
