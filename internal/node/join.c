/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining the tree: readiness flows up (ready.c), the go flows down (go.c, told.c), and the main
 * thread waits for the one or for a reason why it will not come. Those above a node may have been
 * restarted as well, and wait like it, so it asks its children again now and then. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY_MS 200
/* A tree that forms is ready before, and then nobody but the root has asked its children. */
#define STATE_MS 2000
/* The log says so often what is waited for. */
#define NOT_YET_MS 10000
/* Others wait a little longer than the root, so that they hear its reason. */
#define GRACE_MS 5000

int cop_node_join_init(struct cop_node *n)
{
	cop_list_init(&n->go_waiters);
	cop_list_init(&n->ready_queue);
	pthread_mutex_init(&n->lock, NULL);
	n->ready_rank = calloc(n->topo.nodes, 1);
	n->ready_address = calloc(n->topo.nodes, sizeof(char *));
	n->ready_networks = calloc(n->topo.nodes, sizeof(char *));
	return n->ready_rank && n->ready_address && n->ready_networks ? 0 : -ENOMEM;
}

void cop_node_join_fini(struct cop_node *n)
{
	cop_node_ready_fini(n);
	cop_node_go_fini(n);
	pthread_mutex_destroy(&n->lock);
}

/* The root, when everyone is there: what the job directory keeps is written before the go. */
static bool complete_root(struct cop_node *n)
{
	bool complete;

	pthread_mutex_lock(&n->lock);
	complete = cop_topo_root(&n->topo, 0) == n->rank && n->ready_count == n->topo.nodes &&
		   !n->ready && !n->aborted;
	pthread_mutex_unlock(&n->lock);
	if (complete) {
		cop_node_write_books(n);
		cop_outcome_end(&n->others);
		cop_node_settle(n, true, "");
	}
	return complete;
}

void cop_node_join(struct cop_node *n)
{
	cop_node_ready_begin(n);
	n->go_rank = cop_topo_parent(&n->topo, 0, n->rank);
	if (cop_topo_root(&n->topo, 0) != n->rank) {
		cop_node_ask_go(n);
		return;
	}
	cop_node_write_tree(n, NULL);
	cop_node_ask_state(n);
}

/* ---- waiting ---- */

/* "n2, n5, n7". The lock is held. */
static void missing_names(struct cop_node *n, struct cop_buf *out)
{
	uint32_t missing = n->topo.nodes - n->ready_count, named = 0;

	for (uint32_t r = 0; r < n->topo.nodes && named < MISSING_NAMED; r++)
		if (!n->ready_rank[r])
			cop_buf_printf(out, "%s%s", named++ ? ", " : "", cop_node_host(n, r));
	if (missing > named)
		cop_buf_printf(out, " and %" PRIu32 " more", missing - named);
}

/* "3 of 8 nodes are not ready after 120 s: n2, n5, n7". The lock is held. */
static void missing_text(struct cop_node *n, struct cop_buf *out)
{
	cop_buf_printf(out, "%" PRIu32 " of %" PRIu32 " nodes not ready after %" PRIu32 " s: ",
		n->topo.nodes - n->ready_count, n->topo.nodes, n->conf->ready_timeout_ms / 1000);
	missing_names(n, out);
}

static void time_is_up(struct cop_node *n)
{
	struct cop_buf text = {0};

	pthread_mutex_lock(&n->lock);
	if (cop_topo_root(&n->topo, 0) == n->rank)
		missing_text(n, &text);
	else
		cop_buf_printf(&text, "no go after %" PRIu32 " s; %s",
			n->conf->ready_timeout_ms / 1000,
			n->trouble[0] ? n->trouble : "the parent answers, but the root does not");
	pthread_mutex_unlock(&n->lock);
	atomic_store(&n->no_news, true);
	cop_log_info("timed out waiting for parent readiness: %s", text.data ? text.data : "");
	cop_node_settle(n, false, text.data ? text.data : "not ready in time");
	cop_buf_free(&text);
}

static bool settled(struct cop_node *n)
{
	bool yes;

	pthread_mutex_lock(&n->lock);
	yes = n->ready || n->aborted;
	pthread_mutex_unlock(&n->lock);
	return yes || atomic_load(&n->stopping);
}

/* For whoever reads the log while the command still waits: at first, and then now and then. */
static void say_not_yet(struct cop_node *n, uint64_t *next_ms)
{
	struct cop_buf text = {0};
	uint64_t now = cop_now_ms();

	if (now < *next_ms)
		return;
	*next_ms = now + NOT_YET_MS;
	pthread_mutex_lock(&n->lock);
	if (cop_topo_root(&n->topo, 0) == n->rank)
		missing_names(n, &text);
	else
		cop_buf_str(&text, n->trouble[0]      ? n->trouble
				   : n->no_address[0] ? n->no_address
						      : "it waits for others");
	pthread_mutex_unlock(&n->lock);
	if (cop_topo_root(&n->topo, 0) == n->rank)
		cop_log_info("nodes not ready yet: %s", text.data ? text.data : "");
	else
		cop_log_info("parent not ready yet: %s", text.data ? text.data : "");
	cop_buf_free(&text);
}

/* Of those above it is asked only when they do not answer. While all are being stopped, nobody
 * fails. */
static void listen_for_failures(struct cop_node *n)
{
	bool root = cop_topo_root(&n->topo, 0) == n->rank, ask;
	char why[COP_OUTCOME_WHY_SIZE];

	pthread_mutex_lock(&n->lock);
	ask = root || n->trouble[0];
	pthread_mutex_unlock(&n->lock);
	ask = ask && !cop_treeop_is_stopping(n->treeop);
	/* Those further up are asked first: this node may have been started again, in a tree that
	 * lives. */
	if (!ask)
		cop_outcome_pass(&n->others, cop_now_ms());
	else if (cop_node_failure_heard(n, why))
		cop_node_settle(n, false, why);
}

/* Those below, who asked for the go, hear why they will not get it. */
static int interrupted(struct cop_node *n, const char *what, struct cop_err *err)
{
	char why[400];

	snprintf(why, sizeof(why), "%.250s (rank %" PRIu32 ") %s", cop_node_host(n, n->rank),
		n->rank, what);
	cop_node_settle(n, false, why);
	return cop_err_set(err, EINTR, "%s", what);
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

int cop_node_join_wait(struct cop_node *n, struct cop_err *err)
{
	bool root = cop_topo_root(&n->topo, 0) == n->rank;
	uint64_t deadline = cop_now_ms() + n->conf->ready_timeout_ms + (root ? 0 : GRACE_MS);
	struct pollfd fds[3] = {{.fd = n->wake_fd, .events = POLLIN},
		{.fd = n->signal_fd, .events = POLLIN}, {.fd = n->report_fd}};
	uint64_t say_ms = cop_now_ms() + RETRY_MS, state_ms = cop_now_ms() + STATE_MS;

	while (!settled(n)) {
		uint64_t drain;

		if (complete_root(n))
			break;
		if (cop_now_ms() >= deadline)
			time_is_up(n);
		else if (poll(fds, 3, RETRY_MS) > 0 && (fds[1].revents || fds[2].revents))
			return interrupted(n, cop_node_interrupted(n), err);
		cop_defer_run(&n->deferred, false);
		if (fds[0].revents && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		if (settled(n))
			continue;
		say_not_yet(n, &say_ms);
		listen_for_failures(n);
		if (cop_now_ms() >= state_ms) {
			cop_node_ask_children(n, n->rank);
			state_ms = cop_now_ms() + STATE_MS;
		}
		if (!root) {
			cop_node_ready_send(n);
			cop_node_ask_go(n);
		}
	}
	/* Who was started again has another address than before. */
	if (n->ready && root && !n->books_written)
		cop_node_write_books(n);
	if (n->ready)
		return 0;
	if (atomic_load(&n->stopping))
		return interrupted(n, "stopped before the tree was ready", err);
	return cop_err_set(err, ETIMEDOUT, COP_OUTCOME_NOT_READY "%s", n->abort_text);
}
