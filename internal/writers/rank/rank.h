/* SPDX-License-Identifier: BSD-3-Clause */
/* tally: writes counters and profiles into the job directory: this node's reports during and after
 * the run, and the sums over all nodes once they arrive through the tree. Does not decide when to
 * write or how to send sums. prof and cluster define the contents of the files
 * (copper-formats(5)). */
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

/* The tag of reports that a user requested, which also list the contents of the cache. */
#define COP_TALLY_ASKED_TAG "ioctl-snapshot"

/* Describes the job in its files. Strings and hosts are borrowed. */
struct cop_tally_job {
	const char *job_dir; /* absolute; "": no job directory, so nothing is written */
	const char *source;
	struct cop_topo topo;
	const struct cop_job_hosts *hosts; /* count 0: a single node without a host list */
};

/* ---- one node ---- */

struct cop_tally_conf {
	struct cop_tally_job job;
	uint32_t rank;
	const struct cop_conf *conf; /* what is counted, and which nodes write reports */
	struct cop_stats *stats;     /* of this node */
};

struct cop_tally;

/* On rank 0, creates the directories that scripts expect, and warns about reports of an earlier
 * run. 0, or -ENOMEM with a message. */
int cop_tally_new(const struct cop_tally_conf *conf, struct cop_tally **out, struct cop_err *err);
/* Call when all counting has stopped. t may be NULL. */
void cop_tally_free(struct cop_tally *t);
/* The profile that counts events; NULL if the user requested none. */
struct cop_prof *cop_tally_prof(struct cop_tally *t);
/* Sets the cache whose table sizes are reported. Borrows it. Call before the first report. */
void cop_tally_use_cache(struct cop_tally *t, struct cop_cache *cache);

/* Call only from the main thread: these may block on a disk. */

/* Writes the current reports under a tag, or the final ones if tag is NULL. 0; -ENOENT: this node
 * writes no reports; other errors are logged, with a message in err (may be NULL). */
int cop_tally_write(struct cop_tally *t, const char *tag, struct cop_err *err);
/* Writes the reports so far under the tag pre-reset, if this node writes any, and resets all
 * counters. If it cannot write the reports or runs out of memory, it leaves the counters unchanged
 * and puts a message in err. */
int cop_tally_reset(struct cop_tally *t, struct cop_err *err);
/* Appends the contents of the cache: "budget LIMIT USED", then for each table "table NAME LENGTH"
 * and the bytes of its file. */
void cop_tally_sizes(struct cop_tally *t, struct cop_buf *out);
/* Adds this node's counters to the sums. If memory runs out, omits the profile and logs that. */
void cop_tally_add(struct cop_tally *t, struct cop_op_sum *sum);

/* For a node that stops without the tree: logs its warnings (advice.h), and appends notes for the
 * user, like cop_advice_notes. */
void cop_tally_warn_own(struct cop_tally *t, struct cop_buf *out);

/* ---- all nodes ---- */

/* Like cop_tally_warn_own for the nodes in sum, but appends only the COP_TALLY_NOTES most important
 * notes. */
#define COP_TALLY_NOTES 3
void cop_tally_warn(const struct cop_op_sum *sum, struct cop_buf *out);

/* Writes the job's cluster files from the sums. If the profile's files cannot be written, saves
 * them in $TMPDIR, because no other copy exists once the nodes have stopped, and the message says
 * where. Returns 0 if there is nothing to write. Errors are logged, with a message in err;
 * telemetry errors are only logged, because the user did not ask for telemetry. Finishes the
 * telemetry in sum. */
int cop_tally_write_sums(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_err *err);
/* Writes only the telemetry files, into this subdirectory of profiling, and finishes the telemetry.
 * Writes nothing if sum is NULL. Logs errors. */
void cop_tally_write_telemetry(
	const struct cop_tally_job *job, struct cop_telemetry_sum *sum, const char *folder);

#endif
