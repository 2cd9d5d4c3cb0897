/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the address of a rank in the book or by a request to its machine. */
#include "fabric/reach/reach_priv.h"

#include "base/log/log.h"

/* ---- the book ---- */

int cop_reach_use_book(
	struct cop_reach *r, const char *path, const char *network, struct cop_err *err)
{
	r->book = calloc(r->conf.hosts->count, sizeof(char *));
	if (!r->book)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	return cop_job_book_load(path, r->conf.hosts, network, r->book, err);
}

const char *cop_reach_in_book(const struct cop_reach *r, uint32_t rank)
{
	return r->book ? r->book[rank] : NULL;
}

/* ---- its machine ---- */

struct question {
	struct cop_reach *reach;
	uint32_t rank;
};

/* Whether this node's endpoint can reach an address of that IP version; if not, reports the
 * reason. */
static bool is_of_own_ip(struct cop_reach *r, uint32_t rank, const char *address)
{
	const char *own = cop_endpoint_address(cop_rpc_fabric(*r->conf.rpc));
	char why[400];

	if (!cop_endpoint_is_other_ip(own, address))
		return true;
	snprintf(why, sizeof(why),
		"its address %.100s and this node's %.100s are of different versions of IP: give names or addresses of one version for all hosts, "
		"or an interface (-n tcp://NAME)",
		address, own);
	r->conf.looked(r->conf.ctx, rank, NULL, why);
	if (r->conf.no_way)
		r->conf.no_way(r->conf.ctx, rank, why);
	return false;
}

static void note_resolved(struct cop_reach *r, uint32_t rank, const char *address, bool lives)
{
	if (address && !is_of_own_ip(r, rank, address)) {
		address = NULL;
		lives = false;
	}
	cop_rpc_resolved(*r->conf.rpc, rank, address, lives);
}

static void on_resolved(void *arg, const char *address, bool lives, const char *why)
{
	struct question *q = arg;
	struct cop_reach *r = q->reach;

	if (!address)
		cop_log_debug(
			"no address rank=%u lives=%d why=\"%s\"", q->rank, lives, why ? why : "");
	r->conf.looked(r->conf.ctx, q->rank, address, address ? NULL : why);
	note_resolved(r, q->rank, address ? address : cop_reach_in_book(r, q->rank), lives);
	free(q);
}

/* While the tree starts, a peer may not be up yet, so its machine is polled for longer, and each
 * new call polls again. The time is limited: this node may have been restarted while its parent is
 * dead, and its own children wait for its replies. */
static void ask_machine(struct cop_reach *r, uint32_t rank)
{
	struct cop_rendezvous *rendezvous = atomic_load(&r->rendezvous);
	struct question *q = malloc(sizeof(*q));
	uint32_t timeout_ms = r->conf.peer_timeout_ms / (atomic_load(&r->ready) ? 2 : 1);

	if (!q) {
		note_resolved(r, rank, NULL, false);
		return;
	}
	*q = (struct question){r, rank};
	if (!rendezvous || cop_rendezvous_ask(rendezvous, &r->conf.hosts->host[rank], timeout_ms,
				   on_resolved, q))
		on_resolved(q, NULL, false, "no rendezvous");
}

/* A book gives addresses but does not show which nodes are alive, and lists no clients. */
void cop_reach_resolve(void *reach, uint32_t rank, bool silent)
{
	struct cop_reach *r = reach;

	if (rank >= r->conf.nodes)
		note_resolved(r, rank, NULL, false);
	else if ((r->book && !silent) || atomic_load(&r->door_closed))
		note_resolved(r, rank, cop_reach_in_book(r, rank), false);
	else
		ask_machine(r, rank);
}
