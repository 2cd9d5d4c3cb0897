/* SPDX-License-Identifier: BSD-3-Clause */
/* --check: this machine's network, memory and disk. */
#include "job/rendezvous/rendezvous.h"
#include "node/check/check_priv.h"

/* ---- network ---- */

static void ignore_message(void *ctx, const void *msg, size_t len)
{
	(void)ctx, (void)msg, (void)len;
}

static void ignore_tick(void *ctx, uint64_t now_ms)
{
	(void)ctx, (void)now_ms;
}

static void fake_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	(void)ctx, (void)data, (void)len;
	memset(out, 0, 32);
}

static int load_book(struct check *c, struct cop_err *err)
{
	if (c->conf->discover)
		return 0;
	c->book = calloc(c->hosts.count, sizeof(char *));
	if (!c->book)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	return cop_job_book_load(c->conf->address_book, &c->hosts,
		cop_endpoint_net_device(c->conf->net_type), c->book, err);
}

static void check_book(struct check *c)
{
	struct cop_err err = {0};

	if (!c->conf->address_book || !c->hosts.count)
		return;
	if (load_book(c, &err)) {
		cop_check_say(c, "address_book", CHECK_FAILED, "%s", err.text);
		free(c->book);
		c->book = NULL;
	} else {
		cop_check_say(c, "address_book", CHECK_OK, "%s has all %u hosts",
			c->conf->address_book, c->nodes);
	}
}

/* Opens the port and closes it right away, without accepting connections. */
static void check_port(struct check *c, const char *address)
{
	struct cop_rendezvous_conf conf = {.fabric_address = address, .mac = fake_mac};
	struct cop_rendezvous *r = NULL;
	struct cop_err err = {0};
	char owner[200] = "";
	int rc;

	if (c->nodes <= 1 || c->conf->address_book)
		return;
	conf.self = &c->hosts.host[c->rank];
	rc = cop_rendezvous_start(&conf, &r, &err);
	if (rc == -EADDRINUSE && conf.self->second_port) {
		conf.at_second_port = true;
		rc = cop_rendezvous_start(&conf, &r, &err);
	}
	if (rc == -EADDRINUSE)
		cop_job_port_owner(conf.self->name,
			conf.at_second_port ? conf.self->second_port : conf.self->port, owner,
			sizeof(owner));
	if (rc)
		cop_check_say(c, "port", CHECK_FAILED, "%s%s%s", err.text,
			*owner ? "; it is taken by " : "", owner);
	else
		cop_check_say(c, "port", CHECK_OK,
			"TCP port %u is free; the other hosts must reach it",
			cop_rendezvous_port(r));
	cop_rendezvous_stop(r);
}

/* Whether only this machine can reach the address, although other nodes run elsewhere. */
static bool is_lonely(const struct check *c, const char *address)
{
	struct cop_ip host;

	return c->nodes > 1 && cop_endpoint_is_within_machine(address) &&
	       !(cop_ip_parse(cop_job_host_name(&c->hosts, c->rank), &host) &&
		       cop_ip_is_loopback(&host));
}

static void tell_address(struct check *c, const struct cop_endpoint *f)
{
	const char *address = cop_endpoint_address(f), *network = cop_endpoint_network(f);
	char have[512];

	c->tcp = strncmp(address, "ofi+tcp://", 10) == 0;
	cop_endpoint_list_providers(have, sizeof(have));
	if (is_lonely(c, address))
		cop_check_say(c, "network", CHECK_WARNING,
			"the address would be %s, which other machines cannot reach: this host's name resolves to it here; name the interface, for example -n tcp://eth0",
			address);
	else
		cop_check_say(c, "network", CHECK_OK,
			"provider %s, network %s, address %s%s; providers here: %s",
			cop_endpoint_provider(f), *network ? network : "without a name", address,
			c->book || c->conf->fabric_port_low ? "" : " (the port changes)", have);
}

void cop_check_providers(char *out, size_t size)
{
	cop_endpoint_list_providers(out, size);
}

void cop_check_network(struct check *c)
{
	struct cop_endpoint_conf conf = {.net_type = c->conf->net_type,
		.port_low = c->conf->fabric_port_low,
		.port_high = c->conf->fabric_port_high,
		.events = {.recv = ignore_message, .tick = ignore_tick}};
	struct cop_endpoint *f = NULL;
	struct cop_err err = {0};

	check_book(c);
	if (c->hosts.count) {
		conf.host = c->hosts.host[c->rank].name;
		conf.address = c->book ? c->book[c->rank] : NULL;
	}
	if (cop_endpoint_open(&conf, &f, &err)) {
		cop_check_say(c, "network", c->nodes == 1 ? CHECK_WARNING : CHECK_FAILED, "%s%s",
			err.text, c->nodes == 1 ? " (one node alone needs none)" : "");
		return;
	}
	tell_address(c, f);
	check_port(c, cop_endpoint_address(f));
	cop_endpoint_close(f);
}

/* ---- memory ---- */

void cop_check_memory(struct check *c)
{
	char note[COP_CACHE_NOTE_SIZE], want[16], have[16];
	uint64_t cache = cop_cache_size(c->conf->cache_size, cop_conf_cache_least(c->conf), note),
		 available = cop_memory_available(""), limit = cop_memory_limit("");

	cop_format_size(cache, want);
	if (note[0])
		cop_check_say(c, "memory", CHECK_WARNING, "%s", note);
	else if (!available)
		cop_check_say(c, "memory", CHECK_OK, "the cache may grow to %s", want);
	else if (cache > available)
		cop_check_say(c, "memory", CHECK_WARNING,
			"the cache may grow to %s, and %s is available now: give a smaller --cache-size",
			want, cop_format_size(available, have));
	else if (limit < available)
		cop_check_say(c, "memory", CHECK_OK,
			"the cache may grow to %s of the %s that this job may use in all", want,
			cop_format_size(limit, have));
	else
		cop_check_say(c, "memory", CHECK_OK, "the cache may grow to %s of %s available",
			want, cop_format_size(available, have));
}

/* ---- disk ---- */

void cop_check_spill(struct check *c)
{
	char dir[COP_CONF_DIR_SIZE], note[COP_SPILL_NOTE_SIZE], may[16];
	struct cop_err err = {0};
	uint64_t size;

	if (!c->conf->spill)
		return;
	if (cop_conf_spill(c->conf, dir, &size, &err) || cop_spill_check(dir, &size, note, &err))
		cop_check_say(c, "spill", CHECK_FAILED, "%s", err.text);
	else if (note[0])
		cop_check_say(c, "spill", CHECK_WARNING, "%s", note);
	else
		cop_check_say(c, "spill", CHECK_OK,
			"%s takes up to %s of what the cache cannot hold", dir,
			cop_format_size(size, may));
}
