/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "runs.h"

struct args {
	const char *store, *run, *status, *reason;
	int64_t step;
	struct cop_opt_list params, tags, metrics;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "run", struct args, run, "the run; 16 hexadecimal digits", .arg = "ID",
		.shown = "$COPPER_RUN_ID, or a new one"),
	COP_OPT(LIST, "param", struct args, params, "a parameter; may be repeated",
		.arg = "KEY=VALUE"),
	COP_OPT(LIST, "tag", struct args, tags, "a tag; may be repeated", .arg = "KEY=VALUE"),
	COP_OPT(LIST, "metric", struct args, metrics, "a number; may be repeated",
		.arg = "KEY=VALUE"),
	COP_OPT(I64, "step", struct args, step, "the step of the metrics", .arg = "N", .shown = "0",
		.max = INT64_MAX),
	COP_OPT(STRING, "status", struct args, status, "RUNNING, FINISHED or FAILED",
		.arg = "WORD"),
	COP_OPT(STRING, "reason", struct args, reason, "with --status: why", .arg = "TEXT"),
	COP_OPT(STRING, "store", struct args, store, "the run store, outside a job of Copper",
		.arg = "FILE", .shown = "$COPPER_STORE"),
};

static int check_pairs(const struct cop_opt_list *l, const char *option, struct cop_err *err)
{
	for (unsigned i = 0; i < l->n; i++) {
		const char *value = strchr(l->at[i], '=');

		if (!value || value == l->at[i])
			return cop_err_set(
				err, EINVAL, "%s: '%s' is not KEY=VALUE", option, l->at[i]);
	}
	return 0;
}

static int check_numbers(const struct cop_opt_list *l, struct cop_err *err)
{
	for (unsigned i = 0; i < l->n; i++) {
		const char *value = strchr(l->at[i], '=') + 1;
		char *end;

		(void)strtod(value, &end);
		if (!*value || *end)
			return cop_err_set(
				err, EINVAL, "--metric: '%s' is not a number: %s", value, l->at[i]);
	}
	return 0;
}

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;
	enum cop_runrec_status status;
	int rc = check_pairs(&a->params, "--param", err);

	rc = rc ? rc : check_pairs(&a->tags, "--tag", err);
	rc = rc ? rc : check_pairs(&a->metrics, "--metric", err);
	rc = rc ? rc : check_numbers(&a->metrics, err);
	if (rc)
		return rc;
	if (a->run &&
		(strlen(a->run) != COP_RUNREC_ID_LEN || a->run[strspn(a->run, "0123456789abcdef")]))
		return cop_err_set(
			err, EINVAL, "--run: '%s' is not an ID: 16 hexadecimal digits", a->run);
	if (a->status && (cop_runrec_status_of(a->status, &status) || status == COP_RUNREC_LOST))
		return cop_err_set(err, EINVAL,
			"--status: '%s' is not one of RUNNING, FINISHED, FAILED", a->status);
	if (!a->params.n && !a->tags.n && !a->metrics.n && !a->status)
		return cop_err_set(err, EINVAL,
			"nothing is to be recorded: give --param, --tag, --metric or --status");
	if (a->reason && !a->status)
		return cop_err_set(err, EINVAL, "--reason needs --status");
	return 0;
}

static void init(void *into)
{
	*(struct args *)into = (struct args){0};
}

const struct cop_opt_table cop_cmd_runs_log_options = {.command = "copper runs log",
	.summary = "record parameters, tags, metrics and the status of a run",
	COP_OPT_ROWS(rows),
	.init = init,
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_log_options;

static char *key_of(const char *pair)
{
	return strndup(pair, (size_t)(strchr(pair, '=') - pair));
}

static void log_pairs(const struct cop_opt_list *l, enum cop_runrec_list list)
{
	for (unsigned i = 0; i < l->n; i++) {
		char *key = key_of(l->at[i]);

		if (key)
			cop_program_pair(list, key, strchr(l->at[i], '=') + 1);
		free(key);
	}
}

static void log_all(const struct args *a)
{
	log_pairs(&a->params, COP_RUNREC_PARAM);
	log_pairs(&a->tags, COP_RUNREC_TAG);
	for (unsigned i = 0; i < a->metrics.n; i++) {
		char *key = key_of(a->metrics.at[i]);

		if (key)
			cop_program_point(key, (uint64_t)a->step,
				strtod(strchr(a->metrics.at[i], '=') + 1, NULL));
		free(key);
	}
	if (a->status)
		cop_program_status(a->status, a->reason ? a->reason : "");
}

/* Outside a job, the next command to read the store would import the log; importing it now makes it
 * visible at once. */
static int take_into_store(const char *store)
{
	struct cop_store *s = NULL;
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = cop_store_open(store, &s, &notes, &err);

	if (notes.data)
		fputs(notes.data, stderr);
	cop_buf_free(&notes);
	cop_store_close(s);
	return rc ? cop_cmd_runs_fail(table, &err) : 0;
}

int cop_cmd_runs_log(int argc, char **argv)
{
	const char *job, *id;
	struct args a;
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	if (a.run)
		setenv("COPPER_RUN_ID", a.run, 1);
	if (a.store) {
		setenv("COPPER_STORE", a.store, 1);
		unsetenv("COPPER_JOB_DIR");
	}
	job = getenv("COPPER_JOB_DIR");
	cop_program_begin();
	do
		log_all(&a);
	while (cop_program_again());
	id = cop_program_id();
	if (!*id)
		return 1;
	if (strcmp(id, "-") != 0)
		puts(id);
	return job && *job ? 0 : take_into_store(getenv("COPPER_STORE"));
}
