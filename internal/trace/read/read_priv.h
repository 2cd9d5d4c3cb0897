/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a byte: inflate -> source.c, which cuts blocks after whole events, as split.c says ->
 * parse.c, which finds the objects -> scan.c -> event.c, or otel.c -> clock.c, if that of its host
 * is known -> pair.c, if a span has two halves -> the batch of a worker (read.c).
 *
 * Locks: struct reader has one, which protects the owners of files and the end; struct source has
 * one, which protects the turn of its blocks (pair.c). Neither is held while something is read,
 * parsed or handed over. */
#ifndef COP_TRACE_READ_PRIV_H
#define COP_TRACE_READ_PRIV_H

#include "base/base/htab.h"
#include "base/base/json_read.h"
#include "inflate.h"
#include "trace/read/read.h"

/* ---- scan.c: the members of one object ---- */

enum {
	F_NAME,
	F_CAT,
	F_PID,
	F_TID,
	F_TS,
	F_DUR,
	F_PH,
	F_ID,
	F_SCOPE,
	F_ID2, /* never set, but its members: */
	F_ID2_LOCAL,
	F_ID2_GLOBAL,
	F_BP,
	F_S,
	F_BIND_ID,
	F_FLOW_IN,
	F_FLOW_OUT,
	F_TTS,
	F_TDUR,
	F_CNAME,
	F_ARGS, /* the text of the object, T_WORD */
	/* of args */
	F_HHASH,
	F_FHASH,
	F_HOSTNAME,
	F_FNAME,
	F_RET,
	F_IMAGE_SIZE,
	F_DFT_CNT,
	F_DUR_MIN,
	F_DUR_MAX,
	F_DUR_SUM,
	F_ARG_NAME,
	F_ARG_VALUE,
	F_ARG_LABELS,
	F_RANK,
	F_RTT,
	/* of OpenTelemetry's forms */
	F_RESOURCE_SPANS, /* the text of the array, T_WORD */
	F_RESOURCE_METRICS,
	F_RESOURCE_LOGS,
	F_CONTEXT, /* likewise of the object */
	F_START_TIME,
	FIELDS
};
#define ARGS_FIELDS ((UINT64_C(2) << F_RTT) - (UINT64_C(1) << F_HHASH))
#define RARE_FIELDS ((UINT64_C(2) << F_CNAME) - (UINT64_C(1) << F_BIND_ID))

enum field_type { T_ABSENT, T_STRING, T_ESCAPED, T_NUMBER, T_WORD };
struct field {
	const char *at;
	uint32_t len;
	enum field_type type; /* T_ESCAPED: a string that contains escapes */
};
struct fields {
	struct field f[FIELDS];
	uint64_t seen; /* one bit for each field that is set */
	bool args_odd; /* args are more than JSON allows */
};
static inline bool cop_trace_has(const struct fields *f, unsigned i)
{
	return f->seen >> i & 1;
}

/* Whether the field is the text of a value that nests. */
static inline bool cop_trace_is_nested(unsigned i)
{
	return i == F_RESOURCE_SPANS || i == F_RESOURCE_METRICS || i == F_RESOURCE_LOGS ||
	       i == F_CONTEXT;
}

/* Whether it is a line of OTLP. */
static inline bool cop_trace_is_otlp(const struct fields *f)
{
	return cop_trace_has(f, F_RESOURCE_SPANS) || cop_trace_has(f, F_RESOURCE_METRICS) ||
	       cop_trace_has(f, F_RESOURCE_LOGS);
}

/* Whether it is a line of OTLP, or a span of a console exporter. */
static inline bool cop_trace_is_otel(const struct fields *f)
{
	return cop_trace_is_otlp(f) ||
	       (cop_trace_has(f, F_START_TIME) && cop_trace_has(f, F_CONTEXT));
}

/* Scans the object that begins at p, which is '{'. Returns what follows it, or NULL, and *s says
 * why and where. If a name occurs twice, the last value counts; a value that nests counts as
 * absent. COP_JSON_PAD bytes follow end. */
const char *cop_trace_scan(
	const char *p, const char *end, struct fields *out, struct cop_json_scan *s);
/* Which field a member is; FIELDS if it is none. */
unsigned cop_trace_field_for_test(const char *key, size_t len, bool args);
/* What follows the object at p if it ends on its line, else NULL. Brackets in strings do not
 * count. */
const char *cop_trace_skip(const char *p, const char *end);

/* Memory for the strings of a block that contain escapes. */
struct scratch {
	char *at;
	size_t used, size;
};
char *cop_trace_scratch(struct scratch *s, size_t len);
/* Undoes the escapes of a string, in scratch. False if scratch is too small. */
bool cop_trace_undo(struct cop_trace_str text, struct scratch *s, struct cop_trace_str *out);

/* ---- event.c: what the members mean ---- */

/* Besides the public kinds, the halves of a span: within a thread, or with an id. */
enum { HALF_NONE, HALF_BEGIN, HALF_END, HALF_ASYNC_BEGIN, HALF_ASYNC_END };
struct record {
	struct cop_trace_event e;
	unsigned half;
};
/* Whether the event has a phase that is not read. */
static inline bool cop_trace_is_omitted(const struct cop_trace_event *e)
{
	return e->kind == COP_TRACE_META && e->ph != 'M';
}
/* Whether the object is an event of one of the formats, though perhaps a wrong one. */
bool cop_trace_is_event(const struct fields *f);
/* NULL, or why it is not an event. Strings are unescaped into scratch. */
const char *cop_trace_event_of(const struct fields *f, struct scratch *s, struct record *out);
/* The hash in a field; false if there is none. */
bool cop_trace_hash(const struct field *f, uint64_t *hash);
/* A decimal number times scale, a power of ten, rounded to the nearest. False if the field is not a
 * number or does not fit. */
bool cop_trace_number(const struct field *f, int64_t scale, int64_t *out);

/* 104 days in nanoseconds, or 9 PB: nothing real is longer or larger, and for millions of such
 * events the sums of squares fit into 128 bits. */
#define COP_TRACE_MOST (UINT64_C(1) << 53)
/* Whether a time can be reckoned with. */
static inline bool cop_trace_is_in_range(int64_t ts_ns)
{
	return ts_ns <= INT64_MAX - 4 * (int64_t)COP_TRACE_MOST && ts_ns >= -INT64_MAX / 2;
}

/* ---- names.c: what hashes stand for in one file ---- */

enum { NAME_FILE, NAME_HOST, NAME_RANK, NAME_PROCESS, NAME_THREAD };
struct names {
	struct cop_htab table;
	uint64_t lost;
	/* Hashes that stand for two names; the first of them: */
	uint64_t clashes, clash;
	char clash_names[2][256];
};
/* Takes the name that a metadata event defines, if it defines one. -ENOMEM. */
int cop_trace_names_take(struct names *n, const struct fields *f, const struct cop_trace_event *e);
/* The name, or NULL. */
const struct cop_trace_str *cop_trace_names_get(
	const struct names *n, unsigned kind, uint64_t hash);
/* Names the rank, process and thread of an event, if they were defined. */
void cop_trace_names_who(const struct names *n, struct cop_trace_event *e);
void cop_trace_names_free(struct names *n);

/* ---- clock.c: what the clocks of hosts are ahead of rank 0's ---- */

struct clocks;
/* Looks for clock offsets in all files that Copper wrote; *out is NULL if there are none. -ENOMEM.
 * A file that cannot be read is reported by the reading. */
int cop_trace_clocks_new(
	const struct cop_trace_files *files, unsigned threads, struct clocks **out);
void cop_trace_clocks_free(struct clocks *c);
/* Puts an event on rank 0's clock, if the clock of its host is known. */
void cop_trace_clocks_correct(const struct clocks *c, struct cop_trace_event *e);
/* Appends a line for each host whose clock is corrected. */
void cop_trace_clocks_tell(const struct clocks *c, struct cop_buf *out);

/* ---- pair.c: begins and ends ---- */

struct open_span; /* a begin that waits for its end */
struct pairs {
	struct cop_htab table;
	struct cop_seen begun; /* the names of begins within threads */
	size_t open;
	uint64_t unmatched, unfinished;
};
/* Takes the halves of one file in their order. An end makes r->e the span, whose strings are the
 * begin's and valid until *used, a list, is freed; returns whether it did. */
bool cop_trace_pair(struct pairs *p, struct record *r, struct open_span **used);
void cop_trace_spans_free(struct open_span *used);
/* Calls visit with each open span, as an unfinished one of no length. A result other than 0 ends
 * it. */
int cop_trace_pairs_open(
	const struct pairs *p, int (*visit)(void *arg, const struct cop_trace_event *e), void *arg);
/* Counts the open spans as unfinished. */
void cop_trace_pairs_end(struct pairs *p);

/* ---- split.c: where the events are ---- */

enum { AT_TOP, AT_ARRAY, AT_OBJECT };
enum key { KEY_OTHER, KEY_EVENTS, KEY_BASE, KEY_DISTRIBUTED, KEY_RANK };
struct split {
	int where;  /* between documents, in the traceEvents of one, or elsewhere in it */
	bool found; /* there was an array traceEvents */
	/* AT_OBJECT: */
	bool lost; /* it is an event that is too long */
	int back;  /* where that was */
	bool string, escape, fresh;
	bool value;   /* the name of a member was read */
	bool of_rank; /* it is in distributedInfo */
	enum key key; /* of that member */
	unsigned depth;
	char text[24]; /* the last string or number */
	size_t text_len;
	/* What the document says outside of traceEvents: */
	bool has_base;
	int64_t base_ns; /* the real time from which the times of the file count */
	char rank[12];
	size_t rank_len;
};
/* What follows the bytes after which a block ends: the rest of a document, or a document. */
enum cut { CUT_NONE, CUT_ARRAY, CUT_DOCUMENT };
/* How many bytes are whole events. If there are none, *event says whether the one that needs more
 * bytes has a phase. COP_JSON_PAD bytes follow. */
size_t cop_trace_cut(
	const struct split *s, const char *data, size_t len, enum cut *next, bool *event);
/* Goes to AT_OBJECT: at its beginning (0) or behind its traceEvents (1). */
void cop_trace_split_enter(struct split *s, unsigned depth, bool lost);
/* Seeks the array of events, or the end of the object; returns how many bytes were consumed. */
size_t cop_trace_split_seek(struct split *s, const char *data, size_t len);

/* What the beginning of a file says. */
struct beginning {
	const char *data;
	size_t len;
	bool whole;    /* these bytes are the whole file */
	bool anywhere; /* the first event may be in a later line, after lines that are not events */
};
struct first {
	size_t skip;
	bool may_come; /* it may still be a trace, if more of it is read */
	bool document; /* it is an object with traceEvents */
	bool number;   /* phases are numbers */
	int64_t first_us;
};
/* NULL, or why it is not a trace. */
const char *cop_trace_look(const struct beginning *b, struct first *out);
/* Whether that means that it is something else, whole, and no trace that is damaged. */
bool cop_trace_is_other(const char *why);

/* ---- source.c: blocks of one file ---- */

/* Small enough for a processor's own cache, together with what is made of it. */
#define BLOCK_BYTES (256 * COP_KIB)
#define BLOCK_MAX (BLOCK_BYTES + COP_TRACE_RECORD_MAX)
#define SNIFF_BYTES (64 * COP_KIB)
#define SNIFF_MAX (SNIFF_BYTES + COP_TRACE_RECORD_MAX) /* if its first event is longer */

struct block {
	char *memory; /* BLOCK_MAX and COP_JSON_PAD */
	const char *data;
	size_t len;
	uint64_t line; /* of data, from 1 */
	uint64_t seq;
	int64_t base_ns; /* times of its events count from this real time */
	char rank[12];   /* of the process that wrote it, if that is known */
	size_t rank_len;
};

struct plan;
struct source {
	size_t index;
	struct plan *plan; /* NULL: all of the file is read */
	uint64_t raw;      /* where the next block begins in the content; of a plan: */
	uint64_t stop;     /* up to where blocks may reach */
	struct cop_trace_result skipped; /* what was not passed on, for the filling thread */
	/* Where the last block began, and what was known there: */
	uint64_t block_raw;
	struct split block_split;
	int fd;
	struct cop_inflate *in;
	bool meant; /* as of struct file */
	struct split split;
	struct first first;
	char *carry; /* bytes that were read and not passed on */
	size_t carried, carry_size;
	uint64_t line, blocks;
	bool ended, pending; /* pending: nothing of a trace was seen yet */
	/* The file may say behind its events from which time they count, and only reading it to
	 * the end would tell. */
	bool seeks_base;
	int64_t tail_base_ns; /* the real time that is told behind the events */
	struct names names;
	/* For the turn of its blocks: */
	pthread_mutex_t lock;
	pthread_cond_t turned;
	uint64_t turn;
	uint64_t done; /* bits for the blocks after that one: set if already parsed */
	struct pairs pairs;
	/* Results of filling, which the filling thread collects: */
	uint64_t broken, broken_line;
	const char *broken_why;
	/* Protected by the reader's lock: */
	bool filling, over;
	bool alone; /* no other thread may inflate ahead */
	unsigned users;
};

struct file;
/* Opens the file and recognizes its format. NULL with *why, which is static, or with *why NULL and
 * -errno in *rc. */
struct source *cop_trace_source_open(
	const struct file *file, size_t index, const char **why, int *rc);
void cop_trace_source_free(struct source *s);
/* Goes back to the beginning of the events. */
int cop_trace_source_rewind(struct source *s);
/* Call it when the names were read: that pass has seen all of the file. */
void cop_trace_source_end_names(struct source *s);
/* Fills the next block: 1; 0 at the end; -errno. s->broken_why reports a record that is too
 * long. */
int cop_trace_source_fill(struct source *s, struct block *b);

/* ---- plan.c ---- */

/* Before a block is filled: 1, it is filled with the digest of a chunk; 0, fill it from the file,
 * up to s->stop; -ENODATA at the end; other -errno. */
int cop_plan_step(struct plan *p, struct source *s, struct block *b);

/* ---- parse.c: the events of a block ---- */

struct sink {
	struct scratch scratch;
	const struct names *names; /* may be NULL */
	bool who;                  /* name ranks, processes and threads, too */
	/* A result other than 0 ends the block. */
	int (*record)(struct sink *s, const struct fields *f, struct record *r);
	void (*broken)(struct sink *s, uint64_t line, const char *why);
	/* Only events that may define a name, or a clock, matter. */
	bool names_only;
	bool numbers; /* phases are numbers */
	const struct block *block;
	/* Where the parser stands. */
	const char *at;
	uint64_t line;
};
int cop_trace_parse(struct sink *s, const struct block *b);
/* Where to continue behind an object at p that could not be read, because of what is at `at`. */
const char *cop_trace_resume(const char *p, const char *at, const char *end);

/* ---- args.c ---- */

/* The value that a text begins with. */
struct cop_trace_str cop_trace_value_at(struct cop_trace_str text);

/* ---- otel.c ---- */

/* Passes on the events of an object of OpenTelemetry's: a line of OTLP, or a span that a console
 * exporter wrote. */
int cop_trace_otel(
	struct sink *s, const struct fields *f, struct cop_trace_str object, uint64_t line);

/* ---- files.c ---- */

struct file {
	char *name;
	/* The user means a trace: the name was given, or it ends like one. If it is none, that is
	 * reported, and its beginning may be broken. */
	bool meant;
	bool likely;      /* its name may be that of a trace: report it if it is damaged */
	int fd;           /* of a pipe: what came out of it; else -1 */
	int64_t shift_ns; /* is added to its times */
	/* What a reading lost of it: */
	const char *why; /* static; NULL: nothing but broken events */
	bool whole;
	_Atomic uint64_t broken;
};
struct cop_trace_files {
	struct file *file;
	size_t n, cap;
	struct file *absent; /* paths that could not be read */
	size_t absents;
	bool clocks_known;
	struct clocks *clocks; /* NULL: none */
};

/* ---- faults.c ---- */

/* Counts an event with a phase that is not read. */
void cop_trace_omit(struct cop_trace_result *r, char phase);

/* ---- read.c, turn.c: threads ---- */

#define THREADS_MAX 64u
#define BATCH 128

struct reader;
struct worker {
	struct sink sink; /* must be first, because the parser passes it on */
	struct reader *reader;
	unsigned index;
	pthread_t thread;
	struct block block;
	struct source *source;
	struct cop_trace_event batch[BATCH];
	size_t n;
	struct record *half; /* the halves of this block, in order */
	size_t halves, half_cap;
	struct cop_trace_result r;
};
struct reader {
	struct cop_trace_files *files;
	const struct cop_trace_conf *conf;
	struct cop_buf *notes;
	unsigned noted;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct source *active[THREADS_MAX];
	unsigned actives, opening, threads;
	bool names;  /* each file needs a pass for its names */
	size_t next; /* the next file to open */
	size_t traces;
	uint64_t unfinished, unmatched, names_lost;
	int rc;
};
/* Hands over what the batch holds. */
int cop_trace_flush(struct worker *w);
/* Adds an event to the batch. */
int cop_trace_deliver(struct worker *w, const struct cop_trace_event *e);
/* Called when the block is parsed: pairs its halves when it is its turn. */
int cop_trace_turn(struct worker *w);

/* ---- open.c ---- */

#define TRACE_NOTES_MAX 20u
/* The lock is held. whole: nothing of the file is read. */
void cop_trace_note_file(struct reader *r, size_t index, const char *why, bool whole);
/* The lock is held. */
void cop_trace_forget_source(struct reader *r, const struct source *s);
/* Opens the next file. The lock is held, and released meanwhile. */
void cop_trace_open_next(struct worker *w);

#endif
