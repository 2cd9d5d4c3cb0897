/* SPDX-License-Identifier: BSD-3-Clause */
/* read: turns trace files into events. It reads the traces of programs: dlio_profiler, DFTracer 1.x
 * and 2.x, PerfFlowAspect, the Chrome trace of torch.profiler and others, and OpenTelemetry's
 * files; plain or gzip; recognized by content, never by name. It does not select, add up or print.
 *
 * Files may be incomplete or corrupt: unreadable parts are counted, the first three places are
 * named, and reading continues. Memory is bounded whatever the input: a block and some members
 * inflated ahead for each thread, COP_TRACE_RECORD_MAX for one event, COP_TRACE_OPEN_MAX open spans
 * per file and, with `names`, the names that one file defines.
 *
 * A thread without work takes a file that no other thread is inflating, inflates one block, cut
 * after the last whole event, and parses it while another thread inflates the next. So one large
 * file keeps as many threads busy as inflating is faster than parsing, and there is no queue. A
 * thread that would have to wait inflates a later member of the file (inflate.h), so a file of many
 * members keeps all threads busy.
 *
 * If traces of Copper contain the clock offset of a host to rank 0, all events of that host, from
 * any writer, are converted to rank 0's clock: clock.c has the format.
 *
 * One scanner reads all forms (base/json_read.h); the fuzz target compares it with json-c. */
#ifndef COP_TRACE_READ_H
#define COP_TRACE_READ_H

#include "base/base/base.h"
#include "base/base/json.h"

#define COP_TRACE_RECORD_MAX (16 * COP_MIB)
#define COP_TRACE_OPEN_MAX ((size_t)1 << 18)
#define COP_TRACE_NAMES_MAX ((size_t)1 << 22)
#define COP_TRACE_FILES_MAX ((size_t)1 << 20)
#define COP_TRACE_NAMED 3u

/* Borrowed bytes; at is never NULL, and no NUL follows. */
struct cop_trace_str {
	const char *at;
	size_t len;
};
static inline bool cop_trace_str_is(struct cop_trace_str s, const char *word)
{
	return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

enum cop_trace_kind {
	COP_TRACE_SPAN,      /* something that took time: complete, or a begin and its end */
	COP_TRACE_AGGREGATE, /* stands for `count` spans */
	COP_TRACE_INSTANT,
	COP_TRACE_COUNTER,
	COP_TRACE_FLOW,
	COP_TRACE_META, /* names and the like; has no time */
	COP_TRACE_KINDS
};

/* The scope of an id: the file, the process, or all files. */
enum cop_trace_id { COP_TRACE_ID_FILE, COP_TRACE_ID_PROCESS, COP_TRACE_ID_ALL };

/* Strings have neither quotes nor escapes, and are empty if the event has none. */
struct cop_trace_event {
	enum cop_trace_kind kind;
	struct cop_trace_str name, cat;
	struct cop_trace_str pid, tid;   /* as text, since Chrome's may be words */
	struct cop_trace_str file, host; /* the hash as it is in the file, unless it was resolved */
	struct cop_trace_str id, scope;
	enum cop_trace_id id_kind;
	bool id_is_text; /* the id is in quotes */
	char ph;         /* the letter of Chrome's format; for a begin and its end, the begin's */
	char bp, s;      /* likewise of Chrome's format; 0: none */
	bool old_async;  /* the span was written as S and F, which belong together by name */
	bool args_odd;   /* args are not quite JSON, as below */
	struct cop_trace_str of;   /* COP_TRACE_META: args.name, "/path/of/file"; or args.labels */
	struct cop_trace_str rank; /* of its process: what the file's head says (distributedInfo of
				      torch); with conf.who also what metadata say. For
				      COP_TRACE_META of a process: the rank that it defines */
	struct cop_trace_str process, thread; /* with conf.who: the names that metadata define */
	struct cop_trace_str bind_id;         /* the id that binds slices to a flow; else empty */
	bool bind_is_text, flow_in, flow_out; /* the slice ends, or begins, an arrow of a flow */
	struct cop_trace_str more; /* with conf.args: other members to keep (tts, tdur, cname), as
				      JSON without braces: "\"tts\":5,\"cname\":\"good\"" */
	struct cop_trace_str args,
		end_args; /* with conf.args: the objects as text, which is JSON except for NaN,
			     infinities, control characters and invalid UTF-8; the second is that of
			     a begin's end */
	struct cop_trace_str raw;        /* the object; for a begin and its end, the end */
	int64_t ts_ns;                   /* since 1970, or whatever the writer counts from */
	uint64_t dur_ns;                 /* for an aggregate, the sum */
	uint64_t dur_min_ns, dur_max_ns; /* for a single span, both equal dur_ns */
	uint64_t count;                  /* how many spans the event stands for */
	uint64_t size;                   /* bytes moved, if has_size */
	bool has_size;
	/* COP_TRACE_COUNTER: how many members of args, from the first on, are its values, which the
	 * others describe; 0: any that is a number is one. */
	uint8_t values;
	bool unfinished; /* with conf.unfinished: a begin without an end; dur_ns is 0 */
	bool file_is_hash, host_is_hash; /* the hashes were not resolved */
	size_t source;                   /* index of its file; see cop_trace_owner */
	uint64_t line;                   /* where the event begins, from 1 */
};

/* A process is known by its pid and by this: 0 if the event names its host, which then tells
 * processes apart, else a number that stands for its file. */
static inline size_t cop_trace_owner(const struct cop_trace_event *e)
{
	return e->host.len ? 0 : 1 + e->source;
}

/* The place of an unreadable part. */
struct cop_trace_fault {
	size_t source;
	uint64_t line;
	const char *why; /* static */
};

struct cop_trace_result {
	uint64_t events[COP_TRACE_KINDS]; /* records, not the spans that they stand for */
	uint64_t broken;                  /* lines or objects that could not be read */
	struct cop_trace_fault fault[COP_TRACE_NAMED]; /* the first of them, by file and line */
	unsigned faults;
	uint64_t omitted;               /* events with a phase that is not read */
	uint64_t omitted_phase[2];      /* a bit for each letter; the first: others */
	uint64_t unfinished, unmatched; /* begins without an end, ends without a begin */
	uint64_t names_lost;            /* definitions beyond COP_TRACE_NAMES_MAX */
	size_t traces;                  /* how many files are traces */
	int64_t first_ns, last_ns;      /* of all events with a time; first > last: there is none */
};

/* ---- files ---- */

struct cop_trace_files;

/* Takes files as given; walks directories, and takes the traces below them. A file that is found
 * twice is read once. Paths that do not exist or cannot be read are skipped and named in `notes`,
 * one line each. -ENOENT with a sentence if nothing is left; -E2BIG for more than
 * COP_TRACE_FILES_MAX; -ENOMEM. */
int cop_trace_files_new(char *const *path, size_t n, struct cop_trace_files **out,
	struct cop_buf *notes, struct cop_err *err);
void cop_trace_files_free(struct cop_trace_files *f);
/* The name of the file that an event's source stands for; valid as long as f. */
const char *cop_trace_files_name(const struct cop_trace_files *f, size_t source);
/* Removes the file at path, if it is in the list; returns whether it was. Call it before anything
 * is read. */
bool cop_trace_files_leave_out(struct cop_trace_files *f, const char *path);
/* Adds this to all times of a file, or of the files below a directory; returns the number of files.
 * Call it before anything is read. */
size_t cop_trace_files_shift(struct cop_trace_files *f, const char *path, int64_t ns);
/* The number of files in the list. */
size_t cop_trace_files_count(const struct cop_trace_files *f);
/* After a reading: adds a member `key`, an array of one object for each file that was not read, or
 * not wholly, in order of their names:
 * {"file":NAME,"why":SENTENCE,"whole":whether nothing of it was read,"broken":LINES OR EVENTS} */
void cop_trace_files_put_lost(const struct cop_trace_files *f, struct cop_json *j, const char *key);

/* ---- arguments ---- */

/* Iterates over the members of an object's text, such as args of an event. */
struct cop_trace_members {
	const char *at, *end;
};
struct cop_trace_members cop_trace_members_of(struct cop_trace_str object);
/* False at the end. The key is without quotes; key and value are otherwise as in the text. */
bool cop_trace_members_next(
	struct cop_trace_members *m, struct cop_trace_str *key, struct cop_trace_str *value);
/* The value of a member, as in the text; false if there is none. */
bool cop_trace_member(struct cop_trace_str object, const char *key, struct cop_trace_str *value);
/* The value as people read it: a string without quotes and with its escapes undone, for which room
 * is used (cleared first); anything else as in the text. */
struct cop_trace_str cop_trace_value_text(struct cop_trace_str value, struct cop_buf *room);
/* A number, in quotes or not: as a double, but whole numbers below 2^64 are exact. False if the
 * value is none. */
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

/* Called with events of one file on one of the threads; what they point to is valid during the call
 * only. worker < cop_trace_threads(conf->threads). One thread passes its batches one after the
 * other; the events of a file come in any order. A result other than 0 ends the reading and is
 * returned. */
typedef int cop_trace_batch(
	void *arg, unsigned worker, const struct cop_trace_event *event, size_t n);

/* The selection of events from a file with an index: other events may be omitted. Without an index,
 * all events are passed on. */
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
	/* Whether events with this name, category ... may be wanted; called by any thread. */
	bool (*word)(void *arg, unsigned what, struct cop_trace_str text);
	void *arg;
	unsigned words;         /* a bit for each for which word is asked */
	int64_t from_ns, to_ns; /* events that begin from then on, and not later than that */
	bool meta;              /* metadata are wanted, too */
};

struct cop_trace_conf {
	unsigned threads; /* the maximum; 0: as many as there are processors */
	bool names;       /* resolve hashes, which needs a pass over each file for its names */
	bool peek;        /* read only the first block of each file */
	bool args;        /* keep the text of args, and of other members (more) */
	bool who;         /* name the rank, process and thread of events: the same pass */
	bool unfinished;  /* pass on begins without an end, too */
	const struct cop_trace_pick *pick; /* NULL: all */
	cop_trace_batch *batch;            /* may be NULL */
	void *arg;
};

/* The number of threads that a reading will have. */
unsigned cop_trace_threads(unsigned threads);
/* Reads all files. Appends the faults of files to notes, one line each. 0; -ENODATA with a sentence
 * if no file is a trace; what batch returned; -ENOMEM. */
int cop_trace_read(struct cop_trace_files *f, const struct cop_trace_conf *conf,
	struct cop_trace_result *result, struct cop_buf *notes, struct cop_err *err);
/* Appends "FILE:LINE: WHY" for each named fault, how many there are, and how clocks were
 * corrected. */
void cop_trace_faults(const struct cop_trace_files *f, const struct cop_trace_result *result,
	struct cop_buf *out);

/* ---- indexes ---- */

/* The suffix of an index's file name. In directories, files with this suffix are not traces. */
#define COP_TRACE_INDEX_END ".copper-index"

enum cop_trace_indexed {
	COP_TRACE_INDEX_MADE,
	COP_TRACE_INDEX_CURRENT, /* there was one */
	COP_TRACE_INDEX_SMALL,   /* the file is so small that it needs none */
	COP_TRACE_INDEX_REFUSED  /* it can have none: why */
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
	double share; /* the size of an index, at most, as a share of its file's; 0 in all three:
			 the default */
	/* Called for each file, by one thread at a time. */
	void (*done)(void *arg, const struct cop_trace_index_result *r);
	void *arg;
};
/* Makes the indexes of all files: beside each, or in the cache directory. A reading uses an index
 * if it matches the file's present state. -ENOMEM; files that cannot have an index are not an
 * error. */
int cop_trace_index(
	struct cop_trace_files *f, const struct cop_trace_index_conf *conf, struct cop_err *err);

#endif
