/* SPDX-License-Identifier: BSD-3-Clause */
/* Data flow: inflate -> source.c (cuts blocks after whole events, using split.c) -> parse.c (finds
 * objects) -> scan.c -> event.c or otel.c -> clock.c (if the host's offset is known) -> pair.c
 * (begin and end events) -> batch of a worker (read.c).
 *
 * Locks: the one in struct reader protects the ownership of files and the end of the read; the one
 * in struct source protects the turns of its blocks (read.c). Neither is held while reading,
 * parsing or delivering. */
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
	F_ID2, /* never set; its members follow */
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
	F_ARGS, /* T_WORD: the text of the object */
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
	/* of OpenTelemetry's formats */
	F_RESOURCE_SPANS, /* T_WORD: the text of the array */
	F_RESOURCE_METRICS,
	F_RESOURCE_LOGS,
	F_CONTEXT, /* T_WORD: the text of the object */
	F_START_TIME,
	FIELDS
};
#define ARGS_FIELDS ((UINT64_C(2) << F_RTT) - (UINT64_C(1) << F_HHASH))
#define RARE_FIELDS ((UINT64_C(2) << F_CNAME) - (UINT64_C(1) << F_BIND_ID))

enum field_type { T_ABSENT, T_STRING, T_ESCAPED, T_NUMBER, T_WORD };
struct field {
	const char *at;
	uint32_t len;
	enum field_type type; /* T_ESCAPED: a string that has escapes */
};
struct fields {
	struct field f[FIELDS];
	uint64_t seen; /* one bit for each field that is set */
	bool args_odd; /* args are not strict JSON */
};
static inline bool cop_trace_has(const struct fields *f, unsigned i)
{
	return f->seen >> i & 1;
}

/* Whether the field holds the text of a nested value. */
static inline bool cop_trace_is_nested(unsigned i)
{
	return i == F_RESOURCE_SPANS || i == F_RESOURCE_METRICS || i == F_RESOURCE_LOGS ||
	       i == F_CONTEXT;
}

/* Whether the object is a line of OTLP. */
static inline bool cop_trace_is_otlp(const struct fields *f)
{
	return cop_trace_has(f, F_RESOURCE_SPANS) || cop_trace_has(f, F_RESOURCE_METRICS) ||
	       cop_trace_has(f, F_RESOURCE_LOGS);
}

/* Whether the object is a line of OTLP, or a span from a console exporter. */
static inline bool cop_trace_is_otel(const struct fields *f)
{
	return cop_trace_is_otlp(f) ||
	       (cop_trace_has(f, F_START_TIME) && cop_trace_has(f, F_CONTEXT));
}

/* Scans the object that begins at p, which is '{'. Returns the position after it, or NULL with the
 * reason and position in *s. If a name is repeated, the last one wins; a nested value counts as
 * absent. COP_JSON_PAD bytes must follow end. */
const char *cop_trace_scan(
	const char *p, const char *end, struct fields *out, struct cop_json_scan *s);
/* Returns the field for a member's name; FIELDS if there is none. */
unsigned cop_trace_field_for_test(const char *key, size_t len, bool args);
/* Returns the position after the object at p if it ends on the same line, else NULL. Ignores
 * brackets within strings. */
const char *cop_trace_skip(const char *p, const char *end);

/* Memory for the unescaped strings of a block. Most traces need none, so it is allocated on first
 * use. size becomes 0 if the allocation fails. */
struct scratch {
	char *at;
	size_t used, size;
};
char *cop_trace_scratch(struct scratch *s, size_t len);
/* Unescapes a string into scratch. Returns false if scratch is full. */
bool cop_trace_undo(struct cop_trace_str text, struct scratch *s, struct cop_trace_str *out);

/* ---- event.c: interpretation of members ---- */

/* Besides the public kinds, an event may be half of a span, within a thread or with an id. */
enum { HALF_NONE, HALF_BEGIN, HALF_END, HALF_ASYNC_BEGIN, HALF_ASYNC_END };
struct record {
	struct cop_trace_event e;
	unsigned half;
};
/* Whether the event has an unsupported phase. */
static inline bool cop_trace_is_omitted(const struct cop_trace_event *e)
{
	return e->kind == COP_TRACE_META && e->ph != 'M';
}
/* Whether the object is an event of a known format, possibly malformed. */
bool cop_trace_is_event(const struct fields *f);
/* Fills *out, with strings unescaped into scratch. Returns NULL, or why the object is not an
 * event. */
const char *cop_trace_event_of(const struct fields *f, struct scratch *s, struct record *out);
/* Parses the hash in a field; returns false if absent. */
bool cop_trace_hash(const struct field *f, uint64_t *hash);
/* Parses a decimal number and multiplies it by scale, a power of ten, rounding to nearest. Returns
 * false if the field is not a number or out of range. */
bool cop_trace_number(const struct field *f, int64_t scale, int64_t *out);

/* 104 days in nanoseconds, or 9 PB. No real value is larger, and the sum of squares over millions
 * of such events fits into 128 bits. */
#define COP_TRACE_MOST (UINT64_C(1) << 53)
/* Whether arithmetic on a timestamp is safe from overflow. */
static inline bool cop_trace_is_in_range(int64_t ts_ns)
{
	return ts_ns <= INT64_MAX - 4 * (int64_t)COP_TRACE_MOST && ts_ns >= -INT64_MAX / 2;
}

/* ---- names.c: names of hashes in one file ---- */

enum { NAME_FILE, NAME_HOST, NAME_RANK, NAME_PROCESS, NAME_THREAD };
struct names {
	struct cop_htab table;
	uint64_t lost;
	/* Number of hashes that have two names; the first such hash and its names. */
	uint64_t clashes, clash;
	char clash_names[2][256];
};
/* Records the name that a metadata event defines, if any. -ENOMEM. */
int cop_trace_names_take(struct names *n, const struct fields *f, const struct cop_trace_event *e);
/* Returns the name, or NULL. */
const struct cop_trace_str *cop_trace_names_get(
	const struct names *n, unsigned kind, uint64_t hash);
/* Sets the rank and the process and thread names of an event, if defined. */
void cop_trace_names_who(const struct names *n, struct cop_trace_event *e);
void cop_trace_names_free(struct names *n);

/* ---- clock.c: clock offsets of hosts ---- */

struct clocks;
/* Searches all files that Copper wrote for clock offsets; *out is NULL if there are none. -ENOMEM.
 * Does not report unreadable files: the later read will. */
int cop_trace_clocks_new(
	const struct cop_trace_files *files, unsigned threads, struct clocks **out);
void cop_trace_clocks_free(struct clocks *c);
/* Converts an event to rank 0's clock if its host's offset is known. */
void cop_trace_clocks_correct(const struct clocks *c, struct cop_trace_event *e);
/* Appends a line for each host whose clock was corrected. */
void cop_trace_clocks_tell(const struct clocks *c, struct cop_buf *out);

/* ---- pair.c: begins and ends ---- */

struct open_span; /* a begin event whose end has not been read yet */
struct pairs {
	struct cop_htab table;
	struct cop_seen begun; /* names of begin events within threads */
	size_t open;
	uint64_t unmatched, unfinished;
};
/* Processes the halves of one file in order. If r is the end of a span, turns r->e into the whole
 * span and returns true; the strings from the begin event are valid until the list *used is
 * freed. */
bool cop_trace_pair(struct pairs *p, struct record *r, struct open_span **used);
void cop_trace_spans_free(struct open_span *used);
/* Calls visit for each open span, as an unfinished span of length 0. A nonzero result stops it and
 * is returned. */
int cop_trace_pairs_open(
	const struct pairs *p, int (*visit)(void *arg, const struct cop_trace_event *e), void *arg);
/* Counts the open spans as unfinished. */
void cop_trace_pairs_end(struct pairs *p);

/* ---- split.c: event boundaries ---- */

enum { AT_TOP, AT_ARRAY, AT_OBJECT };
enum key { KEY_OTHER, KEY_EVENTS, KEY_BASE, KEY_DISTRIBUTED, KEY_RANK };
struct split {
	int where;  /* between documents, in a document's traceEvents, or elsewhere in it */
	bool found; /* a traceEvents array was found */
	/* State in AT_OBJECT: */
	bool lost; /* within an event that is too long */
	int back;  /* the state to return to */
	bool string, escape, fresh;
	bool value;   /* a member's name has been read, so a value follows */
	bool of_rank; /* within distributedInfo */
	enum key key; /* which member that is */
	unsigned depth;
	char text[24]; /* the last string or number */
	size_t text_len;
	/* From outside of the document's traceEvents: */
	bool has_base;
	int64_t base_ns; /* real time of the file's time 0 */
	char rank[12];
	size_t rank_len;
};
/* What follows the cut: more events, the rest of a document after an array, or a document. */
enum cut { CUT_NONE, CUT_ARRAY, CUT_DOCUMENT };
/* Returns how many leading bytes are whole events. If 0, *event tells whether the incomplete object
 * has a phase. COP_JSON_PAD bytes must follow the data. */
size_t cop_trace_cut(
	const struct split *s, const char *data, size_t len, enum cut *next, bool *event);
/* Enters AT_OBJECT, at the start of the object (depth 0) or after its traceEvents (1). */
void cop_trace_split_enter(struct split *s, unsigned depth, bool lost);
/* Searches for the array of events or the end of the object; returns the number of bytes
 * consumed. */
size_t cop_trace_split_seek(struct split *s, const char *data, size_t len);

/* The first bytes of a file. */
struct beginning {
	const char *data;
	size_t len;
	bool whole;    /* the file has no more bytes */
	bool anywhere; /* lines that are not events may precede the first event */
};
struct first {
	size_t skip;
	bool may_come; /* more bytes may show that it is a trace */
	bool document; /* an object with traceEvents */
	bool number;   /* phases are numbers */
	int64_t first_us;
};
/* Finds the first event. Returns NULL, or why the file is not a trace. */
const char *cop_trace_look(const struct beginning *b, struct first *out);
/* Whether the reason means an intact file of another kind rather than a damaged trace. */
bool cop_trace_is_other(const char *why);

/* ---- source.c: blocks of one file ---- */

/* Fits into a processor's private cache, together with the parsed events. */
#define BLOCK_BYTES (256 * COP_KIB)
#define BLOCK_MAX (BLOCK_BYTES + COP_TRACE_RECORD_MAX)
#define SNIFF_BYTES (64 * COP_KIB)
#define SNIFF_MAX (SNIFF_BYTES + COP_TRACE_RECORD_MAX) /* if the first event is longer */

struct block {
	char *memory; /* `room` bytes plus COP_JSON_PAD; grows for large events, up to BLOCK_MAX */
	size_t room;
	const char *data;
	size_t len;
	uint64_t line; /* of data, from 1 */
	uint64_t seq;
	int64_t base_ns; /* real time that corresponds to time 0 of its events */
	char rank[12];   /* of the process that wrote it, if known */
	size_t rank_len;
};

/* Grows *at, which is NULL or from malloc, to hold len bytes and COP_JSON_PAD. -ENOMEM. */
int cop_trace_room(char **at, size_t *room, size_t len);

struct plan;
struct source {
	size_t index;
	struct plan *plan;               /* NULL: read the whole file */
	uint64_t raw;                    /* offset of the next block in the inflated content */
	uint64_t stop;                   /* with a plan: no block extends past this offset */
	struct cop_trace_result skipped; /* counts of skipped events, for the filling thread */
	/* Offset and split state at the start of the last block: */
	uint64_t block_raw;
	struct split block_split;
	int fd;
	struct cop_inflate *in;
	bool meant; /* as in struct file */
	struct split split;
	struct first first;
	char *carry; /* bytes read but not yet delivered */
	size_t carried, carry_room;
	uint64_t line, blocks;
	bool ended, pending; /* pending: no part of a trace found yet */
	/* The base time may follow the events, and is then known only after reading to the end. */
	bool seeks_base;
	int64_t tail_base_ns; /* the base time that follows the events */
	struct names names;
	/* Whose turn it is to pair (read.c): */
	pthread_mutex_t lock;
	pthread_cond_t turned;
	uint64_t turn;
	uint64_t done; /* one bit for each later block, set once parsed */
	struct pairs pairs;
	/* Faults found while filling; the filling thread collects them: */
	uint64_t broken, broken_line;
	const char *broken_why;
	/* Protected by the reader's lock: */
	bool filling, over;
	bool alone; /* other threads must not inflate ahead */
	unsigned users;
};

struct file;
/* Opens the file and recognizes its format. On failure, returns NULL with a static *why, or with
 * *why NULL and -errno in *rc. */
struct source *cop_trace_source_open(
	const struct file *file, size_t index, const char **why, int *rc);
void cop_trace_source_free(struct source *s);
/* Rewinds to the first event. */
int cop_trace_source_rewind(struct source *s);
/* Call after the pass for names, which reads the whole file. */
void cop_trace_source_end_names(struct source *s);
/* Fills the next block. Returns 1; 0 at the end; -errno. Reports an oversized record in
 * s->broken_why. */
int cop_trace_source_fill(struct source *s, struct block *b);

/* ---- plan.c ---- */

/* Decides how to fill the next block. Returns 1 if it filled the block from a chunk's digest; 0 if
 * the block must be filled from the file, up to s->stop; -ENODATA at the end; another -errno. */
int cop_plan_step(struct plan *p, struct source *s, struct block *b);

/* ---- parse.c: the events of a block ---- */

struct sink {
	struct scratch scratch;
	const struct names *names; /* may be NULL */
	bool who;                  /* also set rank, process and thread names */
	/* Receives each event. A nonzero result ends the block. */
	int (*record)(struct sink *s, const struct fields *f, struct record *r);
	void (*broken)(struct sink *s, uint64_t line, const char *why);
	/* Skip events that cannot define a name or a clock offset. */
	bool names_only;
	bool numbers; /* phases are numbers */
	const struct block *block;
	/* Current position of the parser. */
	const char *at;
	uint64_t line;
};
int cop_trace_parse(struct sink *s, const struct block *b);
/* Returns where to resume after an unreadable object at p whose error is at `at`. */
const char *cop_trace_resume(const char *p, const char *at, const char *end);

/* ---- args.c ---- */

/* Returns the value at the start of a text. */
struct cop_trace_str cop_trace_value_at(struct cop_trace_str text);

/* ---- otel.c ---- */

/* Delivers the events of an OpenTelemetry object: a line of OTLP, or a console exporter's span. */
int cop_trace_otel(
	struct sink *s, const struct fields *f, struct cop_trace_str object, uint64_t line);

/* ---- files.c ---- */

struct file {
	char *name;
	/* The user named the file, or its name is typical of traces: report it if it is not a
	 * trace, and accept a damaged start. */
	bool meant;
	bool likely;      /* its name could be that of a trace: report it if damaged */
	int fd;           /* for a pipe, a copy of its data; else -1 */
	int64_t shift_ns; /* added to its timestamps */
	/* What the last read could not use: */
	const char *why; /* static; NULL: at most some events are broken */
	bool whole;
	_Atomic uint64_t broken;
};
struct cop_trace_files {
	struct file *file;
	size_t n, cap;
	struct file *absent; /* unreadable paths */
	size_t absents;
	bool clocks_known;
	struct clocks *clocks; /* NULL: none */
};

/* ---- faults.c ---- */

/* Counts an event with an unsupported phase. */
void cop_trace_omit(struct cop_trace_result *r, char phase);

/* ---- read.c: threads ---- */

#define THREADS_MAX 64u
#define BATCH 128

struct reader;
struct worker {
	struct sink sink; /* must be first: callbacks get the worker from its address */
	struct reader *reader;
	unsigned index;
	pthread_t thread;
	struct block block;
	struct source *source;
	struct cop_trace_event batch[BATCH];
	size_t n;
	struct record *half; /* begin and end events of this block, in order */
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
	bool names;  /* each file needs a pass for names */
	size_t next; /* the next file to open */
	size_t traces;
	uint64_t unfinished, unmatched, names_lost;
	int rc;
};
/* Delivers the batch. */
int cop_trace_flush(struct worker *w);
/* Adds an event to the batch. */
int cop_trace_deliver(struct worker *w, const struct cop_trace_event *e);

/* ---- open.c ---- */

#define TRACE_NOTES_MAX 20u
/* Records why a file was not read, or not read to the end. whole: nothing of it was read. The
 * caller holds the lock. */
void cop_trace_note_file(struct reader *r, size_t index, const char *why, bool whole);
/* Removes a file from the active ones. The caller holds the lock. */
void cop_trace_forget_source(struct reader *r, const struct source *s);
/* Opens the next file. The caller holds the lock, which is released while opening. */
void cop_trace_open_next(struct worker *w);

#endif
