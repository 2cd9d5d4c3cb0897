/* SPDX-License-Identifier: BSD-3-Clause */
/* telemetry: the activity of a node over time, in bounded memory: a series of its counters, the
 * phases of its start, and notable events. The records of a subtree are merged on the way up the
 * tree, and the root writes three files; copper-formats(5) describes them and the omissions for
 * large jobs.
 *
 * It has no thread, and reads the host's clock only for the start of the job: the caller schedules
 * the samples. A sample costs some microseconds; an event costs one atomic addition once enough of
 * its kind are stored. The caller also transports the sums.
 *
 * A struct cop_telemetry has its own lock, under which nothing is called; NULL disables telemetry,
 * and is accepted everywhere. A struct cop_telemetry_sum is not thread-safe. */
#ifndef COP_PROF_TELEMETRY_H
#define COP_PROF_TELEMETRY_H

#include "base/base/base.h"
#include "prof/stats/stats.h"
#include "job/topo/topo.h"

/* ---- bounds ---- */

#define COP_TELEMETRY_INTERVALS 128u   /* per job of any duration */
#define COP_TELEMETRY_ALL_SERIES 256u  /* all series are kept up to this many nodes */
#define COP_TELEMETRY_ALL_NODES 4096u  /* all sums are kept up to this many nodes */
#define COP_TELEMETRY_OUTLIERS 8u      /* nodes kept for each of four values: the highest */
#define COP_TELEMETRY_EVENTS 64u       /* events per node */
#define COP_TELEMETRY_EVENTS_KIND 12u  /* per node and kind */
#define COP_TELEMETRY_EVENTS_JOB 1024u /* per job */
#define COP_TELEMETRY_DETAIL 256u      /* bytes including the NUL; longer details are truncated */
/* Maximum size of an encoded sum in bytes. About 1 MiB for 10,000 constantly busy nodes. */
#define COP_TELEMETRY_ENCODED_MAX (16u << 20)

/* ---- contents ---- */

/* The phases of the start, in order. */
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

/* In order of decreasing priority for a job's limited number of events. */
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

/* Per node and interval: sums, except for the last two, which are maxima. */
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

/* started_ns: cop_now_ns at the start of the node. NULL: out of memory. */
struct cop_telemetry *cop_telemetry_new(uint64_t started_ns);
void cop_telemetry_free(struct cop_telemetry *t);

/* Thread-safe functions: */

/* A phase has ended: its duration is the time since the last call, or since the start. */
void cop_telemetry_phase(struct cop_telemetry *t, enum cop_telemetry_phase phase);
/* Sets the start time of the job: on this node's monotonic clock (negative if the host booted
 * later), and in ns since 1970. The default is the start of this node. */
void cop_telemetry_began(struct cop_telemetry *t, int64_t mono_ns, int64_t unix_ns);
/* Records an event with the current time, unless it is identical to the last one of its kind. */
void cop_telemetry_event(struct cop_telemetry *t, enum cop_telemetry_kind kind, const char *fmt,
	...) COP_PRINTF(3, 4);
/* Samples the counters. used_bytes and its limit are the cache's. Counters that were reset since
 * the last sample count from zero. */
void cop_telemetry_look(struct cop_telemetry *t, const struct cop_stats *stats, uint64_t used_bytes,
	uint64_t limit_bytes);
/* The sampling interval in ms: a second at first, longer in long jobs. */
unsigned cop_telemetry_pause_ms(struct cop_telemetry *t);

/* ---- a subtree ---- */

/* Times are microseconds since the start of the job. */
struct cop_telemetry_node {
	uint32_t rank;
	int64_t start_us, ready_us, stopped_us;
	uint64_t phase_us[COP_TELEMETRY_PHASES];
	uint64_t total[COP_TELEMETRY_TOTALS];
	/* Rows of COP_TELEMETRY_METRICS numbers, one per interval; NULL: only the sums were kept.
	 * */
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

/* An empty sum for a job of this many nodes, which determines how much is kept. NULL: out of
 * memory. */
struct cop_telemetry_sum *cop_telemetry_sum_new(uint32_t job_nodes);
/* An empty sum for the same job. */
struct cop_telemetry_sum *cop_telemetry_sum_like(const struct cop_telemetry_sum *s);
void cop_telemetry_sum_free(struct cop_telemetry_sum *s); /* s may be NULL */
/* Adds this node's records, at its end. t NULL: adds nothing. 0, or -ENOMEM with s unchanged. */
int cop_telemetry_sum_add(struct cop_telemetry_sum *s, struct cop_telemetry *t, uint32_t rank);
/* Adds from, which is unchanged. 0; -ENOMEM; -EEXIST: both contain the same rank; -EINVAL: they
 * belong to different jobs, or together have more nodes than the job. On error, into is unchanged.
 * */
int cop_telemetry_merge(struct cop_telemetry_sum *into, const struct cop_telemetry_sum *from);
/* Call after the last node was added: drops the rows of nodes that are not outliers, and sorts the
 * events. */
void cop_telemetry_finish(struct cop_telemetry_sum *s);

/* The number of nodes in the sum, including those without a row. */
uint32_t cop_telemetry_sum_nodes(const struct cop_telemetry_sum *s);
/* Start time of the job, in ns since 1970. */
int64_t cop_telemetry_sum_unix_ns(const struct cop_telemetry_sum *s);
/* The length of an interval in seconds. */
uint64_t cop_telemetry_sum_seconds(const struct cop_telemetry_sum *s);
/* The i-th node with a row, by rank, and the i-th event, by time once the sum is finished; NULL
 * beyond the last. Owned by the sum. */
const struct cop_telemetry_node *cop_telemetry_sum_node(
	const struct cop_telemetry_sum *s, size_t i);
const struct cop_telemetry_event *cop_telemetry_sum_event(
	const struct cop_telemetry_sum *s, size_t i);
/* Number of dropped events. */
uint64_t cop_telemetry_sum_dropped(const struct cop_telemetry_sum *s);

/* ---- encoding ---- */

/* Appends at most COP_TELEMETRY_ENCODED_MAX bytes. */
void cop_telemetry_encode(const struct cop_telemetry_sum *s, struct cop_buf *out);
/* Decodes untrusted bytes in the format of encode. -EBADMSG, -ENOMEM. */
int cop_telemetry_decode(const void *data, size_t len, struct cop_telemetry_sum **out);

/* ---- the files ---- */

struct cop_telemetry_job {
	struct cop_topo topo;
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};
/* Writes cluster_telemetry.csv, cluster_nodes.csv and cluster_events.csv from a finished sum, each
 * one atomically, into dir, which is created. 0, or -errno with a sentence. */
int cop_telemetry_write(const struct cop_telemetry_sum *s, const struct cop_telemetry_job *job,
	const char *dir, struct cop_err *err);

#endif
