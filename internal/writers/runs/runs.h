/* SPDX-License-Identifier: BSD-3-Clause */
/* runs: the record of one run: its name, status, parameters, tags, resource, and series of measured
 * values. Bounds the size of a record, thins series, and converts records to text and back
 * (copper-formats(5), run records). Does not access databases or nodes. */
#ifndef COP_WRITERS_RUNS_H
#define COP_WRITERS_RUNS_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "job/conf/conf.h"
#include "prof/stats/stats.h"
#include "tree/op/op.h"

#define COP_RUNREC_ID_LEN 16       /* lower-case hexadecimal digits */
#define COP_RUNREC_POINTS_MAX 2000 /* per series */
#define COP_RUNREC_LOADED_MAX 100000
#define COP_RUNREC_SERIES_MAX 1024
#define COP_RUNREC_PAIRS_MAX 1024 /* per list */
#define COP_RUNREC_KEY_MAX 255    /* bytes */
#define COP_RUNREC_VALUE_MAX 4095 /* bytes; longer values are truncated */
#define COP_RUNREC_FILE_MAX (64 * COP_MIB)
#define COP_RUNREC_SUFFIX ".run"

enum cop_runrec_status {
	COP_RUNREC_RUNNING,
	COP_RUNREC_FINISHED,
	COP_RUNREC_FAILED,
	COP_RUNREC_LOST, /* assigned by readers only, never recorded */
	COP_RUNREC_STATUSES
};
const char *cop_runrec_status_name(enum cop_runrec_status s);
/* -EINVAL: unknown status; case-insensitive. */
int cop_runrec_status_of(const char *name, enum cop_runrec_status *out);

enum cop_runrec_list { COP_RUNREC_PARAM, COP_RUNREC_TAG, COP_RUNREC_RESOURCE, COP_RUNREC_LISTS };
/* "param", "tag", "resource". */
const char *cop_runrec_list_name(enum cop_runrec_list l);

enum cop_runrec_field {
	COP_RUNREC_NAME,
	COP_RUNREC_GROUP,
	COP_RUNREC_VERSION,
	COP_RUNREC_REASON, /* why the run ended */
	COP_RUNREC_FIELDS
};

struct cop_runrec_pair {
	char *key, *value;
};
struct cop_runrec_pairs {
	struct cop_runrec_pair *at; /* sorted by key */
	size_t n;
};
struct cop_runrec_point {
	uint64_t step;
	double time_s, value; /* time: since 1970 */
};
struct cop_runrec_series {
	char *key;
	struct cop_runrec_point *point; /* in ascending order of step */
	size_t n;
	uint64_t points; /* points added; one in `every` is kept, plus the last */
	uint64_t every;  /* 0 means 1 */
	double most;     /* maximum of all points added */
};

/* Zeroed memory is an empty record. A record owns all its data. */
struct cop_runrec {
	char id[COP_RUNREC_ID_LEN + 1];
	enum cop_runrec_status status;
	char *field[COP_RUNREC_FIELDS]; /* NULL: "" */
	double start_s, end_s;          /* since 1970; end 0: not ended */
	double seen_s;                  /* time of the last sign of life, and its interval */
	double beat_s;
	uint32_t nodes;
	struct cop_runrec_pairs list[COP_RUNREC_LISTS];
	struct cop_runrec_series *series; /* sorted by key */
	size_t series_n;
	uint64_t step;     /* step of the points being added */
	uint64_t stride;   /* only steps that are multiples are kept; 0 means 1 */
	size_t points_max; /* per series, even; a full series drops every second point. 0:
			      COP_RUNREC_POINTS_MAX, with further points dropped */
	bool failed;       /* out of memory: the record is incomplete */
};

void cop_runrec_free(struct cop_runrec *r);
/* A random identifier. 0 or -errno. */
int cop_runrec_new_id(char id[COP_RUNREC_ID_LEN + 1]);
/* "" if the field is not set. */
const char *cop_runrec_get(const struct cop_runrec *r, enum cop_runrec_field f);

/* These truncate overlong text, and set r->failed if memory runs out. */

void cop_runrec_put(struct cop_runrec *r, enum cop_runrec_field f, const char *text);
/* Adds the pair, or replaces its value. Drops pairs beyond the limit or without a key. */
void cop_runrec_pair(
	struct cop_runrec *r, enum cop_runrec_list l, const char *key, const char *value);
/* The value of a key in a list; NULL: none. */
const char *cop_runrec_value(const struct cop_runrec *r, enum cop_runrec_list l, const char *key);
/* Begins the next step. True if its points are kept. If series become too long, every second step
 * is dropped, past and future. */
bool cop_runrec_next(struct cop_runrec *r);
/* Marks the next step as the last, which is always kept. */
void cop_runrec_last(struct cop_runrec *r);
/* Whether Copper records a metric with this key or prefix: "fuse.", "system/". */
bool cop_runrec_is_own_metric(const char *key);
/* Adds a point at the current step. Drops NaN, and series beyond the limit. */
void cop_runrec_point(struct cop_runrec *r, const char *key, double time_s, double value);
const struct cop_runrec_series *cop_runrec_find(const struct cop_runrec *r, const char *key);

/* ---- as a text ---- */

void cop_runrec_write(const struct cop_runrec *r, struct cop_buf *out);
/* Parses into r, which must be empty; the caller frees it in any case. 0; -EBADMSG with a message
 * that begins with name; -EPROTO with a message: written by a later version; -ENOMEM. */
int cop_runrec_parse(
	const char *text, size_t len, const char *name, struct cop_runrec *r, struct cop_err *err);

/* store: the run store, one SQLite database for the runs of many jobs, and the folder STORE.d for
 * records that could not be written to it. No other module uses SQLite. copper-formats(5) documents
 * the tables, which users may query with SQL.
 *
 * A write is one transaction with a deadline. It uses SQLite's rollback journal, because a
 * write-ahead log needs shared memory, which parallel file systems do not have. A file that is not
 * a run store is never changed. Messages begin with the name of the file.
 *
 * Errors of all functions: -EBUSY (locked until the deadline), -ENOLCK (no file locks), -EPROTO
 * (store of a later version), -EMEDIUMTYPE (not a run store), -ENOSPC, -EROFS, -EACCES, -ENOENT,
 * -EISDIR, -ENOMEM, -EIO. */

#define COP_STORE_FORM 1 /* PRAGMA user_version */

/* ---- writing ---- */

/* Writes the record into the store, which is created if missing. from_step > 0: writes only the run
 * itself and the points from that step on; otherwise replaces everything about this run. A record
 * older than the stored one changes nothing. One thread at a time. */
int cop_store_put(const char *path, const struct cop_runrec *r, uint64_t from_step,
	uint64_t deadline_ms, struct cop_err *err);
/* Adds or replaces tags of a run in the store. */
int cop_store_put_tags(const char *path, const char *id, const struct cop_runrec_pairs *tags,
	uint64_t deadline_ms, struct cop_err *err);
/* Writes the record into STORE.d, completely or not at all; the next reader moves it into the
 * store. */
int cop_store_put_beside(const char *path, const struct cop_runrec *r, struct cop_err *err);
/* Removes it, unless a reader has already moved it. */
void cop_store_drop_beside(const char *path, const char *id);
/* Reads a file with one record into r, which must be empty; the caller frees it in any case. */
int cop_store_read_record(const char *file, struct cop_runrec *r, struct cop_err *err);

/* ---- logs of programs ---- */

/* Appends lines to the file shared by all commands of this user on this host, as
 * include/copper/run.h does for a program: the environment selects the directory and the run.
 * Errors are printed on standard error. Single-threaded. */
void cop_program_begin(void);
void cop_program_pair(enum cop_runrec_list l, const char *key, const char *value);
void cop_program_point(const char *key, uint64_t step, double value);
void cop_program_status(const char *word, const char *reason);
/* The identifier of the run; "-": the job's run; "": a write failed. */
const char *cop_program_id(void);
/* Whether a reader has removed the file since, so everything must be logged again. */
bool cop_program_again(void);

/* Read positions in the files of one folder, to import each line once. */
struct cop_take;

/* NULL: out of memory. */
struct cop_take *cop_take_new(void);
void cop_take_free(struct cop_take *t);
/* Whether to open only files with a changed size in stat(2). A network file system may report sizes
 * several seconds late, but updates them on open. */
void cop_take_quickly(struct cop_take *t, bool quick);
/* Whether this folder contains logs of programs. */
bool cop_take_has_logs(const char *dir);
/* Imports new lines of dir's "*.log" files into the store, in one transaction. job: this job's run,
 * which the store must have: imports only its lines, and keeps the files. (A file without a run
 * belongs to this job if it was modified after COP_JOB_ENVIRONMENT.) NULL: each file names its run,
 * which is added to the store if missing; files of ended programs are removed. Damaged lines are
 * skipped and reported in notes, which may be NULL. A missing folder is empty. -ETIMEDOUT: lines
 * imported until the deadline are in the store, and the next call continues. */
int cop_take_logs(struct cop_take *t, const char *dir, const char *job, const char *store,
	uint64_t deadline_ms, struct cop_buf *notes, struct cop_err *err);

/* ---- reading ---- */

struct cop_store;

/* Moves the records of STORE.d into the store, then opens it for reading. If the store is
 * read-only, the records of STORE.d are read together with it and remain there. Unreadable records
 * remain, too, with a line each in notes. */
int cop_store_open(
	const char *path, struct cop_store **out, struct cop_buf *notes, struct cop_err *err);
void cop_store_close(struct cop_store *s);

struct cop_store_filter {
	bool by_status;
	enum cop_runrec_status status; /* may be LOST */
	double since_s;                /* only runs started at or after this time; 0: all */
	const char *tag;          /* KEY=VALUE; name= and group= are the run's own; NULL: all */
	const char *const *where; /* only runs that match all terms: "param.lr < 0.01" */
	size_t wheres;
	const char *sort; /* a key as in such a term, with a leading - for descending order; NULL:
			     newest first */
};
/* -EINVAL with a message if where or sort cannot be parsed. */
int cop_store_check_filter(const struct cop_store_filter *f, struct cop_err *err);
struct cop_store_runs {
	struct cop_runrec *at; /* without lists and series; newest first */
	size_t n;
};
/* Lists runs. A run without a report for four of its beats is LOST. */
int cop_store_runs(struct cop_store *s, const struct cop_store_filter *filter,
	struct cop_store_runs *out, struct cop_err *err);
void cop_store_runs_free(struct cop_store_runs *runs);
/* Finds one run by a prefix of its identifier, or as "last" or "last~N", the Nth before the last.
 * -ENOENT and -EINVAL (ambiguous) with messages. */
int cop_store_find(
	struct cop_store *s, const char *ref, char id[COP_RUNREC_ID_LEN + 1], struct cop_err *err);
/* Reads everything about one run into r, which must be empty; the caller frees it in any case.
 * Longer series are thinned evenly to COP_RUNREC_LOADED_MAX points. */
int cop_store_load(struct cop_store *s, const char *id, struct cop_runrec *r, struct cop_err *err);

/* Calls fn for every point of a run's metric, in order of step. -ENOENT with a message if there is
 * none. */
int cop_store_history(struct cop_store *s, const char *id, const char *metric,
	void (*fn)(void *arg, const struct cop_runrec_point *point), void *arg,
	struct cop_err *err);

/* The version of SQLite. */
const char *cop_store_library(void);

/* ---- MLflow ---- */

struct cop_mlflow_run {
	const char *id, *uuid, *experiment, *status;
};
typedef void cop_mlflow_each(void *arg, const struct cop_mlflow_run *r);
struct cop_mlflow_export {
	const char *file;
	const char *experiment; /* NULL: the run's group, or "copper" */
	const char (*id)[COP_RUNREC_ID_LEN + 1];
	size_t n; /* 0: all runs */
	uint64_t deadline_ms;
};
/* Writes runs to an MLflow database in SQLite, created if missing, in one transaction; calls each
 * for every run. Updates runs that exist there. -EPROTO with both versions: unknown schema. */
int cop_store_export_mlflow(struct cop_store *s, const struct cop_mlflow_export *what,
	cop_mlflow_each *each, void *arg, struct cop_err *err);
/* Imports all runs of an MLflow database into the store, created if missing, in one transaction.
 * -EEXIST: two of its runs would have the same identifier. */
int cop_store_import_mlflow(const char *store, const char *file, uint64_t deadline_ms,
	cop_mlflow_each *each, void *arg, struct cop_err *err);

/* follow: runs the followers, which record a job on rank 0 while it runs: the run store, the
 * OpenTelemetry files. Collects telemetry from all nodes at intervals, one request for all
 * followers, and passes them the answers and the end. Never delays the job: each follower has its
 * own thread with deadlines, at most one request to the tree is in flight, and a thread blocked in
 * a file system is detached. Does not know what followers write. */

#define COP_FOLLOW_MAX 4

/* Counters and resource use of all answering nodes, with a wall-clock time. */
struct cop_follow_numbers {
	int64_t wall_ns;
	uint32_t nodes, missing;
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_op_machine machine;
	struct cop_machine_sum hosts;
};

void cop_follow_numbers_of(const struct cop_op_sum *sum, struct cop_follow_numbers *out);

/* How the job ended. */
struct cop_follow_end {
	bool failed;
	const char *reason;        /* a sentence, or a few words */
	int64_t stop_ns;           /* wall clock: start of the stop; 0: the job never started */
	struct cop_op_exits exits; /* of this node's commands; the totals have all */
};

/* Inputs for judging the end of a job. */
struct cop_judge {
	bool failed;
	const char *reason; /* for struct cop_follow_end */
	struct cop_op_exits exits;
	uint32_t nodes, missing; /* missing: no answer to the stop */
	bool all_asked; /* exits are from all answering nodes; else from this one only, and missing
			   is unknown */
	uint64_t kills; /* cop_memory_kills at the start of the job */
};
/* Whether the job has failed: not if every command is known to have exited with 0. Appends a reason
 * to an empty buffer, which the caller frees. */
bool cop_judge_end(const struct cop_judge *j, struct cop_buf *reason);

struct cop_follower_ops {
	const char *thread; /* thread name */
	unsigned beats;     /* intervals between calls of beat; 0: never */
	/* Called on the thread, one at a time. begin is first, unless the job is already over; it
	 * sets err if requested files cannot be written. round: an answer arrived; beat: periodic;
	 * end is last. Deadlines are in cop_now_ms. */
	void (*begin)(void *ctx, uint64_t deadline_ms, struct cop_err *err);
	void (*round)(void *ctx, const struct cop_follow_numbers *n);
	void (*beat)(void *ctx, uint64_t deadline_ms);
	void (*end)(void *ctx, uint64_t deadline_ms);
	/* Main thread, before end: the sums of all stopped nodes, at most once, then how the job
	 * ended. The thread uses their data only after the second call. */
	void (*totals)(void *ctx, const struct cop_op_sum *sum);
	void (*ending)(void *ctx, const struct cop_follow_end *end);
	/* Any thread, the last call. */
	void (*free)(void *ctx);
};

struct cop_follow_conf {
	uint32_t interval_ms;
	/* Called on threads of this module. Requests telemetry from all nodes; done is called once,
	 * on any thread. False: not possible now, and done is not called. */
	bool (*ask)(void *ctx, cop_op_done *done, void *arg);
	/* Any thread. Whether a node may already have counted for the totals: these are final, so
	 * later answers are no rounds. NULL: only once the totals have arrived. */
	bool (*is_ending)(void *ctx);
	void *ctx;
};

struct cop_follow;

/* NULL: out of memory. All functions are for the main thread, and accept NULL. */
struct cop_follow *cop_follow_new(const struct cop_follow_conf *conf);
/* Adds a follower; ops is borrowed, and ctx is freed with it. 0; -ENOMEM, -ENOSPC: ctx has been
 * freed. */
int cop_follow_add(struct cop_follow *f, const struct cop_follower_ops *ops, void *ctx);
/* Starts the followers, and waits at most 0.2 s for their first writes. False, with a message, if
 * something cannot be written. */
bool cop_follow_is_good(struct cop_follow *f, struct cop_err *err);
void cop_follow_totals(struct cop_follow *f, const struct cop_op_sum *sum);
/* Call once. The followers write the end, even of a job that never started. Waits at most ten
 * seconds for them. */
void cop_follow_end(struct cop_follow *f, const struct cop_follow_end *end);
/* Call after the end, with no request to the tree in flight. */
void cop_follow_free(struct cop_follow *f);

/* runlog: rank 0's record of a job in the run store: the run when the tree is ready, telemetry of
 * all nodes during the run, the totals and the end at the stop. follow decides when, store defines
 * the tables, and runrec defines the format of the fallback files, in the job directory or in
 * STORE.d. */

#define COP_RUNLOG_STORE 4096
struct cop_runlog_conf {
	const char *id; /* from cop_runlog_new */
	const struct cop_conf *conf;
	const char *job_dir; /* absolute; "": none */
	const char *source;  /* absolute; "": unknown */
	uint32_t nodes;
	uint64_t manifest; /* hash of the prefetched manifest; 0: no prefetch, or unknown */
};

/* Whether the user requested a store, by option or environment. */
bool cop_runlog_is_wanted(const struct cop_conf *conf);
/* Chooses the identifier of a run, and makes the name of its store absolute. False: no store was
 * requested, or an error occurred, which is logged. */
bool cop_runlog_new(
	const struct cop_conf *conf, char id[COP_RUNREC_ID_LEN + 1], char store[COP_RUNLOG_STORE]);
/* Adds a follower that records this run, if --store or the environment requests it. Names are
 * relative to the working directory. Errors are logged. */
void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf);

#endif
