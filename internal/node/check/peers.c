/* SPDX-License-Identifier: BSD-3-Clause */
/* --check: whether this machine can reach the ports of the other hosts. Copper need not run there:
 * a refused connection proves that the path is open, and only a firewall drops packets silently. */
#include "base/base/probe.h"
#include "node/check/check_priv.h"

#include <poll.h>

#define AT_A_TIME 256u  /* concurrent probes */
#define PROBE_MS 3000   /* per probe; a lost packet is resent after a second */
#define ALL_MS 20000    /* for all probes, without the time that name look-ups take */
#define NAMED_MAX 16u   /* ports listed by name; others are only counted */
#define FABRIC_PORTS 16 /* how many ports of a range to probe; a host uses one per node */

struct port {
	struct cop_probe probe;
	struct cop_ip ip;
	uint32_t rank;
	uint16_t number;
	bool fabric;
};

struct peers {
	struct check *check;
	uint64_t end_ms;
	uint32_t rank; /* the next rank to probe */
	uint16_t next; /* its next port */
	struct port under_way[AT_A_TIME];
	unsigned n;
	unsigned open, closed, blocked, hosts, nameless, not_tried;
};

static const char *host_of(const struct peers *p, uint32_t rank)
{
	return cop_job_host_name(&p->check->hosts, rank);
}

/* ---- the ports ---- */

/* The index-th port of a rank; false: no more ports. */
static bool name_port(const struct peers *p, uint32_t rank, uint16_t index, struct port *out)
{
	const struct check *c = p->check;
	const struct cop_job_host *h = &c->hosts.host[rank];
	uint16_t low = c->conf->fabric_port_low, high = c->conf->fabric_port_high;

	out->rank = rank;
	if (c->book) {
		out->fabric = true;
		return !index && c->book[rank] &&
		       cop_probe_address(c->book[rank], &out->ip, &out->number);
	}
	out->fabric = index >= 2;
	if (!out->fabric)
		out->number = index ? h->second_port : h->port;
	else if (!c->tcp || !low || index - 2 > COP_MIN(high - low, FABRIC_PORTS - 1))
		return false;
	else
		out->number = (uint16_t)(low + index - 2);
	return true;
}

/* Finds the next port to probe; skips the missing second port of a host with one rendezvous
 * port. */
static bool next_port(struct peers *p, struct port *out)
{
	const struct check *c = p->check;

	for (; p->rank < c->hosts.count; p->rank++, p->next = 0) {
		if (p->rank == c->rank)
			continue;
		while (name_port(p, p->rank, p->next, out)) {
			struct cop_err err = {0};

			if (!p->next++ && !c->book &&
				cop_host_address(host_of(p, p->rank), &out->ip, &err)) {
				cop_check_say(p->check, "peers", CHECK_FAILED,
					"rank %" PRIu32 ": %s", p->rank, err.text);
				p->nameless++;
				break;
			}
			if (p->next == 1)
				p->hosts++;
			if (out->number)
				return true;
		}
	}
	return false;
}

/* ---- probes ---- */

static void say_port(struct peers *p, const struct port *at)
{
	char ip[COP_IP_TEXT_SIZE];

	if (at->probe.state == COP_PROBE_OPEN || at->probe.state == COP_PROBE_CLOSED) {
		p->open += at->probe.state == COP_PROBE_OPEN;
		p->closed += at->probe.state == COP_PROBE_CLOSED;
		return;
	}
	if (p->blocked++ >= NAMED_MAX)
		return;
	cop_check_say(p->check, "peers", CHECK_FAILED,
		"%s (rank %" PRIu32 "), %s TCP port %u (%s): %s", host_of(p, at->rank), at->rank,
		cop_ip_print(&at->ip, ip), at->number, at->fabric ? "fabric" : "rendezvous",
		cop_probe_why(&at->probe));
}

/* Waits until at least one probe has a result, and collects all results. */
static void take_results(struct peers *p)
{
	struct pollfd fds[AT_A_TIME];
	uint64_t now = cop_now_ms(), end = p->under_way[0].probe.end_ms;
	unsigned left = 0;

	for (unsigned i = 0; i < p->n; i++) {
		fds[i] = (struct pollfd){.fd = p->under_way[i].probe.fd, .events = POLLOUT};
		end = COP_MIN(end, p->under_way[i].probe.end_ms);
	}
	(void)poll(fds, p->n, end > now ? (int)(end - now) : 0);
	now = cop_now_ms();
	for (unsigned i = 0; i < p->n; i++) {
		if (cop_probe_look(&p->under_way[i].probe, now) == COP_PROBE_WAITS)
			p->under_way[left++] = p->under_way[i];
		else
			say_port(p, &p->under_way[i]);
	}
	p->n = left;
}

static void try_all(struct peers *p)
{
	struct port at = {.number = 0};

	while (cop_now_ms() < p->end_ms && next_port(p, &at)) {
		struct port *to = &p->under_way[p->n++];

		*to = at;
		cop_probe_begin(
			&to->probe, &at.ip, at.number, COP_MIN(cop_now_ms() + PROBE_MS, p->end_ms));
		/* A probe with an immediate result needs no slot. */
		if (to->probe.state != COP_PROBE_WAITS) {
			say_port(p, to);
			p->n--;
		}
		while (p->n == AT_A_TIME)
			take_results(p);
	}
	while (p->n)
		take_results(p);
	for (; p->rank < p->check->hosts.count; p->rank++)
		p->not_tried += p->rank != p->check->rank;
}

static void say_sum(struct peers *p)
{
	const struct check *c = p->check;
	unsigned ports = p->open + p->closed + p->blocked;
	const char *rest =
		c->book || !c->tcp ? ""
		: !c->conf->fabric_port_low
			? "; the fabric's own ports cannot be tried, since the kernel chooses them: firewalls need --fabric-port"
			: "";

	if (p->blocked > NAMED_MAX)
		cop_check_say(p->check, "peers", CHECK_FAILED, "and %u more ports",
			p->blocked - NAMED_MAX);
	if (p->not_tried)
		cop_check_say(p->check, "peers", CHECK_WARNING,
			"%u hosts were not tried within %u s", p->not_tried, ALL_MS / 1000);
	if (ports)
		cop_check_say(p->check, "peers", p->blocked ? CHECK_WARNING : CHECK_OK,
			"of %u TCP ports of %u other hosts, %u can be reached (%u answer, and on %u nothing runs yet)%s",
			ports, p->hosts, p->open + p->closed, p->open, p->closed, rest);
}

void cop_check_peers(struct check *c)
{
	struct peers *p;

	if (c->nodes <= 1 || (c->conf->address_book && !c->book))
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	p->check = c;
	p->end_ms = cop_now_ms() + ALL_MS;
	try_all(p);
	say_sum(p);
	free(p);
}
