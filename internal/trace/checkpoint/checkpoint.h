/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint: analyzes multi-tier checkpointing in several runs of a program. It reports how long
 * checkpoints take, their time and bytes by tier and call, and how much they overlap with
 * background flushes, and gives advice. Any number of threads may add the events of a run; one
 * report covers all runs.
 *
 * Memory is bounded by the number of groups (cop_tab) and by COP_CKPT_SPANS spans per thread of the
 * program. It reads no files and changes nothing. */
#ifndef COP_TRACE_CHECKPOINT_H
#define COP_TRACE_CHECKPOINT_H

#include "trace/table/table.h"

#define COP_CKPT_TIERS_MAX 16u
#define COP_CKPT_PREFIXES_MAX 64u
#define COP_CKPT_SPANS ((size_t)1 << 15)

struct cop_ckpt_prefix {
	const char *at; /* without trailing slashes */
	size_t len;
	unsigned tier;
};
#define COP_CKPT_SCHEMES_MAX 8u
#define COP_CKPT_NODES_MAX 16u
/* A redundancy scheme: bytes written per byte of a checkpoint. */
struct cop_ckpt_scheme {
	const char *name;
	double factor;
};
/* The tiers, fastest first; strings are borrowed. */
struct cop_ckpt_conf {
	const char *tier[COP_CKPT_TIERS_MAX];
	double bandwidth[COP_CKPT_TIERS_MAX]; /* bytes/s, for predictions; 0: not known */
	bool per_node[COP_CKPT_TIERS_MAX];    /* the bandwidth is per node */
	struct cop_ckpt_scheme scheme[COP_CKPT_SCHEMES_MAX]; /* redundancy schemes to predict for */
	unsigned schemes;
	uint64_t nodes[COP_CKPT_NODES_MAX]; /* node counts to predict for */
	unsigned nodes_n;
	double mtbf_s; /* mean time between failures of the whole run; 0: not known */
	unsigned tiers;
	struct cop_ckpt_prefix prefix[COP_CKPT_PREFIXES_MAX];
	unsigned prefixes;
	const char *event; /* extended regular expression for the names of checkpoint events */
	uint64_t limit;    /* maximum rows per list, run and tier */
};

/* "NAME=PREFIX" adds a tier, or another prefix to an existing one; "NAME=BYTES/S" sets the
 * bandwidth of an existing tier. The word is borrowed. -EINVAL with a message that names the
 * option; -ENOMEM. */
int cop_ckpt_add_tier(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
int cop_ckpt_add_model(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
/* "single", "partner", "xor" or "xor:N" (sets of N), "rs" or "rs:N:K" (sets of N that survive K
 * failures), or a factor. */
int cop_ckpt_add_scheme(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
/* Parses a list of comma-separated numbers. */
int cop_ckpt_add_nodes(struct cop_ckpt_conf *conf, const char *list, struct cop_err *err);
/* Parses a time such as "24h": a number with a unit of s (default), m, h or d. */
int cop_ckpt_set_mtbf(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
void cop_ckpt_conf_fini(struct cop_ckpt_conf *conf);

/* Collects the events of one run. */
struct cop_ckpt;
/* conf is borrowed. -EINVAL with a message if `event` is not a valid expression; -ENOMEM. */
int cop_ckpt_new(const struct cop_ckpt_conf *conf, unsigned threads, struct cop_ckpt **out,
	struct cop_err *err);
void cop_ckpt_free(struct cop_ckpt *c);
/* -ENOMEM; -E2BIG. */
int cop_ckpt_add(struct cop_ckpt *c, unsigned worker, const struct cop_trace_event *e);

struct cop_ckpt_report;
/* Creates a report on n runs, comparing the others with the first. The names are borrowed until the
 * report is freed. -ENOMEM, -E2BIG with a message. */
int cop_ckpt_report_new(struct cop_ckpt *const *run, const char *const *name, size_t n,
	struct cop_ckpt_report **out, struct cop_err *err);
void cop_ckpt_report_free(struct cop_ckpt_report *r);
/* On a terminal, prints the nonempty tables, each with a title. CSV has all tables, separated by
 * blank lines. JSON is an object of arrays, plus `lost`, which lists the unreadable parts of each
 * run's files. files has one entry per run; NULL if not known. */
void cop_ckpt_report_show(const struct cop_ckpt_report *r,
	const struct cop_trace_files *const *files, enum cop_grid_form form, struct cop_buf *out);

#endif
