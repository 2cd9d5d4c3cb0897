/* SPDX-License-Identifier: BSD-3-Clause */
/* The main thread's part of the start barrier: waits for its end or for a reason to give up. The
 * ancestors may themselves be restarted ranks that are waiting, so this rank also polls its
 * children. */
#include "tree/start/start_priv.h"

#include "base/log/log.h"

/* A new tree is usually ready before this; by then, only its root has polled its children. */
#define STATE_MS 2000
/* Log interval while waiting. */
#define NOT_YET_MS 10000
/* The other ranks wait a little longer than the root, so that they receive its reason. */
#define GRACE_MS 5000
#define MISSING_NAMED 16

/* ---- construction ---- */

struct cop_start *cop_start_new(const struct cop_start_conf *conf)
{
	struct cop_start *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->conf = *conf;
	j->began_ns = (int64_t)conf->started_ns;
	j->unix_ns = cop_wall_ns() - ((int64_t)cop_now_ns() - j->began_ns);
	j->parent = cop_topo_parent(&conf->topo, 0, conf->rank);
	j->root = j->parent == COP_TOPO_NONE;
	j->upstream = j->parent;
	cop_list_init(&j->waiters);
	cop_list_init(&j->ready_queue);
	pthread_mutex_init(&j->lock, NULL);
	j->arrival = j->root ? calloc(conf->topo.nodes, sizeof(*j->arrival)) : NULL;
	if (j->root && !j->arrival) {
		cop_start_free(j);
		return NULL;
	}
	return j;
}

void cop_start_free(struct cop_start *j)
{
	if (!j)
		return;
	cop_start_ready_free(j);
	cop_start_end_free(j);
	cop_start_way_end(j);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

void cop_start_use_rpc(struct cop_start *j, struct cop_rpc *rpc)
{
	pthread_mutex_lock(&j->lock);
	j->rpc = rpc;
	pthread_mutex_unlock(&j->lock);
	cop_start_ready_send(j);
}

void cop_start_start(struct cop_start *j, uint64_t now_ms)
{
	j->deadline_ms = now_ms + j->conf.ready_timeout_ms + (j->root ? 0 : GRACE_MS);
	j->say_ms = now_ms + COP_START_STEP_MS;
	j->state_ms = now_ms + STATE_MS;
	cop_start_ready_begin(j);
	if (j->root)
		cop_start_ask_state(j);
	else
		cop_start_ask_upstream(j);
}

/* ---- waiting ---- */

/* At the root, once all ranks are ready: writes the files in the job directory and then ends the
 * barrier. */
static void end_if_complete(struct cop_start *j)
{
	bool complete;

	pthread_mutex_lock(&j->lock);
	complete = j->root && j->arrivals == j->conf.topo.nodes && j->end == END_OPEN;
	pthread_mutex_unlock(&j->lock);
	if (!complete)
		return;
	cop_start_write_books(j);
	cop_startnote_end(&j->others);
	cop_start_end_barrier(j, END_READY, "");
}

/* "n2, n5, n7". Called with the lock held. */
static void missing_names(struct cop_start *j, struct cop_buf *out)
{
	uint32_t nodes = j->conf.topo.nodes, missing = nodes - j->arrivals, named = 0;

	for (uint32_t r = 0; r < nodes && named < MISSING_NAMED; r++)
		if (!j->arrival[r].ready)
			cop_buf_printf(out, "%s%s", named++ ? ", " : "", cop_start_host(j, r));
	if (missing > named)
		cop_buf_printf(out, " and %" PRIu32 " more", missing - named);
}

/* "3 of 8 nodes are not ready after 120 s: n2, n5, n7". Called with the lock held. */
static void missing_text(struct cop_start *j, struct cop_buf *out)
{
	cop_buf_printf(out, "%" PRIu32 " of %" PRIu32 " nodes not ready after %" PRIu32 " s: ",
		j->conf.topo.nodes - j->arrivals, j->conf.topo.nodes,
		j->conf.ready_timeout_ms / 1000);
	missing_names(j, out);
	if (j->conf.hosts && j->conf.hosts->of_tasks)
		cop_buf_str(out,
			"; if their tasks do not make this call of copper run --source, too, start the nodes with copper mount before the step");
}

/* Why the end of the barrier has not arrived from above. Called with the lock held. */
static void say_upstream(const struct cop_start *j, struct cop_buf *out)
{
	char blocked[640];

	if (j->trouble[0]) {
		cop_buf_str(out, j->trouble);
	} else if (cop_start_is_blocked(j)) {
		cop_start_say_blocked(j, blocked, sizeof(blocked));
		cop_buf_str(out, blocked);
	} else if (j->parent == cop_topo_root(&j->conf.topo, 0)) {
		cop_buf_printf(out,
			"%s (rank %" PRIu32 ", the root) answers, and still waits for others",
			cop_start_host(j, j->parent), j->parent);
	} else {
		cop_buf_str(out, "the parent answers, but the root does not");
	}
}

static void time_is_up(struct cop_start *j)
{
	struct cop_buf text = {0};

	pthread_mutex_lock(&j->lock);
	j->out_of_time = true;
	if (j->root) {
		missing_text(j, &text);
	} else {
		cop_buf_printf(&text, "no start signal from the root after %" PRIu32 " s; ",
			j->conf.ready_timeout_ms / 1000);
		say_upstream(j, &text);
	}
	pthread_mutex_unlock(&j->lock);
	cop_log_info("timed out waiting for parent readiness: %s", text.data ? text.data : "");
	cop_start_end_barrier(j, END_KNOWN, text.data ? text.data : "not ready in time");
	cop_buf_free(&text);
}

/* What this rank is waiting for. Called with the lock held. */
static void say_waiting(const struct cop_start *j, struct cop_buf *out)
{
	if (j->trouble[0])
		cop_buf_str(out, j->trouble);
	else if (j->no_address[0])
		cop_buf_str(out, j->no_address);
	else if (cop_start_is_blocked(j))
		cop_buf_printf(out, "no answer yet from its fabric address %s", j->parent_at);
	else
		cop_buf_str(out, "it waits for others");
}

/* For anyone reading the log while the command waits: logs soon after the start, then at intervals.
 */
static void say_not_yet(struct cop_start *j, uint64_t now_ms)
{
	struct cop_buf text = {0};

	if (now_ms < j->say_ms)
		return;
	j->say_ms = now_ms + NOT_YET_MS;
	pthread_mutex_lock(&j->lock);
	if (j->root)
		missing_names(j, &text);
	else
		say_waiting(j, &text);
	pthread_mutex_unlock(&j->lock);
	if (j->root)
		cop_log_info("nodes not ready yet: %s", text.data ? text.data : "");
	else
		cop_log_info("parent not ready yet: %s", text.data ? text.data : "");
	cop_buf_free(&text);
}

/* Reads failure notes only if the ancestors do not answer. Ignores failures while the whole tree is
 * being stopped. */
static void listen_for_failures(struct cop_start *j, uint64_t now_ms, bool being_stopped)
{
	char why[COP_STARTNOTE_WHY_SIZE];
	bool ask;

	pthread_mutex_lock(&j->lock);
	ask = (j->root || j->trouble[0]) && !being_stopped;
	pthread_mutex_unlock(&j->lock);
	/* Ancestors are tried first: this rank may have been restarted in a live tree. */
	if (!ask)
		cop_startnote_pass(&j->others, now_ms);
	else if (cop_start_failure_heard(j, now_ms, why))
		cop_start_end_barrier(j, j->root ? END_NEWS : END_KNOWN, why);
}

static void wait_on(struct cop_start *j, uint64_t now_ms, bool being_stopped)
{
	say_not_yet(j, now_ms);
	listen_for_failures(j, now_ms, being_stopped);
	if (now_ms >= j->state_ms) {
		cop_start_ask_children(j, j->conf.rank);
		j->state_ms = now_ms + STATE_MS;
	}
	if (!j->root) {
		cop_start_ready_send(j);
		cop_start_ask_upstream(j);
	}
}

bool cop_start_step(struct cop_start *j, uint64_t now_ms, bool being_stopped)
{
	end_if_complete(j);
	if (!cop_start_has_ended(j) && now_ms >= j->deadline_ms)
		time_is_up(j);
	if (!cop_start_has_ended(j))
		wait_on(j, now_ms, being_stopped);
	cop_start_tend(j);
	return cop_start_has_ended(j);
}

/* The root writes the address books again if a rank was restarted with another address, or if the
 * root itself was. */
void cop_start_tend(struct cop_start *j)
{
	bool old;

	pthread_mutex_lock(&j->lock);
	old = j->root && j->end == END_READY && (j->books_old || !j->books_written);
	j->books_old &= !old;
	pthread_mutex_unlock(&j->lock);
	if (old)
		cop_start_write_books(j);
}

/* Waiting ranks below receive the reason. */
void cop_start_give_up(struct cop_start *j, const char *what)
{
	char why[400];

	snprintf(why, sizeof(why), "%.250s (rank %" PRIu32 ") %s", cop_start_host(j, j->conf.rank),
		j->conf.rank, what);
	cop_start_end_barrier(j, END_NEWS, why);
}

/* ---- accessors ---- */

bool cop_start_serve(struct cop_start *j, struct cop_rpc_req *req)
{
	switch (cop_rpc_req_op(req)) {
	case COP_START_OP_READY:
		cop_start_serve_ready(j, req);
		return true;
	case COP_START_OP_BARRIER:
		cop_start_serve_barrier(j, req);
		return true;
	case COP_START_OP_STATE:
		cop_start_serve_state(j, req);
		return true;
	case COP_START_OP_TOLD:
		cop_start_serve_told(j, req);
		return true;
	default:
		return false;
	}
}
