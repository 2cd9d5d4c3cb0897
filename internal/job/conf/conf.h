/* SPDX-License-Identifier: BSD-3-Clause */
/* conf: all settings of `copper mount` and `copper serve` in one struct, filled once from the
 * command line by the option table, checked once, then const. It checks only the settings
 * themselves: the user of a setting checks whether a directory exists or a host responds. Strings
 * point into argv. */
#ifndef COP_JOB_CONF_H
#define COP_JOB_CONF_H

#include "base/base/base.h"
#include "base/opt/opt.h"

#define COP_CONF_CACHE_MIN (16 * COP_MIB)
#define COP_CONF_SPILL_MIN (16 * COP_MIB)
#define COP_CONF_TRACE_MIN (64 * COP_KIB)
#define COP_CONF_CHUNK_MIN (64 * COP_KIB)
#define COP_CONF_CHUNK_MAX (16 * COP_MIB)

enum cop_conf_bundle {
	COP_CONF_BUNDLE_AUTO,
	COP_CONF_BUNDLE_OFF,
};

enum cop_conf_kernel_ahead {
	COP_CONF_KERNEL_AHEAD_AUTO, /* off in one of eight recorded jobs */
	COP_CONF_KERNEL_AHEAD_ON,
	COP_CONF_KERNEL_AHEAD_OFF,
};
enum cop_conf_compress {
	COP_CONF_COMPRESS_AUTO, /* on if chunks cross a TCP network */
	COP_CONF_COMPRESS_ON,
	COP_CONF_COMPRESS_OFF,
};

enum cop_conf_address_source {
	COP_CONF_ADDRESS_AUTO, /* facility with --address-book, else discover */
	COP_CONF_ADDRESS_FACILITY,
	COP_CONF_ADDRESS_DISCOVER,
};

enum cop_conf_rank_files {
	COP_CONF_RANK_FILES_ALL,
	COP_CONF_RANK_FILES_ROOT, /* only rank 0's */
	COP_CONF_RANK_FILES_NONE,
};

struct cop_conf {
	const char *mountpoint; /* NULL for serve, and if the node creates one */
	const char *source;     /* the tree at the origin; default "/" */
	const char *hosts;      /* FILE or LIST; NULL: the scheduler's environment, else one node */
	const char *job_dir;    /* may be NULL */
	const char *net_type;   /* default "tcp" */
	const char *address_book;  /* FILE or NULL */
	const char *secret_file;   /* may be NULL */
	const char *prefetch;      /* as given: FILE, "auto", "off", or NULL; see
				      cop_conf_prefetch */
	uint64_t pack_limit;       /* limit of --prefetch's pack; 0: none; default 1 GiB
				    */
	unsigned kernel_ahead;     /* enum cop_conf_kernel_ahead */
	const char *runtime_dir;   /* directory for the control socket; NULL: ctl chooses */
	const char *cpus;          /* list of processors, "near" or NULL */
	int64_t rank;              /* -1: determined by Copper */
	uint16_t port;             /* of the rendezvous; 0: according to the host list's source */
	const char *fabric_port;   /* PORT or LOW-HIGH; NULL: the kernel chooses */
	uint16_t fabric_port_low;  /* its low end, set by the check; 0: the kernel chooses */
	uint16_t fabric_port_high; /* its high end; equals low for a single port */
	unsigned log_level;        /* enum cop_log_level; default 4 with a job directory, else 3 */
	unsigned log_type;         /* enum cop_log_type (conf does not include log) */
	unsigned address_source;   /* enum cop_conf_address_source, as given */
	unsigned compress;         /* enum cop_conf_compress */
	unsigned bundle;           /* enum cop_conf_bundle */
	uint32_t trees;            /* 0: automatic */
	uint32_t fanout;           /* default 4 */
	uint32_t enoent_ttl_ms;    /* default 2000, growing to */
	uint32_t enoent_most_ms;   /* default 60000; enoent_ttl_ms if that was given */
	uint32_t peer_timeout_ms;  /* default 3000 */
	uint32_t ready_timeout_ms; /* default 120000 */
	uint32_t origin_ops;       /* storage operations in flight; default 64 */
	uint32_t listing_max;      /* names in a listing; default 65536 */
	uint32_t profile_top_n;    /* paths per category in the reports; 0: none */
	uint32_t profile_interval_s; /* seconds between snapshots; 0: only at the end */
	unsigned rank_files;         /* enum cop_conf_rank_files: which nodes write reports */
	uint64_t cache_size;         /* bytes; 0: a tenth of memory */
	const char *spill;           /* DIR[,SIZE] or NULL; see cop_conf_spill */
	uint64_t max_cacheable;      /* bytes: larger files bypass the tree; 0: no limit */
	uint64_t chunk;              /* bytes, a power of two; default 1 MiB */
	uint64_t trace_limit;        /* bytes of a node's trace; default 512 MiB */
	bool check;                  /* only check whether a start would work */
	bool json;                   /* print the result of the check as JSON */
	bool foreground;
	bool insecure;
	bool allow_other;
	bool keep_symlinks;
	bool profile; /* count operations; set by the check: also with top_n or paths_full */
	bool profile_paths_full;
	bool trace;                 /* each node writes its trace in the job directory */
	bool observe;               /* the kernel caches nothing, so every request is observed */
	bool discover;              /* request each node's address from it; set by the check */
	bool serve_only;            /* no mount */
	const char *store;          /* FILE of the run store; NULL: $COPPER_STORE, or none */
	struct cop_opt_list hidden; /* names that a directory may contain without listing them;
				       "none": listings are complete on every file system */
	struct cop_opt_list tags;   /* KEY=VALUE pairs for the run store */
	bool otel;                  /* rank 0 writes OpenTelemetry files in the job directory */
	uint32_t store_interval_ms; /* between two telemetry points; default 5000 */
	uint32_t telemetry_ms;      /* between two machine samples for the store; default 5000 */
	/* Without job_dir, the tasks of a step have two directories until their trees are ready:
	 * one for the messages of nodes that cannot start and, below it, one for this tree's
	 * secret. Both NULL: none. */
	const char *step_dir, *secret_dir;
	bool of_step;       /* without hosts: a launcher's tasks, on the hosts of their step */
	uint32_t step_tree; /* number of this tree, since a step may have several at once */
};

/* The tables: cop_opt_start(&cop_conf_mount_table, argc, argv, &conf, &code) fills and checks
 * a struct cop_conf. */
extern const struct cop_opt_table cop_conf_mount_table;
extern const struct cop_opt_table cop_conf_serve_table;
/* Copper 1.0's long options with one dash, without -vpath. */
extern const struct cop_opt_old cop_conf_old[];

/* All defaults, unchecked: for tests and callers without a command line. */
void cop_conf_init(struct cop_conf *conf, bool serve_only);

/* Whether --hidden none was given: listings are trusted on every file system. */
bool cop_conf_trusts_listings(const struct cop_conf *conf);

/* FILE or "auto" from --prefetch, else from $COPPER_PREFETCH; "" if neither is set: like auto, in
 * the user's cache directory; NULL: off. */
const char *cop_conf_prefetch(const struct cop_conf *conf);

/* The directory and the size in --spill, which must be given; size 0: no size. -EINVAL with a
 * sentence. */
#define COP_CONF_DIR_SIZE 4096
int cop_conf_spill(const struct cop_conf *conf, char dir[COP_CONF_DIR_SIZE], uint64_t *size,
	struct cop_err *err);
/* The share of a cache of this size reserved for the spill: its index and data in transit to the
 * disk; 0 without --spill. */
uint64_t cop_conf_spill_memory(const struct cop_conf *conf, uint64_t cache_bytes);

/* Checks combinations of options, and sets defaults that depend on other options (log_level,
 * discover). Returns -EINVAL with a sentence that names the option and the remedy. */
int cop_conf_check(struct cop_conf *conf, struct cop_err *err);

/* Calls visit for every setting that differs from its default. */
void cop_conf_each_changed(const struct cop_conf *conf,
	void (*visit)(void *arg, const char *name, const char *value), void *arg);

/* The smallest cache size that works with this chunk size and with the spill, if any. */
uint64_t cop_conf_cache_least(const struct cop_conf *conf);

#endif
