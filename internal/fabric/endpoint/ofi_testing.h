/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers for tests with real endpoints: a node counts the messages it receives; the test thread
 * runs functions on the progress thread and waits for them. */
#ifndef COP_FABRIC_ENDPOINT_OFI_TESTING_H
#define COP_FABRIC_ENDPOINT_OFI_TESTING_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/endpoint/endpoint.h"

#define WAIT_MS 20000

struct node {
	struct cop_endpoint *f;
	struct cop_stats stats;
	_Atomic uint64_t received, bytes, bad, ticks;
	/* When set, it checks each message as well. */
	void (*check)(struct node *n, const void *msg, size_t len);
	uint64_t next;      /* for check */
	bool admitted_only; /* for try_open */
	uint16_t port_low, port_high;
};

static inline void nap_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

/* Waits until *value reaches goal; false after WAIT_MS. */
static inline bool reaches(_Atomic uint64_t *value, uint64_t goal)
{
	uint64_t end = cop_now_ms() + WAIT_MS;

	while (atomic_load(value) < goal) {
		if (cop_now_ms() > end)
			return false;
		nap_ms(1);
	}
	return true;
}

static inline void on_recv(void *ctx, const void *msg, size_t len)
{
	struct node *n = ctx;

	if (n->check)
		n->check(n, msg, len);
	atomic_fetch_add(&n->bytes, len);
	atomic_fetch_add(&n->received, 1);
}

static inline void on_tick(void *ctx, uint64_t now_ms)
{
	struct node *n = ctx;

	(void)now_ms;
	atomic_fetch_add(&n->ticks, 1);
}

static inline int try_open(
	struct node *n, const char *net, const char *host, const char *address, struct cop_err *err)
{
	struct cop_endpoint_conf conf = {.net_type = net,
		.host = host,
		.address = address,
		.tick_ms = 20,
		.admitted_only = n->admitted_only,
		.port_low = n->port_low,
		.port_high = n->port_high,
		.stats = &n->stats,
		.events = {.ctx = n, .recv = on_recv, .tick = on_tick}};

	return cop_endpoint_open(&conf, &n->f, err);
}

static inline void open_node(struct node *n, const char *net, const char *host, const char *address)
{
	struct cop_err err = {0};

	memset(n, 0, sizeof(*n));
	if (try_open(n, net, host, address, &err))
		fail_msg("%s", err.text);
}

struct job {
	struct cop_endpoint_work work;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static inline void run_job(struct cop_endpoint_work *w)
{
	struct job *j = COP_CONTAINER_OF(w, struct job, work);

	j->fn(j->arg);
	sem_post(&j->done);
}

/* Runs fn(arg) on the progress thread of n and waits until it returns. */
static inline void on_thread(struct node *n, void (*fn)(void *arg), void *arg)
{
	struct job j = {.work.run = run_job, .fn = fn, .arg = arg};

	sem_init(&j.done, 0, 0);
	assert_int_equal(cop_endpoint_post(n->f, &j.work), 0);
	while (sem_wait(&j.done) && errno == EINTR)
		;
	sem_destroy(&j.done);
}

typedef void check_fn(struct node *n, const void *msg, size_t len);

struct check_call {
	struct node *n;
	check_fn *check;
};

static inline void call_check(void *arg)
{
	struct check_call *c = arg;

	c->n->check = c->check;
}

/* n checks later messages with check. */
static inline void look_with(struct node *n, check_fn *check)
{
	struct check_call c = {n, check};

	on_thread(n, call_check, &c);
}

/* Counts ended operations. */
struct ends {
	_Atomic uint64_t all, good;
	_Atomic int last_error;
};

static inline void on_end(void *arg, int rc)
{
	struct ends *e = arg;

	if (rc)
		atomic_store(&e->last_error, rc);
	else
		atomic_fetch_add(&e->good, 1);
	atomic_fetch_add(&e->all, 1);
}

/* Whether count operations have ended, all of them successfully. */
static inline bool all_good(struct ends *e, uint64_t count)
{
	return reaches(&e->all, count) && atomic_load(&e->good) == count;
}

struct peer_call {
	struct cop_endpoint *f;
	const char *address;
	cop_endpoint_peer_t peer;
	int rc;
};

static inline void call_peer(void *arg)
{
	struct peer_call *c = arg;

	c->rc = cop_endpoint_peer(c->f, c->address, &c->peer);
}

static inline cop_endpoint_peer_t peer_of(struct node *n, const char *address)
{
	struct peer_call c = {.f = n->f, .address = address};

	on_thread(n, call_peer, &c);
	assert_int_equal(c.rc, 0);
	return c.peer;
}

static inline void call_drop(void *arg)
{
	struct peer_call *c = arg;

	cop_endpoint_peer_drop(c->f, c->peer);
}

static inline void drop_peer(struct node *n, cop_endpoint_peer_t peer)
{
	struct peer_call c = {.f = n->f, .peer = peer};

	on_thread(n, call_drop, &c);
}

struct send_call {
	struct cop_endpoint *f;
	cop_endpoint_peer_t peer;
	const void *msg;
	size_t len;
	unsigned count;
	struct ends *ends;
	int rc;
};

static inline void call_send(void *arg)
{
	struct send_call *c = arg;

	for (unsigned i = 0; i < c->count && c->rc == 0; i++)
		c->rc = cop_endpoint_send(
			c->f, c->peer, c->msg, c->len, c->ends ? on_end : NULL, c->ends);
}

static inline int send_to(struct node *n, cop_endpoint_peer_t peer, const void *msg, size_t len,
	unsigned count, struct ends *ends)
{
	struct send_call c = {n->f, peer, msg, len, count, ends, 0};

	on_thread(n, call_send, &c);
	return c.rc;
}

struct mem_call {
	struct cop_endpoint *f;
	cop_endpoint_peer_t peer;
	void *buf;
	size_t len;
	struct cop_endpoint_mr *mr;
	uint64_t addr, key;
	struct ends *ends;
	int rc;
};

static inline void call_reg(void *arg)
{
	struct mem_call *c = arg;

	c->rc = cop_endpoint_reg(c->f, c->buf, c->len, &c->mr, &c->addr, &c->key);
}

static inline void call_unreg(void *arg)
{
	struct mem_call *c = arg;

	cop_endpoint_unreg(c->mr);
}

static inline void call_write(void *arg)
{
	struct mem_call *c = arg;

	c->rc = cop_endpoint_write(c->f, c->peer, c->buf, c->len, c->addr, c->key, on_end, c->ends);
}

static inline struct mem_call reg_mem(struct node *n, void *buf, size_t len)
{
	struct mem_call c = {.f = n->f, .buf = buf, .len = len};

	on_thread(n, call_reg, &c);
	assert_int_equal(c.rc, 0);
	return c;
}

static inline void unreg_mem(struct node *n, struct mem_call *c)
{
	on_thread(n, call_unreg, c);
}

/* Writes len bytes at offset off of the registered target. */
static inline int write_to(struct node *n, cop_endpoint_peer_t peer, void *buf, size_t len,
	const struct mem_call *target, size_t off, struct ends *ends)
{
	struct mem_call c = {.f = n->f,
		.peer = peer,
		.buf = buf,
		.len = len,
		.addr = target->addr + off,
		.key = target->key,
		.ends = ends};

	on_thread(n, call_write, &c);
	return c.rc;
}

static inline void fill_pattern(void *buf, size_t len, uint64_t seed)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < len; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		p[i] = (unsigned char)(seed >> 56);
	}
}

/* A broken connection loses its in-flight messages. The first messages afterwards may be lost too,
 * but soon one arrives. */
static inline void recovers(struct node *from, struct node *to)
{
	uint64_t before = atomic_load(&to->received), end = cop_now_ms() + WAIT_MS;

	while (atomic_load(&to->received) == before) {
		assert_true(cop_now_ms() < end);
		assert_int_equal(send_to(from, peer_of(from, cop_endpoint_address(to->f)), "hello",
					 5, 1, NULL),
			0);
		nap_ms(20);
	}
}

/* Sends one message, which arrives within max_ms. */
static inline void talks(struct node *from, struct node *to, unsigned max_ms)
{
	uint64_t before = atomic_load(&to->received), start = cop_now_ms();

	assert_int_equal(
		send_to(from, peer_of(from, cop_endpoint_address(to->f)), "hello", 5, 1, NULL), 0);
	assert_true(reaches(&to->received, before + 1));
	assert_in_range(cop_now_ms() - start, 0, max_ms);
}

#endif
