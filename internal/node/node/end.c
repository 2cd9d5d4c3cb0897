/* SPDX-License-Identifier: BSD-3-Clause */
/* How all parts of a node stop, and in which order they are freed. */
#include "node/node/node_priv.h"

#include <stdlib.h>
#include <unistd.h>

/* How long a node that has answered everyone may take to end. A read that hangs at the storage
 * cannot be interrupted, and must not keep the process alive. */
#define END_SECONDS 10

/* Leaving the tree. Three kinds of requests may be outstanding when a node ends: requests of other
 * nodes that a thread is handling right now; requests that wait for the answers of other nodes; and
 * requests that wait for this node itself (its main thread, the end of the start barrier, its own
 * end). The first kind ends by itself, the second ends when this node cancels its own calls, and
 * the third is answered here. The gate counts all of them. */
static void answer_all(struct cop_node *n)
{
	cop_net_cancel(n->net);
	/* If there is no part, the start failed before anybody could wait for this node. */
	if (!n->part)
		return;
	cop_start_leave(cop_barrier_join(n->barrier));
	cop_op_ended(cop_part_treeop(n->part), NULL, NULL, false);
	cop_defer_run(&n->deferred, true);
	cop_gate_drain(&n->gate);
}

/* Each thread ends after the threads that could still give it work. If this returns true, no
 * running thread can touch what is freed next; the thread that writes the trace uses only its
 * own memory. False: a worker hangs in a file system, and only the end of the process ends it. */
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

/* Frees the parts in the reverse order of their start, except for the sampler: it stops after the
 * last part that reports events, and before the counters that it reads are freed. */
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

/* What is written at the end although the rest stays for a worker that hangs. */
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
