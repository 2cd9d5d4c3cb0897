/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"

struct args {
	struct trace_group group; /* first */
	const char *sort;
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {
	TRACE_GROUP_ROWS,
	COP_OPT(STRING, "sort", struct args, sort, "by this column or key", .arg = "COL",
		.shown = "dur"),
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_table_options = {.command = "copper trace table",
	.summary = "groups of events with their sums, largest first",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_table_options;

static int show(const struct trace_run *run, const struct args *a, struct cop_rows *r)
{
	struct cop_buf text = {0};
	int code;

	cop_cmd_trace_group_trim(&a->group, r, 1);
	cop_rows_sort(r, a->sort);
	cop_rows_show(r, cop_cmd_trace_form(&a->group.select), a->group.limit, &text);
	cop_cmd_trace_about(run, r);
	code = cop_cmd_print(table->command, &text, NULL);
	cop_buf_free(&text);
	return code;
}

static int check_sort(const struct args *a, const struct cop_tab_conf *conf)
{
	struct cop_err err = {0};

	return cop_tab_check_sort(conf, a->sort, &err)
		       ? cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err)
		       : 0;
}

int cop_cmd_trace_table(int argc, char **argv)
{
	struct args a = {0};
	struct cop_tab_conf conf = {0};
	struct cop_rows r = {0};
	struct trace_run run = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	code = cop_cmd_trace_group(table, &a.group, "count,dur,size,bandwidth", &conf);
	if (!code)
		code = check_sort(&a, &conf);
	if (!code)
		code = cop_cmd_trace_open(&run, table, &a.group.select, &a.paths);
	if (!code)
		code = cop_cmd_trace_group_read(&run, &conf, &r);
	if (!code)
		code = show(&run, &a, &r);
	cop_rows_free(&r);
	cop_cmd_trace_close(&run);
	return code;
}
