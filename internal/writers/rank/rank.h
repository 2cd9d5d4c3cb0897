/* SPDX-License-Identifier: BSD-3-Clause */
/* tally: writes what was counted into the job directory: this node's reports while it runs and at
 * its end, and the sums of all nodes once they have arrived through the tree. It does not decide
 * when to write, and does not know how sums are sent. prof and report define the contents of the
 * files, which copper-formats(5) documents. */
#ifndef COP_WRITERS_RANK_H
#define COP_WRITERS_RANK_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "job/conf/conf.h"
#include "job/hosts/hosts.h"
#include "prof/profile/profile.h"
#include "prof/stats/stats.h"
#include "prof/telemetry/telemetry.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* The tag of the reports that a user requests; these also list the contents of the cache. */
#define COP_TALLY_ASKED_TAG "ioctl-snapshot"

/* A job, as its files name it. The caller owns the strings and hosts, which must outlive its use.
 */
struct cop_tally_job {
	const char *job_dir; /* absolute; "": there is no job directory, and nothing is written */
	const char *source;
	struct cop_topo topo;
	const struct cop_job_hosts *hosts; /* count 0: the node is alone, without a host list */
};

/* ---- one node ---- */

struct cop_tally_conf {
	struct cop_tally_job job;
	uint32_t rank;
	const struct cop_conf *conf; /* says what is counted, and which nodes write reports */
	struct cop_stats *stats;     /* of this node */
};

struct cop_tally;

/* Creates the folders that scripts expect, if this is rank 0, and warns about reports of an earlier
 * run. 0, or -ENOMEM with a sentence. */
int cop_tally_new(const struct cop_tally_conf *conf, struct cop_tally **out, struct cop_err *err);
/* Call it when nothing counts any more. NULL is fine. */
void cop_tally_free(struct cop_tally *t);
/* The profile in which events are counted; NULL: the user did not ask for one. */
struct cop_prof *cop_tally_prof(struct cop_tally *t);
/* Call it before the first report: sets the tables whose sizes are reported. The caller keeps the
 * cache. */
void cop_tally_use_cache(struct cop_tally *t, struct cop_cache *cache);

/* Call these on one thread only, the main thread; they may wait for a disk. */

/* Writes the current reports under a tag, or the final ones (NULL). 0; -ENOENT: this node writes no
 * reports; other errors are logged, and err (may be NULL) has the sentence. */
int cop_tally_write(struct cop_tally *t, const char *tag, struct cop_err *err);
/* Writes the reports so far under the tag pre-reset, if this node writes any, and sets every
 * counter to zero. If the reports cannot be written, or memory is short, the counters continue as
 * before, and err has the sentence. */
int cop_tally_reset(struct cop_tally *t, struct cop_err *err);
/* Appends what the cache holds: "budget LIMIT USED", then for each table "table NAME LENGTH" and
 * the bytes of its file. */
void cop_tally_sizes(struct cop_tally *t, struct cop_buf *out);
/* Adds what this node has counted to the sums; if memory is short, the profile is omitted, and this
 * is logged. */
void cop_tally_add(struct cop_tally *t, struct cop_op_sum *sum);

/* For a node that ends without the tree: logs what went badly on it (advice.h), and appends notes
 * for the user, as cop_advice_notes does. */
void cop_tally_warn_own(struct cop_tally *t, struct cop_buf *out);

/* ---- all nodes ---- */

/* The same for these nodes, but only with the COP_TALLY_NOTES most important notes. */
#define COP_TALLY_NOTES 3
void cop_tally_warn(const struct cop_op_sum *sum, struct cop_buf *out);

/* Writes the cluster files of the job from the sums. If those of the profile cannot be written,
 * they are kept in $TMPDIR, because no other copy exists once the nodes have ended, and the
 * sentence says where. Returns 0 also if there is nothing to write; errors are logged, and err has
 * the sentence. Nobody asked for the telemetry, so its failures are only logged. The telemetry in
 * sum is finished afterwards. */
int cop_tally_write_sums(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_err *err);
/* Writes only the files of the telemetry into this folder of profiling, and finishes the telemetry;
 * sum NULL: writes nothing. Failures are logged. */
void cop_tally_write_telemetry(
	const struct cop_tally_job *job, struct cop_telemetry_sum *sum, const char *folder);

#endif
