/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the barrier: its result, the ranks waiting for it here, and the answers to them. The
 * other files of start call this one; it calls none of them. */
#include "tree/start/start_priv.h"

#include "base/log/log.h"

struct waiter {
	struct cop_list link;
	struct cop_rpc_req *req;
};

/* ---- state of other ranks ---- */

const char *cop_start_host(const struct cop_start *j, uint32_t rank)
{
	const struct cop_job_hosts *h = j->conf.hosts;

	return rank < h->count ? h->host[rank].name : "localhost";
}

struct cop_rpc *cop_start_rpc(struct cop_start *j)
{
	struct cop_rpc *rpc;

	pthread_mutex_lock(&j->lock);
	rpc = j->rpc;
	pthread_mutex_unlock(&j->lock);
	return rpc;
}

bool cop_start_is_blocked(const struct cop_start *j)
{
	return j->parent_at[0] && !j->parent_met;
}

void cop_start_say_blocked(const struct cop_start *j, char *out, size_t size)
{
	bool root = j->parent == cop_topo_root(&j->conf.topo, 0);

	snprintf(out, size,
		"%s (rank %" PRIu32
		", this node's parent%s): its rendezvous answered, but its fabric address %s did not%s",
		cop_start_host(j, j->parent), j->parent, root ? " and the root" : "", j->parent_at,
		strncmp(j->parent_at, "ofi+tcp://", 10)
			? ""
			: "; if a firewall blocks that TCP port, choose open ones with --fabric-port");
}

void cop_start_trouble(struct cop_start *j, uint32_t above, int status)
{
	bool parent = above == j->parent;

	/* A parent that has exited no longer has an address, but the useful message is that it
	 * never answered. */
	if (status == -EHOSTDOWN && parent && cop_start_is_blocked(j)) {
		cop_start_say_blocked(j, j->trouble, sizeof(j->trouble));
		return;
	}
	snprintf(j->trouble, sizeof(j->trouble), "%s (rank %" PRIu32 ", %s): %s",
		cop_start_host(j, above), above, parent ? "this node's parent" : "above this node",
		status == -EACCES                                    ? "it holds another secret"
		: status == -EHOSTDOWN && parent && j->no_address[0] ? j->no_address
								     : strerror(-status));
}

void cop_start_looked(struct cop_start *j, uint32_t rank, const char *address, const char *why)
{
	if (rank != j->parent)
		return;
	pthread_mutex_lock(&j->lock);
	snprintf(j->no_address, sizeof(j->no_address), "%s", why ? why : "");
	if (address)
		snprintf(j->parent_at, sizeof(j->parent_at), "%s", address);
	pthread_mutex_unlock(&j->lock);
}

void cop_start_came(struct cop_start *j, uint32_t rank, bool answered)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], count;

	if (rank >= j->conf.topo.nodes || cop_topo_parent(&j->conf.topo, 0, rank) != j->conf.rank)
		return;
	count = cop_topo_children(&j->conf.topo, 0, j->conf.rank, child);
	for (uint32_t i = 0; i < count; i++)
		if (child[i] == rank) {
			j->below[i].came = true;
			j->below[i].answered |= answered;
		}
}

/* ---- when the job began ---- */

void cop_start_job_began(struct cop_start *j, int64_t *mono_ns, int64_t *unix_ns)
{
	pthread_mutex_lock(&j->lock);
	*mono_ns = j->began_ns;
	*unix_ns = j->unix_ns;
	pthread_mutex_unlock(&j->lock);
}

void cop_start_put_began(struct cop_start *j, struct cop_wr *w)
{
	int64_t mono_ns, unix_ns;

	cop_start_job_began(j, &mono_ns, &unix_ns);
	cop_wr_u64(w, (uint64_t)((int64_t)cop_now_ns() - mono_ns));
	cop_wr_u64(w, (uint64_t)unix_ns);
}

/* Outside the range of any clock. */
static bool is_absurd(uint64_t ns)
{
	return ns > INT64_MAX / 2;
}

void cop_start_take_began(struct cop_start *j, struct cop_rd *r)
{
	uint64_t age_ns = cop_rd_u64(r), unix_ns = cop_rd_u64(r);
	int64_t now_ns = (int64_t)cop_now_ns();

	pthread_mutex_lock(&j->lock);
	if (!r->bad && !is_absurd(age_ns) && !is_absurd(unix_ns) && j->end == END_OPEN) {
		j->began_ns = now_ns - (int64_t)age_ns;
		j->unix_ns = (int64_t)unix_ns;
	}
	pthread_mutex_unlock(&j->lock);
}

/* ---- the end ---- */

/* Called only after the end, when `why` is final. */
static void answer_waiter(struct cop_start *j, struct cop_rpc_req *req)
{
	uint8_t head[COP_START_BEGAN_SIZE];
	struct cop_wr w = cop_wr_init(head, sizeof(head));
	struct cop_rpc_answer a = {.status = cop_start_is_ready(j) ? 0 : -ETIMEDOUT,
		.head = head,
		.body = j->why,
		.body_len = strlen(j->why)};

	cop_start_put_began(j, &w);
	a.head_len = cop_wr_len(&w);
	cop_rpc_reply(req, &a);
}

static struct waiter *pop_waiter(struct cop_list *waiters)
{
	struct cop_list *l = cop_list_pop_front(waiters);

	return l ? COP_CONTAINER_OF(l, struct waiter, link) : NULL;
}

void cop_start_end_barrier(struct cop_start *j, enum end end, const char *why)
{
	struct cop_list waiters, *l;
	struct waiter *w;

	cop_list_init(&waiters);
	pthread_mutex_lock(&j->lock);
	if (j->end == END_OPEN) {
		j->end = end;
		j->secondhand = end == END_KNOWN;
		snprintf(j->why, sizeof(j->why), "%s", why);
		cop_list_splice(&waiters, &j->waiters);
		for (l = waiters.next; l != &waiters; l = l->next)
			cop_start_came(j,
				cop_rpc_req_rank(COP_CONTAINER_OF(l, struct waiter, link)->req),
				true);
	}
	pthread_mutex_unlock(&j->lock);
	while ((w = pop_waiter(&waiters))) {
		answer_waiter(j, w->req);
		free(w);
	}
	j->conf.barrier_ended(j->conf.ctx);
	j->conf.wake(j->conf.ctx);
}

bool cop_start_has_ended(struct cop_start *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->end != END_OPEN;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

bool cop_start_is_ready(struct cop_start *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->end == END_READY;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

const char *cop_start_why(struct cop_start *j)
{
	return cop_start_has_ended(j) ? j->why : "";
}

bool cop_start_is_awaited(struct cop_start *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->root && !j->out_of_time && j->arrivals + 1 < j->conf.topo.nodes;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

bool cop_start_is_secondhand(struct cop_start *j)
{
	bool yes;

	pthread_mutex_lock(&j->lock);
	yes = j->secondhand;
	pthread_mutex_unlock(&j->lock);
	return yes;
}

/* Neither node can tell which of the two is wrong. The other node may have a different hostname in
 * its own list. */
void cop_start_mismatch(struct cop_start *j, uint32_t rank)
{
	char why[800];

	snprintf(why, sizeof(why),
		"%s (rank %" PRIu32
		") was started with other options: --source, --fanout, --trees, --chunk, the host list or its order, or the version differ",
		rank < j->conf.topo.nodes ? cop_start_host(j, rank) : "a node", rank);
	cop_log_warn("refused: %s", why);
	cop_start_end_barrier(j, END_NEWS, why);
}

void cop_start_no_way(struct cop_start *j, uint32_t rank, const char *why)
{
	char text[800];

	snprintf(text, sizeof(text), "%s (rank %" PRIu32 "): %s", cop_start_host(j, rank), rank,
		why);
	cop_log_warn("no way: %s", text);
	cop_start_end_barrier(j, END_NEWS, text);
}

/* ---- requests ---- */

void cop_start_serve_state(struct cop_start *j, struct cop_rpc_req *req)
{
	uint8_t head[COP_START_BEGAN_SIZE];
	struct cop_wr w = cop_wr_init(head, sizeof(head));
	int status = cop_start_is_ready(j) ? 0 : -EAGAIN;

	cop_start_put_began(j, &w);
	cop_rpc_reply(req, &(struct cop_rpc_answer){
				   .status = status, .head = head, .head_len = cop_wr_len(&w)});
}

void cop_start_serve_barrier(struct cop_start *j, struct cop_rpc_req *req)
{
	struct waiter *w = malloc(sizeof(*w));
	bool over;

	if (!w) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	w->req = req;
	pthread_mutex_lock(&j->lock);
	over = j->end != END_OPEN;
	cop_start_came(j, cop_rpc_req_rank(req), over);
	if (!over)
		cop_list_push_back(&j->waiters, &w->link);
	pthread_mutex_unlock(&j->lock);
	if (over) {
		free(w);
		answer_waiter(j, req);
	}
}

/* ---- shutdown ---- */

void cop_start_leave(struct cop_start *j)
{
	struct cop_list waiters;
	struct waiter *w;

	cop_list_init(&waiters);
	pthread_mutex_lock(&j->lock);
	cop_list_splice(&waiters, &j->waiters);
	pthread_mutex_unlock(&j->lock);
	while ((w = pop_waiter(&waiters))) {
		cop_rpc_reply(w->req, &(struct cop_rpc_answer){.status = -ESHUTDOWN});
		free(w);
	}
}

void cop_start_end_free(struct cop_start *j)
{
	struct waiter *w;

	while ((w = pop_waiter(&j->waiters)))
		free(w);
}
