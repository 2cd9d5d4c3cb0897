/* SPDX-License-Identifier: BSD-3-Clause */
/* Readiness: it flows up, the go flows down. Each node tells its parent which ranks are ready below it (with their
 * addresses, from which the root makes the job's address book), and asks it for the go; the answer to that waits until the root has
 * heard of everyone, or gives up and names who is missing.
 *
 * A node that is restarted joins a tree that is ready already: its parent says so at once, or the next living ancestor; the root, and who
 * finds no ancestor alive, asks its own children and the root's. Those above it may have been restarted as well, and wait, so it asks its
 * children again now and then. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS 200
/* A tree that forms is ready before, and then nobody but the root has asked its children. */
#define STATE_MS 2000
/* The log says so often what is waited for. */
#define NOT_YET_MS 10000
/* Others wait a little longer than the root, so that they hear its reason. */
#define GRACE_MS 5000
/* Bytes of what a node tells of its networks. */
#define READY_NETWORKS_MAX 4096

struct ready_item {
	struct cop_list link;
	uint32_t rank;
	const char *networks; /* behind the address */
	char address[];
};

struct go_waiter {
	struct cop_list link;
	struct cop_rpc_req *req;
};

int cop_node_join_init(struct cop_node *n)
{
	cop_list_init(&n->go_waiters);
	cop_list_init(&n->ready_queue);
	cop_list_init(&n->stop_requests);
	cop_list_init(&n->chores);
	pthread_mutex_init(&n->lock, NULL);
	n->ready_rank = calloc(n->topo.nodes, 1);
	n->ready_address = calloc(n->topo.nodes, sizeof(char *));
	n->ready_networks = calloc(n->topo.nodes, sizeof(char *));
	return n->ready_rank && n->ready_address && n->ready_networks ? 0 : -ENOMEM;
}

void cop_node_join_fini(struct cop_node *n)
{
	struct cop_list *l;

	while ((l = cop_list_pop_front(&n->ready_queue)))
		free(COP_CONTAINER_OF(l, struct ready_item, link));
	while ((l = cop_list_pop_front(&n->go_waiters)))
		free(COP_CONTAINER_OF(l, struct go_waiter, link));
	for (uint32_t r = 0; n->ready_address && r < n->topo.nodes; r++)
		free(n->ready_address[r]);
	for (uint32_t r = 0; n->ready_networks && r < n->topo.nodes; r++)
		free(n->ready_networks[r]);
	free(n->ready_networks);
	free(n->ready_address);
	free(n->ready_rank);
	pthread_mutex_destroy(&n->lock);
}

static void answer_go(struct cop_node *n, struct cop_rpc_req *req)
{
	struct cop_rpc_answer a = {.status = n->ready ? 0 : -ETIMEDOUT, .body = n->abort_text,
		.body_len = strlen(n->abort_text)};

	cop_rpc_reply(req, &a);
}

/* The matter is settled: everyone who asked is told. abort_text does not change any more and outlives the replies. */
static void settle(struct cop_node *n, bool ready, const char *why)
{
	struct cop_list waiters, *l;

	cop_list_init(&waiters);
	pthread_mutex_lock(&n->lock);
	if (!n->ready && !n->aborted) {
		n->ready = ready;
		n->aborted = !ready;
		snprintf(n->abort_text, sizeof(n->abort_text), "%s", why);
		cop_list_splice(&waiters, &n->go_waiters);
	}
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&waiters))) {
		struct go_waiter *w = COP_CONTAINER_OF(l, struct go_waiter, link);

		answer_go(n, w->req);
		free(w);
	}
	/* Asks of the time when nodes were still coming up must not keep later requests waiting. */
	if (n->rendezvous)
		cop_rendezvous_hurry(n->rendezvous, n->conf->peer_timeout_ms / 2);
	cop_node_wake(n);
}

/* ---- telling the parent ---- */

static void send_ready(struct cop_node *n);

static void requeue(struct cop_node *n, struct cop_list *items)
{
	cop_list_splice(items, &n->ready_queue);
	cop_list_splice(&n->ready_queue, items);
}

struct ready_call {
	struct cop_node *node;
	struct cop_list items;
};

/* The lock is held. */
static void note_trouble(struct cop_node *n, uint32_t above, int status)
{
	bool parent = above == cop_topo_parent(&n->topo, 0, n->rank);

	snprintf(n->trouble, sizeof(n->trouble), "%s (rank %" PRIu32 ", %s): %s", cop_node_host(n, above), above,
		parent ? "this node's parent" : "above this node", status == -EACCES ? "it holds another secret" :
		status == -EHOSTDOWN && parent && n->no_address[0] ? n->no_address : strerror(-status));
}

/* Which of the two is wrong, nobody can tell. Its host's name may be another in its own list. */
void cop_node_differs(void *arg, uint32_t rank)
{
	struct cop_node *n = arg;
	char why[800];

	snprintf(why, sizeof(why), "%s (rank %" PRIu32 ") was started with other options: --source, --fanout, --trees, --chunk, the host list or its order, or the version differ",
		rank < n->topo.nodes ? cop_node_host(n, rank) : "a node", rank);
	cop_log_warn("refused: %s", why);
	settle(n, false, why);
}

static void ready_told(void *arg, const struct cop_rpc_result *r)
{
	struct ready_call *c = arg;
	struct cop_node *n = c->node;
	struct cop_list *l;
	bool again = r->status && r->status != -EPROTO;

	pthread_mutex_lock(&n->lock);
	n->ready_sending = false;
	if (r->status)
		note_trouble(n, cop_topo_parent(&n->topo, 0, n->rank), r->status);
	else
		n->trouble[0] = '\0';
	if (again)
		requeue(n, &c->items);
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&c->items)))
		free(COP_CONTAINER_OF(l, struct ready_item, link));
	free(c);
	if (r->status == -EPROTO)
		cop_node_differs(n, cop_topo_parent(&n->topo, 0, n->rank));
	else if (!r->status)
		send_ready(n);
	/* A failure is tried again by the main thread, RETRY_MS later. */
}

/* Sends what is queued, as much as one message holds. One message at a time. */
static void send_ready(struct cop_node *n)
{
	uint8_t payload[COP_RPC_PAYLOAD_MAX];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));
	struct ready_call *c = calloc(1, sizeof(*c));
	struct cop_rpc_call call = {.rank = cop_topo_parent(&n->topo, 0, n->rank), .op = OP_READY,
		.payload = payload, .done = ready_told, .arg = c};

	if (!c)
		return;
	c->node = n;
	cop_list_init(&c->items);
	pthread_mutex_lock(&n->lock);
	while (!n->ready_sending && !cop_list_empty(&n->ready_queue)) {
		struct ready_item *it = COP_CONTAINER_OF(n->ready_queue.next, struct ready_item, link);
		size_t len = strlen(it->address), more = strlen(it->networks);

		if (cop_wr_len(&w) + len + more + 16 > sizeof(payload))
			break;
		cop_wr_u32(&w, it->rank);
		cop_wr_str(&w, it->address, len);
		cop_wr_str(&w, it->networks, more);
		cop_list_remove(&it->link);
		cop_list_push_back(&c->items, &it->link);
	}
	if (!cop_list_empty(&c->items))
		n->ready_sending = true;
	pthread_mutex_unlock(&n->lock);
	if (cop_list_empty(&c->items)) {
		free(c);
		return;
	}
	call.payload_len = cop_wr_len(&w);
	cop_rpc_call(n->rpc, &call);
}

static void go_heard(void *arg, const struct cop_rpc_result *r)
{
	struct cop_node *n = arg;
	uint32_t asked;
	char why[1024];

	pthread_mutex_lock(&n->lock);
	n->go_sending = false;
	asked = n->go_rank;
	if (!r->answered) {
		note_trouble(n, asked, r->status);
		n->go_rank = cop_topo_parent(&n->topo, 0, asked);
	}
	pthread_mutex_unlock(&n->lock);
	if (r->answered && r->status == 0) {
		settle(n, true, "");
	} else if (r->answered && r->status == -ETIMEDOUT) {
		snprintf(why, sizeof(why), "%.*s", (int)r->body_len, r->body ? (const char *)r->body : "");
		atomic_store(&n->no_news, true);
		settle(n, false, why);
	} else if (r->status == -EPROTO) {
		cop_node_differs(n, asked);
	}
}

struct state_call {
	struct cop_node *node;
	uint32_t rank;
};

static void state_heard(void *arg, const struct cop_rpc_result *r)
{
	struct state_call c = *(struct state_call *)arg;
	struct cop_node *n = c.node;
	bool news;

	free(arg);
	if (r->status == -EPROTO)
		cop_node_differs(n, c.rank);
	if (!r->answered || r->status)
		return;
	pthread_mutex_lock(&n->lock);
	news = !n->ready && !n->aborted;
	pthread_mutex_unlock(&n->lock);
	if (news)
		cop_log_info("the tree is ready already: this node was restarted");
	settle(n, true, "");
}

static void ask_children_of(struct cop_node *n, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], count = cop_topo_children(&n->topo, 0, rank, child);

	for (uint32_t i = 0; i < count; i++) {
		struct state_call *c = child[i] == n->rank ? NULL : malloc(sizeof(*c));
		struct cop_rpc_call call = {.rank = child[i], .op = OP_STATE, .done = state_heard, .arg = c};

		if (!c)
			continue;
		*c = (struct state_call){n, child[i]};
		cop_rpc_call(n->rpc, &call);
	}
}

/* This node was perhaps restarted. Nodes that are not up yet, or no more ready than this one, are no news. */
static void ask_state(struct cop_node *n)
{
	uint32_t root = cop_topo_root(&n->topo, 0);

	ask_children_of(n, n->rank);
	if (n->rank != root)
		ask_children_of(n, root);
}

static void ask_go(struct cop_node *n)
{
	struct cop_rpc_call call = {.op = OP_GO, .done = go_heard, .arg = n};
	bool ask, again;

	pthread_mutex_lock(&n->lock);
	ask = !n->go_sending && !n->ready && !n->aborted;
	n->go_sending |= ask;
	/* From the parent up to the root, and again. */
	again = ask && n->go_rank == COP_TOPO_NONE;
	if (again)
		n->go_rank = cop_topo_parent(&n->topo, 0, n->rank);
	call.rank = n->go_rank;
	pthread_mutex_unlock(&n->lock);
	if (ask)
		cop_rpc_call(n->rpc, &call);
	if (again)
		ask_state(n);
}

void cop_node_serve_state(struct cop_node *n, struct cop_rpc_req *req)
{
	bool ready;

	pthread_mutex_lock(&n->lock);
	ready = n->ready;
	pthread_mutex_unlock(&n->lock);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = ready ? 0 : -EAGAIN});
}

/* ---- hearing of ready ranks ---- */

/* What one node tells: its address, and the networks of its machine as cop_fabric_networks gives them. */
struct told {
	uint32_t rank;
	const char *address, *networks;
	size_t address_len, networks_len;
};

static int keep_text(char **where, const char *text, size_t len)
{
	free(*where);
	*where = strndup(text, len);
	return *where ? 0 : -ENOMEM;
}

static int note_at_root(struct cop_node *n, const struct told *t)
{
	int rc = keep_text(&n->ready_address[t->rank], t->address, t->address_len);

	if (!rc)
		rc = keep_text(&n->ready_networks[t->rank], t->networks, t->networks_len);
	if (!rc && !n->ready_rank[t->rank]) {
		n->ready_rank[t->rank] = 1;
		n->ready_count++;
	}
	return rc;
}

static int note_ready(struct cop_node *n, const struct told *t)
{
	struct ready_item *it;

	if (cop_topo_root(&n->topo, 0) == n->rank)
		return note_at_root(n, t);
	it = calloc(1, sizeof(*it) + t->address_len + t->networks_len + 2);
	if (!it)
		return -ENOMEM;
	it->rank = t->rank;
	it->networks = it->address + t->address_len + 1;
	memcpy(it->address, t->address, t->address_len);
	memcpy(it->address + t->address_len + 1, t->networks, t->networks_len);
	cop_list_push_back(&n->ready_queue, &it->link);
	return 0;
}

static void heard(struct cop_node *n)
{
	bool complete, root = cop_topo_root(&n->topo, 0) == n->rank;

	pthread_mutex_lock(&n->lock);
	complete = root && n->ready_count == n->topo.nodes;
	pthread_mutex_unlock(&n->lock);
	/* The main thread has files to write first. */
	if (complete)
		cop_node_wake(n);
	else if (!root)
		send_ready(n);
}

/* The root, when everyone is there: what the job directory keeps is written before the go. */
static bool complete_root(struct cop_node *n)
{
	bool complete;

	pthread_mutex_lock(&n->lock);
	complete = cop_topo_root(&n->topo, 0) == n->rank && n->ready_count == n->topo.nodes && !n->ready && !n->aborted;
	pthread_mutex_unlock(&n->lock);
	if (complete) {
		cop_node_write_books(n);
		if (n->began_ns)
			cop_job_failure_clear(n->job_dir, -1);
		settle(n, true, "");
	}
	return complete;
}

void cop_node_serve_ready(struct cop_node *n, struct cop_rpc_req *req)
{
	size_t len;
	const void *payload = cop_rpc_req_payload(req, &len);
	struct cop_rd r = cop_rd_init(payload, len);
	int rc = 0;

	pthread_mutex_lock(&n->lock);
	while (!rc && !r.bad && !cop_rd_done(&r)) {
		struct told t = {.rank = cop_rd_u32(&r)};

		t.address = cop_rd_str(&r, &t.address_len);
		t.networks = cop_rd_str(&r, &t.networks_len);
		if (r.bad || t.rank >= n->topo.nodes || t.address_len > 512 || t.networks_len > READY_NETWORKS_MAX)
			rc = -EINVAL;
		else
			rc = note_ready(n, &t);
	}
	pthread_mutex_unlock(&n->lock);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc});
	if (!rc)
		heard(n);
}

void cop_node_serve_go(struct cop_node *n, struct cop_rpc_req *req)
{
	struct go_waiter *w = malloc(sizeof(*w));
	bool settled;

	if (!w) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	w->req = req;
	pthread_mutex_lock(&n->lock);
	settled = n->ready || n->aborted;
	if (!settled)
		cop_list_push_back(&n->go_waiters, &w->link);
	pthread_mutex_unlock(&n->lock);
	if (settled) {
		free(w);
		answer_go(n, req);
	}
}

/* ---- the main thread's part ---- */

void cop_node_join(struct cop_node *n)
{
	struct cop_buf networks = {0};
	struct told t = {.rank = n->rank, .address = ""};

	if (n->rpc) {
		t.address = cop_fabric_address(cop_rpc_fabric(n->rpc));
		cop_fabric_networks(cop_rpc_fabric(n->rpc), &networks);
	}
	t.address_len = strlen(t.address);
	t.networks = networks.data && !networks.failed && networks.len <= READY_NETWORKS_MAX ? networks.data : "";
	t.networks_len = strlen(t.networks);
	pthread_mutex_lock(&n->lock);
	note_ready(n, &t);
	pthread_mutex_unlock(&n->lock);
	cop_buf_free(&networks);
	n->go_rank = cop_topo_parent(&n->topo, 0, n->rank);
	heard(n);
	if (cop_topo_root(&n->topo, 0) != n->rank)
		ask_go(n);
	else
		ask_state(n);
}

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
	cop_buf_printf(out, "%" PRIu32 " of %" PRIu32 " nodes not ready after %" PRIu32 " s: ", n->topo.nodes - n->ready_count,
		n->topo.nodes, n->conf->ready_timeout_ms / 1000);
	missing_names(n, out);
}

static void time_is_up(struct cop_node *n)
{
	struct cop_buf text = {0};

	pthread_mutex_lock(&n->lock);
	if (cop_topo_root(&n->topo, 0) == n->rank)
		missing_text(n, &text);
	else
		cop_buf_printf(&text, "no go after %" PRIu32 " s; %s", n->conf->ready_timeout_ms / 1000, n->trouble[0] ?
			n->trouble : "the parent answers, but the root does not");
	pthread_mutex_unlock(&n->lock);
	atomic_store(&n->no_news, true);
	cop_log_info("timed out waiting for parent readiness: %s", text.data ? text.data : "");
	settle(n, false, text.data ? text.data : "not ready in time");
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
		cop_buf_str(&text, n->trouble[0] ? n->trouble : n->no_address[0] ? n->no_address : "it waits for others");
	pthread_mutex_unlock(&n->lock);
	if (cop_topo_root(&n->topo, 0) == n->rank)
		cop_log_info("nodes not ready yet: %s", text.data ? text.data : "");
	else
		cop_log_info("parent not ready yet: %s", text.data ? text.data : "");
	cop_buf_free(&text);
}

/* Of those above it is asked only when they do not answer. While all are being stopped, nobody fails. */
static void listen_for_failures(struct cop_node *n)
{
	bool root = cop_topo_root(&n->topo, 0) == n->rank, ask;
	char why[COP_NODE_WHY_SIZE];

	pthread_mutex_lock(&n->lock);
	ask = (root || n->trouble[0]) && !n->stop_asked;
	pthread_mutex_unlock(&n->lock);
	/* Those further up are asked first: this node may have been started again, in a tree that lives. */
	if (!ask)
		n->failure_looked_ms = cop_now_ms();
	else if (cop_node_failure_heard(n, why))
		settle(n, false, why);
}

/* Those below, who asked for the go, hear why they will not get it. */
static int interrupted(struct cop_node *n, const char *what, struct cop_err *err)
{
	char why[400];

	snprintf(why, sizeof(why), "%.250s (rank %" PRIu32 ") %s", cop_node_host(n, n->rank), n->rank, what);
	settle(n, false, why);
	return cop_err_set(err, EINTR, "%s", what);
}

int cop_node_join_wait(struct cop_node *n, struct cop_err *err)
{
	bool root = cop_topo_root(&n->topo, 0) == n->rank;
	uint64_t deadline = cop_now_ms() + n->conf->ready_timeout_ms + (root ? 0 : GRACE_MS);
	struct pollfd fds[3] = {{.fd = n->wake_fd, .events = POLLIN}, {.fd = n->signal_fd, .events = POLLIN},
		{.fd = n->report_fd}};
	uint64_t say_ms = cop_now_ms() + RETRY_MS, state_ms = cop_now_ms() + STATE_MS;

	while (!settled(n)) {
		uint64_t drain;

		if (complete_root(n))
			break;
		if (cop_now_ms() >= deadline)
			time_is_up(n);
		else if (poll(fds, 3, RETRY_MS) > 0 && (fds[1].revents || fds[2].revents))
			return interrupted(n, fds[1].revents ? "ended before the tree was ready, by a signal" :
				"ended before the tree was ready, by the end of the command that started it", err);
		if (fds[0].revents && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		if (settled(n))
			continue;
		say_not_yet(n, &say_ms);
		listen_for_failures(n);
		if (cop_now_ms() >= state_ms) {
			ask_children_of(n, n->rank);
			state_ms = cop_now_ms() + STATE_MS;
		}
		if (!root) {
			send_ready(n);
			ask_go(n);
		}
	}
	if (n->ready)
		return 0;
	if (atomic_load(&n->stopping))
		return interrupted(n, "stopped before the tree was ready", err);
	return cop_err_set(err, ETIMEDOUT, COP_NODE_NOT_READY "%s", n->abort_text);
}
