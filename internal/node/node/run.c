/* SPDX-License-Identifier: BSD-3-Clause */
/* A node from start to stop: the events that its main thread waits for, and its end. */
#include "node/node/node_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "job/startnote/startnote.h"

#define STOP_GRACE_MS 2000
/* Time limit for the last scan for bypassing programs at a stop, since a job script often stops the
 * tree while programs are still running. The scan takes a few milliseconds if the storage responds,
 * and must not delay the stop for long if it does not. */
#define LAST_LOOK_MS 2000
/* How long after the unmount to wait until the stop commands received here have been answered. */
#define COMMANDS_MS 120000

/* Ends this node after an unmount or a signal. Returns whether the mount still exists but nothing
 * serves it. */
static bool end_because(struct cop_node *n, unsigned why)
{
	bool left_dead = !(why & COP_WAKER_SIGNAL) && cop_fuse_is_dead(n->how->place->path);

	n->ended_by = why & COP_WAKER_SIGNAL ? "signal"
		      : left_dead            ? "the FUSE connection was aborted"
					     : "unmounted";
	cop_waker_end(&n->waker);
	return left_dead;
}

/* The main thread's periodic work. Returns the milliseconds until it is due again; -1: never. */
static int tend(struct cop_node *n)
{
	int part_ms = cop_part_tend(n->part), files_ms = cop_command_tend(n->commands);

	return part_ms < 0 ? files_ms : files_ms < 0 ? part_ms : COP_MIN(part_ms, files_ms);
}

/* Sleeps until an event ends this node. Returns whether that left a dead mount. */
static bool wait_for_the_end(struct cop_node *n)
{
	bool left_dead = false;

	while (!cop_waker_is_ending(&n->waker)) {
		unsigned why = cop_waker_wait(&n->waker,
			COP_WAKER_WOKEN | COP_WAKER_SIGNAL | COP_WAKER_UNMOUNTED, tend(n));

		if (!why)
			continue;
		if (why & (COP_WAKER_SIGNAL | COP_WAKER_UNMOUNTED))
			left_dead = end_because(n, why);
		cop_defer_run(&n->deferred, false);
		cop_start_tend(cop_barrier_join(n->barrier));
	}
	return left_dead;
}

/* If a stop command arrived at this node, the root's reply to it may still be in flight. */
static void wait_for_commands(struct cop_node *n)
{
	uint64_t end = cop_now_ms() + COMMANDS_MS;

	while (n->commands && cop_command_stops(n->commands) && cop_now_ms() < end) {
		cop_waker_wait(&n->waker, COP_WAKER_WOKEN, 100);
		cop_defer_run(&n->deferred, false);
	}
	cop_defer_run(&n->deferred, true);
}

static void answer_stop(
	struct cop_node *n, bool stays, const struct cop_buf *holders, const char *unwritten)
{
	struct cop_buf remark = {0};

	if (stays) {
		cop_buf_printf(&remark,
			"%s: %s could not be unmounted and is a dead mount now; root can remove it with 'umount -l %s' (for an ordinary user, fusermount3 needs /etc/mtab)",
			cop_job_host_name(&n->hosts, n->rank), n->how->place->path,
			n->how->place->path);
	} else if (holders->len) {
		cop_log_warn("unmounted lazily, held by %s", holders->data);
		cop_buf_printf(&remark, "%s: %s was unmounted lazily, still held by %s",
			cop_job_host_name(&n->hosts, n->rank), n->how->place->path, holders->data);
	}
	/* When the whole tree stops, the root warns on behalf of all nodes. */
	if (!cop_op_is_stopping(cop_part_treeop(n->part)))
		cop_tally_warn_own(n->tally, &remark);
	cop_op_ended(cop_part_treeop(n->part), remark.data, unwritten, stays);
	cop_buf_free(&remark);
}

static void unmount_and_answer(struct cop_node *n, bool left_dead)
{
	struct cop_buf holders = {0};
	struct cop_err unwritten = {0};
	/* The kernel has already closed the connection. */
	bool cut = cop_waker_wait(&n->waker, COP_WAKER_UNMOUNTED, 0) != 0, stays;

	n->stop_ns = cop_wall_ns();
	cop_log_info("ending reason=\"%s\"", n->ended_by ? n->ended_by : "stopped");
	cop_telemetry_event(
		n->telemetry, COP_TELEMETRY_STOP, "%s", n->ended_by ? n->ended_by : "stopped");
	cop_defer_run(&n->deferred, false);
	cop_start_tend(cop_barrier_join(n->barrier));
	cop_bypass_look(n->past, LAST_LOOK_MS);
	cop_tally_write(n->tally, "pre-destroy", NULL);
	cop_prefetch_stop(n->prefetch);
	cop_prefetch_pack_finish(n->pack);
	cop_kernelahead_stop(n->ahead);
	n->ahead = NULL;
	stays = cop_fuse_stop(n->fs, STOP_GRACE_MS, &holders) != 0;
	if (cut && !left_dead && cop_fuse_is_dead(n->how->place->path))
		cop_fuse_unmount_dead(n->how->place->path);
	cop_tally_write(n->tally, NULL, &unwritten);
	cop_prefetch_manifest_save(n->manifest, cop_prefetch_begun(n->prefetch));
	(void)cop_prefetch_pack_join(n->pack);
	answer_stop(n, stays, &holders, unwritten.code ? unwritten.text : NULL);
	cop_buf_free(&holders);
	wait_for_commands(n);
	cop_op_await_confirmed(cop_part_treeop(n->part));
}

/* The node has started, but perhaps not as intended: a user who forgot to request nodes from the
 * scheduler gets a single node, and should not mistake it for the tree of a job. */
static void log_notes(const struct cop_node *n)
{
	struct cop_err unwritten;

	if (n->rank == 0 && n->hosts.count > 1)
		cop_joblog_note(n->how->note);
	if (n->hosts.count == 0)
		cop_joblog_note(
			"a tree of one node, since there is no --hosts, and no job of Slurm or PBS in the environment (--hosts localhost: one node is meant)");
	cop_joblog_note(n->secret.job.note);
	cop_joblog_note(n->cache_note);
	cop_joblog_note(n->spill_note);
	cop_joblog_note(cop_prefetch_manifest_note(n->manifest));
	/* A node without its own log has already reported it. */
	if (!cop_follow_is_good(n->follow, &unwritten) && n->log.path[0])
		cop_joblog_note(unwritten.text);
}

/* ---- one node ---- */

/* Whether the other ranks need not be told why this start failed: one of them reported the failure
 * in the first place, or this node was a duplicate and the rank they wait for is running. */
static bool is_known(const struct cop_node *n)
{
	return cop_net_is_duplicate(n->net) ||
	       cop_start_is_secondhand(cop_barrier_join(n->barrier));
}

/* Whether another node may start so late that it would wait in vain for this node, which failed. */
static bool others_may_begin(struct cop_node *n, int rc)
{
	return rc && rc != -EINTR && n->barrier &&
	       cop_start_is_awaited(cop_barrier_join(n->barrier));
}

static int start_node(struct cop_node *n, struct cop_err *err)
{
	const char *dir = n->conf->job_dir ? n->conf->job_dir : n->conf->step_dir;
	int rc = cop_node_start(n, err);

	/* A node without its own log has already reported it. */
	if (rc && n->log.path[0])
		cop_log_error("not started: %s", err->text);
	/* Without a barrier, the node does not have its rank yet. */
	if (rc && n->barrier && n->hosts.count > 1 && dir && !is_known(n))
		cop_startnote_leave(dir, cop_job_host_name(&n->hosts, n->rank), n->rank, err);
	n->secret.others_may_begin = others_may_begin(n, rc);
	cop_node_follow(n);
	if (!rc)
		log_notes(n);
	return rc;
}

int cop_node_run(const struct cop_node_run *how, bool *left_dead, struct cop_err *err)
{
	struct cop_node *n = calloc(1, sizeof(*n));
	int rc = n ? 0 : cop_err_set(err, ENOMEM, "out of memory");

	if (n) {
		n->how = how;
		n->conf = how->conf;
		n->view_ns = -1;
		rc = start_node(n, err);
	}
	how->started(how->arg, rc ? err : NULL);
	if (!n)
		return rc;
	cop_waker_started(&n->waker);
	*left_dead = rc == 0 && wait_for_the_end(n);
	if (rc == 0 || cop_waker_is_ending(&n->waker))
		unmount_and_answer(n, *left_dead);
	cop_node_follow_end(n, *left_dead, rc ? err : NULL);
	cop_node_stop(n);
	return rc;
}
