/* SPDX-License-Identifier: BSD-3-Clause */
/* conf: every setting of `copper mount` and `copper serve` in one struct, filled once from the
 * command line by the option table, checked once, then const. It examines nothing outside: the user
 * of a setting finds out whether a directory exists or a host answers. Strings point into argv. */
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
	COP_CONF_KERNEL_AHEAD_AUTO, /* off in one of eight jobs that are recorded */
	COP_CONF_KERNEL_AHEAD_ON,
	COP_CONF_KERNEL_AHEAD_OFF,
};
enum cop_conf_compress {
	COP_CONF_COMPRESS_AUTO, /* on where chunks cross a TCP network */
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
	COP_CONF_RANK_FILES_ROOT, /* those of rank 0 */
	COP_CONF_RANK_FILES_NONE,
};

struct cop_conf {
	const char *mountpoint; /* NULL for serve, and if the node is to create one */
	const char *source;     /* the tree at the origin; "/" */
	const char *hosts;      /* FILE or LIST; NULL: the scheduler's environment, else one node */
	const char *job_dir;    /* may be NULL */
	const char *net_type;   /* "tcp" */
	const char *address_book;    /* FILE or NULL */
	const char *secret_file;     /* may be NULL */
	const char *prefetch;        /* as given: FILE, "auto", "off", or NULL; see
					cop_conf_prefetch */
	uint64_t pack_limit;         /* bytes of the pack that --prefetch keeps; 0: none; 1 GiB */
	unsigned kernel_ahead;       /* enum cop_conf_kernel_ahead */
	const char *runtime_dir;     /* directory for the control socket; NULL: ctl chooses */
	const char *cpus;            /* list of processors, "near" or NULL */
	int64_t rank;                /* -1: Copper finds it out */
	uint16_t port;               /* of the rendezvous; 0: as the source of the hosts says */
	const char *fabric_port;     /* PORT or LOW-HIGH; NULL: the kernel chooses */
	uint16_t fabric_port_low;    /* of it, set by the check; 0: the kernel chooses */
	uint16_t fabric_port_high;   /* the same as low for a single port */
	unsigned log_level;          /* enum cop_log_level; 4 with a job directory, else 3 */
	unsigned log_type;           /* enum cop_log_type (conf does not include log) */
	unsigned address_source;     /* enum cop_conf_address_source, as given */
	unsigned compress;           /* enum cop_conf_compress */
	unsigned bundle;             /* enum cop_conf_bundle */
	uint32_t trees;              /* 0: automatic */
	uint32_t fanout;             /* 4 */
	uint32_t enoent_ttl_ms;      /* 2000, growing to */
	uint32_t enoent_most_ms;     /* 60000; enoent_ttl_ms if that was given */
	uint32_t peer_timeout_ms;    /* 3000 */
	uint32_t ready_timeout_ms;   /* 120000 */
	uint32_t origin_ops;         /* storage operations in flight; 64 */
	uint32_t listing_max;        /* names in a listing; 65536 */
	uint32_t profile_top_n;      /* paths per category in the reports; 0: none */
	uint32_t profile_interval_s; /* seconds between snapshots; 0: only at the end */
	unsigned rank_files;         /* enum cop_conf_rank_files: which nodes write reports */
	uint64_t cache_size;         /* bytes; 0: a tenth of memory */
	const char *spill;           /* DIR[,SIZE] or NULL; see cop_conf_spill */
	uint64_t max_cacheable;      /* bytes: larger files bypass the tree; 0: none do */
	uint64_t chunk;              /* bytes, a power of two; 1 MiB */
	uint64_t trace_limit;        /* bytes of a node's trace; 512 MiB */
	bool check;                  /* only check whether a start would work */
	bool json;                   /* the result of the check, for programs */
	bool foreground;
	bool insecure;
	bool allow_other;
	bool keep_symlinks;
	bool profile; /* operations; set by the check: also with top_n or paths_full */
	bool profile_paths_full;
	bool trace;                 /* each node writes its trace in the job directory */
	bool observe;               /* the kernel caches nothing: every request is seen */
	bool discover;              /* each node is asked for its address; set by the check */
	bool serve_only;            /* no mount */
	const char *store;          /* FILE of the run store; NULL: $COPPER_STORE, or none */
	struct cop_opt_list hidden; /* names that directories may have and not list; "none": no
				       other names, whatever the file system */
	struct cop_opt_list tags;   /* KEY=VALUE, for the run store */
	bool otel;                  /* rank 0 writes OpenTelemetry's files in the job directory */
	uint32_t store_interval_ms; /* between two points of telemetry; 5000 */
	uint32_t telemetry_ms;      /* between two samples of the machine for the store; 5000 */
	/* Without job_dir, the tasks of a step have two directories until their trees are ready:
	 * for the messages of nodes that cannot start, and, below it, for the secret of this tree.
	 * Both NULL: none. */
	const char *step_dir, *secret_dir;
	bool of_step;       /* without hosts: a launcher's tasks, on the hosts of their step */
	uint32_t step_tree; /* a number of this tree, since a step may have several at once */
};

/* The tables: cop_opt_start(&cop_conf_mount_table, argc, argv, &conf, &code) fills and checks
 * a struct cop_conf. */
extern const struct cop_opt_table cop_conf_mount_table;
extern const struct cop_opt_table cop_conf_serve_table;
/* Copper 1.0's long options with one dash, without -vpath. */
extern const struct cop_opt_old cop_conf_old[];

/* Every default, unchecked: for tests and callers without a command line. */
void cop_conf_init(struct cop_conf *conf, bool serve_only);

/* Whether --hidden none was given: listings are believed on any file system. */
bool cop_conf_trusts_listings(const struct cop_conf *conf);

/* FILE or "auto", as --prefetch or else $COPPER_PREFETCH says; "" if neither does: as auto, in the
 * user's cache directory; NULL: off. */
const char *cop_conf_prefetch(const struct cop_conf *conf);

/* The directory and the size in --spill, which was given; size 0: none was. -EINVAL with a
 * sentence.
 */
#define COP_CONF_DIR_SIZE 4096
int cop_conf_spill(const struct cop_conf *conf, char dir[COP_CONF_DIR_SIZE], uint64_t *size,
	struct cop_err *err);
/* How much of a cache of this size is for the spill: its index, and what is on its way to the disk;
 * 0 without --spill. */
uint64_t cop_conf_spill_memory(const struct cop_conf *conf, uint64_t cache_bytes);

/* Checks what depends on more than one option, and sets the defaults that depend on others
 * (log_level, discover). Returns -EINVAL with a sentence that names the option and says what to
 * do. */
int cop_conf_check(struct cop_conf *conf, struct cop_err *err);

/* Calls visit for every setting that differs from its default. */
void cop_conf_each_changed(const struct cop_conf *conf,
	void (*visit)(void *arg, const char *name, const char *value), void *arg);

/* The smallest cache size that works with this chunk size, and with the spill if there is one. */
uint64_t cop_conf_cache_least(const struct cop_conf *conf);

#endif
