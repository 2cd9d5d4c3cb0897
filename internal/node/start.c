/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of starts, mirrored by a list of stops. Every stop accepts what was never started. */
#include "node/node_priv.h"
#include "pin/pin.h"
#include "view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a node that has answered everyone may take to end: a read that hangs at the storage
 * cannot be interrupted, and must not keep the process. */
#define END_SECONDS 10
#define FLUSH_MS 1000

/* ---- who we are ---- */

static int find_hosts(struct cop_node *n, struct cop_err *err)
{
	struct cop_job_want want = {n->conf->hosts, n->conf->port, n->conf->rank, n->conf->of_step};

	return cop_job_find(&want, &n->hosts, &n->rank, err);
}

/* Rank 0 makes it. */
static bool no_secret_comes(void *ctx, struct cop_err *err)
{
	struct cop_node *n = ctx;
	const char *what = cop_node_interrupted(n);
	char why[COP_OUTCOME_WHY_SIZE];

	if (what)
		return cop_err_set(err, EINTR, "%s", what) != 0;
	return cop_join_failure_heard(n->join, cop_now_ms(), why) &&
	       cop_err_set(err, ECANCELED, "%s", why);
}

/* Rank 0 makes it, and removes it when all have read what is in it. */
static const char *secret_dir(const struct cop_node *n)
{
	return n->rank == 0 && !n->conf->job_dir ? n->conf->secret_dir : NULL;
}

static int make_secret_dir(const struct cop_node *n, struct cop_err *err)
{
	const char *dir = secret_dir(n);

	if (!dir || mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	return cop_err_set(err, errno,
		"cannot make %s, for the secret that several nodes need: %s; give a job directory that all of them see (-d DIR)",
		dir, strerror(errno));
}

static void drop_secret_dir(const struct cop_node *n)
{
	const char *dir = secret_dir(n);
	char path[4200];

	if (!dir || !n->secret.data)
		return;
	snprintf(path, sizeof(path), "%.4000s/secret", dir);
	unlink(path);
	rmdir(dir);
}

static int find_secret(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *conf = n->conf;
	struct cop_job_secret_from from = {conf->secret_file,
		conf->job_dir ? conf->job_dir : conf->secret_dir, n->rank, conf->ready_timeout_ms,
		no_secret_comes, n};
	int rc;

	if (n->topo.nodes == 1 || conf->insecure)
		return 0;
	rc = make_secret_dir(n, err);
	if (rc)
		return rc;
	rc = cop_job_secret(&from, &n->secret, err);
	if (rc)
		return rc;
	if (!n->secret.data)
		return cop_err_set(err, EINVAL,
			"several nodes need a secret that they share: give --secret-file FILE, or $COPPER_SECRET, or a job directory (-d DIR) in which the nodes keep one; --insecure does without");
	if (cop_wire_secret_from(n->secret.data, n->secret.len, &n->wire_secret))
		return cop_err_set(err, EINVAL,
			"the job's secret is shorter than 16 bytes; make one with 'head -c 32 /dev/urandom | base64'");
	return 0;
}

static int find_topology(struct cop_node *n, struct cop_err *err)
{
	n->topo.nodes = n->hosts.count ? n->hosts.count : 1;
	n->topo.fanout = n->conf->fanout;
	n->topo.trees = n->conf->trees ? n->conf->trees : 1;
	return cop_topo_check(&n->topo, err);
}

static int find_source(struct cop_node *n, struct cop_err *err)
{
	if (!realpath(n->conf->source, n->source))
		return cop_err_set(err, errno, "--source %s: %s", n->conf->source, strerror(errno));
	return 0;
}

static int open_log_file(struct cop_node *n, struct cop_err *err)
{
	char path[sizeof(n->job_dir) + 512], host[256] = "localhost";
	int rc;

	if (!n->conf->job_dir)
		return cop_log_open(n->conf->log_level, n->conf->log_type, NULL, err);
	rc = cop_job_dir_make(n->conf->job_dir, err);
	if (rc)
		return rc;
	/* The node will leave its working directory. */
	if (!realpath(n->conf->job_dir, n->job_dir))
		return cop_err_set(err, errno, "%s: %s", n->conf->job_dir, strerror(errno));
	rc = cop_job_dir_check(n->job_dir, err);
	if (rc)
		return rc;
	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/logs/%s-%d-output.log", n->job_dir,
		n->hosts.count ? cop_node_host(n, n->rank) : host, (int)getpid());
	rc = cop_log_open(n->conf->log_level, n->conf->log_type, path, err);
	n->logging = rc == 0;
	if (n->logging)
		cop_join_use_dir(n->join, n->job_dir, path);
	return rc;
}

/* What the node was told, in the lines that sites know (copper-formats(5)). */
static void log_settings(const struct cop_conf *c)
{
	cop_log_info("user-facing log_level: %u", c->log_level);
	cop_log_info("profile_metrics: %s", c->profile ? "enabled" : "disabled");
	cop_log_info("profile_top_n: %" PRIu32, c->profile_top_n);
	cop_log_info("profile_paths_full: %s", c->profile_paths_full ? "enabled" : "disabled");
	cop_log_debug("fanout=%" PRIu32 " trees=%" PRIu32 " chunk=%" PRIu64 " cache_size=%" PRIu64
		      " enoent_ttl_ms=%" PRIu32 " max_cacheable=%" PRIu64
		      " peer_timeout_ms=%" PRIu32 " origin_ops=%" PRIu32
		      " (0: as the node finds fit)",
		c->fanout, c->trees, c->chunk, c->cache_size, c->enoent_ttl_ms, c->max_cacheable,
		c->peer_timeout_ms, c->origin_ops);
}

static int open_log(struct cop_node *n, struct cop_err *err)
{
	int rc = open_log_file(n, err);

	if (!rc)
		cop_log_info("copper %s (%s) rank=%u nodes=%u source=%s mountpoint=%s", cop_version,
			cop_build, n->rank, n->topo.nodes, n->source,
			*n->mountpoint ? n->mountpoint : "none");
	if (!rc)
		log_settings(n->conf);
	return rc;
}

/* ---- processors ---- */

/* First of all: threads are born on the processors of the one that starts them. */
static int pin(struct cop_node *n, struct cop_err *err)
{
	return cop_pin_listed(n->conf->cpus, err);
}

/* Which card it is shows when the endpoint is open. */
static int pin_near(struct cop_node *n, struct cop_err *err)
{
	(void)err;
	cop_pin_near(n->conf->cpus, n->rpc ? cop_rpc_fabric(n->rpc) : NULL);
	return 0;
}

/* ---- the tables and the storage ---- */

/* Rank 0 alone reads and writes the file. Without a log of its own the node has said on standard
 * error what it logs. */
static int load_manifest(struct cop_node *n, struct cop_err *err)
{
	struct cop_prefetch_manifest_conf conf = {.path = n->conf->prefetch,
		.source = n->source,
		.record = !n->conf->serve_only,
		.to_stderr = n->logging};

	if (!conf.path || n->rank != 0)
		return 0;
	return cop_prefetch_manifest_load(&conf, &n->manifest, err);
}

static int open_tally(struct cop_node *n, struct cop_err *err)
{
	struct cop_tally_conf conf = {
		.job = cop_node_tally_job(n), .rank = n->rank, .conf = n->conf, .stats = &n->stats};

	return cop_tally_new(&conf, &n->tally, err);
}

static int open_cache(struct cop_node *n, struct cop_err *err)
{
	n->cache_bytes =
		cop_cache_size(n->conf->cache_size, cop_conf_cache_least(n->conf), n->cache_note);
	n->cache = cop_cache_new(n->cache_bytes, &n->stats);
	if (!n->cache)
		return cop_err_set(err, ENOMEM, "out of memory for the cache");
	cop_tally_use_cache(n->tally, n->cache);
	return 0;
}

static int open_origin(struct cop_node *n, struct cop_err *err)
{
	struct cop_origin_conf conf = {.source = n->source,
		.max_ops = n->conf->origin_ops,
		.listing_max = n->conf->listing_max,
		.listing_attrs = 1024,
		.stats = &n->stats};

	return cop_origin_open(&conf, &n->origin, err);
}

/* ---- the idea and its mount ---- */

/* LZ4 packs about half a gigabyte a second on a core: worth it on a TCP network between machines,
 * not on a faster fabric or within one machine. */
static bool compresses(const struct cop_node *n)
{
	const char *address = n->rpc ? cop_fabric_address(cop_rpc_fabric(n->rpc)) : "";

	if (n->conf->compress != COP_CONF_COMPRESS_AUTO)
		return n->conf->compress == COP_CONF_COMPRESS_ON;
	return strncmp(address, "ofi+tcp://", 10) == 0 &&
	       strncmp(address, "ofi+tcp://127.", 14) != 0;
}

static uint64_t sum_seed(const struct cop_node *n)
{
	uint8_t mac[32];
	uint64_t seed;

	cop_wire_mac(&n->wire_secret, "chunk sums", "", 0, mac);
	memcpy(&seed, mac, sizeof(seed));
	return seed;
}

static int forget_names(void *ctx, const char *dir, void (*then)(void *arg), void *arg)
{
	struct cop_node *n = ctx;
	struct cop_fs *fs = atomic_load(&n->fs);

	if (fs)
		return cop_fs_forget_in(fs, dir, then, arg);
	then(arg);
	return 0;
}

static int manifest_piece(void *ctx, uint64_t index, void **data, size_t *len)
{
	struct cop_node *n = ctx;

	return cop_prefetch_manifest_piece(n->manifest, index, data, len);
}

static int open_coop(struct cop_node *n, struct cop_err *err)
{
	struct cop_coop_conf conf = {.topo = n->topo,
		.rank = n->rank,
		.chunk_bytes = n->conf->chunk,
		.enoent_ttl_ms = n->conf->enoent_ttl_ms,
		.compress = compresses(n),
		.sum_seed = sum_seed(n),
		.cache = n->cache,
		.origin = n->origin,
		.rpc = n->rpc,
		.manifest = manifest_piece,
		.forget_names = forget_names,
		.ctx = n,
		.stats = &n->stats};

	atomic_store(&n->coop, cop_coop_new(&conf));
	if (!n->coop)
		return cop_err_set(err, ENOMEM, "out of memory");
	cop_gate_open(&n->gate);
	return 0;
}

static void forgotten(void *arg)
{
	(void)arg;
}

static int open_fs(struct cop_node *n, struct cop_err *err)
{
	struct cop_fs_conf conf = {.mountpoint = n->mountpoint,
		.source = n->source,
		.keep_symlinks = n->conf->keep_symlinks,
		.allow_other = n->conf->allow_other,
		.observe = n->conf->observe,
		.enoent_ttl_ms = n->conf->enoent_ttl_ms,
		.max_cacheable = n->conf->max_cacheable,
		.coop = n->coop,
		.cache = n->cache,
		.origin = n->origin,
		.stats = &n->stats,
		.record = cop_prefetch_manifest_record(n->manifest),
		.prof = cop_tally_prof(n->tally)};

	struct cop_fs *fs = NULL;
	int rc;

	cop_place_renew(n->place);
	rc = n->conf->serve_only ? 0 : cop_fs_start(&conf, &fs, err);

	atomic_store(&n->fs, fs);
	/* Programs may have looked at the mount already. */
	if (fs && atomic_load(&n->forgot_early))
		cop_fs_invalidate(fs, "", forgotten, NULL);
	return rc;
}

static void start_prefetch(struct cop_node *n)
{
	struct cop_prefetch_conf conf = {.coop = n->coop,
		.cache = n->cache,
		.stats = &n->stats,
		.whole_file_max = COP_MAX(COP_COOP_GROUP_BYTES, n->conf->chunk),
		.max_cacheable = n->conf->max_cacheable};
	struct cop_prefetch *p = NULL;
	int rc;

	if (!n->conf->prefetch)
		return;
	rc = cop_prefetch_start(&conf, &p);
	if (rc)
		cop_log_warn("nothing is prefetched error=\"%s\"", strerror(-rc));
	n->prefetch = p;
}

static int join_tree(struct cop_node *n, struct cop_err *err)
{
	uint64_t asked_ns = cop_now_ns();
	int rc;

	cop_log_info("provider registration completed after %llu us",
		(unsigned long long)(cop_now_ns() - n->started_ns) / 1000);
	if (n->rank == cop_topo_root(&n->topo, 0))
		cop_node_write_tree(n, NULL);
	rc = cop_node_join_wait(n, err);
	drop_secret_dir(n);
	if (!rc) {
		cop_log_info("parent readiness confirmed after %llu us",
			(unsigned long long)(cop_now_ns() - asked_ns) / 1000);
		start_prefetch(n);
	}
	/* Whoever was interrupted is being ended already. */
	if (rc != -EINTR)
		cop_node_tell_below(n);
	return rc;
}

/* Shells give 1024 for the sake of programs that use select. Here each child and each file at the
 * storage takes one. */
static void raise_file_limit(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most))
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

static int init(struct cop_node *n, struct cop_err *err)
{
	n->started_ns = cop_now_ns();
	raise_file_limit();
	return cop_node_join_open(n, err);
}

/* What programs run in shares it (copper-design(7), Views). Without it they only have their
 * variables rewritten, and it is up to them whether that will do. */
static int open_view_ns(struct cop_node *n, struct cop_err *err)
{
	struct cop_err why = {0};
	int fd = n->conf->serve_only ? -ENOSYS : cop_view_ns_open(&why);

	(void)err;
	n->view_ns = fd < 0 ? -1 : fd;
	if (fd < 0 && fd != -ENOSYS)
		cop_log_info("copper run can only use the view env: %s", why.text);
	return 0;
}

/* The control socket comes before the mount: whoever sees the mount can stop it. */
int cop_node_start(struct cop_node *n, struct cop_err *err)
{
	static int (*const starts[])(struct cop_node *, struct cop_err *) = {
		pin,
		find_hosts,
		find_topology,
		init,
		cop_node_treeop_start,
		find_source,
		open_log,
		open_view_ns,
		load_manifest,
		find_secret,
		open_tally,
		open_cache,
		open_origin,
		cop_node_open_rpc,
		pin_near,
		cop_node_open_rendezvous,
		open_coop,
		cop_node_control_start,
		open_fs,
		join_tree,
	};
	int rc = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(starts) && !rc; i++)
		rc = starts[i](n, err);
	return rc;
}

void cop_node_stop(struct cop_node *n)
{
	alarm(END_SECONDS);
	cop_gate_close(&n->gate);
	if (n->reach)
		cop_reach_close_door(n->reach);
	cop_fs_stop(n->fs, 0, NULL);
	cop_prefetch_stop(n->prefetch);
	if (n->coop)
		cop_coop_close(n->coop);
	cop_node_leave(n);
	cop_ctl_stop(n->ctl);
	cop_command_free(n->commands);
	if (n->rpc)
		cop_fabric_flush(cop_rpc_fabric(n->rpc), FLUSH_MS);
	if (n->origin)
		cop_origin_close(n->origin);
	if (n->rpc)
		cop_rpc_close(n->rpc);
	cop_fs_free(n->fs);
	cop_prefetch_free(n->prefetch);
	cop_prefetch_manifest_free(n->manifest);
	cop_coop_free(n->coop);
	cop_cache_free(n->cache);
	cop_tally_free(n->tally);
	cop_treeop_free(n->treeop);
	cop_join_free(n->join);
	cop_reach_free(n->reach);
	drop_secret_dir(n);
	cop_job_secret_free(&n->secret);
	cop_job_hosts_free(&n->hosts);
	cop_defer_fini(&n->deferred);
	cop_gate_fini(&n->gate);
	cop_log_close();
	alarm(0);
}
