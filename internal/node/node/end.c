/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops and frees a node's modules, in order. */
#include "node/node/node_priv.h"

#include <stdlib.h>
#include <unistd.h>

/* Time limit for the end of a node. A read that hangs in the storage cannot be interrupted, and
 * must not keep the process alive. */
#define END_SECONDS 10

/* Leaves the tree. Three kinds of requests from other nodes may be open when a node ends: those
 * that a thread is handling; those that wait for replies from further nodes; and those that wait
 * for this node itself (its main thread, the end of the start barrier, its own end). The first kind
 * completes by itself, the second ends when this node cancels its calls, and the third is answered
 * here. The gate counts all three. */
static void answer_all(struct cop_node *n)
{
	cop_net_cancel(n->net);
	/* If there is no part, the start failed before another node could wait for this one. */
	if (!n->part)
		return;
	cop_start_leave(cop_barrier_join(n->barrier));
	cop_op_ended(cop_part_treeop(n->part), NULL, NULL, false);
	cop_defer_run(&n->deferred, true);
	cop_gate_drain(&n->gate);
}

/* Joins each thread after the threads that could still give it work. True: no running thread can
 * access what is freed next; the thread that writes the trace uses only its own memory. False: a
 * worker hangs in a file system, and will end only with the process. */
static bool end_threads(struct cop_node *n)
{
	bool ended, packed;

	cop_gate_close(&n->gate);
	cop_net_close_door(n->net);
	cop_bypass_stop(n->past);
	cop_prefetch_stop(n->prefetch);
	packed = cop_prefetch_pack_free(n->pack);
	cop_kernelahead_stop(n->ahead);
	cop_fuse_stop(n->fs, 0, NULL);
	if (n->fetch)
		cop_fetch_close(n->fetch);
	ended = cop_spill_close(n->spill) && packed;
	answer_all(n);
	cop_command_stop_listening(n->commands);
	cop_net_flush(n->net);
	ended = cop_origin_close(n->origin) && ended;
	cop_net_close(n->net);
	return ended;
}

/* Frees the modules in reverse start order, except for the sampler: it stops after the last module
 * that reports events, and before the counters that it reads are freed. */
static void free_all(struct cop_node *n)
{
	cop_follow_free(n->follow);
	cop_prefetch_free(n->prefetch);
	cop_fuse_free(n->fs);
	cop_command_free(n->commands);
	cop_sampler_stop(n->sampler);
	cop_fetch_free(n->fetch);
	cop_net_free(n->net);
	cop_part_free(n->part);
	cop_programs_free(n->programs);
	cop_otel_trace_free(n->trace);
	cop_buf_free(&n->environment);
	cop_spill_free(n->spill);
	cop_cache_free(n->cache);
	cop_tally_free(n->tally);
	cop_machine_free(n->machine);
	cop_telemetry_free(n->telemetry);
	cop_secret_fini(&n->secret);
	cop_prefetch_manifest_free(n->manifest);
	if (n->view_ns >= 0)
		close(n->view_ns);
	cop_log_info("ended");
	cop_log_close();
	cop_barrier_free(n->barrier);
	cop_job_hosts_free(&n->hosts);
	cop_defer_fini(&n->deferred);
	cop_gate_fini(&n->gate);
	cop_waker_fini(&n->waker);
}

/* Writes the last data when a hanging worker prevents the rest from being freed. */
static void leave_all(struct cop_node *n)
{
	cop_log_warn(
		"a file system does not answer: this node ends without waiting for its requests");
	cop_follow_free(n->follow);
	cop_sampler_stop(n->sampler);
	cop_log_info("ended");
	cop_log_close();
	cop_thread_left();
}

void cop_node_stop(struct cop_node *n)
{
	alarm(END_SECONDS);
	if (end_threads(n)) {
		free_all(n);
		free(n);
	} else {
		leave_all(n);
	}
	alarm(0);
}
