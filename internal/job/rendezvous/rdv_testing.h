/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous on this machine, for this directory's tests. */
#ifndef COP_JOB_RDV_TESTING_H
#define COP_JOB_RDV_TESTING_H

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/rendezvous/rdv_priv.h"

/* Enough of a keyed hash for a test: four hashes, seeded by the key. */
static inline void test_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t h = cop_hash64(data, len, *(uint64_t *)ctx + i);

		memcpy(out + 8 * i, &h, 8);
	}
}

static uint64_t ours = 1000;

/* What the callback `found` received, from any number of asks. */
struct result {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned calls, addresses;
	bool lives;
	char address[300], why[600];
	struct cop_rendezvous *again; /* repeat the ask from the callback */
	struct cop_job_host *host;
};

static inline void result_init(struct result *x)
{
	*x = (struct result){0};
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->changed, NULL);
}

static inline void found(void *arg, const char *address, bool lives, const char *why)
{
	struct result *x = arg;
	struct cop_rendezvous *again;

	pthread_mutex_lock(&x->lock);
	x->calls++;
	x->addresses += address != NULL;
	x->lives = lives;
	snprintf(x->address, sizeof(x->address), "%s", address ? address : "");
	snprintf(x->why, sizeof(x->why), "%s", why ? why : "");
	again = x->again;
	x->again = NULL;
	pthread_cond_signal(&x->changed);
	pthread_mutex_unlock(&x->lock);
	if (again)
		(void)cop_rendezvous_ask(again, x->host, 5000, found, x);
}

static inline void await(struct result *x, unsigned calls)
{
	struct timespec end;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 30;
	pthread_mutex_lock(&x->lock);
	while (!rc && x->calls < calls)
		rc = pthread_cond_timedwait(&x->changed, &x->lock, &end);
	pthread_mutex_unlock(&x->lock);
	assert_int_equal(x->calls, calls);
}

static inline void nap(unsigned ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&ts, NULL);
}

static cop_rendezvous_met *on_met; /* passed to those opened by open_at */
static pthread_mutex_t met_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_met[64]; /* under met_lock: unverified peers may connect at any time */

static inline void met(void *ctx, const char *address)
{
	(void)ctx;
	pthread_mutex_lock(&met_lock);
	snprintf(last_met, sizeof(last_met), "%s", address);
	pthread_mutex_unlock(&met_lock);
}

static inline const char *whom_met(char out[64])
{
	pthread_mutex_lock(&met_lock);
	memcpy(out, last_met, sizeof(last_met));
	pthread_mutex_unlock(&met_lock);
	return out;
}

static _Atomic unsigned refusals; /* of all opened by open_at */

static inline void count_refusal(void *ctx, int rc)
{
	(void)ctx;
	(void)rc;
	refusals++;
}

static inline int open_at(const struct cop_job_host *self, const char *address, uint64_t *secret,
	struct cop_rendezvous **out, struct cop_err *err)
{
	return cop_rendezvous_start(&(struct cop_rendezvous_conf){.self = self,
					    .fabric_address = address,
					    .mac = test_mac,
					    .met = on_met,
					    .refused = count_refusal,
					    .ctx = secret},
		out, err);
}

static inline struct cop_rendezvous *start(
	const char *name, uint16_t port, uint64_t *secret, const char *address)
{
	struct cop_job_host self = {.name = (char *)name, .port = port};
	struct cop_rendezvous *r = NULL;
	struct cop_err err = {0};

	if (open_at(&self, address, secret, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static inline struct cop_job_host host_of(const struct cop_rendezvous *r, const char *name)
{
	return (struct cop_job_host){.name = (char *)name, .port = cop_rendezvous_port(r)};
}

/* A port without a listener at the moment. */
static inline uint16_t free_port(const char *name)
{
	struct cop_rendezvous *r = start(name, 0, &ours, "x");
	uint16_t port = cop_rendezvous_port(r);

	cop_rendezvous_stop(r);
	return port;
}

static inline int plain_socket(const char *name, uint16_t port, bool listening)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, name, &at.sin_addr), 1);
	if (!listening) {
		assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

#endif
