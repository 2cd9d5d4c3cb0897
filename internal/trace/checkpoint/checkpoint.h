/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint: computes the cost of checkpoints in several runs of a program that writes them
 * to storage of several tiers: how long they take, where the time and the bytes go, what a flush in
 * the background does meanwhile, and what follows from that. It takes the events of one run from
 * any number of threads; a report covers all runs.
 *
 * Memory is bounded by the groups (cop_tab) and by COP_CKPT_SPANS spans per thread of the program.
 * It reads no file and changes nothing. */
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
/* A redundancy scheme: what it writes for each byte of a checkpoint. */
struct cop_ckpt_scheme {
	const char *name;
	double factor;
};
/* The tiers, the fastest first; the caller owns the strings. */
struct cop_ckpt_conf {
	const char *tier[COP_CKPT_TIERS_MAX];
	double bandwidth[COP_CKPT_TIERS_MAX]; /* bytes per second, for predictions; 0: none */
	bool per_node[COP_CKPT_TIERS_MAX];    /* that is the bandwidth of each node */
	struct cop_ckpt_scheme scheme[COP_CKPT_SCHEMES_MAX]; /* predict with these */
	unsigned schemes;
	uint64_t nodes[COP_CKPT_NODES_MAX]; /* and for these numbers of nodes */
	unsigned nodes_n;
	double mtbf_s; /* mean time between failures of the whole run; 0: not known */
	unsigned tiers;
	struct cop_ckpt_prefix prefix[COP_CKPT_PREFIXES_MAX];
	unsigned prefixes;
	const char *event; /* an extended regular expression that matches the names of checkpoint
			      events */
	uint64_t limit;    /* rows per list, for each run and tier */
};

/* "NAME=PREFIX" adds a tier, or another prefix to one; "NAME=BYTES/S" sets the bandwidth of an
 * existing tier. The word is borrowed. -EINVAL with a sentence that names the option; -ENOMEM. */
int cop_ckpt_add_tier(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
int cop_ckpt_add_model(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
/* "single", "partner", "xor" or "xor:N" (sets of N), "rs" or "rs:N:K" (that survive K failures), or
 * a factor. */
int cop_ckpt_add_scheme(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
/* Numbers with commas between them. */
int cop_ckpt_add_nodes(struct cop_ckpt_conf *conf, const char *list, struct cop_err *err);
/* "24h": a number of seconds, or of m, h, d. */
int cop_ckpt_set_mtbf(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err);
void cop_ckpt_conf_fini(struct cop_ckpt_conf *conf);

/* One run. */
struct cop_ckpt;
/* conf is borrowed. -EINVAL with a sentence if `event` is not a valid expression; -ENOMEM. */
int cop_ckpt_new(const struct cop_ckpt_conf *conf, unsigned threads, struct cop_ckpt **out,
	struct cop_err *err);
void cop_ckpt_free(struct cop_ckpt *c);
/* -ENOMEM; -E2BIG. */
int cop_ckpt_add(struct cop_ckpt *c, unsigned worker, const struct cop_trace_event *e);

struct cop_ckpt_report;
/* A report of n runs with these names, which are borrowed until the report is freed; the others are
 * compared with the first. -ENOMEM, -E2BIG with a sentence. */
int cop_ckpt_report_new(struct cop_ckpt *const *run, const char *const *name, size_t n,
	struct cop_ckpt_report **out, struct cop_err *err);
void cop_ckpt_report_free(struct cop_ckpt_report *r);
/* For a terminal: the tables that are not empty, each with a title; as CSV: all tables, with an
 * empty line between them; as JSON: an object of arrays, and `lost`, with what was lost of the
 * files of each run. files: of each run; NULL: not known. */
void cop_ckpt_report_show(const struct cop_ckpt_report *r,
	const struct cop_trace_files *const *files, enum cop_grid_form form, struct cop_buf *out);

#endif
