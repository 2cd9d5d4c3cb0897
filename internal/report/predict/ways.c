/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates the startup time of each method.
 *
 * Direct: each node looks up every name, lists every directory, and opens and reads every file, one
 * operation at a time. A recording does not contain absent names, so their number is estimated.
 * Image: each node copies it with one reader, then programs read it through FUSE. sbcast: one node
 * reads the image through page faults and broadcasts it. Copper: rank 0 fetches what the recording
 * lists within its prefetch windows, and the bytes travel down the tree. The last job's pack is
 * either on the source's storage, or on another file system with a known bandwidth, where it costs
 * no storage operations. */
#include "report/predict/predict_priv.h"

const char *const cop_predict_name[COP_PREDICT_WAYS] = {"direct", "image", "sbcast", "copper"};

/* Per listed directory: a lookup, an open, two reads, and one absent name. */
#define DIRECTORY_OPS 5.0
/* Per file: a lookup and an open. */
#define FILE_OPS 2.0
/* Rank 0, per listing: an open and two reads, then the attributes of its names. */
#define LISTING_OPS 3u
/* With a pack: the attributes of the directory and of each needed name in it, and reads of the pack
 * in pieces. */
#define PACK_LISTING_OPS 1u
#define PACK_READ (2.0 * COP_MIB)
/* Rank 0's CPU cost of extracting and checking data from a pack: for 66 MB in 1,497 pieces on a
 * local disk, copper mount took 0.12 s of CPU time, and 0.01 s without a pack. */
#define PACK_MB_PER_S 600.0
/* A program's request through FUSE that the node's cache answers: first reads of small files took
 * 42 and 51 us with two processors. */
#define REQUEST_S 45e-6
/* The sum of the prefetch windows for listings and chunks. */
#define WINDOW (32u + 16u)
#define ROUNDS_MOST 20000u
/* A page fault in a mapped file reads 64 KiB (kernel read-around). */
#define FAULT_BYTES (64.0 * 1024)
/* Measured on one processor (man/measurements.md): the time until a mount is ready, the fixed cost
 * of sbcast, and the cost per byte of unpacking an image and of reading it through FUSE. */
#define COPPER_MOUNT_S 0.03 /* 0.02, and 0.01 for copper run's view */
#define IMAGE_MOUNT_S 0.04
#define SBCAST_S 0.2
#define UNPACK_MB_PER_S 200.0
/* The measured fraction of receiving and sending that does not overlap rank 0's fetches. */
#define BEHIND 0.5
/* Children per node, the default of --fanout. */
#define FANOUT 4u

/* Scales CPU time if the nodes share processors. */
static double shared_s(const struct cop_predict_job *j, uint32_t nodes, double s)
{
	return j->processors && nodes > j->processors ? s * nodes / j->processors : s;
}

static void fill_model(const struct cop_predict_job *j, struct cop_model *m)
{
	cop_model_default(m);
	m->storage_slots =
		j->storage->slots > 0 ? (uint64_t)COP_MAX(j->storage->slots + 0.5, 1.0) : 0;
	m->storage_mb_per_s = (uint64_t)COP_MAX(j->storage->mb_per_s, 1.0);
}

/* ---- clients of the storage ---- */

/* The program's operations other than reads. */
static double metadata_of(const struct cop_predict_needs *n)
{
	return DIRECTORY_OPS * (double)n->directories + (double)n->names +
	       FILE_OPS * (double)n->files;
}

static void add_direct(const struct cop_predict_job *j, const struct cop_model *m, uint32_t nodes,
	struct cop_predict_row *out)
{
	const struct cop_predict_needs *n = j->needs;
	double metadata = metadata_of(n);
	struct cop_model_client c = {.ops_s = (metadata * j->storage->metadata_us +
						      (double)n->reads * j->storage->read_us) /
					      1e6,
		.bytes = (double)n->bytes,
		.own_s = shared_s(j, nodes, j->own_s)};

	out->s[COP_PREDICT_DIRECT] = cop_model_direct_s(m, &c, nodes);
	out->operations[COP_PREDICT_DIRECT] = nodes * (metadata + (double)n->reads);
}

/* The time from having the image to the end of the startup. */
static double after_image_s(const struct cop_predict_job *j, uint32_t nodes)
{
	double unpack = (double)j->needs->bytes / (UNPACK_MB_PER_S * 1e6);

	return shared_s(j, nodes, IMAGE_MOUNT_S + unpack + j->own_s);
}

static void add_image(const struct cop_predict_job *j, uint32_t nodes, struct cop_predict_row *out)
{
	const struct cop_predict_storage *s = j->storage;
	double bytes = (double)j->image_bytes, copy = bytes / (s->stream_mb_per_s * 1e6);
	double each = FILE_OPS + COP_MAX(bytes / (double)(2 * PREDICT_READ), 1.0);

	copy = COP_MAX(FILE_OPS * s->metadata_us / 1e6 + copy, nodes * bytes / (s->mb_per_s * 1e6));
	if (s->slots > 0)
		copy = COP_MAX(copy, nodes * each * s->metadata_us / 1e6 / COP_MAX(s->slots, 1.0));
	out->s[COP_PREDICT_IMAGE] = copy + after_image_s(j, nodes);
	out->operations[COP_PREDICT_IMAGE] = nodes * each;
}

static void add_sbcast(const struct cop_predict_job *j, const struct cop_model *m, uint32_t nodes,
	struct cop_predict_row *out)
{
	double bytes = (double)j->image_bytes, faults = COP_MAX(bytes / FAULT_BYTES, 1.0);
	double send = bytes / ((double)m->link_mb_per_s * 1e6) * COP_MIN(nodes, 2u);

	out->s[COP_PREDICT_SBCAST] =
		SBCAST_S + faults * j->storage->read_us / 1e6 + send + after_image_s(j, nodes);
	out->operations[COP_PREDICT_SBCAST] = faults;
}

/* ---- Copper ---- */

/* Models rank 0's operations as workers that process one item at a time. */
struct root {
	struct cop_model_storage storage;
	uint64_t free_ns[WINDOW];
	double operations;
};

static void do_item(struct root *r, unsigned ops, uint64_t op_ns, uint64_t bytes)
{
	uint64_t *w = r->free_ns;

	for (unsigned i = 1; i < WINDOW; i++)
		if (r->free_ns[i] < *w)
			w = &r->free_ns[i];
	for (unsigned i = 0; i < ops; i++)
		*w = cop_model_served_at(&r->storage, *w, op_ns, bytes);
	r->operations += ops;
}

/* Simulates only part of a very large recording and scales the result. */
static double fetch_s(struct root *r, const struct cop_predict_job *j)
{
	const struct cop_predict_needs *n = j->needs;
	uint64_t metadata_ns = (uint64_t)(j->storage->metadata_us * 1e3), end = 0;
	uint64_t read_ns = (uint64_t)(j->storage->read_us * 1e3);
	uint64_t most = COP_MAX(COP_MAX(n->directories, n->names), COP_MAX(n->files, n->reads));
	uint64_t rounds = COP_MIN(most, (uint64_t)ROUNDS_MOST);
	double reads = !j->packed                      ? (double)n->reads
		       : j->storage->pack_mb_per_s > 0 ? 0
						       : (double)n->bytes / PACK_READ;
	double children = j->packed ? 0 : j->storage->children * (double)n->directories;
	unsigned listing_ops = j->packed ? PACK_LISTING_OPS : LISTING_OPS;
	/* Items of each kind per round; means may be fractional. */
	double item[] = {
		(double)n->directories, children + (double)n->names + (double)n->files, reads};
	double done[COP_ARRAY_SIZE(item)] = {0}, part = (double)rounds / (double)most;

	r->storage.clients = 1;
	/* Interleave the kinds, as programs need names and bytes alternately. */
	for (uint64_t i = 1; i <= rounds; i++)
		for (unsigned k = 0; k < COP_ARRAY_SIZE(item); k++)
			for (; done[k] + 1 <= item[k] * part * (double)i / (double)rounds;
				done[k]++)
				do_item(r, k ? 1 : listing_ops, k == 2 ? read_ns : metadata_ns,
					k == 2 ? (uint64_t)((double)n->bytes / reads) : 0);
	for (unsigned i = 0; i < WINDOW; i++)
		end = COP_MAX(end, r->free_ns[i]);
	r->operations /= part;
	return (double)end / 1e9 / part;
}

static double levels_of(uint32_t nodes)
{
	double levels = 0;

	for (uint64_t below = 1, all = 1; all < nodes; all += below, levels++)
		below *= FANOUT;
	return levels;
}

/* What overlaps the fetches: rank 0's work on a pack, and the other nodes' mount time. */
static double beside_fetch_s(const struct cop_predict_job *j, uint32_t nodes)
{
	double mounts = shared_s(j, nodes, COPPER_MOUNT_S) - COPPER_MOUNT_S;
	double read = j->storage->pack_mb_per_s, bytes = (double)j->needs->bytes / 1e6;

	if (!j->packed)
		return mounts;
	return COP_MAX(mounts + bytes / PACK_MB_PER_S, read > 0 ? bytes / read : 0);
}

static int add_copper(const struct cop_predict_job *j, const struct cop_model *m, uint32_t nodes,
	struct cop_predict_row *out)
{
	double bytes = (double)j->needs->bytes, children = COP_MIN(nodes - 1, FANOUT), fetch;
	double receive = nodes > 1 ? bytes / ((double)m->land_mb_per_s * 1e6) : 0;
	double send = children * bytes / ((double)m->send_mb_per_s * 1e6);
	double hop = (double)(m->ask_us + m->serve_us + 2 * m->hop_us) / 1e6;
	double asked = (metadata_of(j->needs) + (double)j->needs->reads) * REQUEST_S;
	struct cop_model alone = *m;
	struct root r = {0};

	/* The windows limit how many slots are used. */
	alone.storage_slots = COP_MIN(m->storage_slots, (uint64_t)WINDOW);
	if (cop_model_storage_open(&r.storage, &alone))
		return -ENOMEM;
	fetch = fetch_s(&r, j);
	cop_model_storage_close(&r.storage);
	out->s[COP_PREDICT_COPPER] =
		COPPER_MOUNT_S + COP_MAX(fetch, beside_fetch_s(j, nodes)) +
		levels_of(nodes) * (hop + (double)COP_MIB / ((double)m->link_mb_per_s * 1e6)) +
		shared_s(j, nodes, BEHIND * (receive + send) + asked + j->own_s);
	out->operations[COP_PREDICT_COPPER] = r.operations;
	return 0;
}

int cop_predict_row(const struct cop_predict_job *job, uint32_t nodes, struct cop_predict_row *out)
{
	struct cop_model m;

	*out = (struct cop_predict_row){0};
	fill_model(job, &m);
	add_direct(job, &m, nodes, out);
	add_image(job, nodes, out);
	add_sbcast(job, &m, nodes, out);
	return add_copper(job, &m, nodes, out);
}
