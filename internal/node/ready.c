/* SPDX-License-Identifier: BSD-3-Clause */
/* Readiness, on its way up: which ranks are ready in and below this node, with their addresses,
 * from which the root makes the job's address book. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of what a node tells of its networks. */
#define READY_NETWORKS_MAX 4096

struct ready_item {
	struct cop_list link;
	uint32_t rank;
	const char *networks; /* behind the address */
	char address[];
};

/* ---- telling the parent ---- */

static void requeue(struct cop_node *n, struct cop_list *items)
{
	cop_list_splice(items, &n->ready_queue);
	cop_list_splice(&n->ready_queue, items);
}

struct ready_call {
	struct cop_node *node;
	struct cop_list items;
};

static void ready_told(void *arg, const struct cop_rpc_result *r)
{
	struct ready_call *c = arg;
	struct cop_node *n = c->node;
	struct cop_list *l;
	bool again = r->status && r->status != -EPROTO;

	pthread_mutex_lock(&n->lock);
	n->ready_sending = false;
	if (r->status)
		cop_node_trouble(n, cop_topo_parent(&n->topo, 0, n->rank), r->status);
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
		cop_node_ready_send(n);
	/* A failure is tried again by the main thread, a moment later. */
}

/* Sends what is queued, as much as one message holds. One message at a time. */
void cop_node_ready_send(struct cop_node *n)
{
	uint8_t payload[COP_RPC_PAYLOAD_MAX];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));
	struct ready_call *c = calloc(1, sizeof(*c));
	struct cop_rpc_call call = {.rank = cop_topo_parent(&n->topo, 0, n->rank),
		.op = OP_READY,
		.payload = payload,
		.done = ready_told,
		.arg = c};

	if (!c)
		return;
	c->node = n;
	cop_list_init(&c->items);
	pthread_mutex_lock(&n->lock);
	while (!n->ready_sending && !cop_list_empty(&n->ready_queue)) {
		struct ready_item *it =
			COP_CONTAINER_OF(n->ready_queue.next, struct ready_item, link);
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

/* ---- hearing of ready ranks ---- */

/* What one node tells: its address, and the networks of its machine as cop_fabric_networks gives
 * them. */
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
	const char *was = n->ready_address[t->rank];
	bool same = was && strlen(was) == t->address_len &&
		    memcmp(was, t->address, t->address_len) == 0;
	int rc = keep_text(&n->ready_address[t->rank], t->address, t->address_len);

	n->books_old |= n->ready && !same;
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

struct renewal {
	struct cop_deferred work;
	struct cop_node *node;
};

static void write_again(struct cop_deferred *work)
{
	struct renewal *r = COP_CONTAINER_OF(work, struct renewal, work);
	struct cop_node *n = r->node;

	free(r);
	cop_node_write_books(n);
}

/* Without memory for it the files are old. */
static void renew_books(struct cop_node *n)
{
	struct renewal *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	*r = (struct renewal){.work.run = write_again, .node = n};
	if (!cop_defer_add(&n->deferred, &r->work))
		free(r);
}

static void heard(struct cop_node *n)
{
	bool complete, old, root = cop_topo_root(&n->topo, 0) == n->rank;

	pthread_mutex_lock(&n->lock);
	complete = root && !n->ready && n->ready_count == n->topo.nodes;
	old = n->books_old;
	n->books_old = false;
	pthread_mutex_unlock(&n->lock);
	/* The main thread has files to write first. */
	if (complete)
		cop_node_wake(n);
	else if (old)
		renew_books(n);
	else if (!root)
		cop_node_ready_send(n);
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
		if (r.bad || t.rank >= n->topo.nodes || t.address_len > 512 ||
			t.networks_len > READY_NETWORKS_MAX)
			rc = -EINVAL;
		else
			rc = note_ready(n, &t);
		if (!rc)
			cop_node_came(n, t.rank, false);
	}
	pthread_mutex_unlock(&n->lock);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc});
	if (!rc)
		heard(n);
}

void cop_node_ready_begin(struct cop_node *n)
{
	struct cop_buf networks = {0};
	struct told t = {.rank = n->rank, .address = ""};

	if (n->rpc) {
		t.address = cop_fabric_address(cop_rpc_fabric(n->rpc));
		cop_fabric_networks(cop_rpc_fabric(n->rpc), &networks);
	}
	t.address_len = strlen(t.address);
	t.networks = networks.data && !networks.failed && networks.len <= READY_NETWORKS_MAX
			     ? networks.data
			     : "";
	t.networks_len = strlen(t.networks);
	pthread_mutex_lock(&n->lock);
	note_ready(n, &t);
	pthread_mutex_unlock(&n->lock);
	cop_buf_free(&networks);
	heard(n);
}

void cop_node_ready_fini(struct cop_node *n)
{
	struct cop_list *l;

	while ((l = cop_list_pop_front(&n->ready_queue)))
		free(COP_CONTAINER_OF(l, struct ready_item, link));
	for (uint32_t r = 0; n->ready_address && r < n->topo.nodes; r++)
		free(n->ready_address[r]);
	for (uint32_t r = 0; n->ready_networks && r < n->topo.nodes; r++)
		free(n->ready_networks[r]);
	free(n->ready_networks);
	free(n->ready_address);
	free(n->ready_rank);
}
