/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's records of the running job: the job's record in the run store, and the OpenTelemetry
 * files. */
#include "node/node/node_priv.h"

#include "writers/otel/otel.h"
#include "writers/runs/runs.h"

static void add_runlog(struct cop_node *n)
{
	struct cop_runlog_conf conf = {.id = n->run_id,
		.conf = n->conf,
		.job_dir = n->log.job_dir,
		.source = n->source,
		.nodes = n->topo.nodes,
		.manifest = cop_prefetch_manifest_hash(n->manifest)};
	char store[COP_RUNLOG_STORE];

	/* The start may have failed before the run was chosen. */
	if (!*n->run_id)
		(void)cop_runlog_new(n->conf, n->run_id, store);
	cop_runlog_follow(n->follow, &conf);
}

static const char *host_of(void *ctx, uint32_t rank)
{
	const struct cop_node *n = ctx;

	return cop_job_host_name(&n->hosts, rank);
}

static void add_otel(struct cop_node *n)
{
	int64_t now_ns = cop_wall_ns();
	struct cop_otel_conf conf = {.trace = n->trace,
		.job_dir = n->log.job_dir,
		.source = n->source,
		.nodes = n->topo.nodes,
		.started_ns = now_ns - (int64_t)(cop_now_ns() - n->started_ns),
		.ready_ns = now_ns,
		.host = host_of,
		.ctx = n};

	if (!n->trace && n->conf->otel && *n->log.job_dir)
		conf.trace = n->trace = cop_otel_trace_new();
	if (n->trace)
		cop_otel_follow(n->follow, &conf);
}

void cop_node_follow(struct cop_node *n)
{
	struct cop_follow_conf conf = {.interval_ms = n->conf->store_interval_ms,
		.ask = cop_part_ask_telemetry,
		.is_ending = cop_part_is_ending,
		.ctx = n->part};

	/* Without a barrier, the node does not have its rank yet. */
	if (!n->barrier || n->rank != 0)
		return;
	n->follow = cop_follow_new(&conf);
	if (!n->follow)
		return;
	add_runlog(n);
	add_otel(n);
}

void cop_node_follow_end(struct cop_node *n, bool left_dead, const struct cop_err *failure)
{
	struct cop_follow_end end = {.failed = failure || left_dead,
		.reason = failure       ? failure->text
			  : n->ended_by ? n->ended_by
					: "stopped",
		.stop_ns = failure ? 0 : n->stop_ns};

	if (!n->follow)
		return;
	if (n->programs)
		cop_programs_exits(n->programs, &end.exits);
	if (!failure && n->topo.nodes == 1)
		cop_part_own_totals(n->part);
	cop_follow_end(n->follow, &end);
}
