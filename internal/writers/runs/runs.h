/* SPDX-License-Identifier: BSD-3-Clause */
/* runs: the record of one run: its name, how it went, its parameters, tags and resource, and
 * series of measured values. It bounds what a run may record, thins series, and converts a record
 * to a text and back (copper-formats(5), run records). It knows no database and no node. */
#ifndef COP_WRITERS_RUNS_H
#define COP_WRITERS_RUNS_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "job/conf/conf.h"
#include "prof/stats/stats.h"
#include "tree/op/op.h"

#define COP_RUNREC_ID_LEN 16       /* lower-case hexadecimal digits */
#define COP_RUNREC_POINTS_MAX 2000 /* of a series */
#define COP_RUNREC_LOADED_MAX 100000
#define COP_RUNREC_SERIES_MAX 1024
#define COP_RUNREC_PAIRS_MAX 1024 /* of a list */
#define COP_RUNREC_KEY_MAX 255    /* bytes */
#define COP_RUNREC_VALUE_MAX 4095 /* bytes; longer ones are cut */
#define COP_RUNREC_FILE_MAX (64 * COP_MIB)
#define COP_RUNREC_SUFFIX ".run"

enum cop_runrec_status {
	COP_RUNREC_RUNNING,
	COP_RUNREC_FINISHED,
	COP_RUNREC_FAILED,
	COP_RUNREC_LOST, /* only readers assign it; no record contains it */
	COP_RUNREC_STATUSES
};
const char *cop_runrec_status_name(enum cop_runrec_status s);
/* -EINVAL: no status has this name, in any case of its letters. */
int cop_runrec_status_of(const char *name, enum cop_runrec_status *out);

enum cop_runrec_list { COP_RUNREC_PARAM, COP_RUNREC_TAG, COP_RUNREC_RESOURCE, COP_RUNREC_LISTS };
/* "param", "tag", "resource". */
const char *cop_runrec_list_name(enum cop_runrec_list l);

enum cop_runrec_field {
	COP_RUNREC_NAME,
	COP_RUNREC_GROUP,
	COP_RUNREC_VERSION,
	COP_RUNREC_REASON, /* why it ended */
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
	size_t n, cap;
	uint64_t points; /* that were added; one of `every` is kept, and the last one */
	uint64_t every;  /* 0 means 1 */
	double most;     /* of all that were added */
};

/* Zeroed memory is an empty record. A record owns everything in it. */
struct cop_runrec {
	char id[COP_RUNREC_ID_LEN + 1];
	enum cop_runrec_status status;
	char *field[COP_RUNREC_FIELDS]; /* NULL: "" */
	double start_s, end_s;          /* since 1970; end 0: it has not ended */
	double seen_s; /* when the run last reported that it is alive, and the interval of these
			  reports */
	double beat_s;
	uint32_t nodes;
	struct cop_runrec_pairs list[COP_RUNREC_LISTS];
	struct cop_runrec_series *series; /* sorted by key */
	size_t series_n;
	uint64_t step;     /* the step of the points that are being added */
	uint64_t stride;   /* only multiples of it are kept; 0 means 1 */
	size_t points_max; /* of a series, which is even; when it has as many, every second one is
			      dropped. 0: COP_RUNREC_POINTS_MAX, and no more are kept */
	bool failed;       /* memory was short: something is missing */
};

void cop_runrec_free(struct cop_runrec *r);
/* A random identifier. 0 or -errno. */
int cop_runrec_new_id(char id[COP_RUNREC_ID_LEN + 1]);
/* "" if the field was not set. */
const char *cop_runrec_get(const struct cop_runrec *r, enum cop_runrec_field f);

/* These cut what is too long, and set r->failed if memory is short. */

void cop_runrec_put(struct cop_runrec *r, enum cop_runrec_field f, const char *text);
/* Adds the pair, or replaces its value. Leaves out pairs beyond the limit, and those without a
 * key. */
void cop_runrec_pair(
	struct cop_runrec *r, enum cop_runrec_list l, const char *key, const char *value);
/* The value of a key in a list; NULL: there is none. */
const char *cop_runrec_value(const struct cop_runrec *r, enum cop_runrec_list l, const char *key);
/* Begins the next step. True: its points are kept. If series have become too long, every second
 * step is dropped, those so far and those to come. */
bool cop_runrec_next(struct cop_runrec *r);
/* Declares the next step to be the last, which is kept whatever its number. */
void cop_runrec_last(struct cop_runrec *r);
/* Whether Copper itself records a metric of this key, or one that begins like it: "fuse.",
 * "system/". */
bool cop_runrec_is_own_metric(const char *key);
/* Adds a point of the current step. Leaves out NaN, and series beyond the limit. */
void cop_runrec_point(struct cop_runrec *r, const char *key, double time_s, double value);
const struct cop_runrec_series *cop_runrec_find(const struct cop_runrec *r, const char *key);

/* ---- as a text ---- */

void cop_runrec_write(const struct cop_runrec *r, struct cop_buf *out);
/* Parses into r, which must be empty and which the caller frees in any case. 0; -EBADMSG with a
 * sentence that begins with name; -EPROTO with a sentence: a later version wrote it; -ENOMEM. */
int cop_runrec_parse(
	const char *text, size_t len, const char *name, struct cop_runrec *r, struct cop_err *err);

/* store: the run store, one SQLite database for the runs of many jobs, and the folder STORE.d
 * beside it for records that could not be written into it. No other module uses SQLite.
 * copper-formats(5) documents the tables; people bring their own SQL.
 *
 * A write is one transaction with a deadline. The journal is SQLite's rollback journal, because
 * parallel file systems have no shared memory for a write-ahead log. A file that is not a run store
 * is never changed. Sentences begin with the name of the file.
 *
 * Errors of all functions: -EBUSY (locked until the deadline), -ENOLCK (the file system refuses
 * locks), -EPROTO (the store of a later version), -EMEDIUMTYPE (the file is something else),
 * -ENOSPC, -EROFS, -EACCES, -ENOENT, -EISDIR, -ENOMEM, -EIO. */

#define COP_STORE_FORM 1 /* PRAGMA user_version */

/* ---- writing ---- */

/* Writes the record into the store, which is created if it does not exist. With from_step > 0
 * writes only the run itself and the points from that step on; otherwise all of it, in place of
 * what the store has of this run. A record that is older than what the store has changes nothing.
 * One thread at a time. */
int cop_store_put(const char *path, const struct cop_runrec *r, uint64_t from_step,
	uint64_t deadline_ms, struct cop_err *err);
/* Adds these tags to a run that the store has, or replaces their values. */
int cop_store_put_tags(const char *path, const char *id, const struct cop_runrec_pairs *tags,
	uint64_t deadline_ms, struct cop_err *err);
/* Writes the record into STORE.d, whole or not at all; the next reader moves it into the store. */
int cop_store_put_beside(const char *path, const struct cop_runrec *r, struct cop_err *err);
/* Removes it again, unless a reader has already moved it. */
void cop_store_drop_beside(const char *path, const char *id);
/* Reads a file with one record into r, which must be empty and which the caller frees in any
 * case. */
int cop_store_read_record(const char *file, struct cop_runrec *r, struct cop_err *err);

/* ---- what programs log ---- */

/* Appends lines to the file of all commands of this user on this host, as include/copper/run.h does
 * for a program: the environment says where, and of which run. Failures are told on standard error.
 * One thread. */
void cop_program_begin(void);
void cop_program_pair(enum cop_runrec_list l, const char *key, const char *value);
void cop_program_point(const char *key, uint64_t step, double value);
void cop_program_status(const char *word, const char *reason);
/* The identifier of the run; "-": that of the job; "": something could not be written. */
const char *cop_program_id(void);
/* Whether a reader has removed the file since, so that everything must be logged again. */
bool cop_program_again(void);

/* What has been taken of the files of one folder: each line once. */
struct cop_take;

/* NULL: out of memory. */
struct cop_take *cop_take_new(void);
void cop_take_free(struct cop_take *t);
/* Whether only files are opened that have grown by what stat(2) says: a network file system may say
 * so some seconds late, and is up to date where a file is opened. */
void cop_take_quickly(struct cop_take *t, bool quick);
/* Whether programs have logged into this folder. */
bool cop_take_has_logs(const char *dir);
/* Takes what is new in the files "*.log" of dir into the store, in one transaction. job: the run of
 * this job, which the store must have: only what is logged for it is taken, and the files stay.
 * (A file that names no run is of this job if it has been written since COP_JOB_ENVIRONMENT.)
 * NULL: each file says of which run it is, which is added to the store if need be, and a file whose
 * program has ended is removed. Lines that are damaged are skipped, and named in notes, which may
 * be NULL. A folder that does not exist is empty. -ETIMEDOUT: what was taken until the deadline is
 * in the store, and the next call takes the rest. */
int cop_take_logs(struct cop_take *t, const char *dir, const char *job, const char *store,
	uint64_t deadline_ms, struct cop_buf *notes, struct cop_err *err);

/* ---- reading ---- */

struct cop_store;

/* Moves the records of STORE.d into the store, then opens the store for reading. If the store
 * cannot be changed, the records of STORE.d are read together with it and stay where they are.
 * Records that cannot be read stay, too; each has a line in notes. */
int cop_store_open(
	const char *path, struct cop_store **out, struct cop_buf *notes, struct cop_err *err);
void cop_store_close(struct cop_store *s);

struct cop_store_filter {
	bool by_status;
	enum cop_runrec_status status; /* may be LOST */
	double since_s;                /* only runs that started then or later; 0: all */
	const char *tag;          /* KEY=VALUE; name= and group= mean those of the run; NULL: all */
	const char *const *where; /* only runs for which all of them hold: "param.lr < 0.01" */
	size_t wheres;
	const char *sort; /* a key of such a term, with a - before it for the largest first; NULL:
			     newest first */
};
/* -EINVAL with a sentence if where or sort cannot be understood. */
int cop_store_check_filter(const struct cop_store_filter *f, struct cop_err *err);
struct cop_store_runs {
	struct cop_runrec *at; /* without lists and series; newest first */
	size_t n;
};
/* Lists runs. A run that has not reported for four of its beats is LOST. */
int cop_store_runs(struct cop_store *s, const struct cop_store_filter *filter,
	struct cop_store_runs *out, struct cop_err *err);
void cop_store_runs_free(struct cop_store_runs *runs);
/* Finds one run by the first characters of its identifier, or as "last", the newest, or "last~N",
 * the Nth before it. -ENOENT and -EINVAL (several match) with sentences. */
int cop_store_find(
	struct cop_store *s, const char *ref, char id[COP_RUNREC_ID_LEN + 1], struct cop_err *err);
/* Reads everything about one run into r, which must be empty and which the caller frees in any
 * case. Of a longer series it keeps COP_RUNREC_LOADED_MAX points at most, evenly. */
int cop_store_load(struct cop_store *s, const char *id, struct cop_runrec *r, struct cop_err *err);

/* Calls fn for every point of a metric of a run, in order of step. -ENOENT with a sentence if there
 * is none. */
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
	const char *experiment; /* NULL: that of the run's group, or "copper" */
	const char (*id)[COP_RUNREC_ID_LEN + 1];
	size_t n; /* 0: all runs */
	uint64_t deadline_ms;
};
/* Writes runs into an MLflow database in SQLite, which is created if it does not exist, in one
 * transaction, and calls each for every run. A run that is there is brought up to date. -EPROTO
 * with both versions: the database has a schema that is not known. */
int cop_store_export_mlflow(struct cop_store *s, const struct cop_mlflow_export *what,
	cop_mlflow_each *each, void *arg, struct cop_err *err);
/* Takes all runs of an MLflow database into the store, which is created if it does not exist, in
 * one transaction. -EEXIST: two of its runs would be one. */
int cop_store_import_mlflow(const char *store, const char *file, uint64_t deadline_ms,
	cop_mlflow_each *each, void *arg, struct cop_err *err);

/* follow: runs the followers, which record a job on rank 0 while it runs: the run store, the files
 * for OpenTelemetry. It asks all nodes at intervals, once for all followers, passes each of them
 * the answers and the end, and never disturbs the job: a follower works on a thread of its own with
 * deadlines, at most one request to the tree is under way, and a thread that hangs in a file system
 * is left behind. It does not know what they write. */

#define COP_FOLLOW_MAX 4

/* Counters and resource use of all nodes that answered, at a moment of the wall clock. */
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
	const char *reason; /* a sentence, or a few words */
	int64_t stop_ns;    /* wall clock: when it began to stop; 0: it had never started */
	struct cop_op_exits
		exits; /* of the commands on this node; those of all are in the totals */
};

/* What is known of the end of a job. */
struct cop_judge {
	bool failed;
	const char *reason; /* of struct cop_follow_end, as failed */
	struct cop_op_exits exits;
	uint32_t nodes, missing; /* missing: did not answer the stop */
	bool all_asked; /* exits are of all nodes that answered; else of this one, and missing is
			   not known */
	uint64_t kills; /* cop_memory_kills at the start of the job */
};
/* Whether the job has failed: it has not, if every command is known to have ended with 0. Appends a
 * reason to an empty buffer, which the caller frees. */
bool cop_judge_end(const struct cop_judge *j, struct cop_buf *reason);

struct cop_follower_ops {
	const char *thread; /* its name */
	unsigned beats;     /* intervals between two calls of beat; 0: none */
	/* On the thread, one at a time. begin comes first, unless the job is over by then; it sets
	 * err if the files that the user asked for cannot be written. round: an answer has come;
	 * beat: time has passed; end comes last. Deadlines are those of cop_now_ms. */
	void (*begin)(void *ctx, uint64_t deadline_ms, struct cop_err *err);
	void (*round)(void *ctx, const struct cop_follow_numbers *n);
	void (*beat)(void *ctx, uint64_t deadline_ms);
	void (*end)(void *ctx, uint64_t deadline_ms);
	/* Main thread, before end: the sums of all nodes that have stopped, once at most, and then
	 * how the job ended. The thread uses what they set only after the second call. */
	void (*totals)(void *ctx, const struct cop_op_sum *sum);
	void (*ending)(void *ctx, const struct cop_follow_end *end);
	/* Any thread, the last call. */
	void (*free)(void *ctx);
};

struct cop_follow_conf {
	uint32_t interval_ms;
	/* Called on threads of this module. Asks all nodes for telemetry; done is called once, on
	 * any thread. False: not now, and done is not called. */
	bool (*ask)(void *ctx, cop_op_done *done, void *arg);
	/* Any thread. Whether a node may have counted for the totals by now: they are the last of
	 * the numbers, so what is answered from then on is no round. NULL: not before the totals
	 * are here. */
	bool (*is_ending)(void *ctx);
	void *ctx;
};

struct cop_follow;

/* NULL: out of memory. All of this is the main thread's, and NULL is fine everywhere. */
struct cop_follow *cop_follow_new(const struct cop_follow_conf *conf);
/* Adds a follower; ops stays where it is, and ctx is freed with it. 0; -ENOMEM, -ENOSPC: ctx has
 * been freed. */
int cop_follow_add(struct cop_follow *f, const struct cop_follower_ops *ops, void *ctx);
/* Starts them, and waits a fifth of a second at most for their first writes. False, with a
 * sentence, if something cannot be written. */
bool cop_follow_is_good(struct cop_follow *f, struct cop_err *err);
void cop_follow_totals(struct cop_follow *f, const struct cop_op_sum *sum);
/* Called once. The followers write the end, also of a job that never started. Waits for that at
 * most ten seconds. */
void cop_follow_end(struct cop_follow *f, const struct cop_follow_end *end);
/* After the end, when no question to the tree is under way. */
void cop_follow_free(struct cop_follow *f);

/* runlog: what rank 0 records of a job in the run store: the run when the tree is ready, the
 * telemetry of all nodes while it runs, the totals and the end when it stops. follow decides when,
 * store defines the tables, and runrec defines the form of the files that keep what the store does
 * not take: in the job directory, or in STORE.d. */

#define COP_RUNLOG_STORE 4096
struct cop_runlog_conf {
	const char *id; /* of cop_runlog_new */
	const struct cop_conf *conf;
	const char *job_dir; /* absolute; "": none */
	const char *source;  /* absolute; "": not known */
	uint32_t nodes;
	uint64_t manifest; /* the hash of what is prefetched; 0: nothing is prefetched, or it is not
			      known */
};

/* Whether the user asked for a store, by an option or the environment. */
bool cop_runlog_is_wanted(const struct cop_conf *conf);
/* Chooses the identifier of a run, and makes the name of its store absolute. False: the user asked
 * for no store, or both cannot be had, which the log says. */
bool cop_runlog_new(
	const struct cop_conf *conf, char id[COP_RUNREC_ID_LEN + 1], char store[COP_RUNLOG_STORE]);
/* Adds a follower that records this run, if the user asked for it by --store or the environment.
 * Relative names are taken from the working directory. If that fails, the log says so. */
void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf);

#endif
