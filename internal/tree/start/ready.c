/* SPDX-License-Identifier: BSD-3-Clause */
/* Readiness, reported up the tree: the ready ranks of this subtree with their addresses, from which
 * the root writes the job's address book. */
#include "tree/start/start_priv.h"

/* Maximum size of a rank's address and networks. */
#define ADDRESS_MAX 512
#define NETWORKS_MAX 4096

struct ready_item {
	struct cop_list link;
	uint32_t rank;
	const char *networks; /* after the address */
	char address[];
};

static void free_items(struct cop_list *items)
{
	struct cop_list *l;

	while ((l = cop_list_pop_front(items)))
		free(COP_CONTAINER_OF(l, struct ready_item, link));
}

/* ---- reports to the parent ---- */

static void requeue_items(struct cop_start *j, struct cop_list *items)
{
	cop_list_splice(items, &j->ready_queue);
	cop_list_splice(&j->ready_queue, items);
}

struct ready_call {
	struct cop_start *join;
	struct cop_list items;
};

static void parent_heard(void *arg, const struct cop_rpc_result *r)
{
	struct ready_call *c = arg;
	struct cop_start *j = c->join;
	bool again = r->status && r->status != -EPROTO;

	pthread_mutex_lock(&j->lock);
	j->ready_sending = false;
	j->parent_met |= r->answered;
	if (r->status)
		cop_start_trouble(j, j->parent, r->status);
	else
		j->trouble[0] = '\0';
	if (again)
		requeue_items(j, &c->items);
	pthread_mutex_unlock(&j->lock);
	free_items(&c->items);
	free(c);
	if (r->status == -EPROTO)
		cop_start_mismatch(j, j->parent);
	else if (!r->status)
		cop_start_ready_send(j);
	/* The main thread retries shortly. */
}

/* Moves queued ranks to items and into w, as many as fit. Called with the lock held. */
static void move_queued(struct cop_start *j, struct cop_list *items, struct cop_wr *w)
{
	while (!cop_list_empty(&j->ready_queue)) {
		struct ready_item *it =
			COP_CONTAINER_OF(j->ready_queue.next, struct ready_item, link);
		size_t len = strlen(it->address), more = strlen(it->networks);

		if (cop_wr_len(w) + len + more + 16 > COP_RPC_PAYLOAD_MAX)
			return;
		cop_wr_u32(w, it->rank);
		cop_wr_str(w, it->address, len);
		cop_wr_str(w, it->networks, more);
		cop_list_remove(&it->link);
		cop_list_push_back(items, &it->link);
	}
}

/* One message at a time. */
void cop_start_ready_send(struct cop_start *j)
{
	uint8_t payload[COP_RPC_PAYLOAD_MAX];
	struct cop_wr w = cop_wr_init(payload, sizeof(payload));
	struct ready_call *c = calloc(1, sizeof(*c));
	struct cop_rpc_call call = {.rank = j->parent,
		.op = COP_START_OP_READY,
		.payload = payload,
		.done = parent_heard,
		.arg = c};
	struct cop_rpc *rpc;

	if (!c)
		return;
	c->join = j;
	cop_list_init(&c->items);
	pthread_mutex_lock(&j->lock);
	rpc = j->rpc;
	if (rpc && !j->ready_sending)
		move_queued(j, &c->items, &w);
	if (!cop_list_empty(&c->items))
		j->ready_sending = true;
	pthread_mutex_unlock(&j->lock);
	if (cop_list_empty(&c->items)) {
		free(c);
		return;
	}
	call.payload_len = cop_wr_len(&w);
	cop_rpc_call(rpc, &call);
}

/* ---- reports from ranks ---- */

/* One rank's report: its address and its host's networks in the format of cop_endpoint_networks. */
struct news {
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

static int note_at_root(struct cop_start *j, const struct news *t)
{
	struct arrival *a = &j->arrival[t->rank];
	bool same = a->address && strlen(a->address) == t->address_len &&
		    memcmp(a->address, t->address, t->address_len) == 0;
	int rc = keep_text(&a->address, t->address, t->address_len);

	j->books_old |= j->end == END_READY && !same;
	if (!rc)
		rc = keep_text(&a->networks, t->networks, t->networks_len);
	if (!rc && !a->ready) {
		a->ready = true;
		j->arrivals++;
	}
	return rc;
}

static int note_ready(struct cop_start *j, const struct news *t)
{
	struct ready_item *it;

	if (j->root)
		return note_at_root(j, t);
	it = calloc(1, sizeof(*it) + t->address_len + t->networks_len + 2);
	if (!it)
		return -ENOMEM;
	it->rank = t->rank;
	it->networks = it->address + t->address_len + 1;
	memcpy(it->address, t->address, t->address_len);
	memcpy(it->address + t->address_len + 1, t->networks, t->networks_len);
	cop_list_push_back(&j->ready_queue, &it->link);
	return 0;
}

/* At the root, the main thread has files to write: all of them before the barrier ends, or again
 * for a restarted rank. */
static void pass_on(struct cop_start *j)
{
	bool work;

	pthread_mutex_lock(&j->lock);
	work = j->end == END_READY ? j->books_old : j->arrivals == j->conf.topo.nodes;
	pthread_mutex_unlock(&j->lock);
	if (!j->root)
		cop_start_ready_send(j);
	else if (work)
		j->conf.wake(j->conf.ctx);
}

void cop_start_serve_ready(struct cop_start *j, struct cop_rpc_req *req)
{
	size_t len;
	const void *payload = cop_rpc_req_payload(req, &len);
	struct cop_rd r = cop_rd_init(payload, len);
	int rc = 0;

	pthread_mutex_lock(&j->lock);
	while (!rc && !r.bad && !cop_rd_done(&r)) {
		struct news t = {.rank = cop_rd_u32(&r)};

		t.address = cop_rd_str(&r, &t.address_len);
		t.networks = cop_rd_str(&r, &t.networks_len);
		if (r.bad || t.rank >= j->conf.topo.nodes || t.address_len > ADDRESS_MAX ||
			t.networks_len > NETWORKS_MAX)
			rc = -EINVAL;
		else
			rc = note_ready(j, &t);
		if (!rc) {
			cop_start_came(j, t.rank, false);
			cop_start_way_note(j, t.rank, t.address, t.address_len);
		}
	}
	pthread_mutex_unlock(&j->lock);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = rc});
	if (!rc)
		pass_on(j);
}

void cop_start_ready_begin(struct cop_start *j)
{
	struct cop_rpc *rpc = cop_start_rpc(j);
	struct cop_buf networks = {0};
	struct news t = {.rank = j->conf.rank, .address = ""};

	if (rpc) {
		t.address = cop_endpoint_address(cop_rpc_fabric(rpc));
		cop_endpoint_networks(cop_rpc_fabric(rpc), &networks);
	}
	t.address_len = strlen(t.address);
	t.networks = networks.data && !networks.failed && networks.len <= NETWORKS_MAX
			     ? networks.data
			     : "";
	t.networks_len = strlen(t.networks);
	pthread_mutex_lock(&j->lock);
	note_ready(j, &t);
	pthread_mutex_unlock(&j->lock);
	cop_buf_free(&networks);
	pass_on(j);
}

void cop_start_ready_free(struct cop_start *j)
{
	free_items(&j->ready_queue);
	for (uint32_t r = 0; j->arrival && r < j->conf.topo.nodes; r++) {
		free(j->arrival[r].address);
		free(j->arrival[r].networks);
	}
	free(j->arrival);
}
