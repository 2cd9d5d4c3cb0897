/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_TRACE_CHECKPOINT_PRIV_H
#define COP_TRACE_CHECKPOINT_PRIV_H

#include "trace/checkpoint/checkpoint.h"
#include "trace/table/table.h"

/* ---- spans.c: checkpoint and flush times of threads ---- */

struct spans;
struct spans *cop_ckpt_spans_new(void);
void cop_ckpt_spans_free(struct spans *s);
/* Any thread may call this. -ENOMEM. */
int cop_ckpt_spans_add(struct spans *s, const struct cop_trace_event *e, bool checkpoint);

/* Flush times, in seconds. A thread is flushing while it writes to a slower tier outside its own
 * checkpoints. */
struct flush {
	double dur;     /* flush time of the thread that flushes longest */
	double covered; /* time during which at least one thread is flushing */
	double overlap; /* part of `covered` during which at least one thread is checkpointing */
	double about;   /* maximum error of the times above */
	double inside;  /* longest time that a thread writes to a slower tier within checkpoints */
	uint64_t threads;
};
/* The pace of the thread with the most checkpoint time: how many checkpoints it writes, how long
 * each takes, and the time from the end of one to the start of the next. */
struct pace {
	double n, cost, interval; /* interval is NAN if there is only one */
	double dur, whole;        /* time in checkpoints; time from the first to the last */
};
/* Adds the time that each thread spends in outermost checkpoint events to `events`, and the nested
 * events to `nested`. -ENOMEM. */
int cop_ckpt_spans_finish(struct spans *s, struct cop_tab *events, struct cop_tab *nested,
	struct flush *out, struct pace *pace);

/* ---- run.c: the tables of a run ---- */

enum { TAB_CALLS, TAB_CLASSES, TAB_FILES, TAB_SIZES, TABS };

/* Bytes, seconds and counts for one tier in one run. */
struct tier {
	struct cop_rows rows[TABS]; /* calls are keyed by name, pid, tid; sizes by name, size */
	double dur, read, written, size, calls;
	double per_file; /* calls per file; NAN without files */
	double ratio;    /* bytes written per byte that the program produced; NAN if not known */
};
struct run {
	const char *name;
	struct cop_rows events; /* checkpoint events by process, thread */
	struct cop_rows nested; /* nested checkpoint events, by name */
	double count, dur;      /* number of events; their time in the slowest thread */
	double produced;        /* NAN: not known */
	struct flush flush;
	struct pace pace;
	double nodes; /* number of nodes that events name; 1 if they name none */
	struct tier tier[COP_CKPT_TIERS_MAX];
};
const struct cop_ckpt_conf *cop_ckpt_conf_of(const struct cop_ckpt *c);
/* The run takes ownership of c's tables, even on failure. */
int cop_ckpt_finish(struct cop_ckpt *c, const char *name, struct run *out, struct cop_err *err);
void cop_ckpt_run_fini(struct run *r, unsigned tiers);

/* ---- sheet.c: the tables of the report ---- */

struct sheet {
	const char *name, *title;
	struct cop_grid_col *col;
	unsigned cols;
	struct cop_grid_cell *cell;
	size_t n, cap;
	bool failed;
};
/* Sets the columns from "name:kind ...". The kind is a letter: t, s, w or r for the kinds of enum
 * cop_grid_kind, n for a number as text. */
void cop_ckpt_sheet_cols(struct sheet *s, const char *cols);
void cop_ckpt_sheet_col(struct sheet *s, const char *name, enum cop_grid_kind kind);
/* Append cells one by one, row by row. */
void cop_ckpt_put_str(struct sheet *s, const char *text);
void cop_ckpt_put_text(struct sheet *s, struct cop_trace_str text);
void cop_ckpt_put(struct sheet *s, double value);
void cop_ckpt_sheet_show(const struct sheet *s, enum cop_grid_form form, struct cop_buf *out);
void cop_ckpt_sheet_fini(struct sheet *s);

/* ---- model.c ---- */

struct cop_ckpt_report;
void cop_ckpt_put_model(struct cop_ckpt_report *r, const struct run *run);
void cop_ckpt_put_interval(struct cop_ckpt_report *r, const struct run *run);
/* Return the optimal time from the end of a checkpoint to the start of the next. */
double cop_ckpt_young(double cost, double mtbf);
double cop_ckpt_daly(double cost, double mtbf);
/* Returns the share of time lost to checkpoints and to recomputation after failures. */
double cop_ckpt_lost(double cost, double interval, double mtbf);

/* ---- report.c, lists.c, advice.c ---- */

enum {
	SHEET_CASES,
	SHEET_NESTED,
	SHEET_TIERS,
	SHEET_CLASSES,
	SHEET_CALLS,
	SHEET_FILES,
	SHEET_SIZES,
	SHEET_FREQUENT,
	SHEET_FLUSH,
	SHEET_INTERVAL,
	SHEET_MODEL,
	SHEET_ADVICE,
	SHEETS
};
struct cop_ckpt_report {
	const struct cop_ckpt_conf *conf;
	struct run *run;
	size_t runs;
	struct sheet sheet[SHEETS];
	struct cop_buf *advice; /* texts to which the advice sheet points */
	size_t advices;
};
void cop_ckpt_list_classes(struct cop_ckpt_report *r, struct run *run, unsigned tier);
void cop_ckpt_list_calls(struct cop_ckpt_report *r, struct run *run, unsigned tier);
void cop_ckpt_list_files(struct cop_ckpt_report *r, struct run *run, unsigned tier);
void cop_ckpt_list_sizes(struct cop_ckpt_report *r, struct run *run, unsigned tier);
/* Returns the size from a row that is keyed by call and size. */
double cop_ckpt_size_of(const struct cop_row *row);
bool cop_ckpt_holds(struct cop_trace_str s, const char *word);
void cop_ckpt_advise(struct cop_ckpt_report *r);
/* "33554432 bytes (32.0 MiB)" */
struct words {
	char text[64];
};
struct words cop_ckpt_bytes(double value);
/* Begins a new advice text about a run, which the caller prints into the buffer. NULL: out of
 * memory. */
struct cop_buf *cop_ckpt_about(struct cop_ckpt_report *r, const struct run *run, const char *what);

#endif
