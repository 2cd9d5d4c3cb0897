/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of the start, said to the nodes below by the one above them. They ask for it (go.c),
 * but a launcher may end this node as soon as its command has returned, as Slurm does with all
 * processes of a step, and a question that comes a moment later finds nobody. So the command
 * returns when each node below that has come to this one in this start has said that it knows. One
 * that came and died, or hangs, is waited for no longer than a limit. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READY_MS 10000
/* They ask those further up as well, and look into the job directory. */
#define FAILED_MS 2000
#define FLUSH_MS 1000

void cop_node_came(struct cop_node *n, uint32_t rank, bool answered)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], count;

	if (rank >= n->topo.nodes || cop_topo_parent(&n->topo, 0, rank) != n->rank)
		return;
	count = cop_topo_children(&n->topo, 0, n->rank, child);
	for (uint32_t i = 0; i < count; i++)
		if (child[i] == rank) {
			n->below[i].came = true;
			n->below[i].answered |= answered;
		}
}

/* ---- telling ---- */

static void heard(void *arg, const struct cop_rpc_result *r)
{
	struct below *b = arg;

	(void)r;
	atomic_store(&b->unheard, false);
	cop_node_wake(b->node);
}

/* Who was answered that it will not start ends, and could not answer. */
static bool is_to_hear(struct cop_node *n, const struct below *b)
{
	bool yes;

	pthread_mutex_lock(&n->lock);
	yes = b->came && (n->ready || !b->answered);
	pthread_mutex_unlock(&n->lock);
	return yes;
}

static void tell(struct cop_node *n, const uint32_t *child, uint32_t count)
{
	uint8_t payload[sizeof(n->abort_text) + 16];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));

	cop_wr_u8(&w, n->ready);
	cop_wr_str(&w, n->abort_text, strlen(n->abort_text));
	for (uint32_t i = 0; i < count; i++) {
		struct below *b = &n->below[i];
		struct cop_rpc_call call = {.rank = child[i],
			.op = OP_TOLD,
			.payload = payload,
			.payload_len = cop_wr_len(&w),
			.done = heard,
			.arg = b};

		if (!is_to_hear(n, b))
			continue;
		b->node = n;
		atomic_store(&b->unheard, true);
		cop_rpc_call(n->rpc, &call);
	}
}

static bool all_heard(const struct cop_node *n, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (atomic_load(&n->below[i].unheard))
			return false;
	return true;
}

static void complain(const struct cop_node *n, const uint32_t *child, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (atomic_load(&n->below[i].unheard))
			cop_log_warn(
				"a node below has not said that it knows what became of the start rank=%" PRIu32
				" host=%s",
				child[i], cop_node_host(n, child[i]));
}

/* A signal that comes meanwhile is left for who waits for the end. */
static void await(struct cop_node *n, uint32_t count)
{
	uint64_t now = cop_now_ms(), end = now + (n->ready ? READY_MS : FAILED_MS), drain;
	struct pollfd fds[2] = {
		{.fd = n->wake_fd, .events = POLLIN}, {.fd = n->signal_fd, .events = POLLIN}};

	for (; !all_heard(n, count) && now < end && !atomic_load(&n->stopping);
		now = cop_now_ms()) {
		if (poll(fds, 2, (int)(end - now)) <= 0)
			continue;
		if (fds[1].revents)
			return;
		if (fds[0].revents && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		cop_defer_run(&n->deferred, false);
	}
}

void cop_node_tell_below(struct cop_node *n)
{
	uint32_t child[COP_TOPO_MAX_FANOUT],
		count = n->rpc ? cop_topo_children(&n->topo, 0, n->rank, child) : 0;

	tell(n, child, count);
	await(n, count);
	complain(n, child, count);
	/* The answers of those that were not told again. */
	if (n->rpc && !n->ready)
		cop_fabric_flush(cop_rpc_fabric(n->rpc), FLUSH_MS);
}

/* ---- being told ---- */

/* By the parent alone: who else may ask for the go is not who knows. */
void cop_node_serve_told(struct cop_node *n, struct cop_rpc_req *req)
{
	size_t len, why_len;
	const void *payload = cop_rpc_req_payload(req, &len);
	struct cop_rd r = cop_rd_init(payload, len);
	bool ready = cop_rd_u8(&r);
	const char *why = cop_rd_str(&r, &why_len);
	char text[sizeof(n->abort_text)];
	int rc = cop_rpc_req_rank(req) != cop_topo_parent(&n->topo, 0, n->rank) ? -EPERM
		 : r.bad || why_len >= sizeof(text)                             ? -EINVAL
										: 0;

	if (!rc) {
		snprintf(text, sizeof(text), "%.*s", (int)why_len, why);
		if (!ready)
			atomic_store(&n->no_news, true);
		cop_node_settle(n, ready, text);
	}
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc});
}
