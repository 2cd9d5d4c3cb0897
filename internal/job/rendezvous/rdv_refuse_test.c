/* SPDX-License-Identifier: BSD-3-Clause */
/* Which peers are counted as unverified, and which never are. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/rendezvous/rdv_priv.h"

static _Atomic int last;
static _Atomic unsigned refusals;

static void refused(void *ctx, int rc)
{
	(void)ctx;
	atomic_store(&last, rc);
	atomic_fetch_add(&refusals, 1);
}

static void test_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t h = cop_hash64(data, len, 7 + i);

		memcpy(out + 8 * i, &h, 8);
	}
	(void)ctx;
}

static struct cop_rendezvous *start(const char *name, uint16_t port)
{
	struct cop_job_host self = {.name = (char *)name, .port = port};
	struct cop_rendezvous *r = NULL;
	struct cop_err err = {0};

	if (cop_rendezvous_start(&(struct cop_rendezvous_conf){.self = &self,
					 .fabric_address = name,
					 .mac = test_mac,
					 .refused = refused},
		    &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* Sends data and closes. Returns how many bytes came back once the other side has closed too. */
static ssize_t speaks(const struct cop_rendezvous *r, const void *data, size_t len)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(cop_rendezvous_port(r))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[RDV_MESSAGE_MAX];
	ssize_t n;

	inet_pton(AF_INET, "127.0.0.41", &to.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
	shutdown(fd, SHUT_WR);
	n = recv(fd, answer, sizeof(answer), MSG_WAITALL);
	close(fd);
	return COP_MAX(n, 0);
}

static void says(const struct cop_rendezvous *r, const char *text)
{
	assert_int_equal(speaks(r, text, strlen(text)), 0);
}

static void unverified_peers_are_recognised_by_their_bytes(void **state)
{
	struct cop_rendezvous *r = start("127.0.0.41", 0);

	(void)state;
	says(r, "GET / HTTP/1.0\r\n\r\n");
	assert_int_equal(last, -EBADMSG);
	says(r, "COPR");
	assert_int_equal(last, -EBADMSG);
	says(r, "");
	assert_int_equal(last, -ETIMEDOUT);
	assert_int_equal(refusals, 3);
	cop_rendezvous_stop(r);
}

static void an_ask_is_answered_once(void **state)
{
	struct cop_rendezvous *r = start("127.0.0.41", 0);
	struct rdv_key key = {.mac = test_mac};
	uint8_t ask[2][RDV_MESSAGE_MAX], nonce[RDV_NONCE];
	unsigned before = refusals;
	char identity[64];
	int len = 0;

	(void)state;
	snprintf(identity, sizeof(identity), "127.0.0.41:%u", cop_rendezvous_port(r));
	for (int i = 0; i < 2; i++) {
		len = cop_rdv_ask_build(&key, identity, "127.0.0.42", nonce, ask[i]);
		assert_true(len > 0);
		assert_true(speaks(r, ask[i], (size_t)len) > RDV_FIXED);
	}
	assert_int_equal(refusals, before);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(speaks(r, ask[i % 2], (size_t)len), 0);
		assert_int_equal(last, -EALREADY);
	}
	assert_int_equal(refusals, before + 6);
	cop_rendezvous_stop(r);
}

static void found(void *arg, const char *address, bool lives, const char *why)
{
	(void)address;
	(void)lives;
	(void)why;
	atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

/* The other side may accept the connection before the asker knows, and the asker may end or time
 * out at any moment. */
static void an_asker_that_gives_up_is_not_unverified(void **state)
{
	struct cop_rendezvous *r = start("127.0.0.41", 0), *asker;
	struct cop_job_host at = {.name = (char *)"127.0.0.41", .port = cop_rendezvous_port(r)};
	const struct timespec a_little = {.tv_nsec = 50000000};
	_Atomic unsigned ended = 0;
	unsigned before = refusals;

	(void)state;
	for (int i = 0; i < 200; i++) {
		asker = start("127.0.0.42", 0);
		assert_int_equal(cop_rendezvous_ask(asker, &at, (uint32_t)i % 2, found, &ended), 0);
		cop_rendezvous_stop(asker);
	}
	assert_int_equal(ended, 200);
	nanosleep(&a_little, NULL);
	assert_int_equal(refusals, before);
	cop_rendezvous_stop(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unverified_peers_are_recognised_by_their_bytes),
		cmocka_unit_test(an_ask_is_answered_once),
		cmocka_unit_test(an_asker_that_gives_up_is_not_unverified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
