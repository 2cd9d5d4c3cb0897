/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake network. It has a single event queue in causal order, so a run is deterministic.
 * `lock` protects only that queue (functions may be posted from any thread); everything else
 * belongs to the thread that runs the network, and no callback is called under the lock.
 *
 * A cut endpoint is a dead node: a message to or from it completes and is lost, like bytes in a
 * socket; a write does not complete until its peer is dropped or the writer closes.
 *
 * endpoint_fake.c implements and runs the network; endpoint_fake_ops.c has the operations of an
 * endpoint. */
#ifndef COP_FABRIC_ENDPOINT_FAKE_PRIV_H
#define COP_FABRIC_ENDPOINT_FAKE_PRIV_H

#include "fabric/endpoint/endpoint_priv.h"

#define COP_FAKE_NAME_MAX 200
#define COP_FAKE_EVENTS_MAX (1U << 20)
#define COP_FAKE_SCHEME "fake://"

struct fake_peer {
	struct cop_list link;
	cop_endpoint_peer_t id;
	char name[COP_FAKE_NAME_MAX];
};

struct fake_mr {
	struct cop_endpoint_mr base;
	struct cop_list link;
	char *buf;
	size_t len;
	uint64_t addr, key;
};

struct fake {
	struct cop_endpoint base;
	struct cop_endpoint_net *net;
	struct cop_list link; /* net's endpoints, in order of opening */
	struct cop_list peers, mrs;
	struct cop_list hung; /* lost writes */
	uint64_t next_tick_ms;
	cop_endpoint_peer_t last_peer;
	bool cut, closing;
	char name[COP_FAKE_NAME_MAX];
};

enum event_kind { EVENT_POST, EVENT_SEND, EVENT_WRITE };

struct event {
	struct cop_list link;
	enum event_kind kind;
	struct fake *from;
	struct cop_endpoint_work *work; /* posts */
	void *arg;
	cop_endpoint_peer_t peer;
	char to[COP_FAKE_NAME_MAX];
	cop_endpoint_done *done; /* NULL once called */
	const void *buf;         /* writes: read at delivery, as in the real endpoint */
	uint64_t addr, key;
	size_t len;
	char msg[]; /* sends */
};

struct cop_endpoint_net {
	pthread_mutex_t lock;
	struct cop_list events;
	unsigned count;
	struct cop_list endpoints;
	struct event *running;
	uint64_t now_ms, last_key;
	bool (*tap)(void *arg, const char *from, const char *to, void *msg, size_t len);
	void *tap_arg;
};

static inline struct fake *cop_endpoint_fake_of(struct cop_endpoint *f)
{
	return COP_CONTAINER_OF(f, struct fake, base);
}

extern const struct cop_endpoint_ops cop_endpoint_fake_ops;

/* Queues e, or frees it: -ESHUTDOWN, -ENOBUFS. */
int cop_endpoint_fake_push(struct cop_endpoint_net *net, struct event *e);
/* Calls done unless it has been called. */
void cop_endpoint_fake_end(struct event *e, int rc);
/* Removes the events of f from the queue and ends them: those to one peer, or (NULL) all of them
 * and the posted functions. Functions run, operations are cancelled. */
void cop_endpoint_fake_cancel(struct fake *f, const cop_endpoint_peer_t *peer);
void cop_endpoint_fake_close(struct cop_endpoint *base);

#endif
