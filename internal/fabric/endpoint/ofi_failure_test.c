/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint/ofi_testing.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/endpoint/ofi_priv.h"

static struct node a, b, c;

static int open_three(void **state)
{
	(void)state;
	open_node(&a, "tcp", "127.0.0.11", NULL);
	open_node(&b, "tcp", "127.0.0.12", NULL);
	open_node(&c, "tcp", "127.0.0.13", NULL);
	return 0;
}

static int close_three(void **state)
{
	(void)state;
	cop_endpoint_close(a.f);
	cop_endpoint_close(b.f);
	cop_endpoint_close(c.f);
	return 0;
}

/* ---- peers that disappear ---- */

static void operations_to_a_peer_that_vanishes_end_and_others_go_on(void **state)
{
	static char msg[COP_ENDPOINT_MSG_MAX];
	size_t len = 8 * COP_MIB;
	char *source = calloc(1, len), *target = calloc(1, len);
	struct mem_call m = reg_mem(&b, target, len);
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f));
	struct ends ends = {0};

	(void)state;
	talks(&a, &b, 2000);
	talks(&a, &c, 2000);
	send_to(&a, peer, msg, sizeof(msg), 500, &ends);
	for (int i = 0; i < 20; i++)
		write_to(&a, peer, source, len, &m, 0, &ends);
	cop_endpoint_close(b.f);
	b.f = NULL;
	talks(&a, &c, 500);
	send_to(&a, peer, msg, sizeof(msg), 100, &ends);
	nap_ms(100);
	drop_peer(&a, peer);
	assert_true(reaches(&ends.all, 620));
	assert_true(atomic_load(&ends.last_error) < 0);
	talks(&a, &c, 500);
	free(source);
	free(target);
}

/* There is no route from a loopback address, which connect reports at once. */
static void a_peer_without_a_route_can_be_dropped(void **state)
{
	static char msg[64];
	cop_endpoint_peer_t peer;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ends ends = {0};
		unsigned accepted = 0;

		peer = peer_of(&a, "ofi+tcp://203.0.113.1:7720");
		for (int k = 0; k < 3; k++)
			accepted += send_to(&a, peer, msg, sizeof(msg), 1, &ends) == 0;
		nap_ms(50);
		drop_peer(&a, peer);
		assert_true(reaches(&ends.all, accepted));
		assert_int_equal(atomic_load(&ends.good), 0);
	}
	talks(&a, &c, 500);
}

static void a_peer_that_restarts_is_reachable(bool same_address, bool drop)
{
	char address[128];

	for (int i = 0; i < 3; i++) {
		recovers(&a, &b);
		snprintf(address, sizeof(address), "%s", cop_endpoint_address(b.f));
		cop_endpoint_close(b.f);
		if (drop)
			drop_peer(&a, peer_of(&a, address));
		open_node(&b, "tcp", "127.0.0.12", same_address ? address : NULL);
	}
	recovers(&a, &b);
	talks(&a, &c, 2000);
}

static void a_peer_that_restarts_elsewhere_is_reachable_there(void **state)
{
	(void)state;
	a_peer_that_restarts_is_reachable(false, true);
}

static void a_peer_that_restarts_at_its_address_is_reachable_after_a_drop(void **state)
{
	(void)state;
	a_peer_that_restarts_is_reachable(true, true);
}

static void a_peer_that_restarts_at_its_address_is_reachable_without_a_drop(void **state)
{
	(void)state;
	a_peer_that_restarts_is_reachable(true, false);
}

/* A stopped process keeps its connections open. It is started before any endpoint. */
static struct {
	pid_t pid;
	int to, from;
	char address[128];
	struct mem_call m;
} still;

static void be_still(int in, int out)
{
	static char memory[64 * COP_KIB];
	static struct node n;
	char go, text[256] = {0};

	if (read(in, &go, 1) != 1)
		_exit(0);
	open_node(&n, "tcp", "127.0.0.16", NULL);
	still.m = reg_mem(&n, memory, sizeof(memory));
	snprintf(text, sizeof(text), "%s %llu %llu", cop_endpoint_address(n.f),
		(unsigned long long)still.m.addr, (unsigned long long)still.m.key);
	if (write(out, text, sizeof(text)) != sizeof(text))
		_exit(1);
	while (read(in, &go, 1) == 1)
		;
	cop_endpoint_close(n.f);
	_exit(0);
}

static int fork_still(void **state)
{
	int to[2], from[2];

	(void)state;
	if (pipe(to) || pipe(from))
		return -1;
	still.pid = fork();
	if (still.pid == 0) {
		close(to[1]);
		close(from[0]);
		be_still(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	still.to = to[1];
	still.from = from[0];
	return 0;
}

static int join_still(void **state)
{
	(void)state;
	kill(still.pid, SIGCONT);
	close(still.to);
	waitpid(still.pid, NULL, 0);
	close(still.from);
	return 0;
}

static void operations_to_a_stopped_peer_end_when_it_is_dropped(void **state)
{
	static char msg[COP_ENDPOINT_MSG_MAX], data[64 * COP_KIB];
	struct ends sends = {0}, writes = {0};
	char text[256];
	unsigned long long addr, key;
	cop_endpoint_peer_t peer;
	int status;

	(void)state;
	assert_int_equal(write(still.to, "g", 1), 1);
	assert_int_equal(read(still.from, text, sizeof(text)), sizeof(text));
	assert_int_equal(sscanf(text, "%127s %llu %llu", still.address, &addr, &key), 3);
	still.m.addr = addr;
	still.m.key = key;
	peer = peer_of(&a, still.address);
	assert_int_equal(write_to(&a, peer, data, sizeof(data), &still.m, 0, &writes), 0);
	assert_true(all_good(&writes, 1));
	/* The thread that takes the signal may have to wait for a processor, and the others run
	 * until it gets one. */
	kill(still.pid, SIGSTOP);
	assert_int_equal(waitpid(still.pid, &status, WUNTRACED), still.pid);
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i < 100; i++)
		assert_int_equal(write_to(&a, peer, data, sizeof(data), &still.m, 0, &writes), 0);
	assert_int_equal(send_to(&a, peer, msg, sizeof(msg), 2000, &sends), 0);
	nap_ms(300);
	assert_true(atomic_load(&writes.all) < 101);
	talks(&a, &b, 2000);
	drop_peer(&a, peer);
	assert_true(reaches(&writes.all, 101));
	assert_true(reaches(&sends.all, 2000));
	assert_int_equal(atomic_load(&writes.last_error), -ECANCELED);
	talks(&a, &b, 2000);
}

/* ---- hostile peers ---- */

static void a_write_to_memory_that_is_not_open_harms_nobody(void **state)
{
	static char source[64 * COP_KIB], target[64 * COP_KIB];
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f));
	struct mem_call m = reg_mem(&b, target, sizeof(target)), wrong = m;
	struct ends ends = {0};

	(void)state;
	memset(source, 1, sizeof(source));
	talks(&a, &b, 2000);
	wrong.key ^= 1;
	write_to(&a, peer, source, sizeof(source), &wrong, 0, &ends);
	assert_true(reaches(&ends.all, 1));
	write_to(&a, peer, source, sizeof(source), &m, 1, &ends);
	assert_true(reaches(&ends.all, 2));
	unreg_mem(&b, &m);
	write_to(&a, peer, source, sizeof(source), &m, 0, &ends);
	assert_true(reaches(&ends.all, 3));
	assert_int_equal(atomic_load(&ends.good), 0);
	for (size_t i = 0; i < sizeof(target); i++)
		assert_int_equal(target[i], 0);
	recovers(&a, &b);
	talks(&a, &c, 2000);
}

static void send_too_long(void *arg)
{
	static char msg[4 * COP_OFI_RX_SIZE];
	struct ofi *o = cop_endpoint_ofi_of(a.f);
	struct ofi_peer *p = cop_endpoint_ofi_peer_get(o, *(cop_endpoint_peer_t *)arg);
	struct ofi_send *s = calloc(1, sizeof(*s));

	s->ctx.kind = OFI_SEND;
	s->peer = p;
	if (fi_send(o->ep, msg, sizeof(msg), NULL, p->addr, &s->ctx)) {
		free(s);
		return;
	}
	p->flying++;
	p->sends_flying++;
	o->flying_sends++;
	cop_list_push_back(&o->flying, &s->ctx.link);
}

static void no_long_message(struct node *n, const void *msg, size_t len)
{
	(void)msg;
	if (len > COP_ENDPOINT_MSG_MAX)
		atomic_fetch_add(&n->bad, 1);
}

static void a_message_longer_than_the_receive_buffers_harms_nobody(void **state)
{
	cop_endpoint_peer_t peer = peer_of(&a, cop_endpoint_address(b.f));

	(void)state;
	look_with(&b, no_long_message);
	for (int i = 0; i < 3 * COP_OFI_RX_COUNT; i++) {
		recovers(&a, &b);
		on_thread(&a, send_too_long, &peer);
	}
	recovers(&a, &b);
	assert_int_equal(atomic_load(&b.bad), 0);
	talks(&a, &c, 2000);
}

/* A connection from a process that does not know the protocol. */
static int unverified_peer(const struct node *to, uint32_t host)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct timeval patience = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
	sin.sin_port = htons((uint16_t)atoi(strrchr(cop_endpoint_address(to->f), ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

static void bytes_that_are_no_protocol_harm_nobody(void **state)
{
	char junk[512];

	(void)state;
	for (int i = 0; i < 20; i++) {
		int fd = unverified_peer(&b, 12);

		fill_pattern(junk, sizeof(junk), (uint64_t)i);
		assert_true(send(fd, junk, sizeof(junk) - (size_t)i, MSG_NOSIGNAL) > 0);
		nap_ms(5);
		close(fd);
		talks(&a, &b, 2000);
	}
}

/* Whether the other side has ended the connection too, by FIN or RST. */
static bool is_hung_up(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static void a_connection_that_hangs_up_is_closed(void **state)
{
	(void)state;
	for (size_t len = 0; len < 40; len += 13) {
		int fd = unverified_peer(&b, 12);

		if (len)
			assert_int_equal(send(fd, "what is this, a place to talk to strangers?",
						 len, MSG_NOSIGNAL),
				len);
		nap_ms(5);
		shutdown(fd, SHUT_WR);
		assert_true(is_hung_up(fd));
		close(fd);
	}
	talks(&a, &b, 2000);
}

/* An emulator may give the first bytes of TCP_INFO only. */
static void skip_unless_silence_is_told(void)
{
	int fd = unverified_peer(&b, 12);
	struct tcp_info info;
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	close(fd);
	if (len >= offsetof(struct tcp_info, tcpi_bytes_received) + 8)
		return;
	print_message("TCP_INFO has %u bytes here, which do not tell of silence\n", len);
	skip();
}

static void many_silent_connections_are_closed(void **state)
{
	int fd[100];

	(void)state;
	skip_unless_silence_is_told();
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		fd[i] = unverified_peer(&b, 12);
	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++) {
		assert_true(is_hung_up(fd[i]));
		close(fd[i]);
	}
	talks(&a, &b, 2000);
}

static void a_silent_connection_is_closed(void **state)
{
	int fd;

	(void)state;
	skip_unless_silence_is_told();
	fd = unverified_peer(&b, 12);
	talks(&a, &b, 2000);
	assert_true(is_hung_up(fd));
	close(fd);
	talks(&a, &b, 2000);
}

/* ---- many, and the end ---- */

#define CROWD 50

static void fifty_endpoints_can_talk_to_one(void **state)
{
	static struct node crowd[CROWD];
	struct ends ends = {0};

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		open_node(&crowd[i], "tcp", "127.0.0.17", NULL);
		send_to(&crowd[i], peer_of(&crowd[i], cop_endpoint_address(a.f)), "hello", 5, 20,
			&ends);
	}
	assert_true(reaches(&a.received, 20 * CROWD));
	for (int i = 0; i < CROWD; i++)
		send_to(&a, peer_of(&a, cop_endpoint_address(crowd[i].f)), "answer", 6, 1, &ends);
	for (int i = 0; i < CROWD; i++)
		assert_true(reaches(&crowd[i].received, 1));
	assert_true(all_good(&ends, 21 * CROWD));
	for (int i = 0; i < CROWD; i++)
		cop_endpoint_close(crowd[i].f);
}

static void closing_a_busy_endpoint_ends_every_operation(void **state)
{
	static char msg[COP_ENDPOINT_MSG_MAX];
	size_t len = 4 * COP_MIB;
	char *source = calloc(1, len), *target = calloc(1, len);
	struct mem_call m = reg_mem(&b, target, len);
	cop_endpoint_peer_t to_b = peer_of(&a, cop_endpoint_address(b.f)),
			    absent = peer_of(&a, "ofi+tcp://127.0.0.15:9");
	struct ends ends = {0};
	struct mem_call left;

	(void)state;
	talks(&a, &b, 2000);
	left = reg_mem(&a, source, len);
	send_to(&a, absent, msg, 100, 100, &ends);
	send_to(&a, to_b, msg, sizeof(msg), 1000, &ends);
	for (int i = 0; i < 50; i++)
		write_to(&a, to_b, source, len, &m, 0, &ends);
	cop_endpoint_close(a.f);
	assert_int_equal(atomic_load(&ends.all), 1150);
	assert_int_equal(atomic_load(&ends.last_error), -ECANCELED);
	assert_non_null(left.mr);
	free(source);
	open_node(&a, "tcp", "127.0.0.11", NULL);
	recovers(&a, &b);
	unreg_mem(&b, &m);
	free(target);
}

static void a_flush_waits_for_what_was_sent(void **state)
{
	static char msg[COP_ENDPOINT_MSG_MAX];
	struct ends ends = {0};

	(void)state;
	send_to(&a, peer_of(&a, cop_endpoint_address(b.f)), msg, sizeof(msg), 300, &ends);
	assert_true(cop_endpoint_flush(a.f, WAIT_MS));
	assert_int_equal(atomic_load(&ends.good), 300);
	send_to(&a, peer_of(&a, "ofi+tcp://127.0.0.15:9"), msg, 1, 1, NULL);
	assert_false(cop_endpoint_flush(a.f, 50));
}

struct last_words {
	struct cop_endpoint *f;
	cop_endpoint_peer_t peer;
	int send, peer_rc, post, ends;
};

static void nothing(struct cop_endpoint_work *w)
{
	(void)w;
}

static void speak(void *arg, int rc)
{
	struct last_words *w = arg;
	cop_endpoint_peer_t peer;

	assert_int_equal(rc, -ECANCELED);
	w->ends++;
	w->send = cop_endpoint_send(w->f, w->peer, "x", 1, NULL, NULL);
	w->peer_rc = cop_endpoint_peer(w->f, "ofi+tcp://127.0.0.15:9", &peer);
	w->post = cop_endpoint_post(w->f, &(struct cop_endpoint_work){.run = nothing});
	cop_endpoint_peer_drop(w->f, w->peer);
}

static void send_words(void *arg)
{
	struct last_words *w = arg;

	for (int i = 0; i < 3; i++)
		cop_endpoint_send(w->f, w->peer, "x", 1, speak, w);
}

static void nothing_starts_once_an_endpoint_closes(void **state)
{
	struct last_words w = {.f = a.f, .peer = peer_of(&a, "ofi+tcp://127.0.0.15:9")};

	(void)state;
	on_thread(&a, send_words, &w);
	cop_endpoint_close(a.f);
	a.f = NULL;
	assert_int_equal(w.ends, 3);
	assert_int_equal(w.send, -ESHUTDOWN);
	assert_int_equal(w.peer_rc, -ESHUTDOWN);
	assert_int_equal(w.post, -ESHUTDOWN);
}

static _Atomic uint64_t ran;

static void count_one(struct cop_endpoint_work *w)
{
	free(w);
	atomic_fetch_add(&ran, 1);
}

static void functions_that_were_accepted_run_before_close_returns(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct cop_endpoint_work *w = calloc(1, sizeof(*w));

		w->run = count_one;
		assert_int_equal(cop_endpoint_post(a.f, w), 0);
	}
	cop_endpoint_close(a.f);
	a.f = NULL;
	assert_int_equal(atomic_load(&ran), 1000);
}

int main(void)
{
#define WITH_THREE(t) cmocka_unit_test_setup_teardown(t, open_three, close_three)
	const struct CMUnitTest tests[] = {
		WITH_THREE(operations_to_a_stopped_peer_end_when_it_is_dropped),
		WITH_THREE(operations_to_a_peer_that_vanishes_end_and_others_go_on),
		WITH_THREE(a_peer_without_a_route_can_be_dropped),
		WITH_THREE(a_peer_that_restarts_elsewhere_is_reachable_there),
		WITH_THREE(a_peer_that_restarts_at_its_address_is_reachable_after_a_drop),
		WITH_THREE(a_peer_that_restarts_at_its_address_is_reachable_without_a_drop),
		WITH_THREE(a_write_to_memory_that_is_not_open_harms_nobody),
		WITH_THREE(a_message_longer_than_the_receive_buffers_harms_nobody),
		WITH_THREE(bytes_that_are_no_protocol_harm_nobody),
		WITH_THREE(a_connection_that_hangs_up_is_closed),
		WITH_THREE(a_silent_connection_is_closed),
		WITH_THREE(many_silent_connections_are_closed),
		WITH_THREE(fifty_endpoints_can_talk_to_one),
		WITH_THREE(closing_a_busy_endpoint_ends_every_operation),
		WITH_THREE(a_flush_waits_for_what_was_sent),
		WITH_THREE(nothing_starts_once_an_endpoint_closes),
		WITH_THREE(functions_that_were_accepted_run_before_close_returns),
	};

	return cmocka_run_group_tests(tests, fork_still, join_still);
}
