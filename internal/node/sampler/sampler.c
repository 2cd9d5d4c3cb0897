/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/sampler/sampler.h"

#include <fcntl.h>

#include "base/log/log.h"

struct cop_sampler {
	struct cop_gate *gate;
	const struct cop_stats *stats;
	struct cop_tracer *tracer; /* NULL: no trace */
	struct cop_skew *skew;
	struct cop_cache *cache; /* constant once the gate is open */
	struct cop_rpc *rpc;
};

static int64_t now_us(void *ctx)
{
	struct cop_sampler *s = ctx;

	return cop_tracer_now_us(s->tracer);
}

static void note_measured(void *ctx, int64_t offset_us, int64_t rtt_us)
{
	struct cop_sampler *s = ctx;

	cop_tracer_clock(s->tracer, offset_us, rtt_us);
	cop_log_debug("clock ahead_us=%lld rtt_us=%lld", (long long)offset_us, (long long)rtt_us);
}

/* The resident memory of this process. */
static int64_t resident_bytes(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "", *rest = text;
	long pages = 0;

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) > 0) {
		strtol(text, &rest, 10);
		pages = strtol(rest, NULL, 10);
	}
	close(fd);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void put_counter(
	struct cop_sampler *s, const char *name, const struct cop_tracer_arg *arg, unsigned args)
{
	struct cop_tracer_event e = {.phase = COP_TRACER_COUNTER,
		.name = name,
		.begin_ns = cop_now_ns(),
		.arg = arg,
		.args = args};

	cop_tracer_event(s->tracer, &e);
}

static void count_memory(struct cop_sampler *s)
{
	struct cop_cache_usage usage = {0};
	struct cop_tracer_arg args[] = {
		{.key = "resident", .value = resident_bytes()}, {.key = "cached"}};

	cop_cache_usage(s->cache, &usage);
	args[1].value = (int64_t)usage.used_bytes;
	put_counter(s, "memory", args, COP_ARRAY_SIZE(args));
}

/* Writes cumulative sums, so that a missing second loses nothing. */
static void count_work(struct cop_sampler *s)
{
	static const enum cop_counter requests[] = {COP_FUSE_LOOKUP, COP_FUSE_GETATTR,
		COP_FUSE_READLINK, COP_FUSE_OPEN, COP_FUSE_READ, COP_FUSE_RELEASE, COP_FUSE_OPENDIR,
		COP_FUSE_READDIR, COP_FUSE_RELEASEDIR, COP_FUSE_STATFS, COP_FUSE_IOCTL,
		COP_FUSE_LSEEK, COP_FUSE_GETXATTR, COP_FUSE_LISTXATTR, COP_FUSE_REFUSED};
	const struct cop_stats *stats = s->stats;
	int64_t programs = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(requests); i++)
		programs += (int64_t)cop_stats_get(stats, requests[i]);
	put_counter(s, "requests",
		(const struct cop_tracer_arg[]){{.key = "programs", .value = programs},
			{.key = "parents",
				.value = (int64_t)cop_stats_get(stats, COP_FABRIC_REQUESTS_SENT)},
			{.key = "children",
				.value = (int64_t)cop_stats_get(stats, COP_FABRIC_REQUESTS_SERVED)},
			{.key = "origin",
				.value = (int64_t)cop_stats_get(stats, COP_ORIGIN_OPERATIONS)}},
		4);
	put_counter(s, "bytes",
		(const struct cop_tracer_arg[]){
			{.key = "programs",
				.value = (int64_t)cop_stats_get(stats, COP_FUSE_READ_BYTES)},
			{.key = "in", .value = (int64_t)cop_stats_get(stats, COP_FABRIC_BYTES_IN)},
			{.key = "out",
				.value = (int64_t)cop_stats_get(stats, COP_FABRIC_BYTES_OUT)},
			{.key = "origin",
				.value = (int64_t)cop_stats_get(stats, COP_ORIGIN_BYTES)}},
		4);
}

/* Once the gate is open, all sampled objects exist; the gate keeps them alive during the call. */
static void second(void *ctx)
{
	struct cop_sampler *s = ctx;

	if (!cop_gate_enter(s->gate, COP_GATE_OPEN))
		return;
	count_memory(s);
	count_work(s);
	cop_skew_tick(s->skew, s->rpc, cop_now_ms());
	cop_gate_leave(s->gate);
}

/* If the start got as far as creating the sampled objects, they exist until the tracer has
 * stopped. */
static void last(void *ctx)
{
	struct cop_sampler *s = ctx;

	if (!s->cache)
		return;
	count_memory(s);
	count_work(s);
}

struct cop_tracer *cop_sampler_tracer(struct cop_sampler *s)
{
	return s->tracer;
}

void cop_sampler_use(struct cop_sampler *s, struct cop_cache *cache, struct cop_rpc *rpc)
{
	s->cache = cache;
	s->rpc = rpc;
}

void cop_sampler_peer(struct cop_sampler *s, uint32_t rank, bool lives)
{
	const struct cop_tracer_arg arg = {.key = "rank", .value = rank};
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = lives ? "peer_back" : "peer_died",
		.begin_ns = cop_now_ns(),
		.arg = &arg,
		.args = 1};

	e.end_ns = e.begin_ns;
	cop_tracer_event(s->tracer, &e);
}

void cop_sampler_serve(struct cop_sampler *s, struct cop_rpc_req *req)
{
	cop_skew_serve(s->skew, req);
}

/* ---- start and stop ---- */

static int open_trace_file(
	struct cop_sampler *s, const struct cop_sampler_conf *conf, struct cop_err *err)
{
	char host[256] = "localhost";
	struct cop_tracer_conf file = {.job_dir = conf->job_dir,
		.host = conf->host ? conf->host : host,
		.source = conf->source,
		.pid = (int)getpid(),
		.rank = conf->rank,
		.limit = conf->limit,
		.hooks = {.second = second, .last = last, .ctx = s}};

	gethostname(host, sizeof(host) - 1);
	return cop_tracer_start(&file, &s->tracer, err);
}

int cop_sampler_start(
	const struct cop_sampler_conf *conf, struct cop_sampler **out, struct cop_err *err)
{
	struct cop_sampler *s = calloc(1, sizeof(*s));
	struct cop_skew_conf skew = {.topo = conf->topo,
		.rank = conf->rank,
		.asks = conf->traces,
		.now_us = now_us,
		.measured = note_measured,
		.ctx = s};

	*out = s;
	if (s) {
		s->gate = conf->gate;
		s->stats = conf->stats;
		s->skew = cop_skew_new(&skew);
	}
	if (!s || !s->skew)
		return cop_err_set(err, ENOMEM, "out of memory");
	return conf->traces ? open_trace_file(s, conf, err) : 0;
}

void cop_sampler_stop(struct cop_sampler *s)
{
	if (!s)
		return;
	cop_tracer_stop(s->tracer);
	cop_skew_free(s->skew);
	free(s);
}
