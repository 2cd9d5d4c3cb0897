/* SPDX-License-Identifier: BSD-3-Clause */
/* tally: what was counted, as files in the job directory: this node's reports while it runs and at
 * its end, and the sums of all nodes when they have come up the tree. It refuses to decide when
 * anything is written, and to know how sums travel; what is in the files is prof's and report's,
 * documented in copper-formats(5). */
#ifndef COP_TALLY_H
#define COP_TALLY_H

#include "base/base.h"
#include "cache/cache.h"
#include "conf/conf.h"
#include "job/job.h"
#include "prof/prof.h"
#include "stats/stats.h"
#include "treeop/treeop.h"

/* The tag of the reports that a user asks for: those have what the cache holds, too. */
#define COP_TALLY_ASKED_TAG "ioctl-snapshot"

/* A job, as its files name it. The strings and hosts are the caller's, and outlive its use. */
struct cop_tally_job {
	const char *job_dir; /* absolute; "": there is none, and nothing is written */
	const char *source;
	uint32_t nodes;
	const struct cop_job_hosts *hosts; /* count 0: a node alone, without a host list */
};

/* ---- one node ---- */

struct cop_tally_conf {
	struct cop_tally_job job;
	uint32_t rank;
	const struct cop_conf *conf; /* what of it is counted, and whose reports are written */
	struct cop_stats *stats;     /* of this node */
};

struct cop_tally;

/* Makes the folders where scripts look, if this is rank 0, and warns of reports of an earlier run.
 * 0, or -ENOMEM with a sentence. */
int cop_tally_new(const struct cop_tally_conf *conf, struct cop_tally **out, struct cop_err *err);
/* When nobody counts any more. NULL is fine. */
void cop_tally_free(struct cop_tally *t);
/* Where events are counted; NULL: the user asked for no profile. */
struct cop_prof *cop_tally_prof(struct cop_tally *t);
/* Before the first report: the tables whose sizes are reported. The caller's. */
void cop_tally_use_cache(struct cop_tally *t, struct cop_cache *cache);

/* These belong to one thread, the main thread; they may wait for a disk. */

/* The reports of this moment under a tag, or the final ones (NULL). 0; -ENOENT: this node writes
 * none; else it is logged, and err (may be NULL) has the sentence. */
int cop_tally_write(struct cop_tally *t, const char *tag, struct cop_err *err);
/* The reports of before under the tag pre-reset, where this node writes any, and every counter from
 * zero. If they cannot be written, or without memory, the counters go on as they were, and err has
 * the sentence. */
int cop_tally_reset(struct cop_tally *t, struct cop_err *err);
/* What the cache holds: "budget LIMIT USED", then for each table "table NAME LENGTH" and the bytes
 * of its file. */
void cop_tally_sizes(struct cop_tally *t, struct cop_buf *out);
/* Adds what this node has counted to the sums; without memory the profile is left out, which is
 * logged. */
void cop_tally_add(struct cop_tally *t, struct cop_treeop_sum *sum);

/* ---- all nodes ---- */

/* Writes the cluster files of the job out of the sums, which have a prof. If that fails they are
 * kept in $TMPDIR, and the sentence says where, for there are no sums anywhere else once the nodes
 * have ended. 0, also where there is nothing to write; else it is logged, and err has the sentence.
 */
int cop_tally_write_sums(
	const struct cop_tally_job *job, const struct cop_treeop_sum *sum, struct cop_err *err);

#endif
