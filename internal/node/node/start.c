/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a node's modules, in order, and configures them. */
#include "node/node/node_priv.h"
#include "pin.h"
#include "mount/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mountpoint(const struct cop_node *n)
{
	return n->how->place->path;
}

static const char *own_host(const struct cop_node *n)
{
	return cop_job_host_name(&n->hosts, n->rank);
}

static int no_memory(struct cop_err *err)
{
	return cop_err_set(err, ENOMEM, "out of memory");
}

/* ---- the main thread ---- */

static int ready_main_thread(struct cop_node *n, struct cop_err *err)
{
	cop_gate_init(&n->gate);
	cop_defer_init(&n->deferred, cop_waker_wake, &n->waker);
	return cop_waker_init(&n->waker, n->how->report_fd, err);
}

/* Runs before any thread is created, because threads inherit the affinity. */
static int pin_memory(struct cop_node *n, struct cop_err *err)
{
	return cop_pin_listed(n->conf->cpus, err);
}

/* Which network card is used is known only once the endpoint is open. */
static int pin_near(struct cop_node *n, struct cop_err *err)
{
	(void)err;
	cop_pin_near(n->conf->cpus, n->rpc ? cop_rpc_fabric(n->rpc) : NULL);
	return 0;
}

/* ---- identity ---- */

static int find_hosts(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *c = n->conf;
	struct cop_job_want want = {c->hosts, c->port, c->rank, c->of_step, c->step_tree};

	return cop_job_find(&want, &n->hosts, &n->rank, err);
}

static int find_topology(struct cop_node *n, struct cop_err *err)
{
	n->topo.nodes = n->hosts.count ? n->hosts.count : 1;
	n->topo.fanout = n->conf->fanout;
	n->topo.trees = n->conf->trees ? n->conf->trees : n->topo.nodes;
	cop_secret_init(&n->secret, n->conf, n->rank, n->topo.nodes);
	return cop_topo_check(&n->topo, err);
}

static int find_secret(struct cop_node *n, struct cop_err *err)
{
	return cop_secret_find(&n->secret, cop_barrier_is_in_vain, n->barrier, err);
}

static int find_source(struct cop_node *n, struct cop_err *err)
{
	if (!realpath(n->conf->source, n->source))
		return cop_err_set(err, errno, "--source %s: %s", n->conf->source, strerror(errno));
	return 0;
}

static int open_barrier(struct cop_node *n, struct cop_err *err)
{
	struct cop_barrier_conf conf = {.conf = n->conf,
		.rank = n->rank,
		.topo = n->topo,
		.hosts = &n->hosts,
		.started_ns = n->started_ns,
		.waker = &n->waker,
		.deferred = &n->deferred};

	n->barrier = cop_barrier_new(&conf);
	return n->barrier ? 0 : no_memory(err);
}

/* ---- log and reports ---- */

static int open_log(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *c = n->conf;
	int rc;

	if (!c->job_dir && c->step_dir)
		cop_start_hear_in(cop_barrier_join(n->barrier), c->step_dir);
	rc = cop_joblog_open(c, n->hosts.count ? own_host(n) : NULL, &n->log, err);
	if (rc)
		return rc;
	if (n->log.path[0])
		cop_start_use_dir(cop_barrier_join(n->barrier), n->log.job_dir, n->log.path);
	/* Without a job directory there is no place for the file. */
	if (!n->log.job_dir[0]) {
		cop_telemetry_free(n->telemetry);
		n->telemetry = NULL;
	}
	cop_joblog_begin(c, n->rank, n->topo.nodes, n->source, mountpoint(n));
	return 0;
}

static int start_sampler(struct cop_node *n, struct cop_err *err)
{
	struct cop_sampler_conf conf = {.traces = n->conf->trace,
		.limit = n->conf->trace_limit,
		.job_dir = n->log.job_dir,
		.host = n->hosts.count ? own_host(n) : NULL,
		.source = n->source,
		.topo = n->topo,
		.rank = n->rank,
		.stats = &n->stats,
		.gate = &n->gate};

	_Static_assert(
		COP_CONF_TRACE_MIN >= COP_TRACER_LIMIT_MIN, "what may be asked for can be kept");
	return cop_sampler_start(&conf, &n->sampler, err);
}

static int open_tally(struct cop_node *n, struct cop_err *err)
{
	struct cop_tally_conf conf = {.job = {n->log.job_dir, n->source, n->topo, &n->hosts},
		.rank = n->rank,
		.conf = n->conf,
		.stats = &n->stats};

	return cop_tally_new(&conf, &n->tally, err);
}

/* ---- the tables and the storage ---- */

/* Only rank 0 reads and writes the manifest. A node without its own log logs to standard error, so
 * it need not print there as well. */
static int load_manifest(struct cop_node *n, struct cop_err *err)
{
	struct cop_prefetch_manifest_conf conf = {.path = cop_conf_prefetch(n->conf),
		.source = n->source,
		.record = !n->conf->serve_only,
		.chunk_bytes = n->conf->chunk,
		.pack_limit = n->conf->pack_limit,
		.to_stderr = n->log.path[0]};

	if (!conf.path || n->rank != 0)
		return 0;
	return cop_prefetch_manifest_load(&conf, &n->manifest, err);
}

static int open_spill(struct cop_node *n, uint64_t memory, struct cop_err *err)
{
	char dir[COP_CONF_DIR_SIZE];
	struct cop_spill_conf conf = {.dir = dir,
		.memory = memory,
		.sum_seed = cop_wire_seed(&n->secret.wire, "chunk sums"),
		.cache = n->cache,
		.stats = &n->stats};
	int rc = cop_conf_spill(n->conf, dir, &conf.size, err);

	return rc ? rc : cop_spill_open(&conf, n->spill_note, &n->spill, err);
}

static int open_cache(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *c = n->conf;
	uint64_t bytes = cop_cache_size(c->cache_size, cop_conf_cache_least(c), n->cache_note),
		 for_spill = cop_conf_spill_memory(c, bytes);

	n->cache = cop_cache_new(bytes - for_spill, &n->stats);
	if (!n->cache)
		return cop_err_set(err, ENOMEM, "out of memory for the cache");
	cop_cache_trace(n->cache, cop_sampler_tracer(n->sampler));
	cop_tally_use_cache(n->tally, n->cache);
	return c->spill ? open_spill(n, for_spill, err) : 0;
}

/* The workers end when the requests they serve do (answer_all). */
static int open_origin(struct cop_node *n, struct cop_err *err)
{
	struct cop_origin_conf conf = {.source = n->source,
		.max_ops = n->conf->origin_ops,
		.listing_max = n->conf->listing_max,
		.listing_attrs = COP_ORIGIN_LISTING_ATTRS,
		.trusts_listings = cop_conf_trusts_listings(n->conf),
		.stats = &n->stats,
		.tracer = cop_sampler_tracer(n->sampler),
		.telemetry = n->telemetry};

	return cop_origin_open(&conf, &n->origin, err);
}

/* ---- other nodes and commands ---- */

static void fill_record(struct cop_node *n)
{
	n->record = (struct cop_record){.conf = n->conf,
		.job_dir = n->log.job_dir,
		.source = n->source,
		.hosts = &n->hosts,
		.secret = &n->secret.job,
		.topo = n->topo,
		.at = {n->conf->runtime_dir, mountpoint(n), own_host(n),
			cop_job_host_port(&n->hosts, n->rank, n->conf->port)}};
	if (n->topo.nodes > 1)
		n->record.config_hash =
			cop_reach_config_hash(&n->topo, n->conf->chunk, n->source, &n->hosts);
}

static int open_part(struct cop_node *n, struct cop_err *err)
{
	struct cop_part_conf conf = {.status = {.rank = n->rank,
					     .nodes = n->topo.nodes,
					     .prefetches = cop_conf_prefetch(n->conf) != NULL,
					     .host = own_host(n),
					     .mountpoint = mountpoint(n),
					     .source = n->source,
					     .started_ns = n->started_ns,
					     .stats = &n->stats,
					     .cache = n->cache,
					     .spill = n->spill,
					     .origin = n->origin},
		.record = &n->record,
		.stats = &n->stats,
		.user_ns = n->view_ns,
		.rpc = &n->rpc,
		.follow = &n->follow,
		.job_dir = n->log.job_dir,
		.environment = &n->environment,
		.manifest = n->manifest,
		.tally = n->tally,
		.telemetry = n->telemetry,
		.join = cop_barrier_join(n->barrier),
		.gate = &n->gate,
		.deferred = &n->deferred,
		.waker = &n->waker};

	if (n->conf->telemetry_ms && cop_runlog_is_wanted(n->conf))
		conf.machine = n->machine = cop_machine_new("", n->conf->telemetry_ms);
	fill_record(n);
	conf.programs = n->programs = cop_programs_new(n->rank);
	n->part = n->programs ? cop_part_new(&conf) : NULL;
	return n->part ? 0 : no_memory(err);
}

static int open_net(struct cop_node *n, struct cop_err *err)
{
	struct cop_net_conf conf = {.conf = n->conf,
		.topo = n->topo,
		.rank = n->rank,
		.hosts = &n->hosts,
		.job_dir = n->log.job_dir,
		.secret = &n->secret.wire,
		.config_hash = n->record.config_hash,
		.stats = &n->stats,
		.rpc = &n->rpc,
		.gate = &n->gate,
		.join = cop_barrier_join(n->barrier),
		.treeop = cop_part_treeop(n->part),
		.sampler = n->sampler,
		.telemetry = n->telemetry};

	if (n->topo.nodes == 1)
		return 0;
	n->net = cop_net_new(&conf);
	cop_barrier_use_net(n->barrier, n->net);
	return n->net ? cop_net_open(n->net, err) : no_memory(err);
}

static int listen_to_others(struct cop_node *n, struct cop_err *err)
{
	return n->net ? cop_net_listen(n->net, err) : 0;
}

static int listen_to_commands(struct cop_node *n, struct cop_err *err)
{
	struct cop_command_conf conf = {.topo = n->topo,
		.rank = n->rank,
		.host = own_host(n),
		.tree = n->tree,
		.last_pid = n->how->last_pid,
		.job_dir = n->log.job_dir,
		.counts = cop_tally_prof(n->tally) != NULL,
		.rank_files = n->conf->rank_files,
		.ops = &cop_part_commands,
		.ctx = n->part,
		.treeop = cop_part_treeop(n->part),
		.gate = &n->gate,
		.deferred = &n->deferred};

	strcpy(n->tree, "-");
	if (n->topo.nodes > 1)
		cop_reach_tree_name(&n->secret.wire, n->record.config_hash, n->tree);
	n->commands = cop_command_new(&conf);
	return n->commands ? cop_command_listen(n->commands, &n->record.at, n->how->place, err)
			   : no_memory(err);
}

/* ---- fetch and the mount ---- */

static int open_fetch(struct cop_node *n, struct cop_err *err)
{
	struct cop_fetch_conf conf = {.topo = n->topo,
		.rank = n->rank,
		.chunk_bytes = n->conf->chunk,
		.striped_bytes = COP_FETCH_STRIPED_BYTES,
		.enoent_ttl_ms = n->conf->enoent_ttl_ms,
		.enoent_most_ms = n->conf->enoent_most_ms,
		.compress = cop_net_compresses(n->conf, n->rpc),
		.bundle = n->conf->bundle == COP_CONF_BUNDLE_AUTO,
		.max_cacheable = n->conf->max_cacheable,
		.sum_seed = cop_wire_seed(&n->secret.wire, "chunk sums"),
		.cache = n->cache,
		.origin = n->origin,
		.spill = n->spill,
		.pack = cop_prefetch_manifest_pack(n->manifest),
		.rpc = n->rpc,
		.manifest = cop_part_manifest_piece,
		.forget_names = cop_part_forget_names,
		.ctx = n->part,
		.stats = &n->stats,
		.tracer = cop_sampler_tracer(n->sampler),
		.telemetry = n->telemetry};

	n->fetch = cop_fetch_new(&conf);
	if (!n->fetch)
		return no_memory(err);
	cop_part_use_fetch(n->part, n->fetch);
	cop_sampler_use(n->sampler, n->cache, n->rpc);
	if (n->net)
		cop_net_use_fetch(n->net, n->fetch);
	cop_gate_open(&n->gate);
	return 0;
}

/* All programs that copper run starts share one namespace (copper-design(7), Views). Without it,
 * copper run can only rewrite variables, and decides whether that is enough. */
static int open_view_ns(struct cop_node *n, struct cop_err *err)
{
	(void)err;
	n->view_ns = n->conf->serve_only ? -1 : cop_view_ns_open();
	return 0;
}

static void opened(void *arg, const char *path)
{
	cop_prefetch_opened(atomic_load(&((struct cop_node *)arg)->prefetch), path);
}

static int open_fs(struct cop_node *n, struct cop_err *err)
{
	const struct cop_conf *c = n->conf;
	struct cop_fuse_conf conf = {.mountpoint = mountpoint(n),
		.source = n->source,
		.keep_symlinks = c->keep_symlinks,
		.hidden = &c->hidden,
		.allow_other = c->allow_other,
		.observe = c->observe,
		.enoent_ttl_ms = c->enoent_ttl_ms,
		.max_cacheable = c->max_cacheable,
		.fetch = n->fetch,
		.cache = n->cache,
		.origin = n->origin,
		.stats = &n->stats,
		.record = cop_prefetch_manifest_record(n->manifest),
		.opened = cop_conf_prefetch(c) ? opened : NULL,
		.arg = n,
		.prof = cop_tally_prof(n->tally),
		.tracer = cop_sampler_tracer(n->sampler)};
	int rc;

	cop_mountdir_renew(n->how->place);
	rc = c->serve_only ? 0 : cop_fuse_start(&conf, &n->fs, err);
	cop_part_use_mount(n->part, n->fs);
	if (n->fs)
		cop_waker_watch_mount(&n->waker, cop_fuse_gone_fd(n->fs));
	return rc;
}

/* On failure, the job continues without the warning about bypassing programs. */
static void look_past(struct cop_node *n)
{
	struct cop_bypass_conf conf = {.proc = "/proc",
		.source = n->source,
		.mountpoint = mountpoint(n),
		.every_ms = COP_BYPASS_EVERY_MS,
		.stats = &n->stats};
	int rc = n->fs ? cop_bypass_start(&conf, &n->past) : 0;

	if (rc)
		cop_log_warn("programs that bypass the mount are not detected error=\"%s\"",
			strerror(-rc));
}

/* ---- data from a manifest ---- */

/* One in so many recorded jobs pushes no pages into the kernel, so that its recording contains all
 * accesses. */
#define SEEN_JOBS 8
/* Up to available memory / AHEAD_PART is pushed into the kernel. */
#define AHEAD_PART 4

static bool puts_into_kernel(const struct cop_node *n)
{
	const struct cop_conf *c = n->conf;

	if (!n->fs || c->kernel_ahead == COP_CONF_KERNEL_AHEAD_OFF || c->observe ||
		cop_prof_level(cop_tally_prof(n->tally)) >= COP_PROF_TOP)
		return false;
	return c->kernel_ahead == COP_CONF_KERNEL_AHEAD_ON ||
	       !cop_prefetch_manifest_renews(n->manifest) ||
	       cop_hash64(&n->started_ns, sizeof(n->started_ns), 0) % SEEN_JOBS;
}

static void begin_ahead(void *arg, uint32_t tid)
{
	cop_fuse_own_thread(((struct cop_node *)arg)->fs, tid);
}

static uint64_t waiting_programs(void *arg)
{
	uint64_t waiting, wait_us;

	cop_fuse_waits(((struct cop_node *)arg)->fs, &waiting, &wait_us);
	return waiting;
}

static void used_sides(void *arg, bool *bare, bool *view)
{
	cop_fuse_used(((struct cop_node *)arg)->fs, bare, view);
}

static void start_kernel_ahead(struct cop_node *n)
{
	struct cop_kernelahead_conf conf = {.mountpoint = mountpoint(n),
		.view = COP_FUSE_VIEW_ROOT,
		.begin = begin_ahead,
		.waiting = waiting_programs,
		.used = used_sides,
		.arg = n,
		.most_bytes = COP_MIN(cop_memory_available(""), cop_memory_limit("")) / AHEAD_PART};
	int rc = puts_into_kernel(n) ? cop_kernelahead_start(&conf, &n->ahead) : 0;

	if (rc)
		cop_log_warn("nothing is put into the kernel ahead error=\"%s\"", strerror(-rc));
	if (n->ahead)
		cop_prefetch_manifest_hide(n->manifest);
}

static void have(
	void *arg, enum cop_manifest_kind kind, const char *path, uint64_t start, uint64_t end)
{
	struct cop_node *n = arg;

	if (kind == COP_MANIFEST_FILE)
		cop_kernelahead_file(n->ahead, path, start, end);
	else if (kind == COP_MANIFEST_DIR)
		cop_kernelahead_dir(n->ahead, path);
	else
		cop_kernelahead_name(n->ahead, path);
}

static void start_prefetch(struct cop_node *n)
{
	const char *c = cop_conf_prefetch(n->conf);
	struct cop_prefetch_conf conf = {.fetch = n->fetch,
		.cache = n->cache,
		.stats = &n->stats,
		.whole_file_max = COP_MAX(COP_FETCH_GROUP_BYTES, n->conf->chunk),
		.max_cacheable = n->conf->max_cacheable,
		.tracer = cop_sampler_tracer(n->sampler),
		.forming = n->rank == cop_topo_root(&n->topo, 0),
		.by_part = c && (!*c || strcmp(c, "auto") == 0),
		.telemetry = n->telemetry};
	struct cop_prefetch *p = NULL;
	int rc;

	if (!c)
		return;
	start_kernel_ahead(n);
	conf.have = n->ahead ? have : NULL;
	conf.arg = n;
	rc = cop_prefetch_start(&conf, &p);
	if (rc)
		cop_log_warn("nothing is prefetched error=\"%s\"", strerror(-rc));
	atomic_store(&n->prefetch, p);
	cop_part_use_prefetch(n->part, p);
}

static uint64_t begun_parts(void *arg)
{
	return cop_prefetch_begun(atomic_load(&((struct cop_node *)arg)->prefetch));
}

static void start_pack(struct cop_node *n)
{
	struct cop_prefetch_pack_conf conf = {.manifest = n->manifest,
		.fetch = n->fetch,
		.cache = n->cache,
		.origin = n->origin,
		.begun = begun_parts,
		.arg = n};

	n->pack = cop_prefetch_pack_start(&conf);
}

static int join_tree(struct cop_node *n, struct cop_err *err)
{
	uint64_t asked_ns = cop_now_ns();
	bool is_root = n->rank == cop_topo_root(&n->topo, 0);
	int rc;

	cop_log_info("provider registration completed after %llu us",
		(unsigned long long)(cop_now_ns() - n->started_ns) / 1000);
	if (is_root) {
		cop_record_write(&n->record);
		start_prefetch(n);
	}
	rc = cop_barrier_wait(n->barrier, cop_part_treeop(n->part), err);
	cop_telemetry_phase(n->telemetry, COP_TELEMETRY_BARRIER);
	if (!rc) {
		int64_t began_ns, unix_ns;

		cop_start_job_began(cop_barrier_join(n->barrier), &began_ns, &unix_ns);
		cop_telemetry_began(n->telemetry, began_ns, unix_ns);
		cop_secret_shared(&n->secret);
		cop_log_info("parent readiness confirmed after %llu us",
			(unsigned long long)(cop_now_ns() - asked_ns) / 1000);
		look_past(n);
		if (!is_root)
			start_prefetch(n);
		cop_prefetch_formed(n->prefetch);
		start_pack(n);
	}
	/* A node that was interrupted is already ending. */
	if (rc != -EINTR)
		cop_barrier_tell_below(n->barrier);
	return rc;
}

/* ---- all of it ---- */

/* The control socket is opened before the mount, so that a user who sees the mount can stop it. */
int cop_node_start(struct cop_node *n, struct cop_err *err)
{
	static const struct {
		int (*start)(struct cop_node *, struct cop_err *);
		enum cop_telemetry_phase phase;
	} starts[] = {
		{ready_main_thread, COP_TELEMETRY_PREPARE}, {pin_memory, COP_TELEMETRY_PREPARE},
		{find_hosts, COP_TELEMETRY_PREPARE}, {find_topology, COP_TELEMETRY_PREPARE},
		{open_barrier, COP_TELEMETRY_PREPARE}, {find_source, COP_TELEMETRY_PREPARE},
		{open_log, COP_TELEMETRY_PREPARE}, {cop_node_choose_run, COP_TELEMETRY_PREPARE},
		{open_view_ns, COP_TELEMETRY_PREPARE}, {start_sampler, COP_TELEMETRY_PREPARE},
		{load_manifest, COP_TELEMETRY_SECRET}, {find_secret, COP_TELEMETRY_SECRET},
		{open_tally, COP_TELEMETRY_CACHE}, {open_cache, COP_TELEMETRY_CACHE},
		{open_origin, COP_TELEMETRY_STORAGE}, {open_part, COP_TELEMETRY_FABRIC},
		{open_net, COP_TELEMETRY_FABRIC}, {pin_near, COP_TELEMETRY_FABRIC},
		{listen_to_others, COP_TELEMETRY_FABRIC}, {open_fetch, COP_TELEMETRY_MOUNT},
		{listen_to_commands, COP_TELEMETRY_MOUNT}, {open_fs, COP_TELEMETRY_MOUNT},
		{join_tree, COP_TELEMETRY_TELL}, /* includes the barrier */
	};
	int rc = 0;

	n->started_ns = cop_now_ns();
	n->telemetry = cop_telemetry_new(n->started_ns);
	for (size_t i = 0; i < COP_ARRAY_SIZE(starts) && !rc; i++) {
		rc = starts[i].start(n, err);
		cop_telemetry_phase(n->telemetry, starts[i].phase);
	}
	if (!rc)
		cop_telemetry_event(n->telemetry, COP_TELEMETRY_READY, "%s", "");
	return rc;
}
