/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's record in the run store, which rank 0 keeps. */
#include "node/node_priv.h"

static bool ask(void *ctx, cop_treeop_done *done, void *arg)
{
	struct cop_node *n = ctx;
	struct cop_treeop_request telemetry = {.op = COP_TREEOP_TELEMETRY, .argument = ""};

	if (!cop_gate_enter(&n->gate, COP_GATE_OPEN))
		return false;
	cop_treeop_all(cop_part_treeop(n->part), &telemetry, done, arg);
	cop_gate_leave(&n->gate);
	return true;
}

void cop_node_record_start(struct cop_node *n)
{
	struct cop_runlog_conf conf = {.conf = n->conf,
		.job_dir = n->log.job_dir,
		.source = n->source,
		.nodes = n->topo.nodes,
		.manifest = cop_prefetch_manifest_hash(n->manifest),
		.ask = ask,
		.ctx = n};

	/* Without this it does not know its rank. */
	if (n->barrier && n->rank == 0)
		n->runlog = cop_runlog_start(&conf);
}

void cop_node_record_end(struct cop_node *n, bool left_dead, const struct cop_err *failure)
{
	struct cop_treeop_sum own = {.nodes = 1};

	if (!n->runlog)
		return;
	/* Nobody has asked a node that is alone to stop, if it was unmounted. */
	if (!failure && n->topo.nodes == 1) {
		cop_tally_add(n->tally, &own);
		cop_treeop_sum_machine(&own);
		cop_runlog_totals(n->runlog, &own);
		cop_treeop_sum_free(&own);
	}
	if (failure)
		cop_runlog_end(n->runlog, COP_RUNREC_FAILED, failure->text);
	else
		cop_runlog_end(n->runlog, left_dead ? COP_RUNREC_FAILED : COP_RUNREC_FINISHED,
			n->ended_by ? n->ended_by : "stopped");
}
