/* SPDX-License-Identifier: BSD-3-Clause */
/* tracer: records this node's events in JOBDIR/trace/<host>-<pid>.pfw.gz, in the trace format of
 * copper-trace(1) and copper-formats(5).
 *
 * A thread that reports an event copies it into its own ring, without a lock or an allocation, and
 * with a system call only when the ring becomes half full. A single thread writes the file. If a
 * ring is full, the event is lost; the file says how many were. Memory is bounded: a ring of
 * COP_TRACER_RING_BYTES for each of at most COP_TRACER_RINGS threads, two member buffers, and the
 * hashes of names already written. The file has a size limit; events beyond it are only counted. If
 * a write fails, the trace ends with one line in the log.
 *
 * Every function accepts a NULL tracer, and then does nothing. */
#ifndef COP_PROF_TRACER_H
#define COP_PROF_TRACER_H

#include "base/base/base.h"

#define COP_TRACER_RING_BYTES (256 * COP_KIB)
#define COP_TRACER_RINGS 256u
#define COP_TRACER_MEMBER_BYTES COP_MIB /* of uncompressed text */
#define COP_TRACER_LIMIT_MIN (64 * COP_KIB)
#define COP_TRACER_ARGS_MAX 8u

struct cop_tracer;

/* Both may be NULL. */
struct cop_tracer_hooks {
	/* Called about once a second on the tracer's thread, to report counters with
	 * cop_tracer_event and for other periodic work. */
	void (*second)(void *ctx);
	/* Called on the same thread during cop_tracer_stop, to report the counters again, so that
	 * every trace has some and ends with the final sums. */
	void (*last)(void *ctx);
	void *ctx;
};

struct cop_tracer_conf {
	const char *job_dir; /* absolute and guarded (base.h); all strings are copied */
	const char *host;
	const char *source; /* file names are relative to it */
	int pid;
	uint32_t rank;
	uint64_t limit; /* maximum size of the file in bytes, at least COP_TRACER_LIMIT_MIN */
	struct cop_tracer_hooks hooks;
};

enum cop_tracer_phase {
	COP_TRACER_POSIX,   /* a request of a program; X, cat POSIX */
	COP_TRACER_SPAN,    /* work of the node itself; X, cat copper */
	COP_TRACER_LEAVES,  /* a request to another node is sent; s; the first argument is its id */
	COP_TRACER_ARRIVES, /* that request arrives; f */
	COP_TRACER_COUNTER, /* C */
};

/* A text, or a number if text is NULL. Both pointers refer to constants. */
struct cop_tracer_arg {
	const char *key, *text;
	int64_t value;
};

struct cop_tracer_event {
	enum cop_tracer_phase phase;
	const char *name;          /* a constant */
	uint64_t begin_ns, end_ns; /* from cop_now_ns; end_ns only for spans */
	uint32_t tid;              /* 0: this thread */
	const char *path;          /* a file, relative to the source, or NULL */
	size_t path_len;           /* truncated to 4096 */
	const struct cop_tracer_arg *arg;
	unsigned args; /* at most COP_TRACER_ARGS_MAX */
};

/* Creates the file and starts the thread. -errno with a sentence. */
int cop_tracer_start(
	const struct cop_tracer_conf *conf, struct cop_tracer **out, struct cop_err *err);
/* Writes the remaining events. Only hooks.last may still report events. If the job directory's file
 * system does not respond within 3 s, gives up on the end of the trace and logs that. No hook is
 * called after this returns. t may be NULL. */
void cop_tracer_stop(struct cop_tracer *t);

/* Any thread. Records an event. */
void cop_tracer_event(struct cop_tracer *t, const struct cop_tracer_event *e);
/* This thread's number in events. */
uint32_t cop_tracer_tid(void);
/* The current time as used in events, in microseconds since 1970: the real-time clock at the start,
 * plus elapsed monotonic time, so that it never jumps. */
int64_t cop_tracer_now_us(const struct cop_tracer *t);
/* Records that this node's clock is offset_us microseconds ahead of rank 0's, as measured with a
 * round trip of rtt_us. */
void cop_tracer_clock(struct cop_tracer *t, int64_t offset_us, int64_t rtt_us);

#endif
