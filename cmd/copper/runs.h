/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by the subcommands of copper runs. */
#ifndef COP_CMD_RUNS_H
#define COP_CMD_RUNS_H

#include "base/table/table.h"
#include "base/opt/opt.h"
#include "writers/runs/runs.h"

int cop_cmd_runs_list(int argc, char **argv);
int cop_cmd_runs_show(int argc, char **argv);
int cop_cmd_runs_compare(int argc, char **argv);
int cop_cmd_runs_log(int argc, char **argv);
int cop_cmd_runs_import(int argc, char **argv);
int cop_cmd_runs_export(int argc, char **argv);

extern const struct cop_opt_table cop_cmd_runs_list_options, cop_cmd_runs_show_options,
	cop_cmd_runs_compare_options, cop_cmd_runs_log_options, cop_cmd_runs_import_options,
	cop_cmd_runs_export_options;

struct runs_common {
	const char *store; /* never "" after cop_cmd_runs_store */
	bool json;
};
/* Option rows for an argument struct that begins with a struct runs_common. */
#define RUNS_ROWS                                                                                  \
	COP_OPT(STRING, "store", struct runs_common, store, "the run store", .arg = "FILE",        \
		.shown = "$COPPER_STORE"),                                                         \
		COP_OPT(FLAG, "json", struct runs_common, json, "print JSON; keys are stable")

/* For the checks of option tables: checks that a store is available. */
int cop_cmd_runs_check(void *common, struct cop_err *err);
/* Parses the arguments into args, a zeroed struct that begins with a struct runs_common, opens the
 * store, calls answer with both, and closes the store. Reports unreadable records on standard
 * error. Returns the exit status, which is that of answer if it was called. */
int cop_cmd_runs_answer(const struct cop_opt_table *table, int argc, char **argv, void *args,
	int (*answer)(const void *args, struct cop_store *store));
int cop_cmd_runs_fail(const struct cop_opt_table *table, const struct cop_err *err);
/* Finds one run and loads it into r, which must be empty. The caller frees r in any case. */
int cop_cmd_runs_load(
	struct cop_store *s, const char *ref, struct cop_runrec *r, struct cop_err *err);

/* Queries Slurm's accounting for a run's job and adds the result to the tags of r and, once the job
 * has ended, to those in the store (runs_sacct.c). Returns 0, or -errno with a message. */
int cop_cmd_runs_account(
	const char *store, struct cop_runrec *r, uint32_t timeout_ms, struct cop_err *err);
/* The same for a Slurm run that lacks these tags; only logs a failure. */
void cop_cmd_runs_try_account(const char *store, struct cop_runrec *r, uint32_t timeout_ms);

struct cop_json;
/* Writes the members of a run, without lists and series, into the current object (runs_show.c). */
void cop_cmd_runs_json_head(struct cop_json *j, const struct cop_runrec *r);
/* Writes an MLflow run as an object in the current array (runs_export.c). */
void cop_cmd_runs_json_mlflow(struct cop_json *j, const struct cop_mlflow_run *r);

/* Writes a number so that it reads back to the same value; infinities as "Infinity" and
 * "-Infinity", as in ProtoJSON, and NaN, which means no value, as null. */
void cop_cmd_runs_json_number(struct cop_json *j, const char *key, double value);

/* Human-readable text; out has 32 bytes and is returned. */
char *cop_cmd_runs_time(double time_s, char out[32]);
char *cop_cmd_runs_span(const struct cop_runrec *r, char out[32]);
/* A measured value in its usual unit: bytes as 1.5 MiB, everything else as a number. */
char *cop_cmd_runs_value(const char *key, double value, char out[32]);
/* The duration of the run in seconds; if it is still running, so far. */
double cop_cmd_runs_seconds(const struct cop_runrec *r);
static inline struct cop_grid_cell runs_text(const char *text)
{
	return (struct cop_grid_cell){.text = text, .len = __builtin_strlen(text)};
}

#endif
