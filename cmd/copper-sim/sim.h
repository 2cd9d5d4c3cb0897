/* SPDX-License-Identifier: BSD-3-Clause */
/* copper-sim: simulates the cost of a cold start of a program on N nodes, on a virtual clock.
 *
 * Real, on each of the N nodes: topo, tree/fetch and cache, linked from the same objects as
 * copper, with the wire formats of their requests, the byte budget, in-flight requests, a root's
 * groups, failover to the next ancestor, and their calls of rpc.h and origin.h.
 *
 * Modelled, in this directory: the implementation of rpc.h (fabric.c: processors, latency,
 * bandwidth, dead nodes; no sessions, no loss); the implementation of origin.h (origin.c: a
 * root's operations and the storage that serves them); and the program with its mount (node.c:
 * the requests of a recorded trace, each with the recorded delay after the preceding reply). The
 * prefetch of a manifest is modelled on internal/tree/prefetch, with its windows. Speculative
 * requests (bundles) are not simulated but recorded, with the messages in which they were sent
 * and the times at which the program used the results.
 *
 * Bytes are counted, not stored (memory.c): a chunk is an address without memory, its checksum
 * is a constant, and all nodes share one copy of a listing, which is a header and zeros. So
 * nothing is compressed. Everything happens on one thread, and the same seed gives the same
 * output. */
#ifndef COP_SIM_H
#define COP_SIM_H

#include "base/base/base.h"
#include "storage/model/model.h"
#include "tree/fetch/fetch.h"

/* ---- trace.c: a program's requests ---- */

#define SIM_CHUNK COP_MIB /* as in the recorded traces */
#define SIM_VERSION 2     /* of every file and directory; even: not young */

struct sim_line {
	enum cop_ask_kind kind; /* 0: the end of the program */
	int32_t after;          /* the line whose reply it follows; -1: the start */
	bool waited;
	bool background, first; /* as in struct cop_ask */
	bool joined;            /* sent in the same message as the previous line */
	bool use;               /* uses the reply to another line */
	uint64_t think_ns, bytes, size, index;
	uint32_t calls;
	int ret;
	const char *path;
	int32_t nth_chunk;      /* index among the lines that request a chunk */
	int32_t dir;            /* the line with the listing of its directory, or -1 */
	int32_t follower, next; /* follower: the first line that follows this one; next: the next
				   line with the same predecessor */
	void *blob;             /* the reply, unless it is a chunk */
};

struct sim_trace {
	struct sim_line *line;
	struct sim_line **sorted;          /* lines that are not uses, by kind and path */
	int32_t lines, asked, first;       /* asked: in sorted; first: of those after the start */
	int32_t *chunk, chunks;            /* the lines that request a chunk */
	uint64_t direct_ops, direct_bytes; /* of a client without Copper; 0: unknown */
	uint64_t think_ns; /* run time of the program if all replies were immediate */
	char *text;
};
/* Reads the recordings of a file: without bundles, and with them (no lines if there are none).
 * Returns 0, or -errno with a message that names the file and the line. */
int cop_sim_trace_read(const char *file, struct sim_trace trace[2], struct cop_err *err);
/* Creates the replies. Call it after each cop_sim_memory_reset. */
void cop_sim_trace_answers(struct sim_trace *t);
void cop_sim_trace_free(struct sim_trace trace[2]);
/* The line whose chunk a node requests in place of this line's, in an order specific to the node;
 * the line itself if it does not request a chunk. */
const struct sim_line *cop_sim_trace_shuffled(
	const struct sim_trace *t, const struct sim_line *l, uint64_t seed);
/* The line of this request; NULL if there is none. */
const struct sim_line *cop_sim_trace_find(
	const struct sim_trace *t, enum cop_ask_kind kind, const char *path);

/* ---- event.c: the clock ---- */

typedef void sim_fn(void *arg, uint64_t value);
uint64_t cop_sim_now(void);
/* Calls fn(arg, value) at this time, or now if it has passed. Events at the same time run in the
 * order of these calls. */
void cop_sim_at(uint64_t time_ns, sim_fn *fn, void *arg, uint64_t value);
/* Runs until no events remain. The clock starts at 0. */
void cop_sim_run(void);
uint64_t cop_sim_events(void);
void cop_sim_clock_reset(void);
/* A reproducible random number below limit, for the n-th draw of this kind. */
uint64_t cop_sim_draw(uint64_t seed, uint64_t kind, uint64_t n, uint64_t limit);
/* Like calloc, but exits if memory is short. */
void *cop_sim_alloc(size_t count, size_t bytes);

/* ---- memory.c ---- */

void cop_sim_memory_reset(void);
/* Zeroed bytes that cop_cache_release ignores. They are valid until the reset, which also unmaps
 * the tables of all nodes. */
void *cop_sim_memory_blob(size_t bytes);
/* Whether data is such a blob, or a chunk. */
bool cop_sim_memory_shared(const void *data);

/* ---- a run ---- */

struct sim_conf {
	struct cop_topo topo;
	bool manifest, bundle; /* bundle: trace is the recording with bundles */
	bool shuffle;          /* each node requests the chunks in its own order */
	uint64_t skew_ns;
	uint64_t die_per_million; /* nodes per million that die, per second */
	uint64_t die_within_ns;   /* or in total, within this time; 0: per second */
	uint64_t seed;
	struct cop_model model;
	struct sim_trace *trace;
};

struct sim_result {
	uint64_t first_ns, median_ns, last_ns; /* when the nodes' programs ended; 0: none */
	uint64_t waiting_ns;                   /* the longest total wait of any program */
	uint32_t finished, died;
	uint64_t storage_ops, storage_bytes; /* system calls of all roots */
	uint64_t storage_clients;
	uint64_t requests, messages, failovers; /* several requests may share a message */
	uint64_t bundle_bytes, bundle_used_bytes;
	uint64_t link_bytes, node_bytes,
		bytes;        /* of the busiest link, sent by the busiest node, and in total */
	uint64_t cache_bytes; /* maximum on one node */
	uint64_t events;
	double wall_s;
	uint64_t process_bytes; /* of the simulator's process, per node */
};

struct cop_rpc {
	struct sim_node *node;
	uint64_t processor_free, out_free, in_free; /* ns */
	uint64_t out_bytes;
	struct cop_list served; /* requests that this node has to answer */
	unsigned corked;        /* requests for batch_rank share a message */
	uint32_t batch_rank;    /* COP_TOPO_NONE: nothing sent yet */
	uint32_t *dead;         /* ranks that this node has found dead */
	unsigned dead_count;
};

struct origin_pool;
struct cop_origin {
	struct sim_node *node;
	struct origin_pool *pool; /* NULL: never used */
	bool background;
};

struct sim_node {
	struct sim *sim;
	uint32_t rank;
	struct cop_cache *cache;
	struct cop_fetch *fetch;
	struct cop_rpc rpc;
	struct cop_origin origin,
		behind; /* behind: a handle of the same origin, for background work */
	uint64_t begin_ns, end_ns, dies_ns; /* end 0: not ended; dies UINT64_MAX: never */
	struct sim_prefetch *prefetch;
};

/* Between two nodes, in either direction. */
struct sim_link {
	uint64_t pair; /* the higher rank and the lower one; 0: an empty slot */
	uint64_t bytes, free_ns;
};

struct sim {
	struct sim_conf conf;
	struct sim_node *node;
	struct cop_stats stats; /* summed over all nodes */
	struct {
		struct sim_link *slot; /* hash table of the links in use */
		size_t slots, used;
	} links;
	uint64_t busiest_link_bytes;
	uint64_t requests, messages;
	struct cop_model_storage storage;
	uint64_t storage_ops, storage_bytes;
};

static inline bool cop_sim_is_dead(const struct sim_node *n)
{
	return cop_sim_now() >= n->dies_ns;
}

/* The memory of this machine that a run needs, in bytes, rounded up. */
uint64_t cop_sim_memory_needed(const struct sim_conf *conf);
void cop_sim_simulate(const struct sim_conf *conf, struct sim_result *out);
/* The time of the slowest node if all nodes run the same program without Copper. */
double cop_sim_direct_s(const struct sim_conf *conf);

/* link.c */
/* The link between two different ranks; valid until the next call. */
struct sim_link *cop_sim_link(struct sim *s, uint32_t a, uint32_t b);
void cop_sim_links_free(struct sim *s);

/* fabric.c */
void cop_sim_fabric_open(struct sim_node *n);
void cop_sim_fabric_close(struct sim_node *n);
/* Called when the node dies. */
void cop_sim_fabric_died(struct sim_node *n);
/* origin.c */
void cop_sim_storage_open(struct sim *s);
void cop_sim_storage_close(struct sim *s);
void cop_sim_origin_close(struct sim_node *n);
/* node.c */
void cop_sim_node_start(struct sim_node *n);
int cop_sim_manifest(void *ctx, uint64_t index, void **data, size_t *len);
/* prefetch.c */
void cop_sim_prefetch_start(struct sim_node *n);
void cop_sim_prefetch_free(struct sim_node *n);

#endif
