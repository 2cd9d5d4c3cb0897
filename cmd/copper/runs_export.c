/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

#define WAIT_MS 60000

struct args {
	struct runs_common common; /* first */
	const char *mlflow, *experiment;
	struct cop_opt_many ids;
};

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;

	if (!a->mlflow)
		return cop_err_set(err, EINVAL, "no destination: give --mlflow FILE.db");
	if (a->experiment && !*a->experiment)
		return cop_err_set(err, EINVAL, "--experiment: a name is needed");
	return cop_cmd_runs_check(into, err);
}

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "mlflow", struct args, mlflow,
		"MLflow's database in SQLite; made if it does not exist", .arg = "FILE.db"),
	COP_OPT(STRING, "experiment", struct args, experiment, "MLflow's experiment for these runs",
		.arg = "NAME", .shown = "the group of each, or copper"),
	RUNS_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "ID", .offset = offsetof(struct args, ids), .many = true}};
const struct cop_opt_table cop_cmd_runs_export_options = {.command = "copper runs export",
	.summary = "write runs to an MLflow database",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_export_options;

void cop_cmd_runs_json_mlflow(struct cop_json *j, const struct cop_mlflow_run *r)
{
	cop_json_object(j, NULL);
	cop_json_str(j, "id", r->id);
	cop_json_str(j, "run_uuid", r->uuid);
	cop_json_str(j, "experiment", r->experiment);
	cop_json_str(j, "status", r->status);
	cop_json_end(j);
}

struct said {
	struct cop_buf out;
	struct cop_json json;
	bool is_json;
};

static void say_run(void *arg, const struct cop_mlflow_run *r)
{
	struct said *s = arg;

	if (s->is_json)
		cop_cmd_runs_json_mlflow(&s->json, r);
	else
		cop_buf_printf(&s->out, "%.8s %s (run %s of experiment %s)\n", r->id, r->status,
			r->uuid, r->experiment);
}

/* Finds the runs before writing anything. */
static int find_all(const struct args *a, struct cop_store *store,
	char (*id)[COP_RUNREC_ID_LEN + 1], struct cop_err *err)
{
	int rc = id ? 0 : cop_err_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; i < a->ids.n && !rc; i++)
		rc = cop_store_find(store, a->ids.at[i], id[i], err);
	return rc;
}

static int write_all(const void *args, struct cop_store *store)
{
	const struct args *a = args;
	char(*id)[COP_RUNREC_ID_LEN + 1] = calloc(a->ids.n + 1, sizeof(*id));
	struct cop_mlflow_export what = {.file = a->mlflow,
		.experiment = a->experiment,
		.id = id,
		.n = a->ids.n,
		.deadline_ms = cop_now_ms() + WAIT_MS};
	struct said said = {.is_json = a->common.json};
	struct cop_err err = {0};
	int code;

	said.json = cop_json_to(&said.out);
	if (said.is_json)
		cop_json_array(&said.json, NULL);
	code = find_all(a, store, id, &err);
	code = code ? code : cop_store_export_mlflow(store, &what, say_run, &said, &err);
	if (said.is_json) {
		cop_json_end(&said.json);
		cop_buf_str(&said.out, "\n");
	}
	code = code ? cop_cmd_runs_fail(table, &err)
		    : cop_cmd_print(table->command, &said.out, NULL);
	cop_buf_free(&said.out);
	free(id);
	return code;
}

int cop_cmd_runs_export(int argc, char **argv)
{
	struct args a = {0};

	return cop_cmd_runs_answer(table, argc, argv, &a, write_all);
}
