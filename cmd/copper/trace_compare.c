/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"
#include "trace/table/table.h"

struct args {
	struct trace_group group; /* first */
	struct cop_opt_many runs;
};

static const struct cop_opt rows[] = {
	TRACE_GROUP_ROWS,
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "NAME=PATH[,PATH...]",
		.offset = offsetof(struct args, runs),
		.required = true,
		.many = true},
};
const struct cop_opt_table cop_cmd_trace_compare_options = {.command = "copper trace compare",
	.summary = "the same table for several runs, side by side",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_compare_options;

static int show(const struct args *a, const struct trace_cases *cases, struct cop_rows *tables)
{
	const struct trace_run self = {.table = table};
	struct cop_compare *compare = NULL;
	struct cop_buf text = {0};
	struct cop_err err = {0};
	int code;

	cop_cmd_trace_group_trim(&a->group, tables, cases->n);
	if (cop_compare_new(tables, cases->name, (unsigned)cases->n, &compare, &err))
		return cop_cmd_trace_fail(&self, &err);
	cop_compare_show(compare, cop_cmd_trace_form(&a->group.select), a->group.limit, &text);
	for (size_t i = 0; i < cases->n; i++)
		cop_cmd_trace_about(&cases->at[i].run, &tables[i]);
	code = cop_cmd_print(table->command, &text, NULL);
	cop_buf_free(&text);
	cop_compare_free(compare);
	return code;
}

static int compare_cases(
	const struct args *a, const struct cop_tab_conf *conf, struct trace_cases *cases)
{
	struct cop_rows *tables;
	int code = cop_cmd_trace_cases_open(cases, table, &a->group.select, &a->runs);

	if (code)
		return code;
	tables = calloc(cases->n, sizeof(*tables));
	if (!tables)
		return cop_cmd_trace_fail(&(struct trace_run){.table = table},
			&(struct cop_err){.text = "no memory"});
	for (size_t i = 0; i < cases->n && !code; i++)
		code = cop_cmd_trace_group_read(&cases->at[i].run, conf, &tables[i]);
	if (!code)
		code = show(a, cases, tables);
	for (size_t i = 0; i < cases->n; i++)
		cop_rows_free(&tables[i]);
	free(tables);
	return code;
}

int cop_cmd_trace_compare(int argc, char **argv)
{
	struct args a = {0};
	struct cop_tab_conf conf = {0};
	struct trace_cases cases = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	code = cop_cmd_trace_group(table, &a.group, "dur,count,size,bandwidth", &conf);
	if (!code)
		code = compare_cases(&a, &conf, &cases);
	cop_cmd_trace_cases_close(&cases);
	return code;
}
