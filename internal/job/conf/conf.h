/* SPDX-License-Identifier: BSD-3-Clause */
/* conf: all settings of `copper mount` and `copper serve` in one struct: filled once from the
 * command line by the option table, checked once, then const. Only the settings themselves are
 * checked; whether a directory exists or a host responds is for the module that uses it to find
 * out. Strings point into argv. */
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
	COP_CONF_KERNEL_AHEAD_AUTO, /* off in one of every eight recorded jobs */
	COP_CONF_KERNEL_AHEAD_ON,
	COP_CONF_KERNEL_AHEAD_OFF,
};
enum cop_conf_compress {
	COP_CONF_COMPRESS_AUTO, /* on if chunks cross a TCP network */
	COP_CONF_COMPRESS_ON,
	COP_CONF_COMPRESS_OFF,
};

enum cop_conf_address_source {
	COP_CONF_ADDRESS_AUTO, /* facility if there is an --address-book, else discover */
	COP_CONF_ADDRESS_FACILITY,
	COP_CONF_ADDRESS_DISCOVER,
};

enum cop_conf_rank_files {
	COP_CONF_RANK_FILES_ALL,
	COP_CONF_RANK_FILES_ROOT, /* only rank 0 writes them */
	COP_CONF_RANK_FILES_NONE,
};

struct cop_conf {
	const char *mountpoint; /* NULL for serve, or if the node creates one */
	const char *source;     /* the tree on the storage; default "/" */
	const char *hosts;      /* FILE or LIST; NULL: the scheduler's environment, else one node */
	const char *job_dir;    /* may be NULL */
	const char *net_type;   /* default "tcp" */
	const char *address_book; /* FILE or NULL */
	const char *secret_file;  /* may be NULL */
	const char *prefetch;     /* as given: FILE, "auto", "off" or NULL; see cop_conf_prefetch */
	uint64_t pack_limit;      /* size limit of --prefetch's pack; 0: none; default 1 GiB */
	unsigned kernel_ahead;    /* enum cop_conf_kernel_ahead */
	const char *runtime_dir;  /* directory for the control socket; NULL: ctl chooses one */
	const char *cpus;         /* list of processors, "near" or NULL */
	int64_t rank;             /* -1: Copper finds it out */
	uint16_t port; /* of the rendezvous; 0: depends on where the host list comes from */
	const char *fabric_port;  /* PORT or LOW-HIGH; NULL: the kernel chooses */
	uint16_t fabric_port_low; /* low end of fabric_port, set by the check; 0: the kernel chooses
				   */
	uint16_t fabric_port_high; /* high end; equals fabric_port_low for a single port */
	unsigned log_level;        /* enum cop_log_level; default 4 with a job directory, else 3 */
	unsigned log_type;         /* enum cop_log_type (conf does not include log) */
	unsigned address_source;   /* enum cop_conf_address_source, as given */
	unsigned compress;         /* enum cop_conf_compress */
	unsigned bundle;           /* enum cop_conf_bundle */
	uint32_t trees;            /* 0: automatic */
	uint32_t fanout;           /* default 4 */
	uint32_t enoent_ttl_ms;    /* default 2000; grows up to enoent_most_ms */
	uint32_t enoent_most_ms;   /* default 60000; equals enoent_ttl_ms if that was given */
	uint32_t peer_timeout_ms;  /* default 3000 */
	uint32_t ready_timeout_ms; /* default 120000 */
	uint32_t origin_ops;       /* storage operations in flight; default 64 */
	uint32_t listing_max;      /* names in a listing; default 65536 */
	uint32_t profile_top_n;    /* paths per category in reports; 0: none */
	uint32_t profile_interval_s; /* seconds between snapshots; 0: only at the end */
	unsigned rank_files;         /* enum cop_conf_rank_files: which nodes write reports */
	uint64_t cache_size;         /* bytes; 0: a tenth of memory */
	const char *spill;           /* DIR[,SIZE] or NULL; see cop_conf_spill */
	uint64_t max_cacheable;      /* bytes; larger files bypass the tree; 0: no limit */
	uint64_t chunk;              /* bytes, a power of two; default 1 MiB */
	uint64_t trace_limit;        /* maximum size of a node's trace in bytes; default 512 MiB */
	bool check;                  /* only check whether starting would work */
	bool json;                   /* print the result of the check as JSON */
	bool foreground;
	bool insecure;
	bool allow_other;
	bool keep_symlinks;
	bool profile; /* count operations; the check also sets it if top_n or paths_full is given */
	bool profile_paths_full;
	bool trace;                 /* each node writes its trace to the job directory */
	bool observe;               /* the kernel caches nothing, so that every request is seen */
	bool discover;              /* ask each node for its own address; set by the check */
	bool serve_only;            /* no mount */
	const char *store;          /* FILE of the run store; NULL: $COPPER_STORE, or none */
	struct cop_opt_list hidden; /* names that a directory may contain but not list; "none":
				       listings are complete on every file system */
	struct cop_opt_list tags;   /* KEY=VALUE pairs for the run store */
	bool otel;                  /* rank 0 writes OpenTelemetry files to the job directory */
	uint32_t store_interval_ms; /* interval between telemetry points; default 5000 */
	uint32_t telemetry_ms; /* interval between machine samples for the store; default 5000 */
	/* Without job_dir, the tasks of a step use two directories until their trees are ready: one
	 * for messages from nodes that cannot start and, below it, one for this tree's secret. Both
	 * are NULL if unused. */
	const char *step_dir, *secret_dir;
	bool of_step; /* if hosts is NULL: use the hosts of a launcher's step, for its tasks */
	uint32_t step_tree; /* number of this tree, because a step may have several at once */
};

/* cop_opt_start(&cop_conf_mount_table, argc, argv, &conf, &code) fills and checks a struct
 * cop_conf. */
extern const struct cop_opt_table cop_conf_mount_table;
extern const struct cop_opt_table cop_conf_serve_table;
/* The single-dash long options of Copper 1.0, except -vpath. */
extern const struct cop_opt_old cop_conf_old[];

/* Sets all defaults without checking them: for tests, and for callers that have no command line. */
void cop_conf_init(struct cop_conf *conf, bool serve_only);

/* Whether --hidden none was given, i.e. listings are trusted on every file system. */
bool cop_conf_trusts_listings(const struct cop_conf *conf);

/* FILE or "auto" from --prefetch, else from $COPPER_PREFETCH. "" if neither is set: like auto, but
 * in the user's cache directory. NULL: off. */
const char *cop_conf_prefetch(const struct cop_conf *conf);

/* Splits --spill, which must be given, into directory and size (0 if it has none). -EINVAL with err
 * set. */
#define COP_CONF_DIR_SIZE 4096
int cop_conf_spill(const struct cop_conf *conf, char dir[COP_CONF_DIR_SIZE], uint64_t *size,
	struct cop_err *err);
/* How much of a cache of this size is set aside for the spill, i.e. for its index and for data on
 * the way to disk; 0 without --spill. */
uint64_t cop_conf_spill_memory(const struct cop_conf *conf, uint64_t cache_bytes);

/* Checks combinations of options and sets defaults that depend on other options (log_level,
 * discover). Returns -EINVAL with err set, naming the option and the remedy. */
int cop_conf_check(struct cop_conf *conf, struct cop_err *err);

/* Calls visit for each setting that differs from its default. */
void cop_conf_each_changed(const struct cop_conf *conf,
	void (*visit)(void *arg, const char *name, const char *value), void *arg);

/* The smallest cache that works with this chunk size and, if any, the spill. */
uint64_t cop_conf_cache_least(const struct cop_conf *conf);

#endif
