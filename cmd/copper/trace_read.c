/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the subcommands of trace. */
#include <math.h>
#include <stdatomic.h>

#include "trace.h"

#define SILENT_MS 1000 /* shorter work shows no progress */
#define SHOW_MS 200

int cop_cmd_trace_fail(const struct trace_run *run, const struct cop_err *err)
{
	fprintf(stderr, "%s: %s%s%s\n", run->table->command, run->name ? run->name : "",
		run->name ? ": " : "", err->text);
	return 1;
}

void cop_cmd_trace_progress(struct trace_run *run, uint64_t n, const char *what)
{
	uint64_t now = run->terminal ? cop_now_ms() : 0;

	if (!run->terminal || now - run->start_ms < SILENT_MS || now - run->shown_ms < SHOW_MS)
		return;
	fprintf(stderr, "\r%s: %s%s%" PRIu64 " %s\033[K", run->table->command,
		run->name ? run->name : "", run->name ? ": " : "", n, what);
	run->shown_ms = now;
	run->shown = true;
}

void cop_cmd_trace_progress_end(struct trace_run *run)
{
	if (run->shown)
		fputs("\r\033[K", stderr);
	run->shown = false;
}

/* Prints each line of text as a message of this command. */
static void tell(const struct trace_run *run, struct cop_buf *text)
{
	char *at = text->data, *end;

	for (; at && (end = strchr(at, '\n')); at = end + 1)
		fprintf(stderr, "%s: %.*s\n", run->table->command, (int)(end - at), at);
	cop_buf_free(text);
}

static struct cop_words words(const struct cop_opt_list *l)
{
	return (struct cop_words){l->at, l->n};
}

int cop_cmd_trace_seconds(const char *option, const char *text, double *out, struct cop_err *err)
{
	char *end;

	if (!text)
		return 0;
	*out = strtod(text, &end);
	if (*end || end == text || !(*out >= 0 && *out < 1e12))
		return cop_err_set(
			err, EINVAL, "%s: '%s' is not a number of seconds from 0", option, text);
	return 0;
}

const char *cop_cmd_trace_temp(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

enum cop_grid_form cop_cmd_trace_form(const struct trace_select *s)
{
	return s->json ? COP_GRID_JSON : s->csv ? COP_GRID_CSV : COP_GRID_PLAIN;
}

int cop_cmd_trace_interval(const char *text, uint64_t *ns, struct cop_err *err)
{
	char *end;
	double width = strtod(text, &end);

	if (*end || end == text || !(width >= 1e-6 && width < 1e9))
		return cop_err_set(err, EINVAL,
			"--interval: '%s' is not a number of seconds from 0.000001 to 1000000000",
			text);
	*ns = (uint64_t)(width * 1e9 + 0.5);
	return 0;
}

/* Parses FILE=SECONDS, with an optional sign. A file belongs to one run only. */
static int shift_file(struct trace_run *run, const char *word, struct cop_err *err)
{
	const char *equals = strrchr(word, '=');
	double seconds;
	size_t found;
	char *path, *end;

	seconds = equals ? strtod(equals + 1, &end) : 0;
	if (!equals || equals == word || end == equals + 1 || *end || !(fabs(seconds) < 1e9))
		return cop_err_set(err, EINVAL,
			"--offset: '%s' is not FILE=SECONDS, as in rank3.json=-0.25", word);
	path = strndup(word, (size_t)(equals - word));
	if (!path)
		return cop_err_set(err, ENOMEM, "no memory");
	found = cop_trace_files_shift(run->files, path, (int64_t)llround(seconds * 1e9));
	if (!found && !run->name)
		cop_err_set(err, ENOENT, "--offset: '%s' is none of the files that are read", path);
	free(path);
	return found || run->name ? 0 : -ENOENT;
}

int cop_cmd_trace_open(struct trace_run *run, const struct cop_opt_table *table,
	const struct trace_select *select, const struct cop_opt_many *paths)
{
	struct cop_select_conf conf = {.to_s = -1};
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc;

	run->table = table;
	run->threads = cop_trace_threads(0);
	run->terminal = isatty(2);
	run->start_ms = cop_now_ms();
	for (unsigned i = 0; i < COP_SELECT_TEXTS; i++) {
		conf.text[i] = words(&select->text[i]);
		conf.not_text[i] = words(&select->not_text[i]);
	}
	for (unsigned i = 0; i < COP_SELECT_NUMBERS; i++) {
		conf.number[i] = words(&select->number[i]);
		conf.not_number[i] = words(&select->not_number[i]);
	}
	if (cop_cmd_trace_seconds("--from", select->from, &conf.from_s, &err) ||
		cop_cmd_trace_seconds("--to", select->to, &conf.to_s, &err))
		return cop_opt_misuse(table, &err);
	if (select->csv && select->json) {
		cop_err_set(&err, EINVAL, "give --csv or --json, not both");
		return cop_opt_misuse(table, &err);
	}
	if (cop_select_new(&conf, run->threads, &run->select, &err))
		return cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err);
	rc = cop_trace_files_new(paths->at, paths->n, &run->files, &notes, &err);
	tell(run, &notes);
	if (rc)
		return cop_cmd_trace_fail(run, &err);
	for (unsigned i = 0; i < select->offset.n; i++)
		if (shift_file(run, select->offset.at[i], &err))
			return cop_opt_misuse(table, &err);
	return 0;
}

void cop_cmd_trace_close(struct trace_run *run)
{
	cop_trace_files_free(run->files);
	cop_select_free(run->select);
}

/* The time of the earliest event in the first blocks of the files; 0 if there is none. */
static int64_t look(struct trace_run *run)
{
	const struct cop_trace_conf conf = {.peek = true};
	struct cop_trace_result result;

	if (cop_trace_read(run->files, &conf, &result, NULL, NULL) || result.first_ns == INT64_MAX)
		return 0;
	return result.first_ns;
}

static int explain(const struct trace_reading *r, int rc, struct cop_err *err)
{
	if (err->text[0])
		return rc;
	if (rc == -E2BIG)
		return cop_err_set(err, E2BIG,
			"the table has more than %zu groups: select fewer events or name fewer keys",
			COP_TAB_GROUPS_MAX);
	return cop_err_set(
		err, -rc, "%s%s%s", r->temp ? r->temp : "", r->temp ? ": " : "", strerror(-rc));
}

struct selecting {
	struct trace_run *run;
	const struct trace_reading *reading;
	_Atomic uint64_t events;
};

/* The first thread shows the progress of all. */
static int add_selected(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	struct selecting *s = arg;
	uint64_t before = atomic_fetch_add_explicit(&s->events, n, memory_order_relaxed);
	int rc = 0;

	if (!worker)
		cop_cmd_trace_progress(s->run, before + n, "events read");
	for (size_t i = 0; i < n && !rc; i++)
		if (s->reading->all || (s->reading->meta && e[i].kind == COP_TRACE_META) ||
			cop_select_test(s->run->select, worker, &e[i]))
			rc = s->reading->add(s->reading->arg, worker, &e[i]);
	return rc;
}

static int read_once(struct trace_run *run, const struct trace_reading *r, int64_t first_ns,
	struct cop_buf *notes, struct cop_err *err)
{
	struct selecting selecting = {.run = run, .reading = r};
	struct cop_trace_pick pick = {0};
	const struct cop_trace_conf conf = {
		.names = r->names || cop_select_needs_names(run->select),
		.args = r->whole || r->args,
		.unfinished = r->whole || r->unfinished,
		.pick = r->all || cop_select_is_all(run->select) ? NULL : &pick,
		.batch = add_selected,
		.arg = &selecting};
	int rc;

	cop_select_first(run->select, first_ns);
	cop_select_pick(run->select, r->meta || r->whole, &pick);
	rc = r->make(r->arg, run, first_ns);
	if (rc)
		return explain(r, rc, err);
	rc = cop_trace_read(run->files, &conf, &run->result, notes, err);
	return rc ? explain(r, rc, err) : 0;
}

int cop_cmd_trace_read(struct trace_run *run, const struct trace_reading *r)
{
	bool first = r->first || cop_select_needs_first(run->select);
	int64_t first_ns = first ? look(run) : 0;
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = read_once(run, r, first_ns, &notes, &err);

	if (!rc && first && run->result.first_ns != first_ns && run->result.first_ns != INT64_MAX) {
		cop_buf_free(&notes);
		rc = read_once(run, r, run->result.first_ns, &notes, &err);
	}
	cop_cmd_trace_progress_end(run);
	cop_trace_faults(run->files, &run->result, &notes);
	tell(run, &notes);
	return rc ? cop_cmd_trace_fail(run, &err) : 0;
}
