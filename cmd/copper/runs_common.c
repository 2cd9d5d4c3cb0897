/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the subcommands of copper runs: the store, a run by its ID, and values as text. */
#include "base/base/json.h"
#include "runs.h"

#include <math.h>
#include <time.h>

int cop_cmd_runs_check(void *common, struct cop_err *err)
{
	struct runs_common *c = common;

	if (!c->store)
		c->store = getenv("COPPER_STORE");
	if (!c->store || !*c->store)
		return cop_err_set(err, EINVAL,
			"no run store: give --store FILE, or set $COPPER_STORE, as for copper mount; copper runs import --store FILE JOBDIR... makes a store from job directories afterwards");
	return 0;
}

int cop_cmd_runs_fail(const struct cop_opt_table *table, const struct cop_err *err)
{
	fprintf(stderr, "%s: %s\n", table->command, err->text);
	return 1;
}

static int open_store(
	const struct cop_opt_table *table, const struct runs_common *c, struct cop_store **out)
{
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = cop_store_open(c->store, out, &notes, &err);

	if (notes.data)
		fputs(notes.data, stderr);
	cop_buf_free(&notes);
	return rc ? cop_cmd_runs_fail(table, &err) : 0;
}

int cop_cmd_runs_answer(const struct cop_opt_table *table, int argc, char **argv, void *args,
	int (*answer)(const void *args, struct cop_store *store))
{
	struct cop_store *store = NULL;
	int code;

	if (!cop_opt_start(table, argc, argv, args, &code))
		return code;
	code = open_store(table, args, &store);
	if (!code)
		code = answer(args, store);
	cop_store_close(store);
	return code;
}

int cop_cmd_runs_load(
	struct cop_store *s, const char *ref, struct cop_runrec *r, struct cop_err *err)
{
	char id[COP_RUNREC_ID_LEN + 1];
	int rc = cop_store_find(s, ref, id, err);

	return rc ? rc : cop_store_load(s, id, r, err);
}

void cop_cmd_runs_json_number(struct cop_json *j, const char *key, double value)
{
	if (isnan(value)) {
		cop_json_null(j, key);
	} else if (isinf(value)) {
		cop_json_str(j, key, value < 0 ? "-Infinity" : "Infinity");
	} else {
		cop_json_value(j, key);
		cop_grid_put_real(value, j->out);
	}
}

char *cop_cmd_runs_time(double time_s, char out[32])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (time_s <= 0 || !localtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
		strcpy(out, "-");
	return out;
}

double cop_cmd_runs_seconds(const struct cop_runrec *r)
{
	return fmax(0, (r->end_s > 0 ? r->end_s : r->seen_s) - r->start_s);
}

char *cop_cmd_runs_span(const struct cop_runrec *r, char out[32])
{
	double s = cop_cmd_runs_seconds(r);

	if (s < 60)
		snprintf(out, 32, "%.1f s", s);
	else if (s < 3600)
		snprintf(out, 32, "%.0f min", s / 60);
	else
		snprintf(out, 32, "%.1f h", s / 3600);
	return out;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

char *cop_cmd_runs_value(const char *key, double value, char out[32])
{
	bool bytes = ends_in(key, "bytes") || ends_in(key, "bytes_max") ||
		     ends_in(key, "bytes_in") || ends_in(key, "bytes_out");

	if (bytes && value >= 1024 && value < 1e18)
		cop_format_size((uint64_t)value, out);
	else if (value == floor(value) && fabs(value) < 1e15)
		snprintf(out, 32, "%.0f", value);
	else
		snprintf(out, 32, "%.6g", value);
	return out;
}
