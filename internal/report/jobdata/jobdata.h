/* SPDX-License-Identifier: BSD-3-Clause */
/* jobdata: parses the files in a job directory into numbers and texts for the HTML report. The
 * files are untrusted: a missing file counts as no data, a truncated or malformed one is used up to
 * the fault, and all sizes are bounded. Writes nothing, walks only the job directory, and does not
 * contact running nodes. Strings may contain arbitrary bytes. */
#ifndef COP_REPORT_JOBDATA_H
#define COP_REPORT_JOBDATA_H

#include "base/base/base.h"
#include "prof/profile/profile.h"

#define COP_JOBDATA_OPS_MAX 1024
#define COP_JOBDATA_VALUES_MAX 1024
#define COP_JOBDATA_PATHS_MAX 65536 /* maximum number of distinct paths in the sums */
#define COP_JOBDATA_NODES_MAX 8192
#define COP_JOBDATA_SERIES_MAX 512
#define COP_JOBDATA_STEPS_MAX 128 /* maximum number of intervals */
#define COP_JOBDATA_PHASES_MAX 16
#define COP_JOBDATA_EVENTS_MAX 2048
#define COP_JOBDATA_WARNINGS_MAX 64

/* Used in place of a rank: a statistic over all nodes, computed separately for each value. */
enum { COP_JOBDATA_MIN = -1, COP_JOBDATA_MEDIAN = -2, COP_JOBDATA_MAX = -3 };

enum cop_jobdata_from {
	COP_JOBDATA_NOTHING,
	COP_JOBDATA_CLUSTER,  /* sums written by the job when it stopped */
	COP_JOBDATA_RANKS,    /* sums computed here from the files of the ranks */
	COP_JOBDATA_SNAPSHOT, /* likewise, from a tagged snapshot */
};

/* One kind of request, summed over all nodes. */
struct cop_jobdata_op {
	char *name;
	uint64_t calls, hits, misses, negatives;
	double latency_s;
	bool has_quantiles;
	double p50_us, p90_us, p99_us, max_us;
};

struct cop_jobdata_value {
	char *name;
	double value;
};
struct cop_jobdata_values {
	struct cop_jobdata_value *at;
	size_t n;
};

enum cop_jobdata_category {
	COP_JOBDATA_METADATA,
	COP_JOBDATA_DATA,
	COP_JOBDATA_TREE,
	COP_JOBDATA_ABSENT,
	COP_JOBDATA_CATEGORIES
};
struct cop_jobdata_path {
	char *text;
	size_t len;
	enum cop_jobdata_category category;
	uint64_t events, misses;
};

/* The measurements of a node; NAN if the file lacks them. */
enum cop_jobdata_column {
	COP_JOBDATA_REQUESTS,
	COP_JOBDATA_READ_BYTES,
	COP_JOBDATA_WAIT_MS,
	COP_JOBDATA_PARENT_BYTES,
	COP_JOBDATA_ORIGIN_OPERATIONS,
	COP_JOBDATA_ORIGIN_BYTES,
	COP_JOBDATA_SENT_BYTES,
	COP_JOBDATA_CACHE_BYTES,
	COP_JOBDATA_RESIDENT_BYTES,
	COP_JOBDATA_CPU_MS,
	COP_JOBDATA_COLUMNS
};

/* One node over time, or a statistic over nodes. */
struct cop_jobdata_series {
	int32_t rank;
	char *host;                                              /* "" for a statistic */
	float value[COP_JOBDATA_COLUMNS][COP_JOBDATA_STEPS_MAX]; /* NAN: no row */
};

/* One node over the whole job, or a statistic. */
struct cop_jobdata_node {
	int32_t rank;
	char *host;
	int32_t parent;                     /* -1: none, -2: unknown */
	double start_s, ready_s, stopped_s; /* since the start of the job */
	double phase_s[COP_JOBDATA_PHASES_MAX];
	double requests, read_bytes, wait_parent_ms, wait_origin_ms, parent_bytes;
	double origin_operations, origin_bytes, sent_bytes, failovers, evictions, cpu_ms;
	double cache_peak_bytes, cache_limit_bytes, resident_peak_bytes;
	/* Bytes pushed into the kernel before they were requested, and the sources of these bytes
	 * and of read_bytes. */
	double ahead_bytes, from_own_bytes, from_nodes_bytes, from_passed_bytes;
	double from_disk_bytes, from_pack_bytes, from_storage_bytes;
};

struct cop_jobdata_event {
	double time_s;
	int32_t rank;
	char *host, *event, *detail;
};

/* One sentence of advice, with the option to use. */
struct cop_jobdata_warning {
	char *sentence, *option;
};

/* The output of copper paths in paths_dir. */
struct cop_jobdata_unused {
	char *directory;
	double bytes, files;
};

struct cop_jobdata {
	char *dir; /* absolute path of the job directory */
	/* From logs/. NULL or 0: unknown. */
	char *source, *state, *net_type, *version, *build, *provider, *first_host, *began;
	bool runs; /* the job may still be running: no node logged its end */
	uint32_t nodes, fanout, trees;
	bool has_ends; /* the log records how many commands of copper run exited, and how many with
			  status 0 */
	uint32_t commands, good;
	double began_unix_s;
	bool has_profile_lines, profile, paths_full;
	unsigned top_n;

	enum cop_jobdata_from from;
	char *folder;              /* absolute path of the directory with the sums */
	double folder_unix_s;      /* when the sums were written */
	uint64_t ranks, faults;    /* ranks included in the sums; unusable files */
	struct cop_jobdata_op *op; /* highest total latency first */
	size_t ops;
	struct cop_jobdata_values metrics, fabric;
	struct cop_jobdata_path *path; /* sorted by category, then most events first */
	size_t paths;
	bool paths_cut; /* some paths were dropped: there were more than the maximum */
	struct cop_pathclass_totals classes;

	char *telemetry; /* directory of the three telemetry files; NULL: none */
	double interval_s;
	unsigned steps;
	struct cop_jobdata_series **series; /* statistics first (min, median, max), then by rank */
	size_t series_n;
	struct cop_jobdata_node *node; /* in the same order as series */
	size_t node_n;
	char *phase[COP_JOBDATA_PHASES_MAX]; /* phase names */
	unsigned phases;
	struct cop_jobdata_event *event;
	size_t events;
	uint64_t events_dropped;
	bool has_warnings;                   /* the file exists, possibly empty */
	struct cop_jobdata_warning *warning; /* the most important first */
	size_t warnings;

	bool has_tables; /* there is a profile of all paths, which copper paths can read */
	bool has_use;    /* copper paths was run */
	struct cop_jobdata_values use; /* "Kept bytes", ... */
	struct cop_jobdata_unused *unused;
	size_t unused_n;
};

/* Reads JOBDIR. -ENOENT if it contains no job files, with a message that names the expected ones;
 * -ENOTDIR etc. The caller frees out in any case. */
int cop_jobdata_read(const char *job_dir, struct cop_jobdata *out, struct cop_err *err);
void cop_jobdata_free(struct cop_jobdata *j);
/* The value with this name; NAN if there is none. */
double cop_jobdata_value(const struct cop_jobdata_values *v, const char *name);

#endif
