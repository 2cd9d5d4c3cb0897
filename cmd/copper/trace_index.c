/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json.h"
#include "cmd.h"
#include "trace.h"

struct args {
	bool json;
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {
	COP_OPT(FLAG, "json", struct args, json, "as JSON; keys are stable"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_index_options = {.command = "copper trace index",
	.summary = "index large files, so that later queries are faster",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_index_options;

struct job {
	struct cop_trace_files *files;
	struct cop_buf out;
	struct cop_json json;
	bool as_json;
	unsigned done, fine;
};

static const char *const words[] = {[COP_TRACE_INDEX_MADE] = "made",
	[COP_TRACE_INDEX_CURRENT] = "current",
	[COP_TRACE_INDEX_SMALL] = "small",
	[COP_TRACE_INDEX_REFUSED] = "refused"};

static bool has_index(const struct cop_trace_index_result *r)
{
	return r->what == COP_TRACE_INDEX_MADE || r->what == COP_TRACE_INDEX_CURRENT;
}

static void put_json(struct cop_json *j, const char *file, const struct cop_trace_index_result *r)
{
	cop_json_object(j, NULL);
	cop_json_str(j, "file", file);
	cop_json_str(j, "index", words[r->what]);
	if (has_index(r)) {
		cop_json_str(j, "path", r->path);
		cop_json_u64(j, "bytes", r->bytes);
		cop_json_u64(j, "file_bytes", r->file_bytes);
		cop_json_u64(j, "events", r->events);
		cop_json_u64(j, "parts", r->chunks);
	}
	if (r->why)
		cop_json_str(j, "why", r->why);
	cop_json_end(j);
}

static void put_text(struct cop_buf *out, const char *file, const struct cop_trace_index_result *r)
{
	if (has_index(r))
		cop_buf_printf(out,
			"%s: %s, %" PRIu64 " events in %" PRIu64 " parts, %" PRIu64
			" bytes (%.1f %% of the file): %s\n",
			file, words[r->what], r->events, r->chunks, r->bytes,
			100.0 * (double)r->bytes / (double)r->file_bytes, r->path);
	else if (r->what == COP_TRACE_INDEX_SMALL)
		cop_buf_printf(out, "%s: small enough to be read as fast without\n", file);
}

static void done(void *arg, const struct cop_trace_index_result *r)
{
	struct job *job = arg;
	const char *file = cop_trace_files_name(job->files, r->source);

	job->done++;
	job->fine += r->what != COP_TRACE_INDEX_REFUSED;
	if (r->what == COP_TRACE_INDEX_REFUSED)
		fprintf(stderr, "%s: %s: no index: %s\n", table->command, file, r->why);
	if (job->as_json)
		put_json(&job->json, file, r);
	else
		put_text(&job->out, file, r);
}

static int show(struct job *job)
{
	int code;

	if (job->as_json) {
		cop_json_end(&job->json);
		cop_buf_str(&job->out, "\n");
	}
	code = cop_cmd_print(table->command, &job->out, NULL);
	if (!code && !job->done)
		fprintf(stderr, "%s: there is no trace\n", table->command);
	return code ? code : !job->fine;
}

int cop_cmd_trace_index(int argc, char **argv)
{
	struct args a = {0};
	struct job job = {0};
	struct trace_run run = {.table = table};
	struct trace_select none = {0};
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	code = cop_cmd_trace_open(&run, table, &none, &a.paths);
	job.files = run.files;
	job.as_json = a.json;
	job.json = cop_json_to(&job.out);
	if (!code && a.json)
		cop_json_array(&job.json, NULL);
	if (!code && cop_trace_index(run.files,
			     &(struct cop_trace_index_conf){.done = done, .arg = &job}, &err))
		code = cop_cmd_trace_fail(&run, &err);
	if (!code)
		code = show(&job);
	cop_buf_free(&job.out);
	cop_cmd_trace_close(&run);
	return code;
}
