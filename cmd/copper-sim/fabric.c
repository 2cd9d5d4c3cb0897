/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulates rpc.h for tree/fetch of a node. A message occupies, one after the other, the
 * sender's processor, its outgoing link, the network, the receiver's incoming link, and the
 * receiver's processor; each of them serves one message at a time. A request to a node that is
 * dead or dies before it replies fails after the peer timeout; the requester then treats that
 * node as dead. */

#include "sim.h"

struct cop_rpc_req {
	struct sim_node *from, *to;
	struct cop_rpc_call call;
	struct cop_list served; /* in the list of `to` until that node has replied */
	bool joined;            /* sent in the message of another request */
	bool lost;              /* unanswered; the failure is reported to `from` */
	bool answered, heard;
	struct cop_rpc_answer answer;
	void *head; /* of the reply; a copy */
	uint8_t payload[];
};

/* ---- the cost of a message ---- */

static uint64_t transfer_ns(uint64_t bytes, uint64_t mb_per_s)
{
	return bytes * 1000 / mb_per_s;
}

static uint64_t reserve_time(uint64_t *free_at, uint64_t from, uint64_t takes)
{
	*free_at = COP_MAX(*free_at, from) + takes;
	return *free_at;
}

static uint64_t processed_at(struct sim_node *n, uint64_t us, uint64_t bytes_ns)
{
	return reserve_time(&n->rpc.processor_free, cop_sim_now(), us * 1000 + bytes_ns);
}

/* Returns when bytes sent at this time arrive. The first bytes travel while the last ones still
 * wait. */
static uint64_t arrives_at(
	struct sim_node *from, struct sim_node *to, uint64_t leave, uint64_t bytes)
{
	struct sim *s = from->sim;
	const struct cop_model *m = &s->conf.model;
	struct sim_link *link = cop_sim_link(s, from->rank, to->rank);
	uint64_t through = transfer_ns(bytes, m->node_mb_per_s), out, over, in;

	out = reserve_time(&from->rpc.out_free, leave, through);
	over = reserve_time(&link->free_ns, out - through, transfer_ns(bytes, m->link_mb_per_s));
	out = COP_MAX(out, over) + m->hop_us * 1000;
	in = reserve_time(&to->rpc.in_free, out - through, through);
	from->rpc.out_bytes += bytes;
	link->bytes += bytes;
	s->busiest_link_bytes = COP_MAX(s->busiest_link_bytes, link->bytes);
	return COP_MAX(in, out);
}

/* ---- calls ---- */

static bool knows_dead(const struct sim_node *n, uint32_t rank)
{
	for (unsigned i = 0; i < n->rpc.dead_count; i++)
		if (n->rpc.dead[i] == rank)
			return true;
	return false;
}

static void learn_dead(struct sim_node *n, uint32_t rank)
{
	if (knows_dead(n, rank))
		return;
	n->rpc.dead = realloc(n->rpc.dead, (n->rpc.dead_count + 1) * sizeof(*n->rpc.dead));
	if (!n->rpc.dead)
		abort();
	n->rpc.dead[n->rpc.dead_count++] = rank;
}

static void finish_call(struct cop_rpc_req *q, struct cop_rpc_result *r)
{
	if (cop_sim_is_dead(q->from))
		*r = (struct cop_rpc_result){.status = -ECANCELED};
	q->heard = true;
	q->call.done(q->call.arg, r);
	/* The reply frees the request, unless the responding node has died. */
	if (q->answered || cop_list_empty(&q->served))
		free(q);
}

static void fail_call(void *arg, uint64_t why)
{
	struct cop_rpc_req *q = arg;

	if ((int)why == EHOSTDOWN)
		learn_dead(q->from, q->to->rank);
	finish_call(q, &(struct cop_rpc_result){.status = -(int)why});
}

static void lose_answer(struct cop_rpc_req *q)
{
	q->lost = true;
	cop_sim_at(cop_sim_now() + q->from->sim->conf.model.peer_timeout_ms * COP_NS_PER_MS,
		fail_call, q, EHOSTDOWN);
}

static void serve_request(void *arg, uint64_t unused)
{
	struct cop_rpc_req *q = arg;

	(void)unused;
	if (cop_sim_is_dead(q->to)) {
		lose_answer(q);
		return;
	}
	cop_list_push_back(&q->to->rpc.served, &q->served);
	if (!cop_fetch_serve(q->to->fetch, q))
		abort();
}

/* The processor time for half a message, or for half a request that shares a message. */
static uint64_t part_of(uint64_t half_us, const struct cop_rpc_req *q)
{
	return q->joined ? q->from->sim->conf.model.joined_us : half_us;
}

static void request_arrives(void *arg, uint64_t unused)
{
	struct cop_rpc_req *q = arg;

	(void)unused;
	cop_sim_at(processed_at(q->to, part_of(q->to->sim->conf.model.serve_us / 2, q), 0),
		serve_request, q, 0);
}

/* Whether the request shares a message: same destination, and the node is corked. */
static bool joins(struct cop_rpc *r, uint32_t rank)
{
	bool joined = r->corked && r->batch_rank == rank;

	if (r->corked)
		r->batch_rank = rank;
	return joined;
}

static void send_request(struct cop_rpc_req *q)
{
	struct sim *s = q->from->sim;
	uint64_t head = q->joined ? 0 : s->conf.model.message_bytes / 2, leave;

	s->requests++;
	s->messages += !q->joined;
	leave = processed_at(q->from, part_of(s->conf.model.ask_us / 2, q), 0);
	cop_sim_at(arrives_at(q->from, q->to, leave, q->call.payload_len + head), request_arrives,
		q, 0);
}

void cop_rpc_call(struct cop_rpc *r, const struct cop_rpc_call *call)
{
	struct sim_node *n = r->node;
	struct cop_rpc_req *q = cop_sim_alloc(1, sizeof(*q) + call->payload_len);

	q->from = n;
	q->to = &n->sim->node[call->rank];
	q->call = *call;
	cop_list_init(&q->served);
	memcpy(q->payload, call->payload, call->payload_len);
	if (cop_sim_is_dead(n)) {
		cop_sim_at(cop_sim_now(), fail_call, q, ECANCELED);
	} else if (knows_dead(n, call->rank)) {
		cop_sim_at(cop_sim_now(), fail_call, q, EHOSTDOWN);
	} else {
		q->joined = joins(r, call->rank);
		send_request(q);
	}
}

void cop_rpc_cork(struct cop_rpc *r)
{
	if (!r->corked++)
		r->batch_rank = COP_TOPO_NONE;
}

void cop_rpc_uncork(struct cop_rpc *r)
{
	r->corked--;
}

/* A simulated node either dies or replies; it is never only silent, so no request is hedged. */
bool cop_rpc_lags(const struct cop_rpc *r, uint32_t rank)
{
	(void)r, (void)rank;
	return false;
}

void cop_rpc_abandon(
	struct cop_rpc *r, uint32_t rank, const void *arg, cop_rpc_done *done, void *done_arg)
{
	(void)r, (void)rank, (void)arg, (void)done, (void)done_arg;
	abort();
}

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q)
{
	return q->from->rank;
}

uint8_t cop_rpc_req_op(const struct cop_rpc_req *q)
{
	return q->call.op;
}

uint64_t cop_rpc_req_id(const struct cop_rpc_req *q)
{
	return (uintptr_t)q >> 4;
}

const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len)
{
	*len = q->call.payload_len;
	return q->payload;
}

/* ---- replies ---- */

/* Provides memory that the requester may keep: its own landing buffer, memory shared by all
 * nodes, or a copy. */
static void place_body(struct cop_rpc_req *q, struct cop_rpc_result *r, bool *kept)
{
	const struct cop_rpc_answer *a = &q->answer;

	r->body_len = a->body_len;
	if (!a->body_len)
		return;
	r->in_landing = q->call.landing && a->body_len <= q->call.landing_len;
	r->body_kept = kept;
	if (r->in_landing) {
		r->body = q->call.landing;
	} else if (cop_sim_memory_shared(a->body)) {
		r->body = (void *)a->body;
	} else {
		r->body = cop_sim_alloc(1, a->body_len);
		memcpy(r->body, a->body, a->body_len);
	}
}

static void deliver_answer(void *arg, uint64_t unused)
{
	struct cop_rpc_req *q = arg;
	struct cop_rpc_answer *a = &q->answer;
	struct cop_rpc_result r = {.status = a->status, .answered = true, .unable = a->unable};
	void (*release)(void *) = a->release;
	void *release_arg = a->release_arg, *head = q->head, *copy = NULL;
	bool kept = false, too_long;

	(void)unused;
	r.head = head;
	r.head_len = a->head_len;
	too_long = q->call.body_max && a->body_len > q->call.body_max &&
		   a->body_len > q->call.landing_len;
	if (too_long)
		r = (struct cop_rpc_result){.status = -EMSGSIZE, .body_len = a->body_len};
	else
		place_body(q, &r, &kept);
	if (r.body && !r.in_landing && !cop_sim_memory_shared(r.body))
		copy = r.body;
	finish_call(q, &r);
	if (!kept)
		free(copy);
	free(head);
	if (release)
		release(release_arg);
}

static void come_back(void *arg, uint64_t bytes)
{
	struct cop_rpc_req *q = arg;
	const struct cop_model *m = &q->from->sim->conf.model;

	cop_sim_at(processed_at(q->from, m->ask_us - m->ask_us / 2,
			   transfer_ns(bytes, m->land_mb_per_s)),
		deliver_answer, q, 0);
}

/* Drops the reply of a node that has died in the meantime. */
static void drop_answer(struct cop_rpc_req *q, const struct cop_rpc_answer *a)
{
	cop_list_remove(&q->served);
	q->answered = true;
	if (a->release)
		a->release(a->release_arg);
	if (q->heard)
		free(q);
	else if (!q->lost)
		lose_answer(q);
}

void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer)
{
	const struct cop_model *m = &q->to->sim->conf.model;
	uint64_t leave;

	if (q->lost || cop_sim_is_dead(q->to)) {
		drop_answer(q, answer);
		return;
	}
	cop_list_remove(&q->served);
	q->answered = true;
	q->answer = *answer;
	if (answer->head_len) {
		q->head = cop_sim_alloc(1, answer->head_len);
		memcpy(q->head, answer->head, answer->head_len);
	}
	leave = processed_at(q->to, m->serve_us - m->serve_us / 2,
		transfer_ns(answer->body_len, m->send_mb_per_s));
	cop_sim_at(arrives_at(q->to, q->from, leave,
			   answer->head_len + answer->body_len + m->message_bytes / 2),
		come_back, q, answer->body_len);
}

/* ---- the node ---- */

void cop_sim_fabric_open(struct sim_node *n)
{
	n->rpc.node = n;
	cop_list_init(&n->rpc.served);
}

/* Nodes that wait for replies from this one will get an error. */
void cop_sim_fabric_died(struct sim_node *n)
{
	for (struct cop_list *l = n->rpc.served.next; l != &n->rpc.served; l = l->next) {
		struct cop_rpc_req *q = COP_CONTAINER_OF(l, struct cop_rpc_req, served);

		if (!q->lost)
			lose_answer(q);
	}
}

void cop_sim_fabric_close(struct sim_node *n)
{
	free(n->rpc.dead);
}

/* fetch calls these when it is closed; no request is in flight here by then. */
struct cop_endpoint *cop_rpc_fabric(struct cop_rpc *r)
{
	(void)r;
	return NULL;
}

int cop_endpoint_post(struct cop_endpoint *f, struct cop_endpoint_work *w)
{
	(void)f;
	w->run(w);
	return 0;
}
