/* SPDX-License-Identifier: BSD-3-Clause */
/* This node's part of the start barrier: what join is given, and the main thread's wait for the end
 * of it. */
#include "node/node_priv.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define FLUSH_MS 1000

/* Questions of the time when nodes were still coming up must not keep later requests waiting. */
static void barrier_ended(void *ctx)
{
	struct cop_node *n = ctx;

	if (n->reach)
		cop_reach_barrier_ended(n->reach, cop_join_is_ready(n->join));
}

int cop_node_join_open(struct cop_node *n, struct cop_err *err)
{
	struct cop_join_conf conf = {.rank = n->rank,
		.topo = n->topo,
		.hosts = &n->hosts,
		.address_book =
			n->topo.nodes > 1 && !n->conf->discover ? n->conf->address_book : NULL,
		.ready_timeout_ms = n->conf->ready_timeout_ms,
		.started_ns = n->started_ns,
		.ctx = n,
		.wake = cop_node_wake,
		.barrier_ended = barrier_ended};

	n->join = cop_join_new(&conf);
	return n->join ? 0 : cop_err_set(err, ENOMEM, "out of memory");
}

const char *cop_node_interrupted(const struct cop_node *n)
{
	struct pollfd fds[2] = {{.fd = n->signal_fd, .events = POLLIN}, {.fd = n->report_fd}};

	if (poll(fds, 2, 0) <= 0)
		return NULL;
	return fds[0].revents
		       ? "ended before the tree was ready, by a signal"
		       : "ended before the tree was ready, by the end of the command that started it";
}

static int give_up(struct cop_node *n, const char *what, struct cop_err *err)
{
	cop_join_give_up(n->join, what);
	return cop_err_set(err, EINTR, "%s", what);
}

static void drain(const struct pollfd *wake)
{
	uint64_t count;

	if (wake->revents)
		while (read(wake->fd, &count, sizeof(count)) < 0 && errno == EINTR)
			;
}

int cop_node_join_wait(struct cop_node *n, struct cop_err *err)
{
	struct pollfd fds[3] = {{.fd = n->wake_fd, .events = POLLIN},
		{.fd = n->signal_fd, .events = POLLIN}, {.fd = n->report_fd}};

	cop_join_start(n->join, cop_now_ms());
	while (!cop_join_step(n->join, cop_now_ms(), cop_treeop_is_stopping(n->treeop)) &&
		!atomic_load(&n->stopping)) {
		if (poll(fds, 3, COP_JOIN_STEP_MS) > 0 && (fds[1].revents || fds[2].revents))
			return give_up(n, cop_node_interrupted(n), err);
		cop_defer_run(&n->deferred, false);
		drain(&fds[0]);
	}
	if (cop_join_is_ready(n->join))
		return 0;
	if (atomic_load(&n->stopping))
		return give_up(n, "stopped before the tree was ready", err);
	return cop_err_set(err, ETIMEDOUT, COP_OUTCOME_NOT_READY "%s", cop_join_why(n->join));
}

/* A signal that comes meanwhile is left for who waits for the end. */
void cop_node_tell_below(struct cop_node *n)
{
	struct pollfd fds[2] = {
		{.fd = n->wake_fd, .events = POLLIN}, {.fd = n->signal_fd, .events = POLLIN}};
	unsigned left_ms;

	cop_join_tell_below(n->join, cop_now_ms());
	while ((left_ms = cop_join_tell_left_ms(n->join, cop_now_ms())) &&
		!atomic_load(&n->stopping)) {
		if (poll(fds, 2, (int)left_ms) <= 0)
			continue;
		if (fds[1].revents)
			break;
		drain(&fds[0]);
		cop_defer_run(&n->deferred, false);
		cop_join_tend(n->join);
	}
	cop_join_name_untold(n->join);
	/* The answers of those that were not told again. */
	if (n->rpc && !cop_join_is_ready(n->join))
		cop_fabric_flush(cop_rpc_fabric(n->rpc), FLUSH_MS);
}
