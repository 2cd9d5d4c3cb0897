/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric: one libfabric reliable-datagram endpoint (FI_EP_RDM, FI_MSG | FI_RMA) and the one thread
 * that owns it, the progress thread. It moves messages and bytes between addresses. Ranks,
 * requests, security and trees belong to rpc and the layers above it.
 *
 * The progress thread spins briefly, then sleeps on the completion queue's descriptor (after
 * fi_trywait) and an eventfd; an idle endpoint uses no CPU. Functions marked [progress] may be
 * called only on the progress thread, i.e. inside a callback of this module. No function blocks
 * on a peer: a send that the provider cannot accept yet waits in its peer's queue, so a slow or
 * dead peer never delays another.
 *
 * The functions have two implementations (struct cop_endpoint_ops in endpoint_priv.h): libfabric,
 * and an in-process fake for tests. */
#ifndef COP_FABRIC_ENDPOINT_H
#define COP_FABRIC_ENDPOINT_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

/* The longest message, the sender's header included. Longer bodies are sent by RMA. */
#define COP_ENDPOINT_MSG_MAX 16000

struct cop_endpoint;
struct cop_endpoint_mr;
/* A peer's slot in the address table. */
typedef uint64_t cop_endpoint_peer_t;

struct cop_endpoint_events {
	void *ctx;
	/* A message arrived. msg is valid only during the call and is untrusted. */
	void (*recv)(void *ctx, const void *msg, size_t len);
	/* Called about every tick_ms while the thread is awake or has work, and at least every
	 * tick_ms while cop_endpoint_keep_ticking is on. now is in cop_now_ms(). */
	void (*tick)(void *ctx, uint64_t now_ms);
	/* All posted work has run. May be NULL. */
	void (*ran)(void *ctx);
};

/* A keyed hash; the key is the job's secret. Called on any thread; must not block. */
typedef void cop_endpoint_mac(void *ctx, const void *data, size_t len, uint8_t out[32]);

struct cop_endpoint_conf {
	const char *net_type; /* as users write it: "tcp", "tcp://lo", "shm", "cxi://cxi1", "verbs",
				 "ofi+tcp" */
	const char
		*host; /* the local address or host name to bind to; NULL: the provider's choice */
	const char *address; /* a full address from the address book to bind to, or NULL */
	uint16_t port_low;   /* first port of the range to listen on, for an IP provider without an
				address */
	uint16_t port_high;  /* last port of the range; 0: the kernel chooses the port */
	unsigned tick_ms;    /* 100 if 0 */
	bool admitted_only;  /* refuse connections from hosts that have not been admitted, if the
				provider runs over TCP */
	/* If the provider runs over TCP, both ends of a connection must prove that they have this
	 * key. NULL: no check. A provider that cannot be guarded this way is used anyway, with a
	 * log message. */
	cop_endpoint_mac *mac;
	void *mac_ctx;
	struct cop_stats *stats;    /* byte counters; may be NULL */
	struct cop_stats *rejected; /* counters of refused connections; may be NULL */
	struct cop_endpoint_events events;
};

/* Opens the endpoint and starts the progress thread. On failure the error names the provider and
 * lists the available ones. */
int cop_endpoint_open(
	const struct cop_endpoint_conf *conf, struct cop_endpoint **out, struct cop_err *err);
/* Completes outstanding operations with -ECANCELED on the progress thread, joins the thread and
 * closes everything. NULL is fine. */
void cop_endpoint_close(struct cop_endpoint *f);

/* This endpoint's address in address book syntax: "ofi+tcp://127.0.0.11:34567",
 * "ofi+cxi://0x00916600", "ofi+shm://...". Valid until close. */
const char *cop_endpoint_address(const struct cop_endpoint *f);
/* Provider name from libfabric ("tcp;ofi_rxm"). */
const char *cop_endpoint_provider(const struct cop_endpoint *f);
/* Whether an address is on the loopback network, which other machines cannot reach. */
bool cop_endpoint_is_within_machine(const char *address);
/* Whether data sent to this address should be compressed. LZ4 compresses about half a gigabyte per
 * second on a core: faster than a TCP network between machines, slower than other fabrics or a
 * connection within one machine. */
bool cop_endpoint_is_slower_than_lz4(const char *address);
/* Whether one address is IPv4 and the other IPv6; endpoints with such addresses cannot connect. */
bool cop_endpoint_is_other_ip(const char *a, const char *b);

/* ---- networks: those that a provider can use on this machine, by system name (lo, eth0, cxi0,
 * ...) ---- */

#define COP_ENDPOINT_NETWORK_MAX 32  /* bytes of a name, its NUL included */
#define COP_ENDPOINT_NETWORKS_MAX 16 /* maximum networks per machine; the rest are omitted */

/* The network of this endpoint; "" if it has no name. Valid until close. */
const char *cop_endpoint_network(const struct cop_endpoint *f);
/* Appends "NAME ADDRESS\n" per network: the full address for the endpoint's own network; for the
 * others, as much of it as is known without opening an endpoint. */
void cop_endpoint_networks(const struct cop_endpoint *f, struct cop_buf *out);
/* The CPUs close to the network card of this endpoint, in sysfs list format ("0-13,104-117"); "" if
 * unknown (no card, one NUMA node). */
void cop_endpoint_near_cpus(const struct cop_endpoint *f, struct cop_buf *out);
/* The part after "://" in a net type: the requested network, or "". */
const char *cop_endpoint_net_device(const char *net_type);

/* Fills out with the comma-separated names of the available providers, for messages. */
void cop_endpoint_list_providers(char *out, size_t size);

/* Work for the progress thread, embedded in the poster's own struct. */
struct cop_endpoint_work {
	struct cop_list link;
	/* The endpoint does not touch w after this call. */
	void (*run)(struct cop_endpoint_work *w);
};
/* Any thread. Schedules w->run(w) on the progress thread. conf.events.ran is called after all work
 * posted in the meantime. Work posted by one thread runs in order. Returns -ESHUTDOWN once close
 * has begun (w does not run then). */
int cop_endpoint_post(struct cop_endpoint *f, struct cop_endpoint_work *w);
/* Posts a list of work items, which run back to back. The list is empty on success, unchanged on
 * failure. */
int cop_endpoint_post_all(struct cop_endpoint *f, struct cop_list *works);

/* Waits up to timeout_ms until all sent messages have been handed to the network; returns whether
 * they have. Used by a node that replies and then exits. Not on the progress thread; libfabric
 * endpoints only. */
bool cop_endpoint_flush(struct cop_endpoint *f, uint32_t timeout_ms);

/* [progress] While on, tick is called at least every tick_ms even when idle (because callers have
 * deadlines pending). Off: the thread may sleep indefinitely. */
void cop_endpoint_keep_ticking(struct cop_endpoint *f, bool on);

/* [progress] Returns the peer of an address; the same address always yields the same peer. -EINVAL
 * if the address belongs to another provider. */
int cop_endpoint_peer(struct cop_endpoint *f, const char *address, cop_endpoint_peer_t *peer);
/* [progress] Forgets a peer and its connection; its queued operations complete with -ECANCELED. A
 * later cop_endpoint_peer with the same text starts afresh. */
void cop_endpoint_peer_drop(struct cop_endpoint *f, cop_endpoint_peer_t peer);

/* Any thread. Admits the host of this address: it may connect even with conf.admitted_only. A peer
 * (cop_endpoint_peer) is admitted automatically. Admission is permanent. */
void cop_endpoint_admit(struct cop_endpoint *f, const char *address);

/* Called once on the progress thread: 0 or -errno (-ECANCELED, -EHOSTUNREACH, -EIO, ...). May be
 * NULL for send. May be called before the function that takes it returns. */
typedef void cop_endpoint_done(void *arg, int rc);

/* [progress] Sends msg (copied, at most COP_ENDPOINT_MSG_MAX). Messages to one peer arrive in
 * order, at most once. Returns 0 (done will be called) or -errno (it will not; -ENOBUFS: the peer's
 * queue is full).
 *
 * rc == 0 in done means that the provider has taken the message, not that it arrived. When a
 * connection breaks (a write with a key that is not open, a drop at either end, TCP itself) its
 * in-flight messages are lost, and the next send reconnects. This is not reported: the caller must
 * detect missing messages. */
int cop_endpoint_send(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *msg, size_t len,
	cop_endpoint_done *done, void *arg);

/* [progress] Writes len bytes (any length; split to fit the provider's max_msg_size) from buf to
 * the remote memory. buf must stay valid until done. done means that the bytes have been placed
 * at the target (FI_DELIVERY_COMPLETE): with every provider, a message sent later arrives after
 * them. */
int cop_endpoint_write(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *buf,
	size_t len, uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg);

/* [progress] Registers memory for remote writes. Send addr and key to the peer (addr is a 0-based
 * offset unless the provider asked for FI_MR_VIRT_ADDR). Unreg ends remote access for writes that
 * begin later; a write in progress may still complete (the tcp provider checks the key once, at its
 * head). Before freeing memory that a peer may be writing to, drop that peer in the same callback,
 * which closes the connection. */
int cop_endpoint_reg(struct cop_endpoint *f, void *buf, size_t len, struct cop_endpoint_mr **mr,
	uint64_t *addr, uint64_t *key);
void cop_endpoint_unreg(struct cop_endpoint_mr *mr);

/* ---- the fake: endpoints in one process, deterministic ---- */

/* A network of fake endpoints. cop_endpoint_fake_open creates one with address "fake://NAME".
 * Everything happens inside cop_endpoint_fake_run, which acts as every progress thread, on the
 * caller's thread: it delivers queued messages, runs posted functions and ticks until the
 * network is idle, and returns the number of events (at most max_events). */
struct cop_endpoint_net;
struct cop_endpoint_net *cop_endpoint_net_new(void);
void cop_endpoint_net_free(struct cop_endpoint_net *net);
int cop_endpoint_fake_open(struct cop_endpoint_net *net, const char *name,
	const struct cop_endpoint_conf *conf, struct cop_endpoint **out);
size_t cop_endpoint_fake_run(struct cop_endpoint_net *net, size_t max_events);
/* Advances the fake clock given to tick and ticks every endpoint once per tick_ms. */
void cop_endpoint_fake_advance(struct cop_endpoint_net *net, uint64_t ms);
/* Advances the clock in one jump, as after a suspended machine resumes; then ticks each endpoint
 * once. 0: ticks without advancing the clock. */
void cop_endpoint_fake_jump(struct cop_endpoint_net *net, uint64_t ms);
/* With cut, isolates this endpoint like a dead node: nothing reaches or leaves it, and sends to it
 * are lost silently. */
void cop_endpoint_fake_cut(struct cop_endpoint_net *net, const char *name, bool cut);
/* Sets a function called on every message before delivery, for tests that inspect, modify, drop
 * (return false) or repeat messages. */
void cop_endpoint_fake_tap(struct cop_endpoint_net *net,
	bool (*tap)(void *arg, const char *from, const char *to, void *msg, size_t len), void *arg);

#endif
