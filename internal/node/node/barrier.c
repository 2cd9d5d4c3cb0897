/* SPDX-License-Identifier: BSD-3-Clause */
#include "barrier.h"
#include "joblog.h"

struct cop_barrier {
	struct cop_barrier_conf conf;
	struct cop_start *join;
	struct cop_net *net; /* constant once it is open; NULL: the node is alone */
};

static void wake(void *ctx)
{
	struct cop_barrier *b = ctx;

	cop_waker_wake(b->conf.waker);
}

/* Address look-ups that began while other nodes were still starting must not delay later
 * requests. */
static void ended(void *ctx)
{
	struct cop_barrier *b = ctx;

	cop_net_barrier_ended(b->net, cop_start_is_ready(b->join));
}

static struct cop_start *new_join(struct cop_barrier *b)
{
	const struct cop_barrier_conf *c = &b->conf;
	struct cop_start_conf conf = {.rank = c->rank,
		.topo = c->topo,
		.hosts = c->hosts,
		.address_book =
			c->topo.nodes > 1 && !c->conf->discover ? c->conf->address_book : NULL,
		.ready_timeout_ms = c->conf->ready_timeout_ms,
		.started_ns = c->started_ns,
		.ctx = b,
		.wake = wake,
		.barrier_ended = ended};

	return cop_start_new(&conf);
}

struct cop_barrier *cop_barrier_new(const struct cop_barrier_conf *conf)
{
	struct cop_barrier *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->conf = *conf;
	b->join = new_join(b);
	if (b->join)
		return b;
	free(b);
	return NULL;
}

void cop_barrier_free(struct cop_barrier *b)
{
	if (b)
		cop_start_free(b->join);
	free(b);
}

struct cop_start *cop_barrier_join(struct cop_barrier *b)
{
	return b ? b->join : NULL;
}

void cop_barrier_use_net(struct cop_barrier *b, struct cop_net *net)
{
	b->net = net;
}

/* ---- waiting ---- */

bool cop_barrier_is_in_vain(void *barrier, struct cop_err *err)
{
	struct cop_barrier *b = barrier;
	const char *what = cop_waker_interrupted(b->conf.waker);
	char why[COP_STARTNOTE_WHY_SIZE];

	if (what)
		return cop_err_set(err, EINTR, "%s", what) != 0;
	return cop_start_failure_heard(b->join, cop_now_ms(), why) &&
	       cop_err_set(err, ECANCELED, "%s", why);
}

static int give_up(struct cop_barrier *b, const char *what, struct cop_err *err)
{
	cop_start_give_up(b->join, what);
	return cop_err_set(err, EINTR, "%s", what);
}

int cop_barrier_wait(struct cop_barrier *b, struct cop_op *treeop, struct cop_err *err)
{
	const unsigned interrupts = COP_WAKER_SIGNAL | COP_WAKER_DESERTED;
	struct cop_waker *waker = b->conf.waker;

	cop_start_start(b->join, cop_now_ms());
	while (!cop_start_step(b->join, cop_now_ms(), cop_op_is_stopping(treeop)) &&
		!cop_waker_is_ending(waker)) {
		if (cop_waker_wait(waker, COP_WAKER_WOKEN | interrupts, COP_START_STEP_MS) &
			interrupts)
			return give_up(b, cop_waker_interrupted(waker), err);
		cop_defer_run(b->conf.deferred, false);
	}
	if (cop_start_is_ready(b->join))
		return 0;
	if (cop_waker_is_ending(waker))
		return give_up(b, "stopped before the tree was ready", err);
	return cop_err_set(err, ETIMEDOUT, COP_STARTNOTE_NOT_READY "%s", cop_start_why(b->join));
}

/* A signal ends this wait; the code that waits for the end of the node handles it. */
void cop_barrier_tell_below(struct cop_barrier *b)
{
	struct cop_waker *waker = b->conf.waker;
	unsigned left_ms, why;
	char blocked[1000];
	uint32_t i = 0;

	cop_start_tell_below(b->join, cop_now_ms());
	while ((left_ms = cop_start_tell_left_ms(b->join, cop_now_ms())) &&
		!cop_waker_is_ending(waker)) {
		why = cop_waker_wait(waker, COP_WAKER_WOKEN | COP_WAKER_SIGNAL, (int)left_ms);
		if (why & COP_WAKER_SIGNAL)
			break;
		if (!why)
			continue;
		cop_defer_run(b->conf.deferred, false);
		cop_start_tend(b->join);
	}
	cop_start_name_untold(b->join);
	while (cop_start_blocked_below(b->join, &i, blocked, sizeof(blocked)))
		cop_joblog_note(blocked);
	/* The result is sent only once to each rank, so replies that are still queued must go out
	 * before the node ends. */
	if (!cop_start_is_ready(b->join))
		cop_net_flush(b->net);
}
