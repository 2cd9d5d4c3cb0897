/* SPDX-License-Identifier: BSD-3-Clause */
/* A node from start to stop: what its main thread waits for in between, and the way out. */
#include "node/node_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* How long the answers of a stop command that came in here may still take after this node has
 * unmounted. */
#define COMMANDS_MS 120000

static int open_wakers(struct cop_node *n, struct cop_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1); /* the gentle end that srun passes on */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that has grown to ulimit -f is no reason to end */
	n->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->signal_fd < 0 || n->wake_fd < 0)
		return cop_err_set(err, errno, "cannot make a descriptor: %s", strerror(errno));
	return 0;
}

/* Sleeps until somebody wants this node to end. */
static void wait_for_the_end(struct cop_node *n)
{
	struct pollfd fds[3] = {{.fd = n->wake_fd, .events = POLLIN},
		{.fd = n->signal_fd, .events = POLLIN},
		{.fd = n->fs ? cop_fs_gone_fd(n->fs) : -1, .events = POLLIN}};
	uint64_t every_ms = n->conf->profile_interval_s * 1000ULL,
		 next_ms = cop_now_ms() + every_ms, drain;

	while (!atomic_load(&n->stopping)) {
		uint64_t now_ms = cop_now_ms();

		if (every_ms && now_ms >= next_ms) {
			cop_tally_write(n->tally, "runtime-snapshot", NULL);
			next_ms = now_ms + every_ms;
		}
		if (poll(fds, 3, every_ms ? (int)(next_ms - now_ms) : -1) <= 0)
			continue;
		if (fds[1].revents || fds[2].revents) {
			n->left_dead = !fds[1].revents && cop_fs_is_dead(n->mountpoint);
			cop_log_info("ending reason=%s",
				fds[1].revents ? "signal"
				: n->left_dead ? "\"the FUSE connection was aborted\""
					       : "unmounted");
			atomic_store(&n->stopping, true);
		}
		if (fds[0].revents && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		cop_defer_run(&n->deferred, false);
		cop_join_tend(n->join);
	}
}

/* The answer to a stop command that came in at this node may still have to come from the root. */
static void wait_for_commands(struct cop_node *n)
{
	uint64_t end = cop_now_ms() + COMMANDS_MS, drain;
	struct pollfd fd = {.fd = n->wake_fd, .events = POLLIN};

	while (n->commands && cop_command_stops(n->commands) && cop_now_ms() < end) {
		if (poll(&fd, 1, 100) > 0 && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		cop_defer_run(&n->deferred, false);
	}
	cop_defer_run(&n->deferred, true);
}

/* The kernel has ended the connection by itself: then nothing is unmounted below. */
static bool is_cut(const struct cop_node *n)
{
	struct pollfd fd = {.fd = n->fs ? cop_fs_gone_fd(n->fs) : -1, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void answer_stop(struct cop_node *n, const struct cop_buf *holders, const char *unwritten)
{
	struct cop_buf remark = {0};

	if (holders->len) {
		cop_log_warn("unmounted lazily, held by %s", holders->data);
		cop_buf_printf(&remark, "%s: %s was unmounted lazily, still held by %s",
			cop_node_host(n, n->rank), n->mountpoint, holders->data);
	}
	cop_treeop_ended(n->treeop, remark.data, unwritten);
	cop_buf_free(&remark);
}

static void end(struct cop_node *n)
{
	struct cop_buf holders = {0};
	struct cop_err unwritten = {0};
	bool cut = is_cut(n);

	cop_defer_run(&n->deferred, false);
	cop_join_tend(n->join);
	cop_tally_write(n->tally, "pre-destroy", NULL);
	cop_fs_stop(n->fs, STOP_GRACE_MS, &holders);
	if (cut && !n->left_dead && cop_fs_is_dead(n->mountpoint))
		cop_fs_unmount_dead(n->mountpoint);
	cop_tally_write(n->tally, NULL, &unwritten);
	cop_prefetch_manifest_save(n->manifest);
	answer_stop(n, &holders, unwritten.code ? unwritten.text : NULL);
	cop_buf_free(&holders);
	wait_for_commands(n);
	cop_treeop_await_confirmed(n->treeop);
}

static void note(const char *text)
{
	fprintf(stderr, "copper: note: %s\n", text);
	cop_log_info("note: %s", text);
}

/* It started, but perhaps not as it was meant. Who forgot to ask the scheduler for nodes gets what
 * works on a machine of one's own too: that must not look like a tree of a job. */
static void notes(const struct cop_node *n, const char *start_note)
{
	if (start_note && n->rank == 0 && n->hosts.count > 1)
		note(start_note);
	if (n->hosts.count == 0)
		note("a tree of one node, since there is no --hosts, and no job of Slurm or PBS in the environment (--hosts localhost: one node is meant)");
	if (n->secret.note[0])
		note(n->secret.note);
	if (n->cache_note[0])
		note(n->cache_note);
}

/* ---- one node ---- */

/* Why it does not start: the others said it, or have the node that they wait for. */
static bool is_known(const struct cop_node *n)
{
	return (n->reach && cop_reach_is_duplicate(n->reach)) || cop_join_is_secondhand(n->join);
}

static int begin(struct cop_node *n, const struct cop_node_run *how, struct cop_err *err)
{
	int rc;

	n->conf = how->conf;
	cop_gate_init(&n->gate);
	cop_defer_init(&n->deferred, cop_node_wake, n);
	n->last_pid = how->last_pid;
	n->wake_fd = n->signal_fd = n->view_ns = -1;
	n->report_fd = how->report_fd;
	n->place = how->place;
	snprintf(n->mountpoint, sizeof(n->mountpoint), "%s", how->place->path);
	rc = open_wakers(n, err);
	if (!rc)
		rc = cop_node_start(n, err);
	/* Without a log of its own the node would say it twice. */
	if (rc && n->logging)
		cop_log_error("not started: %s", err->text);
	/* Without this it does not know its rank. */
	if (rc && n->join && n->hosts.count > 1 && n->conf->job_dir && !is_known(n))
		cop_outcome_leave(n->conf->job_dir, cop_node_host(n, n->rank), n->rank, err);
	if (!rc)
		notes(n, how->note);
	return rc;
}

static void release(struct cop_node *n)
{
	cop_node_stop(n);
	if (n->wake_fd >= 0)
		close(n->wake_fd);
	if (n->signal_fd >= 0)
		close(n->signal_fd);
	if (n->view_ns >= 0)
		close(n->view_ns);
	free(n);
}

int cop_node_run(const struct cop_node_run *how, bool *left_dead, struct cop_err *err)
{
	struct cop_node *n = calloc(1, sizeof(*n));
	int rc = n ? begin(n, how, err) : cop_err_set(err, ENOMEM, "out of memory");

	how->started(how->arg, rc ? err : NULL);
	if (!n)
		return rc;
	n->report_fd = -1;
	if (!rc)
		wait_for_the_end(n);
	if (rc == 0 || atomic_load(&n->stopping))
		end(n);
	*left_dead = n->left_dead;
	release(n);
	return rc;
}
