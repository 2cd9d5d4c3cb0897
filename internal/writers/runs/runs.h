/* SPDX-License-Identifier: BSD-3-Clause */
/* runs: the record of one run: its name, status, parameters, tags, resources, and time series of
 * metrics. Bounds the size of a record, thins series, and converts records to text and back
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
/* Ignores case. -EINVAL: unknown status. */
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
	uint64_t points; /* points added; keeps one in `every`, plus the last */
	uint64_t every;  /* 0 means 1 */
	double most;     /* maximum of all points added */
};

/* Zeroed memory is an empty record. A record owns all its data. */
struct cop_runrec {
	char id[COP_RUNREC_ID_LEN + 1];
	enum cop_runrec_status status;
	char *field[COP_RUNREC_FIELDS]; /* NULL: "" */
	double start_s, end_s;          /* since 1970; end 0: not ended */
	double seen_s;                  /* last sign of life; one is due every beat_s */
	double beat_s;
	uint32_t nodes;
	struct cop_runrec_pairs list[COP_RUNREC_LISTS];
	struct cop_runrec_series *series; /* sorted by key */
	size_t series_n;
	uint64_t step;     /* step of the points being added */
	uint64_t stride;   /* keep only steps that are multiples of this; 0 means 1 */
	size_t points_max; /* per series, even; a full series drops every second point. 0: keep the
			      first COP_RUNREC_POINTS_MAX points and drop the rest */
	bool failed;       /* out of memory: the record is incomplete */
};

void cop_runrec_free(struct cop_runrec *r);
/* A random identifier. 0 or -errno. */
int cop_runrec_new_id(char id[COP_RUNREC_ID_LEN + 1]);
/* "" if the field is not set. */
const char *cop_runrec_get(const struct cop_runrec *r, enum cop_runrec_field f);

/* These truncate overlong text, and set r->failed if memory runs out. */

void cop_runrec_put(struct cop_runrec *r, enum cop_runrec_field f, const char *text);
/* Adds the pair, or replaces its value. Drops pairs that exceed the limit or have no key. */
void cop_runrec_pair(
	struct cop_runrec *r, enum cop_runrec_list l, const char *key, const char *value);
/* The value of a key in a list; NULL: none. */
const char *cop_runrec_value(const struct cop_runrec *r, enum cop_runrec_list l, const char *key);
/* Begins the next step. Returns whether its points will be kept: once series get too long, every
 * second step is dropped, past and future. */
bool cop_runrec_next(struct cop_runrec *r);
/* Marks the next step as the last one, which is always kept. */
void cop_runrec_last(struct cop_runrec *r);
/* Whether Copper itself records metrics with this key or prefix ("fuse.", "system/"). */
bool cop_runrec_is_own_metric(const char *key);
/* Adds a point at the current step. Drops NaNs, and new series beyond the limit. */
void cop_runrec_point(struct cop_runrec *r, const char *key, double time_s, double value);
const struct cop_runrec_series *cop_runrec_find(const struct cop_runrec *r, const char *key);

/* ---- as text ---- */

void cop_runrec_write(const struct cop_runrec *r, struct cop_buf *out);
/* Parses into r, which must be empty; the caller frees it even after an error. 0; -EBADMSG with a
 * message that begins with name; -EPROTO with a message: written by a later version; -ENOMEM. */
int cop_runrec_parse(
	const char *text, size_t len, const char *name, struct cop_runrec *r, struct cop_err *err);

/* store: the run store, one SQLite database for the runs of many jobs, and the directory STORE.d
 * for records that could not be written to it. No other module uses SQLite. copper-formats(5)
 * documents the tables, which users may query with SQL.
 *
 * Each write is one transaction with a deadline. It uses SQLite's rollback journal, because a
 * write-ahead log needs shared memory, which parallel file systems do not provide. Files that are
 * not run stores are never changed. Error messages begin with the file name.
 *
 * Errors of all functions: -EBUSY (still locked at the deadline), -ENOLCK (no file locks), -EPROTO
 * (store of a later version), -EMEDIUMTYPE (not a run store), -ENOSPC, -EROFS, -EACCES, -ENOENT,
 * -EISDIR, -ENOMEM, -EIO. */

#define COP_STORE_FORM 1 /* PRAGMA user_version */

/* ---- writing ---- */

/* Writes the record into the store, creating the store if needed. If from_step > 0, writes only the
 * run itself and the points from that step on; otherwise replaces everything about this run. A
 * record older than the stored one changes nothing. One thread at a time. */
int cop_store_put(const char *path, const struct cop_runrec *r, uint64_t from_step,
	uint64_t deadline_ms, struct cop_err *err);
/* Adds or replaces tags of a run in the store. */
int cop_store_put_tags(const char *path, const char *id, const struct cop_runrec_pairs *tags,
	uint64_t deadline_ms, struct cop_err *err);
/* Writes the record into STORE.d, atomically; the next reader moves it into the store. */
int cop_store_put_beside(const char *path, const struct cop_runrec *r, struct cop_err *err);
/* Removes that record from STORE.d, unless a reader has already moved it. */
void cop_store_drop_beside(const char *path, const char *id);
/* Reads a file with one record into r, which must be empty; the caller frees it even after an
 * error. */
int cop_store_read_record(const char *file, struct cop_runrec *r, struct cop_err *err);

/* ---- logs of programs ---- */

/* Append lines to a log that all commands of this user on this host share. Like
 * include/copper/run.h for programs, these take the directory and the run from the environment, and
 * print errors on standard error. One thread only. */
void cop_program_begin(void);
void cop_program_pair(enum cop_runrec_list l, const char *key, const char *value);
void cop_program_point(const char *key, uint64_t step, double value);
void cop_program_status(const char *word, const char *reason);
/* The identifier of the run; "-": the job's run; "": nothing is recorded. */
const char *cop_program_id(void);
/* Whether a reader has removed the file in the meantime, so that everything must be logged
 * again. */
bool cop_program_again(void);

/* Read positions in the logs of one directory, so that each line is imported once. */
struct cop_take;

/* NULL: out of memory. */
struct cop_take *cop_take_new(void);
void cop_take_free(struct cop_take *t);
/* If quick, opens only files whose size in stat(2) has changed. Network file systems may report
 * sizes several seconds late, but update them on open. */
void cop_take_quickly(struct cop_take *t, bool quick);
/* Whether this directory contains program logs. */
bool cop_take_has_logs(const char *dir);
/* Imports the new lines of all "*.log" files in dir into the store, in one transaction. With job, a
 * run that must exist in the store, imports only that run's lines and keeps the files. (A file that
 * names no run belongs to the job if it was modified after COP_JOB_ENVIRONMENT.) If job is NULL,
 * each file names its run, which is added to the store if missing, and files of finished programs
 * are removed. Skips damaged lines and reports them in notes, which may be NULL. A missing
 * directory counts as empty. -ETIMEDOUT: the lines imported before the deadline are in the store,
 * and the next call continues. */
int cop_take_logs(struct cop_take *t, const char *dir, const char *job, const char *store,
	uint64_t deadline_ms, struct cop_buf *notes, struct cop_err *err);

/* ---- reading ---- */

struct cop_store;

/* Moves the records of STORE.d into the store, then opens it for reading. If the store is
 * read-only, leaves the records in STORE.d and reads them along with the store. Unreadable records
 * stay there, too, and get a line each in notes. */
int cop_store_open(
	const char *path, struct cop_store **out, struct cop_buf *notes, struct cop_err *err);
void cop_store_close(struct cop_store *s);

struct cop_store_filter {
	bool by_status;
	enum cop_runrec_status status; /* may be LOST */
	double since_s;                /* only runs that started at or after this time; 0: all */
	const char *tag;          /* KEY=VALUE; name= and group= are the run's own; NULL: all */
	const char *const *where; /* only runs that match all terms: "param.lr < 0.01" */
	size_t wheres;
	const char *sort; /* a key as in `where`, with a leading - for descending order; NULL:
			     newest first */
};
/* -EINVAL with a message if where or sort cannot be parsed. */
int cop_store_check_filter(const struct cop_store_filter *f, struct cop_err *err);
struct cop_store_runs {
	struct cop_runrec *at; /* without lists and series; newest first */
	size_t n;
};
/* Lists runs. A running one that has been silent for four beats is LOST. */
int cop_store_runs(struct cop_store *s, const struct cop_store_filter *filter,
	struct cop_store_runs *out, struct cop_err *err);
void cop_store_runs_free(struct cop_store_runs *runs);
/* Finds one run by a prefix of its identifier, or as "last" or "last~N", the Nth before the last.
 * -ENOENT and -EINVAL (ambiguous) with messages. */
int cop_store_find(
	struct cop_store *s, const char *ref, char id[COP_RUNREC_ID_LEN + 1], struct cop_err *err);
/* Reads everything about one run into r, which must be empty; the caller frees it even after an
 * error. Thins longer series evenly to COP_RUNREC_LOADED_MAX points. */
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
/* Writes runs to MLflow's SQLite database in one transaction, creating the file if needed, and
 * calls `each` for every run. Updates runs that already exist there. -EPROTO, with both versions in
 * the message: unknown schema. */
int cop_store_export_mlflow(struct cop_store *s, const struct cop_mlflow_export *what,
	cop_mlflow_each *each, void *arg, struct cop_err *err);
/* Imports all runs of an MLflow database into the store in one transaction, creating the store if
 * needed. -EEXIST: two of its runs would have the same identifier. */
int cop_store_import_mlflow(const char *store, const char *file, uint64_t deadline_ms,
	cop_mlflow_each *each, void *arg, struct cop_err *err);

/* follow: runs the followers, which record a job on rank 0 while it runs: one for the run store,
 * one for the OpenTelemetry files. Periodically collects telemetry from all nodes, with one request
 * for all followers, and passes them the answers and finally the end of the job. Never delays the
 * job: each follower has its own thread with deadlines, at most one request to the tree is in
 * flight, and a thread blocked in a file system is detached. Does not know what followers write. */

#define COP_FOLLOW_MAX 4

/* Counters and resource use of all nodes that answered, with a wall-clock time. */
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
	int64_t stop_ns;           /* wall clock: when the stop began; 0: the job never started */
	struct cop_op_exits exits; /* of this node's commands; the totals cover all nodes */
};

/* What cop_judge_end needs to know about the end of a job. */
struct cop_judge {
	bool failed;
	const char *reason; /* for struct cop_follow_end */
	struct cop_op_exits exits;
	uint32_t nodes, missing; /* missing: did not answer the stop */
	bool all_asked; /* exits cover all nodes that answered; otherwise only this node, and
			   missing is unknown */
	uint64_t kills; /* cop_memory_kills at the start of the job */
};
/* Whether the job failed. It did not if every command is known to have exited with 0. Appends a
 * reason to an empty buffer, which the caller frees. */
bool cop_judge_end(const struct cop_judge *j, struct cop_buf *reason);

struct cop_follower_ops {
	const char *thread; /* thread name */
	unsigned beats;     /* intervals between calls of beat; 0: never */
	/* Called on the follower's thread, one at a time: first begin, unless the job is already
	 * over; then round for each answer and beat periodically; last end. begin sets err if it
	 * cannot write the requested files. Deadlines are in cop_now_ms. */
	void (*begin)(void *ctx, uint64_t deadline_ms, struct cop_err *err);
	void (*round)(void *ctx, const struct cop_follow_numbers *n);
	void (*beat)(void *ctx, uint64_t deadline_ms);
	void (*end)(void *ctx, uint64_t deadline_ms);
	/* Called on the main thread before end: totals, at most once, with the sums of all stopped
	 * nodes, and then ending with how the job ended. The follower's thread uses their data only
	 * after ending. */
	void (*totals)(void *ctx, const struct cop_op_sum *sum);
	void (*ending)(void *ctx, const struct cop_follow_end *end);
	/* The last call, on any thread. */
	void (*free)(void *ctx);
};

struct cop_follow_conf {
	uint32_t interval_ms;
	/* Called on this module's threads. Requests telemetry from all nodes, and calls done once,
	 * on any thread. Returns false, without calling done, if that is impossible now. */
	bool (*ask)(void *ctx, cop_op_done *done, void *arg);
	/* Any thread. Whether a node may already have contributed to the totals. Those are final,
	 * so later answers are dropped. If NULL, answers are dropped only once the totals have
	 * arrived. */
	bool (*is_ending)(void *ctx);
	void *ctx;
};

struct cop_follow;

/* NULL: out of memory. Call all of these functions on the main thread; all accept NULL. */
struct cop_follow *cop_follow_new(const struct cop_follow_conf *conf);
/* Adds a follower. Borrows ops, and frees ctx with the follower. 0; -ENOMEM and -ENOSPC: ctx has
 * been freed. */
int cop_follow_add(struct cop_follow *f, const struct cop_follower_ops *ops, void *ctx);
/* Starts the followers and waits at most 0.2 s for their first writes. Returns false, with a
 * message, if one cannot write its files. */
bool cop_follow_is_good(struct cop_follow *f, struct cop_err *err);
void cop_follow_totals(struct cop_follow *f, const struct cop_op_sum *sum);
/* Call once. Waits at most ten seconds for the followers to write the end of the job, even of one
 * that never started. */
void cop_follow_end(struct cop_follow *f, const struct cop_follow_end *end);
/* Call after cop_follow_end, when no request to the tree is in flight. */
void cop_follow_free(struct cop_follow *f);

/* runlog: rank 0's record of a job in the run store: the run itself once the tree is ready,
 * telemetry from all nodes while it runs, and the totals and outcome when it stops. follow decides
 * when to write, store defines the tables, and runrec defines the format of the fallback files, in
 * the job directory or in STORE.d. */

#define COP_RUNLOG_STORE 4096
struct cop_runlog_conf {
	const char *id; /* from cop_runlog_new */
	const struct cop_conf *conf;
	const char *job_dir; /* absolute; "": none */
	const char *source;  /* absolute; "": unknown */
	uint32_t nodes;
	uint64_t manifest; /* hash of the prefetched manifest; 0: none, or unknown */
};

/* Whether the user requested a store, with an option or in the environment. */
bool cop_runlog_is_wanted(const struct cop_conf *conf);
/* Chooses a run's identifier, and makes the name of its store absolute. False: no store was
 * requested, or an error occurred and was logged. */
bool cop_runlog_new(
	const struct cop_conf *conf, char id[COP_RUNREC_ID_LEN + 1], char store[COP_RUNLOG_STORE]);
/* Adds a follower that records this run, if --store or the environment requests it. Relative names
 * refer to the working directory. Logs errors. */
void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf);

#endif
