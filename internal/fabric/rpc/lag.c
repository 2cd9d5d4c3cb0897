/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are silent but not dead (Dean, Barroso: The Tail at Scale, CACM 2013).
 *
 * Silence is counted on a clock of its own (r->awake_ms), which advances by at most one and a half
 * ticks per tick: so a process that was itself starved does not mistake its own delay for a peer's
 * silence. A peer with open calls is pinged after PING_MS of silence. It is silent if it has sent
 * nothing for HEDGE_MS, or for three times the 99th percentile of its ping round trips, and the
 * ping is older than a full tick. A peer that waits for its storage replies to pings and is never
 * silent.
 *
 * At each further tick of silence the oldest call that another node could serve is reported to its
 * caller (the late callback), which may send the request to that node too. The third time in a row,
 * the peer is set aside ("left"): its calls of that kind, including new ones, end with -ETIMEDOUT
 * until it has replied to pings for WELL_MS. Until then it is pinged, and looked up again when it
 * is dead.
 *
 * At most one in HEDGE_SHARE of the last minute's calls is duplicated (or HEDGES_FREE, if that
 * is more). Beyond this budget no call is duplicated, and the peer is left only after three
 * times the silence. */
#include "fabric/rpc/rpc_priv.h"

#define PING_MS 150
#define PING_AGAIN_MS 300 /* a ping may be lost */
#define PING_LEFT_MS 1000
#define HEDGE_MS 250
#define IN_A_ROW 3
#define WELL_MS 10000
#define HEDGE_SHARE 20
#define HEDGES_FREE 3

/* ---- the clock, and the last minute ---- */

void cop_rpc_lag_clock(struct cop_rpc *r, uint64_t delta_ms)
{
	uint64_t second;

	r->awake_ms += COP_MIN(delta_ms, r->tick_ms + r->tick_ms / 2);
	second = r->now_ms / 1000;
	for (; r->minute.second < second; r->minute.second++) {
		unsigned i = (r->minute.second + 1) % LAG_SECONDS;

		r->minute.sent -= r->minute.sent_in[i];
		r->minute.hedged -= r->minute.hedged_in[i];
		r->minute.sent_in[i] = r->minute.hedged_in[i] = 0;
	}
}

void cop_rpc_lag_sent(struct cop_rpc *r)
{
	r->minute.sent++;
	r->minute.sent_in[r->minute.second % LAG_SECONDS]++;
}

static void count_hedge(struct cop_rpc *r)
{
	r->minute.hedged++;
	r->minute.hedged_in[r->minute.second % LAG_SECONDS]++;
}

static bool may_hedge(const struct cop_rpc *r)
{
	return r->minute.hedged < COP_MAX(HEDGES_FREE, r->minute.sent / HEDGE_SHARE);
}

/* ---- signs of life ---- */

void cop_rpc_lag_heard(struct cop_rpc *r, struct peer *p)
{
	p->lag.heard_ms = r->awake_ms;
	p->lag.in_a_row = 0;
}

void cop_rpc_lag_pinged(struct cop_rpc *r, struct peer *p)
{
	if (p->lag.ping)
		return;
	p->lag.ping = r->pings;
	p->lag.pinged_ms = r->awake_ms;
	p->lag.pinged_ns = cop_now_ns();
}

/* While the peer is set aside, its round trips say nothing about the link. */
void cop_rpc_lag_ponged(struct cop_rpc *r, struct peer *p, uint64_t ping)
{
	struct lag *l = &p->lag;
	uint64_t ms = (cop_now_ns() - l->pinged_ns) / COP_NS_PER_MS;

	if (!l->ping || ping < l->ping)
		return;
	l->ping = 0;
	if (l->left && !l->well_ms)
		l->well_ms = r->now_ms;
	if (!l->left)
		l->rtt[l->rtts++ % LAG_RTTS] = (uint16_t)COP_MIN(ms, r->conf.peer_timeout_ms);
}

/* The second longest of the last hundred or so round trips, or the longest if there are fewer. */
static uint64_t p99_ms(const struct lag *l)
{
	unsigned n = COP_MIN(l->rtts, LAG_RTTS), first = 0, second = 0;

	for (unsigned i = 0; i < n; i++) {
		if (l->rtt[i] >= first) {
			second = first;
			first = l->rtt[i];
		} else if (l->rtt[i] > second) {
			second = l->rtt[i];
		}
	}
	return n < LAG_RTTS ? first : second;
}

static uint64_t patience_ms(const struct peer *p)
{
	return COP_MAX(HEDGE_MS, 3 * p99_ms(&p->lag));
}

bool cop_rpc_lag_wants_ping(const struct cop_rpc *r, const struct peer *p)
{
	if (p->lag.left)
		return r->now_ms - p->pinged_ms >= PING_LEFT_MS;
	return p->lag.watched && !cop_list_empty(&p->inflight) &&
	       r->awake_ms - p->lag.heard_ms >= PING_MS &&
	       (!p->lag.ping || r->now_ms - p->pinged_ms >= PING_AGAIN_MS);
}

/* How long a peer with open requests has certainly been silent; else 0. */
static uint64_t silent_ms(const struct cop_rpc *r, const struct peer *p)
{
	uint64_t full_tick = r->tick_ms + r->tick_ms / 2;

	if (p->state == PEER_UP) {
		if (!p->lag.ping || r->awake_ms - p->lag.pinged_ms < full_tick)
			return 0;
		return r->awake_ms - p->lag.heard_ms;
	}
	/* A greeting takes several round trips. */
	if (p->state == PEER_CONNECTING || p->state == PEER_RESOLVING)
		return (r->awake_ms - p->lag.heard_ms) / 2;
	return 0;
}

/* ---- consequences ---- */

static struct call *oldest_late(const struct cop_list *calls, struct call *oldest)
{
	for (struct cop_list *at = calls->next; at != calls; at = at->next) {
		struct call *c = COP_CONTAINER_OF(at, struct call, at);

		if (c->ask.late && !c->hedged && (!oldest || c->started_ms < oldest->started_ms))
			oldest = c;
	}
	return oldest;
}

/* Ends the calls that another node can serve, and abandoned ones. */
static void end_late(struct cop_list *calls)
{
	struct cop_list ended;
	struct cop_list *at, *next;

	cop_list_init(&ended);
	for (at = calls->next; at != calls; at = next) {
		struct call *c = COP_CONTAINER_OF(at, struct call, at);

		next = at->next;
		if (!c->ask.late && !c->unwanted)
			continue;
		cop_list_remove(at);
		cop_list_push_back(&ended, at);
	}
	while ((at = cop_list_pop_front(&ended)))
		cop_rpc_call_fail(COP_CONTAINER_OF(at, struct call, at), -ETIMEDOUT);
}

static void say_left(struct cop_rpc *r, struct peer *p, uint64_t ms)
{
	if (r->conf.peer_lags)
		r->conf.peer_lags(r->conf.ctx, p->rank, p->lag.left, ms);
}

static void leave_peer(struct cop_rpc *r, struct peer *p, uint64_t silent)
{
	bool reset;

	p->lag.left = true;
	p->lag.times++;
	atomic_store(&r->lagged, p->rank + 1);
	p->lag.in_a_row = 0;
	p->lag.well_ms = 0;
	cop_stats_add(r->conf.stats, COP_FABRIC_LAGS, 1);
	cop_log_warn("peer lags rank=%u silent_ms=%llu", p->rank, (unsigned long long)silent);
	/* Nothing may be written to the calls' memory after they end. */
	reset = cop_rpc_may_be_written(p);
	if (reset)
		cop_rpc_link_reset(r, p->link);
	end_late(&p->inflight);
	end_late(&p->waiting);
	if (reset)
		cop_rpc_requeue_calls(r, p);
	say_left(r, p, silent);
}

/* A tick of silence counts whether or not the caller could use another node. */
static void hedge(struct cop_rpc *r, struct peer *p, uint64_t silent)
{
	bool frugal = !may_hedge(r);
	struct call *c = oldest_late(&p->waiting, oldest_late(&p->inflight, NULL));

	if (!c || (frugal && silent < 3 * patience_ms(p)))
		return;
	if (frugal || ++p->lag.in_a_row >= IN_A_ROW) {
		leave_peer(r, p, silent);
		return;
	}
	c->hedged = true;
	if (!c->ask.late(c->ask.arg))
		return;
	count_hedge(r);
	cop_stats_add(r->conf.stats, COP_FABRIC_HEDGES, 1);
	cop_log_debug("asked twice silent=%u silent_ms=%llu", p->rank, (unsigned long long)silent);
}

static void return_to(struct cop_rpc *r, struct peer *p)
{
	p->lag.left = false;
	cop_log_info(
		"peer has answered pings for %d ms and is used again rank=%u", WELL_MS, p->rank);
	say_left(r, p, 0);
}

void cop_rpc_lag_tick(struct cop_rpc *r, struct peer *p)
{
	uint64_t silent = silent_ms(r, p);
	bool is_silent = silent >= patience_ms(p);

	if (!p->lag.left) {
		if (is_silent && p->lag.watched)
			hedge(r, p, silent);
	} else if (is_silent || p->state != PEER_UP) {
		p->lag.well_ms = 0;
	} else if (p->lag.well_ms && r->now_ms - p->lag.well_ms >= WELL_MS) {
		return_to(r, p);
	}
}

void cop_rpc_lag_refuse(struct peer *p)
{
	if (p->lag.left && p->lag.watched)
		end_late(&p->waiting);
}

uint32_t cop_rpc_lagged(const struct cop_rpc *r)
{
	return atomic_load(&((struct cop_rpc *)r)->lagged);
}

bool cop_rpc_lags(const struct cop_rpc *r, uint32_t rank)
{
	const struct peer *p = rank < r->conf.nodes ? r->peers[rank] : NULL;

	return p && p->lag.left;
}
