/* SPDX-License-Identifier: BSD-3-Clause */
/* tally: writes counters and profiles into the job directory: this node's reports during the run
 * and at its end, and the sums of all nodes once they arrive through the tree. Does not decide when
 * to write, and does not know how sums are sent. prof and report define the contents of the files
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

/* The tag of user-requested reports, which also list the contents of the cache. */
#define COP_TALLY_ASKED_TAG "ioctl-snapshot"

/* A job, as named in its files. Strings and hosts are borrowed. */
struct cop_tally_job {
	const char *job_dir; /* absolute; "": no job directory, nothing is written */
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

/* Creates the folders that scripts expect, if this is rank 0, and warns about reports of an earlier
 * run. 0, or -ENOMEM with a message. */
int cop_tally_new(const struct cop_tally_conf *conf, struct cop_tally **out, struct cop_err *err);
/* Call when all counting has stopped. NULL is fine. */
void cop_tally_free(struct cop_tally *t);
/* The profile for events; NULL: not requested by the user. */
struct cop_prof *cop_tally_prof(struct cop_tally *t);
/* Sets the cache whose table sizes are reported; borrowed. Call before the first report. */
void cop_tally_use_cache(struct cop_tally *t, struct cop_cache *cache);

/* Call only from the main thread: these may block on a disk. */

/* Writes the current reports under a tag, or the final ones (NULL). 0; -ENOENT: this node writes no
 * reports; other errors are logged, with a message in err (may be NULL). */
int cop_tally_write(struct cop_tally *t, const char *tag, struct cop_err *err);
/* Writes the reports so far under the tag pre-reset, if this node writes any, and resets all
 * counters. If the reports cannot be written or memory runs out, the counters are unchanged, with a
 * message in err. */
int cop_tally_reset(struct cop_tally *t, struct cop_err *err);
/* Appends the contents of the cache: "budget LIMIT USED", then for each table "table NAME LENGTH"
 * and the bytes of its file. */
void cop_tally_sizes(struct cop_tally *t, struct cop_buf *out);
/* Adds this node's counters to the sums; if memory runs out, the profile is omitted and this is
 * logged. */
void cop_tally_add(struct cop_tally *t, struct cop_op_sum *sum);

/* For a node that ends without the tree: logs its warnings (advice.h), and appends notes for the
 * user, like cop_advice_notes. */
void cop_tally_warn_own(struct cop_tally *t, struct cop_buf *out);

/* ---- all nodes ---- */

/* The same for these nodes, limited to the COP_TALLY_NOTES most important notes. */
#define COP_TALLY_NOTES 3
void cop_tally_warn(const struct cop_op_sum *sum, struct cop_buf *out);

/* Writes the job's cluster files from the sums. If the profile's files cannot be written, they are
 * saved in $TMPDIR, because no other copy exists once the nodes have ended, and the message says
 * where. 0 also if there is nothing to write; errors are logged, with a message in err. Telemetry
 * was not requested explicitly, so its errors are only logged. The telemetry in sum is finished
 * afterwards. */
int cop_tally_write_sums(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_err *err);
/* Writes only the telemetry files, into this folder of profiling, and finishes the telemetry; sum
 * NULL: writes nothing. Errors are logged. */
void cop_tally_write_telemetry(
	const struct cop_tally_job *job, struct cop_telemetry_sum *sum, const char *folder);

#endif
