/* SPDX-License-Identifier: BSD-3-Clause */
/* One step of a flight: sends the request to an ancestor, validates the answer, and continues with
 * the next ancestor if this one is dead or could not answer. The path only leads up and ends at
 * this node's own origin, so every flight ends, no matter how many ancestors fail. */
#include "tree/fetch/fetch_priv.h"

#include <assert.h>

#include "base/log/log.h"

#define TRIES_PER_UPSTREAM 3

/* For names and small files, the nodes below a dead root become roots. For a large file or a lent
 * chunk, one node takes over the dead root's share, because the other nodes need their memory for
 * their own shares. */
static void pass_over(struct flight *f)
{
	struct cop_fetch *c = f->fetch;

	if (cop_fetch_peeks(f))
		f->upstream = COP_TOPO_NONE;
	else if (f->spread)
		f->upstream = cop_fetch_next_up(c, &f->ask, f->tree, f->upstream, &f->heir);
	else
		f->upstream = cop_topo_parent(&c->conf.topo, f->tree, f->upstream);
	f->tries = 0;
}

/* The upstream rank lacks the memory to forward an object that it does not keep. Its siblings are
 * unlikely to be better off, so the next candidate is its own parent. */
static void pass_over_busy(struct flight *f)
{
	const struct cop_topo *topo = cop_fetch_topo(f->fetch, &f->ask);
	uint32_t above = f->upstream;

	do
		above = cop_topo_parent(topo, f->tree, above);
	while (cop_fetch_spares(f->fetch, &f->ask, above));
	if (f->heir || above == COP_TOPO_NONE) {
		pass_over(f);
		return;
	}
	f->upstream = above;
	f->tries = 0;
}

/* Whether the request takes the path of names, up the first tree. */
static bool goes_with_names(const struct flight *f)
{
	return !f->spread;
}

/* Whether this is the first request that skips this rank. */
static bool newly_passed(struct flight *f, uint32_t rank)
{
	struct cop_fetch *c = f->fetch;

	return goes_with_names(f)
		       ? atomic_exchange(&c->parent, f->upstream) != f->upstream
		       : atomic_exchange(&c->passed[rank % PASSED_SLOTS], rank + 1) != rank + 1;
}

/* The flight's upstream rank has answered. */
static void note_answer(const struct flight *f)
{
	struct cop_fetch *c = f->fetch;
	uint32_t passed = f->upstream + 1;

	if (goes_with_names(f))
		atomic_store(&c->parent, f->upstream);
	else
		atomic_compare_exchange_strong(&c->passed[f->upstream % PASSED_SLOTS], &passed, 0);
}

static void next_ancestor(struct flight *f, int why)
{
	struct cop_fetch *c = f->fetch;
	uint32_t dead = f->upstream;

	pass_over(f);
	cop_stats_add(c->conf.stats, COP_FABRIC_RETRIES, 1);
	if (newly_passed(f, dead)) {
		cop_stats_add(c->conf.stats, COP_FABRIC_FAILOVERS, 1);
		cop_log_warn("parent passed over stripe=%u rank=%u why=\"%s\" next=%d", f->tree,
			dead, strerror(-why), f->upstream == COP_TOPO_NONE ? -1 : (int)f->upstream);
		cop_telemetry_event(c->conf.telemetry, COP_TELEMETRY_FAILOVER,
			"tree %u: rank %u: %s; next %d", f->tree, dead, strerror(-why),
			f->upstream == COP_TOPO_NONE ? -1 : (int)f->upstream);
	}
	cop_fetch_send(f);
}

static bool is_valid_chunk(const struct flight *f, const struct cop_completion *l)
{
	if (l->data != f->buf || cop_hash64(l->data, l->len, f->fetch->conf.sum_seed) != l->sum)
		return false;
	return l->packed ? cop_pack_check(l->data, l->len, f->buf_len) == 0 : l->len == f->buf_len;
}

static bool is_valid_page(const struct cop_ask *ask, const void *data, size_t len)
{
	struct cop_listing_page page = {.version = ask->version,
		.pages = (uint32_t)ask->size,
		.index = (uint32_t)ask->index};

	return data && cop_listing_page_check(data, len, &page) == 0;
}

/* Whether the answer is valid for the request. */
static bool is_valid(const struct flight *f, const struct cop_completion *l)
{
	const void *data = l->data;
	size_t len = l->len;

	switch (f->ask.kind) {
	case COP_ASK_CHUNK:
		return is_valid_chunk(f, l);
	case COP_ASK_LISTING:
	case COP_ASK_NAMES:
	case COP_ASK_NEWER:
		return data && cop_listing_check(data, len) == 0;
	case COP_ASK_ENTRY:
		return data && cop_entry_check(data, len) == 0;
	case COP_ASK_STATFS:
		return len == sizeof(struct cop_statfs);
	case COP_ASK_HOLES:
		return len % sizeof(struct cop_extent) == 0;
	case COP_ASK_CHECK:
		return true;
	case COP_ASK_MANIFEST:
		return data && len <= COP_MIB;
	case COP_ASK_PAGE:
		return is_valid_page(&f->ask, data, len);
	}
	return false;
}

/* A copy of the body in memory owned by this node; NULL without a body or memory. */
static void *own_body(const struct cop_rpc_result *r, struct flight *f)
{
	void *copy;

	if (r->in_landing)
		return f->buf;
	if (r->body_len == 0)
		return NULL;
	if (r->body_kept) {
		*r->body_kept = true;
		return r->body;
	}
	copy = malloc(r->body_len);
	if (copy)
		memcpy(copy, r->body, r->body_len);
	return copy;
}

static void drop_corrupt(struct flight *f, void *data)
{
	if (data != f->buf)
		free(data);
	cop_stats_add(f->fetch->conf.stats, COP_FABRIC_CORRUPT, 1);
	cop_log_warn(
		"corrupt answer kind=%d rank=%u path=%s", f->ask.kind, f->upstream, f->ask.path);
	if (++f->tries < TRIES_PER_UPSTREAM)
		cop_fetch_send(f);
	else
		next_ancestor(f, -EBADMSG);
}

/* Sites count this log line to check that all nodes have started, so it must use the operation
 * names that they expect (copper-formats(5)). */
static void note_first(struct flight *f)
{
	static const char *const names[COP_ASK_LAST + 1] = {[COP_ASK_LISTING] = "readdir",
		[COP_ASK_ENTRY] = "lstat",
		[COP_ASK_CHUNK] = "readfile"};
	struct cop_fetch *c = f->fetch;

	if (!names[f->ask.kind] || atomic_load(&c->heard) || atomic_exchange(&c->heard, true))
		return;
	cop_log_info(
		"first successful parent rpc_%s completed after %llu us since provider startup; path=/%s",
		names[f->ask.kind], (unsigned long long)(cop_now_ns() - c->started_ns) / 1000,
		f->ask.path);
}

/* Copies a compressed chunk out of the flight's larger buffer and releases the buffer. If memory is
 * short, the chunk stays there. */
static void shrink(const struct flight *f, struct cop_completion *l)
{
	void *data = l->packed ? malloc(l->len) : NULL;

	assert(!l->packed || l->data == f->buf); /* other answers have been rejected */
	if (data)
		l->data = memcpy(data, f->buf, l->len);
}

/* Measures the cost of a hop. Only answers from a cache show it, because all others include a wait.
 */
static void count_at_hand(const struct flight *f)
{
	struct cop_stats *stats = f->fetch->conf.stats;

	cop_stats_add(stats, COP_FABRIC_HELD, 1);
	cop_stats_add(stats, COP_FABRIC_HELD_US, (cop_now_ns() - f->asked_ns + 500) / 1000);
}

static void accept_answer(struct flight *f, const struct cop_rpc_result *r)
{
	struct cop_rd head = cop_rd_init(r->head, r->head_len);
	struct cop_completion l = {.len = r->body_len};
	uint8_t flags;

	l.sum = cop_rd_u64(&head);
	flags = cop_rd_u8(&head);
	l.packed =
		(flags & ANSWER_PACKED) && (f->ask.kind == COP_ASK_CHUNK || (flags & ANSWER_FIRST));
	l.from = flags & ANSWER_AT_HAND ? COP_FROM_NODES : COP_FROM_PASSED;
	if (flags & ANSWER_AT_HAND)
		count_at_hand(f);
	if (flags & ANSWER_LENDS)
		cop_fetch_hear_of_lending(f->fetch);
	if (cop_fetch_wants_first(&f->ask))
		atomic_store(&f->obj->first, true);
	/* A body inside the message may also exceed the reservation. */
	if (!cop_fetch_reserve_up_to(f, l.len)) {
		cop_fetch_reserve_again(f, l.len);
		return;
	}
	l.data = own_body(r, f);
	if (!l.data && l.len) {
		cop_fetch_fail(f, -ENOMEM);
	} else if ((flags & ANSWER_FIRST) ? !cop_fetch_take_first(f, &head, &l)
					  : !is_valid(f, &l)) {
		drop_corrupt(f, l.data);
	} else {
		if (!f->by_second)
			note_answer(f);
		note_first(f);
		if (cop_fetch_peeks(f))
			cop_fetch_peeked(f);
		shrink(f, &l);
		cop_fetch_complete(f, &l);
	}
}

/* This node could not send the request or receive the answer. The ancestor is not at fault, and
 * trying another would not help. */
static void ask_nobody(struct flight *f)
{
	cop_stats_add(f->fetch->conf.stats, COP_FABRIC_RETRIES, 1);
	f->upstream = COP_TOPO_NONE;
	f->peeks = true;
	cop_fetch_send(f);
}

static void unanswered(struct flight *f, int rc)
{
	if (rc == -ECANCELED)
		cop_fetch_fail(f, -ESHUTDOWN);
	else if (rc == -EBADMSG)
		drop_corrupt(f, NULL);
	else if (cop_is_shortage(rc))
		ask_nobody(f);
	else
		next_ancestor(f, rc);
}

/* The ancestor has the answer, but it was not transferred. It is requested again once its bytes are
 * reserved; an answer that keeps growing is corrupt. */
static void too_long(struct flight *f, size_t len)
{
	if (f->ask.kind == COP_ASK_CHUNK || cop_fetch_wants_first(&f->ask) || len <= f->reserved ||
		len > COP_RPC_BODY_MAX)
		drop_corrupt(f, NULL);
	else if (cop_fetch_reserve_up_to(f, COP_MIN(len + len / 4, (size_t)COP_RPC_BODY_MAX)))
		cop_fetch_send(f);
	else
		cop_fetch_reserve_again(f, len);
}

/* The ancestor treated this as a background request and kept the name that the storage contradicts.
 * Now that there is a waiter, the request is repeated so that the ancestor drops the name. */
static bool was_told_too_early(const struct flight *f, int rc)
{
	return f->sent_background && !atomic_load(&f->obj->background) && cop_fetch_disproves(rc);
}

/* An ancestor may reject a guess without consulting the storage, but a waiter must receive the
 * storage's answer. */
static bool was_refused(struct flight *f, int rc)
{
	if (!f->ask.guess || !f->sent_background || rc != -ENOENT ||
		cop_cache_withdraw(f->fetch->conf.cache, f->obj))
		return false;
	f->ask.guess = false;
	atomic_store(&f->obj->background, false);
	return true;
}

bool cop_fetch_is_answer(const struct cop_rpc_result *r)
{
	return r->answered && !r->unable && !cop_fetch_is_own(r->status);
}

void cop_fetch_take_answer(struct flight *f, const struct cop_rpc_result *r)
{
	cop_fetch_pass(f, FLIGHT_ACTIVE);
	cop_fetch_waited(f, COP_FABRIC_WAIT_US);
	cop_fetch_trace_answered(f, r->status, r->body_len);
	cop_log_debug("answer kind=%s path=\"/%s\" index=%llu rank=%u status=%d bytes=%zu",
		cop_fetch_kind_name(f->ask.kind), f->ask.path, (unsigned long long)f->ask.index,
		f->upstream, r->status, r->body_len);
	if (!r->answered && r->status == -EMSGSIZE) {
		too_long(f, r->body_len);
	} else if (!r->answered) {
		unanswered(f, r->status);
	} else if (!cop_fetch_is_answer(r)) {
		/* The ancestor is still starting and will answer the next request. */
		if (r->unable)
			cop_fetch_rest(f->fetch, f->upstream);
		next_ancestor(f, r->status);
	} else if (r->status && cop_fetch_peeks(f)) {
		pass_over(f);
		cop_fetch_send(f);
	} else if (r->status == -EBUSY && f->spread) {
		pass_over_busy(f);
		cop_fetch_send(f);
	} else {
		cop_fetch_rested(f->fetch, f->upstream);
		if (was_refused(f, r->status) || was_told_too_early(f, r->status))
			cop_fetch_send(f);
		else if (r->status)
			cop_fetch_fail(f, r->status);
		else
			accept_answer(f, r);
	}
}

static uint8_t when_wanted(const struct flight *f)
{
	if (!f->sent_background || cop_fetch_is_first_chunk(&f->ask))
		return ASK_NOW;
	return f->ask.guess ? ASK_GUESS : ASK_BACKGROUND;
}

static void answered(void *arg, const struct cop_rpc_result *r)
{
	struct flight *f = arg;

	if (!f->second || !cop_fetch_waits_for_second(f, r))
		cop_fetch_take_answer(f, r);
}

struct cop_rpc_call cop_fetch_call(const struct flight *f, uint32_t rank, uint8_t *payload)
{
	struct cop_ask ask = f->ask;

	ask.peek = cop_fetch_peeks(f);
	ask.home = ask.home && !ask.peek;
	return (struct cop_rpc_call){.rank = rank,
		.op = (uint8_t)ask.kind,
		.payload = payload,
		.payload_len =
			cop_fetch_request(&ask, when_wanted(f), payload, COP_FETCH_REQUEST_MAX),
		.body_max = f->reserved,
		/* The entry always arrives within the message; the bytes that follow it may not. */
		.checks_body = f->ask.kind == COP_ASK_CHUNK || cop_fetch_wants_first(&f->ask)};
}

void cop_fetch_send(struct flight *f)
{
	uint8_t payload[COP_FETCH_REQUEST_MAX];
	struct cop_fetch *c = f->fetch;
	struct cop_rpc_call call;

	if (atomic_load(&c->closing)) {
		cop_fetch_fail(f, -ESHUTDOWN);
		return;
	}
	while (f->upstream != COP_TOPO_NONE && cop_fetch_rests(c, f->upstream))
		pass_over(f);
	if ((f->upstream == COP_TOPO_NONE && !cop_fetch_peeks_first(f)) || !c->conf.rpc) {
		if (!cop_fetch_is_root(f))
			cop_stats_add(c->conf.stats, COP_ORIGIN_FALLBACKS, 1);
		cop_fetch_read_origin(f);
		return;
	}
	cop_log_debug("asking kind=%s path=\"/%s\" index=%llu rank=%u",
		cop_fetch_kind_name(f->ask.kind), f->ask.path, (unsigned long long)f->ask.index,
		f->upstream);
	f->sent_background = atomic_load(&f->obj->background);
	/* The entry has a new waiter. */
	if (!f->sent_background && cop_fetch_is_first_chunk(&f->ask))
		f->ask.first = false;
	call = cop_fetch_call(f, f->upstream, payload);
	call.done = answered;
	call.arg = f;
	call.sent = c->conf.tracer ? cop_fetch_trace_sent : NULL;
	if (cop_fetch_above(f, f->upstream) != COP_TOPO_NONE)
		call.late = cop_fetch_late;
	if (f->ask.kind == COP_ASK_CHUNK) {
		call.landing = f->buf;
		call.landing_len = f->buf_len;
	}
	f->asked_ns = cop_now_ns();
	f->by_second = false;
	cop_fetch_pass(f, FLIGHT_ASKING);
	cop_rpc_call(c->conf.rpc, &call);
}

/* ---- prefetches that now have a waiter ---- */

static void ignore(void *arg, const struct cop_rpc_result *r)
{
	(void)arg;
	(void)r;
}

/* The rank to which this node sends such a request; COP_TOPO_NONE: this node reads the storage. */
static uint32_t parent_for(const struct cop_fetch *c, const struct cop_ask *ask)
{
	uint32_t tree = cop_fetch_tree_of(c, ask);

	return tree || ask->home ? cop_fetch_first_up(c, ask, tree) : cop_fetch_parent(c);
}

bool cop_fetch_reads_itself(struct cop_fetch *c, const struct cop_ask *ask)
{
	return !c->conf.rpc || parent_for(c, ask) == COP_TOPO_NONE;
}

void cop_fetch_raise_priority(struct cop_fetch *c, const struct cop_ask *asked, bool tell)
{
	struct cop_ask ask = *asked;
	uint8_t payload[COP_FETCH_REQUEST_MAX];
	struct cop_rpc_call call = {.op = (uint8_t)ask.kind, .payload = payload, .done = ignore};
	struct cop_key key;

	cop_fetch_route(c, &ask, true);
	key = cop_fetch_key(&ask);
	if (!cop_cache_raise_priority(c->conf.cache, &key) || atomic_load(&c->closing))
		return;
	if (cop_fetch_reads_itself(c, &ask)) {
		cop_origin_raise_priority(c->conf.origin, ask.path,
			ask.kind == COP_ASK_CHUNK ? ask.index * c->conf.chunk_bytes : 0);
		return;
	}
	if (!tell)
		return;
	call.rank = parent_for(c, &ask);
	call.payload_len = cop_fetch_request(&ask, ASK_RAISE_PRIORITY, payload, sizeof(payload));
	cop_rpc_call(c->conf.rpc, &call);
}
