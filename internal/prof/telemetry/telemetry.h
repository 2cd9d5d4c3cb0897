/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry: the activity of a node over time, in bounded memory: a series of its counters, the
 * phases of its start, and its notable events. The records of a subtree are merged on the way up
 * the tree, and the root writes three files; copper-formats(5) describes them and what large jobs
 * omit.
 *
 * It has no thread, and reads no host clock except for the start of the job: the caller decides
 * when to sample the counters. A sample costs some microseconds; an event costs one atomic addition
 * once enough of its kind are kept. Sending the sums is the caller's task.
 *
 * A struct cop_telemetry has its own lock, under which nothing is called; NULL stands for a node
 * without telemetry, and is accepted everywhere. A struct cop_telemetry_sum belongs to one thread.
 * */
#ifndef COP_PROF_TELEMETRY_H
#define COP_PROF_TELEMETRY_H

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "job/topo/topo.h"

/* ---- bounds ---- */

#define COP_TELEMETRY_INTERVALS 128u  /* of a job, however long it lasts */
#define COP_TELEMETRY_ALL_SERIES 256u /* up to this many nodes, all series are kept */
#define COP_TELEMETRY_ALL_NODES 4096u /* up to this many nodes, the sums of each are kept */
#define COP_TELEMETRY_OUTLIERS 8u     /* nodes that are kept for each of four values: the highest */
#define COP_TELEMETRY_EVENTS 64u      /* events of a node, */
#define COP_TELEMETRY_EVENTS_KIND 12u /* of one kind on a node, */
#define COP_TELEMETRY_EVENTS_JOB 1024u /* and of a job */
#define COP_TELEMETRY_DETAIL 256u      /* bytes, with the null; longer ones are cut */
/* Bytes of an encoded sum. For 10,000 nodes that are all busy all the time it is about 1 MiB. */
#define COP_TELEMETRY_ENCODED_MAX (16u << 20)

/* ---- what is kept ---- */

/* The phases of the start, in this order. */
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

/* The most important ones come first: the job keeps them longest. */
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

/* For a node in an interval: sums, except for the last two, which are maxima. */
enum cop_telemetry_metric {
	COP_TELEMETRY_REQUESTS,
	COP_TELEMETRY_READ_BYTES,
	COP_TELEMETRY_WAIT_US, /* waiting for the parent and for the storage */
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

/* For a node in the whole job. */
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

/* The names in the files: "fabric", "peer_dead". */
const char *cop_telemetry_phase_name(enum cop_telemetry_phase phase);
const char *cop_telemetry_kind_name(enum cop_telemetry_kind kind);

/* ---- one node ---- */

struct cop_telemetry;

/* started_ns: cop_now_ns when the node began. NULL: out of memory. */
struct cop_telemetry *cop_telemetry_new(uint64_t started_ns);
void cop_telemetry_free(struct cop_telemetry *t);

/* Any thread may call all of these. */

/* This phase has just ended: it took the time since the last call, or since the start. */
void cop_telemetry_phase(struct cop_telemetry *t, enum cop_telemetry_phase phase);
/* Sets when the job began: by this node's monotonic clock (negative if that is before it was
 * started), and in ns since 1970. Until this is called, the start of this node counts as the start
 * of the job. */
void cop_telemetry_began(struct cop_telemetry *t, int64_t mono_ns, int64_t unix_ns);
/* Records an event at the present time. An event identical to the last one of its kind is dropped.
 * */
void cop_telemetry_event(struct cop_telemetry *t, enum cop_telemetry_kind kind, const char *fmt,
	...) COP_PRINTF(3, 4);
/* Samples the counters. used_bytes and its limit are the cache's. Counters that were reset since
 * the last sample count from zero. */
void cop_telemetry_look(struct cop_telemetry *t, const struct cop_stats *stats, uint64_t used_bytes,
	uint64_t limit_bytes);
/* The ms between samples: a second at first, longer in longer jobs. */
unsigned cop_telemetry_pause_ms(struct cop_telemetry *t);

/* ---- a subtree ---- */

/* Times are microseconds since the start of the job. */
struct cop_telemetry_node {
	uint32_t rank;
	int64_t start_us, ready_us, stopped_us;
	uint64_t phase_us[COP_TELEMETRY_PHASES];
	uint64_t total[COP_TELEMETRY_TOTALS];
	/* Rows of COP_TELEMETRY_METRICS numbers, one per interval; NULL: only the sums are kept. */
	unsigned intervals;
	uint64_t (*series)[COP_TELEMETRY_METRICS];
};

struct cop_telemetry_event {
	int64_t at_us;
	uint32_t rank;
	enum cop_telemetry_kind kind;
	const char *detail; /* one line, perhaps empty */
};

struct cop_telemetry_sum;

/* The sum of a job of this many nodes, which decides what is kept. NULL: out of memory. */
struct cop_telemetry_sum *cop_telemetry_sum_new(uint32_t job_nodes);
/* An empty one of the same job. */
struct cop_telemetry_sum *cop_telemetry_sum_like(const struct cop_telemetry_sum *s);
void cop_telemetry_sum_free(struct cop_telemetry_sum *s); /* NULL is fine */
/* Adds what this node has recorded so far, at its end. t NULL: adds nothing. 0, or -ENOMEM with s
 * unchanged. */
int cop_telemetry_sum_add(struct cop_telemetry_sum *s, struct cop_telemetry *t, uint32_t rank);
/* Adds from, which is not changed. 0; -ENOMEM; -EEXIST: both contain the same rank; -EINVAL: they
 * belong to different jobs, or have more nodes together than the job. After an error into is
 * unchanged. */
int cop_telemetry_merge(struct cop_telemetry_sum *into, const struct cop_telemetry_sum *from);
/* Call it when all nodes have been added: drops the rows of nodes that are not outliers, and sorts
 * the events. */
void cop_telemetry_finish(struct cop_telemetry_sum *s);

/* The number of nodes in the sum, including those without a row. */
uint32_t cop_telemetry_sum_nodes(const struct cop_telemetry_sum *s);
/* When the job began, in ns since 1970. */
int64_t cop_telemetry_sum_unix_ns(const struct cop_telemetry_sum *s);
/* The length of an interval in seconds. */
uint64_t cop_telemetry_sum_seconds(const struct cop_telemetry_sum *s);
/* The i-th node that has a row, by rank, and the i-th event, by time once the sum is finished;
 * NULL: there are no more. The sum owns them. */
const struct cop_telemetry_node *cop_telemetry_sum_node(
	const struct cop_telemetry_sum *s, size_t i);
const struct cop_telemetry_event *cop_telemetry_sum_event(
	const struct cop_telemetry_sum *s, size_t i);
/* The number of events that were left out. */
uint64_t cop_telemetry_sum_dropped(const struct cop_telemetry_sum *s);

/* ---- encoding ---- */

/* Appends at most COP_TELEMETRY_ENCODED_MAX bytes. */
void cop_telemetry_encode(const struct cop_telemetry_sum *s, struct cop_buf *out);
/* Accepts untrusted bytes, in the form that encode writes. -EBADMSG, -ENOMEM. */
int cop_telemetry_decode(const void *data, size_t len, struct cop_telemetry_sum **out);

/* ---- the files ---- */

struct cop_telemetry_job {
	struct cop_topo topo;
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};
/* Writes cluster_telemetry.csv, cluster_nodes.csv and cluster_events.csv from a finished sum, each
 * whole or not at all, into dir, which is created. 0, or -errno with a sentence. */
int cop_telemetry_write(const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job,
	const char *dir, struct cop_err *err);

#endif
