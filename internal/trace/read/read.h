/* SPDX-License-Identifier: BSD-3-Clause */
/* read: converts trace files to events. It reads the formats of dlio_profiler, DFTracer 1.x and
 * 2.x, PerfFlowAspect, Chrome (torch.profiler and others) and OpenTelemetry, plain or gzip, and
 * recognizes them by content, never by name. It does not select, aggregate or print.
 *
 * Files may be incomplete or corrupt: the reader counts unreadable parts, reports the first three
 * with their positions, and continues. Memory is bounded for any input: each thread holds one block
 * and a few members inflated ahead; one event takes at most COP_TRACE_RECORD_MAX; each file has at
 * most COP_TRACE_OPEN_MAX open spans and, with `names`, the names it defines.
 *
 * An idle thread picks a file that no other thread is inflating, inflates one block, cuts it after
 * the last complete event, and parses it while another thread inflates the next block. The ratio of
 * parse time to inflate time thus determines how many threads one large file keeps busy; there is
 * no queue. Instead of waiting, a thread inflates a later member of the file (inflate.h), so a file
 * with many members keeps all threads busy.
 *
 * If Copper's traces contain a host's clock offset from rank 0, all events of that host, whoever
 * wrote them, are converted to rank 0's clock (format: clock.c).
 *
 * One scanner reads all formats (base/json_read.h); the fuzz target compares it with json-c. */
#ifndef COP_TRACE_READ_H
#define COP_TRACE_READ_H

#include "base/base/base.h"
#include "base/base/json.h"

#define COP_TRACE_RECORD_MAX (16 * COP_MIB)
#define COP_TRACE_OPEN_MAX ((size_t)1 << 18)
#define COP_TRACE_NAMES_MAX ((size_t)1 << 22)
#define COP_TRACE_FILES_MAX ((size_t)1 << 20)
#define COP_TRACE_NAMED 3u

/* Borrowed bytes, not NUL-terminated; `at` is never NULL. */
struct cop_trace_str {
	const char *at;
	size_t len;
};
static inline bool cop_trace_str_is(struct cop_trace_str s, const char *word)
{
	return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

enum cop_trace_kind {
	COP_TRACE_SPAN,      /* has a duration: a complete event, or a matched begin and end */
	COP_TRACE_AGGREGATE, /* represents `count` spans */
	COP_TRACE_INSTANT,
	COP_TRACE_COUNTER,
	COP_TRACE_FLOW,
	COP_TRACE_META, /* names and other metadata; has no timestamp */
	COP_TRACE_KINDS
};

/* Where an id is unique: within its file, within its process, or globally. */
enum cop_trace_id { COP_TRACE_ID_FILE, COP_TRACE_ID_PROCESS, COP_TRACE_ID_ALL };

/* Strings are unquoted and unescaped, and empty if absent. */
struct cop_trace_event {
	enum cop_trace_kind kind;
	struct cop_trace_str name, cat;
	struct cop_trace_str pid, tid;   /* text, because Chrome allows words */
	struct cop_trace_str file, host; /* the hash as written in the file, unless resolved */
	struct cop_trace_str id, scope;
	enum cop_trace_id id_kind;
	bool id_is_text; /* the id is quoted in the file */
	char ph; /* phase letter in Chrome's format; for a matched span, that of the begin event */
	char bp, s;                /* as in Chrome's format; 0: none */
	bool old_async;            /* written with phases S and F, which also match by name */
	bool args_odd;             /* args are not strict JSON; see args */
	struct cop_trace_str of;   /* COP_TRACE_META: args.name, "/path/of/file"; or args.labels */
	struct cop_trace_str rank; /* rank of the process, from the start of the file (torch's
				      distributedInfo) or, with conf.who, from metadata; in a
				      process's COP_TRACE_META, the rank it defines */
	struct cop_trace_str process, thread; /* with conf.who: names from metadata */
	struct cop_trace_str bind_id;         /* id that binds slices to a flow; empty if none */
	bool bind_is_text, flow_in, flow_out; /* the slice ends, or begins, a flow */
	struct cop_trace_str more; /* with conf.args: other members to keep (tts, tdur, cname) as
				      JSON without the braces: "\"tts\":5,\"cname\":\"good\"" */
	struct cop_trace_str args,
		end_args; /* with conf.args: text of the args objects, of a matched span's begin and
			     end. It is JSON, but may contain NaN, infinities, control characters
			     and invalid UTF-8 */
	struct cop_trace_str raw;        /* the whole object; for a matched span, the end event */
	int64_t ts_ns;                   /* since 1970, or since the writer's epoch */
	uint64_t dur_ns;                 /* for an aggregate, the sum */
	uint64_t dur_min_ns, dur_max_ns; /* for a single span, both equal dur_ns */
	uint64_t count;                  /* number of spans represented */
	uint64_t size;                   /* bytes transferred, if has_size */
	bool has_size;
	/* COP_TRACE_COUNTER: how many leading members of args are values; the remaining members
	 * describe them. 0: every numeric member is a value. */
	uint8_t values;
	bool unfinished; /* with conf.unfinished: a begin event with no end; dur_ns is 0 */
	bool file_is_hash, host_is_hash; /* the hash is unresolved */
	size_t source;                   /* index of its file; see cop_trace_owner */
	uint64_t line;                   /* line on which the event starts, from 1 */
};

/* The pid identifies a process within this owner: 0 if the event names its host, else a number that
 * represents its file. */
static inline size_t cop_trace_owner(const struct cop_trace_event *e)
{
	return e->host.len ? 0 : 1 + e->source;
}

/* Position of an unreadable part. */
struct cop_trace_fault {
	size_t source;
	uint64_t line;
	const char *why; /* static */
};

struct cop_trace_result {
	uint64_t events[COP_TRACE_KINDS];              /* records, not the spans they represent */
	uint64_t broken;                               /* unreadable lines or objects */
	struct cop_trace_fault fault[COP_TRACE_NAMED]; /* the first few, by file and line */
	unsigned faults;
	uint64_t omitted;          /* events with an unsupported phase */
	uint64_t omitted_phase[2]; /* one bit per letter; the lowest bit: any other character */
	uint64_t unfinished, unmatched; /* begin events with no end, end events with no begin */
	uint64_t names_lost;            /* definitions dropped beyond COP_TRACE_NAMES_MAX */
	size_t traces;                  /* number of files that are traces */
	int64_t first_ns, last_ns;      /* over all events with a timestamp; first > last: none */
};

/* ---- files ---- */

struct cop_trace_files;

/* Adds the given files, and searches the given directories for traces. A duplicate is read only
 * once. Skips missing or unreadable paths and reports them in `notes`, one per line. -ENOENT with a
 * message if no files remain; -E2BIG for more than COP_TRACE_FILES_MAX; -ENOMEM. */
int cop_trace_files_new(char *const *path, size_t n, struct cop_trace_files **out,
	struct cop_buf *notes, struct cop_err *err);
void cop_trace_files_free(struct cop_trace_files *f);
/* Returns the name of an event's source file, which is valid until f is freed. */
const char *cop_trace_files_name(const struct cop_trace_files *f, size_t source);
/* Removes the file at path from the list; returns whether it was there. Call before reading. */
bool cop_trace_files_leave_out(struct cop_trace_files *f, const char *path);
/* Adds an offset to all timestamps in a file, or in the files below a directory. Returns how many
 * files it affects. Call before reading. */
size_t cop_trace_files_shift(struct cop_trace_files *f, const char *path, int64_t ns);
/* Returns the number of files in the list. */
size_t cop_trace_files_count(const struct cop_trace_files *f);
/* Call after reading. Adds a member `key`: an array with one object for each file that was read
 * only in part or not at all: {"file":NAME,"why":SENTENCE,"whole":true if nothing was
 * read,"broken":LINES OR EVENTS} */
void cop_trace_files_put_lost(const struct cop_trace_files *f, struct cop_json *j, const char *key);

/* ---- arguments ---- */

/* Iterates over the members of an object in text form, such as the args of an event. */
struct cop_trace_members {
	const char *at, *end;
};
struct cop_trace_members cop_trace_members_of(struct cop_trace_str object);
/* Returns false at the end. The key is stripped of its quotes; otherwise key and value are
 * verbatim. */
bool cop_trace_members_next(
	struct cop_trace_members *m, struct cop_trace_str *key, struct cop_trace_str *value);
/* Looks up the verbatim value of a member; returns false if absent. */
bool cop_trace_member(struct cop_trace_str object, const char *key, struct cop_trace_str *value);
/* Returns the printable form of a value: a string is unquoted and unescaped into room, which is
 * cleared first; anything else is verbatim. */
struct cop_trace_str cop_trace_value_text(struct cop_trace_str value, struct cop_buf *room);
/* Converts a number, quoted or not, with the precision of a double; integers below 2^64 are exact.
 * Returns false if the value is not a number. */
bool cop_trace_value_number(struct cop_trace_str value, long double *out);

/* Iterates over the values of a counter; next returns false at the end. */
struct cop_trace_values {
	struct cop_trace_members members;
	unsigned left; /* members left that may be values */
};
struct cop_trace_values cop_trace_values_of(const struct cop_trace_event *e);
bool cop_trace_values_next(
	struct cop_trace_values *v, struct cop_trace_str *series, long double *value);

/* ---- reading ---- */

/* Called on a reader thread with events of one file, which are valid only during the call. worker <
 * cop_trace_threads(conf->threads). Calls for one worker never overlap; the events of a file arrive
 * in any order. A nonzero result stops the read and becomes its result. */
typedef int cop_trace_batch(
	void *arg, unsigned worker, const struct cop_trace_event *event, size_t n);

/* A filter for files with an index: the reader may omit events that do not match. Without an index,
 * it delivers all events. */
enum {
	COP_TRACE_WORD_NAME,
	COP_TRACE_WORD_CAT,
	COP_TRACE_WORD_PID,
	COP_TRACE_WORD_TID,
	COP_TRACE_WORD_HOST,
	COP_TRACE_WORD_FILE,
	COP_TRACE_WORDS
};
struct cop_trace_pick {
	/* Returns whether events with this name, category and so on may match. Any thread may call
	 * it. */
	bool (*word)(void *arg, unsigned what, struct cop_trace_str text);
	void *arg;
	unsigned words;         /* one bit for each kind of word to test */
	int64_t from_ns, to_ns; /* deliver events that start in this range, inclusive */
	bool meta;              /* deliver metadata, too */
};

struct cop_trace_conf {
	unsigned threads; /* maximum; 0: one per processor */
	bool names;       /* resolve hashes; needs an extra pass over each file */
	bool peek;        /* read only the first block of each file */
	bool args;        /* keep the text of args and of other members (more) */
	bool who;         /* set rank, process and thread names; uses the same extra pass */
	bool unfinished;  /* also deliver begin events with no end */
	const struct cop_trace_pick *pick; /* NULL: deliver all events */
	cop_trace_batch *batch;            /* may be NULL */
	void *arg;
};

/* Returns the number of threads that a read will use. */
unsigned cop_trace_threads(unsigned threads);
/* Reads all files. Appends their faults to notes, one per line. Returns 0; -ENODATA with a message
 * if no file is a trace; a nonzero result of batch; -ENOMEM. */
int cop_trace_read(struct cop_trace_files *f, const struct cop_trace_conf *conf,
	struct cop_trace_result *result, struct cop_buf *notes, struct cop_err *err);
/* Appends "FILE:LINE: WHY" for each recorded fault, the number of faults, and the clock
 * corrections. */
void cop_trace_faults(const struct cop_trace_files *f, const struct cop_trace_result *result,
	struct cop_buf *out);

/* ---- indexes ---- */

/* The suffix of index file names. A directory search does not treat such files as traces. */
#define COP_TRACE_INDEX_END ".copper-index"

enum cop_trace_indexed {
	COP_TRACE_INDEX_MADE,
	COP_TRACE_INDEX_CURRENT, /* already up to date */
	COP_TRACE_INDEX_SMALL,   /* the file is too small to need one */
	COP_TRACE_INDEX_REFUSED  /* not possible; see `why` */
};
struct cop_trace_index_result {
	size_t source;
	enum cop_trace_indexed what;
	const char *path; /* path of the index, if there is one */
	uint64_t bytes, file_bytes, events, chunks;
	const char *why;
};
struct cop_trace_index_conf {
	unsigned threads;
	uint64_t small_bytes, chunk_bytes;
	double share; /* maximum size of an index as a share of its file; 0 selects the default for
			 this and the two sizes above */
	/* Called once per file, by one thread at a time. */
	void (*done)(void *arg, const struct cop_trace_index_result *r);
	void *arg;
};
/* Creates an index for each file, beside the file or in the cache directory. A later read uses the
 * index if it matches the file's current state. -ENOMEM; a file that cannot be indexed is not an
 * error. */
int cop_trace_index(
	struct cop_trace_files *f, const struct cop_trace_index_conf *conf, struct cop_err *err);

#endif
