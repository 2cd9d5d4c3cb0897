/* SPDX-License-Identifier: BSD-3-Clause */
/* read: converts trace files to events: dlio_profiler, DFTracer 1.x and 2.x, PerfFlowAspect, the
 * Chrome trace of torch.profiler and others, and OpenTelemetry; plain or gzip; recognized by
 * content, never by name. Does not select, aggregate or print.
 *
 * Files may be incomplete or corrupt: unreadable parts are counted, the first three are reported
 * with their position, and reading continues. Memory is bounded for any input: per thread, a block
 * and some members inflated ahead; COP_TRACE_RECORD_MAX for one event; per file, COP_TRACE_OPEN_MAX
 * open spans and, with `names`, its defined names.
 *
 * An idle thread takes a file that no other thread is inflating, inflates one block, cut after the
 * last whole event, and parses it while another thread inflates the next. The number of threads
 * busy with one large file is the ratio of parse time to inflate time; there is no queue. Instead
 * of waiting, a thread inflates a later member of the file (inflate.h), so a file of many members
 * keeps all threads busy.
 *
 * If Copper's traces contain a host's clock offset to rank 0, all events of that host, from any
 * writer, are converted to rank 0's clock (format: clock.c).
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

/* Borrowed bytes, not NUL-terminated; at is never NULL. */
struct cop_trace_str {
	const char *at;
	size_t len;
};
static inline bool cop_trace_str_is(struct cop_trace_str s, const char *word)
{
	return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

enum cop_trace_kind {
	COP_TRACE_SPAN,      /* something with a duration: complete, or a begin and its end */
	COP_TRACE_AGGREGATE, /* represents `count` spans */
	COP_TRACE_INSTANT,
	COP_TRACE_COUNTER,
	COP_TRACE_FLOW,
	COP_TRACE_META, /* names and the like; has no time */
	COP_TRACE_KINDS
};

/* The scope of an id: the file, the process, or global. */
enum cop_trace_id { COP_TRACE_ID_FILE, COP_TRACE_ID_PROCESS, COP_TRACE_ID_ALL };

/* Strings have no quotes and no escapes; empty if absent. */
struct cop_trace_event {
	enum cop_trace_kind kind;
	struct cop_trace_str name, cat;
	struct cop_trace_str pid, tid;   /* text, since Chrome's may be words */
	struct cop_trace_str file, host; /* the hash as in the file, unless resolved */
	struct cop_trace_str id, scope;
	enum cop_trace_id id_kind;
	bool id_is_text; /* the id is quoted */
	char ph;         /* phase letter in Chrome's format; of a matched span, the begin's */
	char bp, s;      /* as in Chrome's format; 0: none */
	bool old_async;  /* written as S and F, which are also matched by name */
	bool args_odd;   /* args are not strict JSON, as below */
	struct cop_trace_str of;   /* COP_TRACE_META: args.name, "/path/of/file"; or args.labels */
	struct cop_trace_str rank; /* rank of its process, from the file's head (torch's
				      distributedInfo) or, with conf.who, from metadata. In
				      COP_TRACE_META of a process: the rank it defines */
	struct cop_trace_str process, thread; /* with conf.who: names from metadata */
	struct cop_trace_str bind_id;         /* id that binds slices to a flow; empty: none */
	bool bind_is_text, flow_in, flow_out; /* the slice ends, or begins, a flow */
	struct cop_trace_str more; /* with conf.args: other members to keep (tts, tdur, cname), as
				      JSON without braces: "\"tts\":5,\"cname\":\"good\"" */
	struct cop_trace_str args,
		end_args;         /* with conf.args: the args objects as text: JSON except for NaN,
				     infinities, control characters and invalid UTF-8. end_args: of the end
				     of a matched span */
	struct cop_trace_str raw; /* the object; of a matched span, the end */
	int64_t ts_ns;            /* since 1970, or since the writer's epoch */
	uint64_t dur_ns;          /* of an aggregate, the sum */
	uint64_t dur_min_ns, dur_max_ns; /* of a single span, both equal dur_ns */
	uint64_t count;                  /* number of spans represented */
	uint64_t size;                   /* bytes moved, if has_size */
	bool has_size;
	/* COP_TRACE_COUNTER: the number of leading members of args that are values, described by
	 * the other members; 0: every numeric member is a value. */
	uint8_t values;
	bool unfinished; /* with conf.unfinished: a begin without an end; dur_ns is 0 */
	bool file_is_hash, host_is_hash; /* the hashes are unresolved */
	size_t source;                   /* index of its file; see cop_trace_owner */
	uint64_t line;                   /* of the start of the event, from 1 */
};

/* A process is identified by its pid and this: 0 if the event names its host, else a number for its
 * file. */
static inline size_t cop_trace_owner(const struct cop_trace_event *e)
{
	return e->host.len ? 0 : 1 + e->source;
}

/* The position of an unreadable part. */
struct cop_trace_fault {
	size_t source;
	uint64_t line;
	const char *why; /* static */
};

struct cop_trace_result {
	uint64_t events[COP_TRACE_KINDS];              /* records, not the spans they represent */
	uint64_t broken;                               /* unreadable lines or objects */
	struct cop_trace_fault fault[COP_TRACE_NAMED]; /* the first ones, by file and line */
	unsigned faults;
	uint64_t omitted;               /* events with an unsupported phase */
	uint64_t omitted_phase[2];      /* a bit per letter; the first: others */
	uint64_t unfinished, unmatched; /* begins without an end, ends without a begin */
	uint64_t names_lost;            /* definitions beyond COP_TRACE_NAMES_MAX */
	size_t traces;                  /* number of files that are traces */
	int64_t first_ns, last_ns;      /* over all events with a time; first > last: none */
};

/* ---- files ---- */

struct cop_trace_files;

/* Takes files as given; walks directories for traces. Duplicates are read once. Missing or
 * unreadable paths are skipped and reported in `notes`, one per line. -ENOENT with a message if no
 * file is left; -E2BIG for more than COP_TRACE_FILES_MAX; -ENOMEM. */
int cop_trace_files_new(char *const *path, size_t n, struct cop_trace_files **out,
	struct cop_buf *notes, struct cop_err *err);
void cop_trace_files_free(struct cop_trace_files *f);
/* The name of an event's source file; valid as long as f. */
const char *cop_trace_files_name(const struct cop_trace_files *f, size_t source);
/* Removes the file at path; returns whether it was in the list. Call before reading. */
bool cop_trace_files_leave_out(struct cop_trace_files *f, const char *path);
/* Adds an offset to all times of a file, or of the files below a directory; returns the number of
 * files. Call before reading. */
size_t cop_trace_files_shift(struct cop_trace_files *f, const char *path, int64_t ns);
/* The number of files in the list. */
size_t cop_trace_files_count(const struct cop_trace_files *f);
/* After a reading: adds a member `key`, an array with one object per file that was not read, or
 * only in part, by name: {"file":NAME,"why":SENTENCE,"whole":true if nothing was
 * read,"broken":LINES OR EVENTS} */
void cop_trace_files_put_lost(const struct cop_trace_files *f, struct cop_json *j, const char *key);

/* ---- arguments ---- */

/* Iterates over the members of an object's text, such as args of an event. */
struct cop_trace_members {
	const char *at, *end;
};
struct cop_trace_members cop_trace_members_of(struct cop_trace_str object);
/* False at the end. The key has no quotes; otherwise key and value are as in the text. */
bool cop_trace_members_next(
	struct cop_trace_members *m, struct cop_trace_str *key, struct cop_trace_str *value);
/* The value of a member, as in the text; false if absent. */
bool cop_trace_member(struct cop_trace_str object, const char *key, struct cop_trace_str *value);
/* The printable value: a string unquoted and unescaped into room (cleared first); anything else as
 * in the text. */
struct cop_trace_str cop_trace_value_text(struct cop_trace_str value, struct cop_buf *room);
/* A number, quoted or not, as a double, except that integers below 2^64 are exact. False if it is
 * no number. */
bool cop_trace_value_number(struct cop_trace_str value, long double *out);

/* Iterates over the values of a counter: false at the end. */
struct cop_trace_values {
	struct cop_trace_members members;
	unsigned left; /* members that may be values */
};
struct cop_trace_values cop_trace_values_of(const struct cop_trace_event *e);
bool cop_trace_values_next(
	struct cop_trace_values *v, struct cop_trace_str *series, long double *value);

/* ---- reading ---- */

/* Called on a reader thread with events of one file, valid during the call only. worker <
 * cop_trace_threads(conf->threads). The batches of a worker are sequential; the events of a file
 * come in any order. A nonzero result stops the reading and is returned. */
typedef int cop_trace_batch(
	void *arg, unsigned worker, const struct cop_trace_event *event, size_t n);

/* A filter for files with an index: events that do not match may be omitted. Without an index, all
 * events are delivered. */
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
	/* Whether events with this name, category ... may match; called by any thread. */
	bool (*word)(void *arg, unsigned what, struct cop_trace_str text);
	void *arg;
	unsigned words;         /* a bit per kind of word to test */
	int64_t from_ns, to_ns; /* events that begin in this range, inclusive */
	bool meta;              /* include metadata */
};

struct cop_trace_conf {
	unsigned threads; /* maximum; 0: number of processors */
	bool names;       /* resolve hashes, which needs an extra pass over each file */
	bool peek;        /* read only the first block of each file */
	bool args;        /* keep the text of args and of other members (more) */
	bool who;         /* set rank, process and thread names: uses the same extra pass */
	bool unfinished;  /* also deliver begins without an end */
	const struct cop_trace_pick *pick; /* NULL: all */
	cop_trace_batch *batch;            /* may be NULL */
	void *arg;
};

/* The number of threads a reading will use. */
unsigned cop_trace_threads(unsigned threads);
/* Reads all files. Appends their faults to notes, one per line. 0; -ENODATA with a message if no
 * file is a trace; the result of batch; -ENOMEM. */
int cop_trace_read(struct cop_trace_files *f, const struct cop_trace_conf *conf,
	struct cop_trace_result *result, struct cop_buf *notes, struct cop_err *err);
/* Appends "FILE:LINE: WHY" for each recorded fault, the number of faults, and the clock
 * corrections. */
void cop_trace_faults(const struct cop_trace_files *f, const struct cop_trace_result *result,
	struct cop_buf *out);

/* ---- indexes ---- */

/* The suffix of index file names. In directories, such files are not taken as traces. */
#define COP_TRACE_INDEX_END ".copper-index"

enum cop_trace_indexed {
	COP_TRACE_INDEX_MADE,
	COP_TRACE_INDEX_CURRENT, /* already up to date */
	COP_TRACE_INDEX_SMALL,   /* the file is too small to need one */
	COP_TRACE_INDEX_REFUSED  /* not possible: see why */
};
struct cop_trace_index_result {
	size_t source;
	enum cop_trace_indexed what;
	const char *path; /* of the index, if there is one */
	uint64_t bytes, file_bytes, events, chunks;
	const char *why;
};
struct cop_trace_index_conf {
	unsigned threads;
	uint64_t small_bytes, chunk_bytes;
	double share; /* maximum size of an index as a share of its file; 0 in all three: the
			 default */
	/* Called for each file, by one thread at a time. */
	void (*done)(void *arg, const struct cop_trace_index_result *r);
	void *arg;
};
/* Creates the indexes of all files, beside each or in the cache directory. A reading uses an index
 * if it matches the file's current state. -ENOMEM; a file that cannot have an index is no error. */
int cop_trace_index(
	struct cop_trace_files *f, const struct cop_trace_index_conf *conf, struct cop_err *err);

#endif
