/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry: a node's activity over time, in bounded memory: a time series of its counters, the
 * phases of its startup, and notable events. Each node merges the records of its subtree, and the
 * root writes three files; copper-formats(5) describes them and what large jobs omit.
 *
 * It has no thread, and reads the wall clock only for the start time of the job. The caller
 * schedules the samples and transports the sums. A sample costs a few microseconds; once enough
 * events of a kind are stored, another one costs one atomic addition.
 *
 * A struct cop_telemetry has its own lock, and makes no calls while holding it. Every function
 * accepts NULL, which disables telemetry. A struct cop_telemetry_sum is not thread-safe. */
#ifndef COP_PROF_TELEMETRY_H
#define COP_PROF_TELEMETRY_H

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "job/topo/topo.h"

/* ---- bounds ---- */

#define COP_TELEMETRY_INTERVALS 128u  /* per job, however long it runs */
#define COP_TELEMETRY_ALL_SERIES 256u /* larger jobs drop some nodes' series */
#define COP_TELEMETRY_ALL_NODES 4096u /* larger jobs drop some nodes' sums */
#define COP_TELEMETRY_OUTLIERS 8u /* nodes kept with the highest value of each of four metrics */
#define COP_TELEMETRY_EVENTS 64u  /* events per node */
#define COP_TELEMETRY_EVENTS_KIND 12u  /* per node and kind */
#define COP_TELEMETRY_EVENTS_JOB 1024u /* per job */
#define COP_TELEMETRY_DETAIL 256u      /* bytes, including the NUL; longer text is truncated */
/* Maximum size of an encoded sum in bytes. Typically about 1 MiB for 10,000 nodes that are always
 * busy. */
#define COP_TELEMETRY_ENCODED_MAX (16u << 20)

/* ---- contents ---- */

/* The phases of a node's startup, in order. */
enum cop_telemetry_phase {
	COP_TELEMETRY_PREPARE,
	COP_TELEMETRY_SECRET,
	COP_TELEMETRY_CACHE,
	COP_TELEMETRY_STORAGE,
	COP_TELEMETRY_FABRIC,
	COP_TELEMETRY_MOUNT,
	COP_TELEMETRY_BARRIER,
	COP_TELEMETRY_TELL,
	COP_TELEMETRY_PHASES
};

/* Highest priority first: a job keeps a limited number of events. */
enum cop_telemetry_kind {
	COP_TELEMETRY_FAILOVER,
	COP_TELEMETRY_PEER_DEAD,
	COP_TELEMETRY_PEER_LAGS,
	COP_TELEMETRY_PEER_BACK,
	COP_TELEMETRY_BUDGET_FULL,
	COP_TELEMETRY_FILE_CHANGED,
	COP_TELEMETRY_STORAGE_ERROR,
	COP_TELEMETRY_PREFETCH_BEGIN,
	COP_TELEMETRY_PREFETCH_END,
	COP_TELEMETRY_READY,
	COP_TELEMETRY_STOP,
	COP_TELEMETRY_KINDS
};

/* Per node and interval. The last two are maxima, the others sums. */
enum cop_telemetry_metric {
	COP_TELEMETRY_REQUESTS,
	COP_TELEMETRY_READ_BYTES,
	COP_TELEMETRY_WAIT_US, /* time spent waiting for the parent and for the storage */
	COP_TELEMETRY_PARENT_BYTES,
	COP_TELEMETRY_ORIGIN_OPERATIONS,
	COP_TELEMETRY_ORIGIN_BYTES,
	COP_TELEMETRY_SENT_BYTES,
	COP_TELEMETRY_CPU_US,
	COP_TELEMETRY_CACHE_BYTES,
	COP_TELEMETRY_RESIDENT_BYTES,
	COP_TELEMETRY_METRICS
};
#define COP_TELEMETRY_FIRST_PEAK COP_TELEMETRY_CACHE_BYTES

/* Per node, for the whole job. */
enum cop_telemetry_total {
	COP_TELEMETRY_ALL_REQUESTS,
	COP_TELEMETRY_ALL_READ_BYTES,
	COP_TELEMETRY_ALL_WAIT_PARENT_US,
	COP_TELEMETRY_ALL_WAIT_ORIGIN_US,
	COP_TELEMETRY_ALL_PARENT_BYTES,
	COP_TELEMETRY_ALL_ORIGIN_OPERATIONS,
	COP_TELEMETRY_ALL_ORIGIN_BYTES,
	COP_TELEMETRY_ALL_SENT_BYTES,
	COP_TELEMETRY_ALL_FAILOVERS,
	COP_TELEMETRY_ALL_EVICTIONS,
	COP_TELEMETRY_ALL_AHEAD_BYTES,
	COP_TELEMETRY_ALL_FROM_OWN_BYTES,
	COP_TELEMETRY_ALL_FROM_NODES_BYTES,
	COP_TELEMETRY_ALL_FROM_PASSED_BYTES,
	COP_TELEMETRY_ALL_FROM_DISK_BYTES,
	COP_TELEMETRY_ALL_FROM_PACK_BYTES,
	COP_TELEMETRY_ALL_FROM_STORAGE_BYTES,
	COP_TELEMETRY_ALL_CPU_US,
	COP_TELEMETRY_CACHE_PEAK_BYTES,
	COP_TELEMETRY_CACHE_LIMIT_BYTES,
	COP_TELEMETRY_RESIDENT_PEAK_BYTES,
	COP_TELEMETRY_TOTALS
};

/* Names for the files: "fabric", "peer_dead". */
const char *cop_telemetry_phase_name(enum cop_telemetry_phase phase);
const char *cop_telemetry_kind_name(enum cop_telemetry_kind kind);

/* ---- one node ---- */

struct cop_telemetry;

/* started_ns: cop_now_ns when the node started. Returns NULL if out of memory. */
struct cop_telemetry *cop_telemetry_new(uint64_t started_ns);
void cop_telemetry_free(struct cop_telemetry *t);

/* Thread-safe functions: */

/* Marks the end of a phase, which began at the previous call or at the start of the node. */
void cop_telemetry_phase(struct cop_telemetry *t, enum cop_telemetry_phase phase);
/* Sets the start time of the job: on this node's monotonic clock (negative if the host booted
 * later), and in ns since 1970. Defaults to the start of this node. */
void cop_telemetry_began(struct cop_telemetry *t, int64_t mono_ns, int64_t unix_ns);
/* Records an event at the current time, unless it is identical to the previous one of its kind. */
void cop_telemetry_event(struct cop_telemetry *t, enum cop_telemetry_kind kind, const char *fmt,
	...) COP_PRINTF(3, 4);
/* Takes a sample. used_bytes and limit_bytes describe the cache. Handles counters that were reset
 * since the last sample. */
void cop_telemetry_look(struct cop_telemetry *t, const struct cop_stats *stats, uint64_t used_bytes,
	uint64_t limit_bytes);
/* The sampling interval in ms: one second at first, longer as the job runs on. */
unsigned cop_telemetry_pause_ms(struct cop_telemetry *t);

/* ---- a subtree ---- */

/* Times are microseconds since the start of the job. */
struct cop_telemetry_node {
	uint32_t rank;
	int64_t start_us, ready_us, stopped_us;
	uint64_t phase_us[COP_TELEMETRY_PHASES];
	uint64_t total[COP_TELEMETRY_TOTALS];
	/* One row per interval; NULL if only the sums were kept. */
	unsigned intervals;
	uint64_t (*series)[COP_TELEMETRY_METRICS];
};

struct cop_telemetry_event {
	int64_t at_us;
	uint32_t rank;
	enum cop_telemetry_kind kind;
	const char *detail; /* one line; may be empty */
};

struct cop_telemetry_sum;

/* An empty sum for a job of this many nodes; the number determines how much detail is kept. NULL:
 * out of memory. */
struct cop_telemetry_sum *cop_telemetry_sum_new(uint32_t job_nodes);
/* An empty sum for the same job. */
struct cop_telemetry_sum *cop_telemetry_sum_like(const struct cop_telemetry_sum *s);
void cop_telemetry_sum_free(struct cop_telemetry_sum *s); /* s may be NULL */
/* Adds this node's records, at the end of its life. Adds nothing if t is NULL. 0, or -ENOMEM with s
 * unchanged. */
int cop_telemetry_sum_add(struct cop_telemetry_sum *s, struct cop_telemetry *t, uint32_t rank);
/* Adds `from`, which stays unchanged. 0; -ENOMEM; -EEXIST: both contain the same rank; -EINVAL:
 * they belong to different jobs, or have more nodes between them than the job. On error, `into` is
 * unchanged. */
int cop_telemetry_merge(struct cop_telemetry_sum *into, const struct cop_telemetry_sum *from);
/* Call after adding the last node. Drops the rows of nodes that are not outliers, and sorts the
 * events. */
void cop_telemetry_finish(struct cop_telemetry_sum *s);

/* The number of nodes in the sum, including those without a row. */
uint32_t cop_telemetry_sum_nodes(const struct cop_telemetry_sum *s);
/* Start time of the job, in ns since 1970. */
int64_t cop_telemetry_sum_unix_ns(const struct cop_telemetry_sum *s);
/* The length of an interval in seconds. */
uint64_t cop_telemetry_sum_seconds(const struct cop_telemetry_sum *s);
/* The i-th node that has a row, in order of rank, and the i-th event, in order of time once the sum
 * is finished. NULL past the end. Owned by the sum. */
const struct cop_telemetry_node *cop_telemetry_sum_node(
	const struct cop_telemetry_sum *s, size_t i);
const struct cop_telemetry_event *cop_telemetry_sum_event(
	const struct cop_telemetry_sum *s, size_t i);
/* Number of dropped events. */
uint64_t cop_telemetry_sum_dropped(const struct cop_telemetry_sum *s);

/* ---- encoding ---- */

/* Appends at most COP_TELEMETRY_ENCODED_MAX bytes. */
void cop_telemetry_encode(const struct cop_telemetry_sum *s, struct cop_buf *out);
/* Decodes untrusted bytes in the format that cop_telemetry_encode writes. -EBADMSG, -ENOMEM. */
int cop_telemetry_decode(const void *data, size_t len, struct cop_telemetry_sum **out);

/* ---- the files ---- */

struct cop_telemetry_job {
	struct cop_topo topo;
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};
/* Writes cluster_telemetry.csv, cluster_nodes.csv and cluster_events.csv from a finished sum into
 * dir, creating it if needed. Each file is written atomically. 0, or -errno with a message. */
int cop_telemetry_write(const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job,
	const char *dir, struct cop_err *err);

#endif
