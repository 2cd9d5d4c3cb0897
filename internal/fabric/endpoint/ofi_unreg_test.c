/* SPDX-License-Identifier: BSD-3-Clause */
/* Another process keeps writing into this one's memory while that memory is unregistered. */
#include "fabric/endpoint/ofi_testing.h"

#include <sys/wait.h>
#include <unistd.h>

#define LEN (8 * COP_MIB)

/* The writer: the first message gives it an address, a place and a key, and it writes for ever. */
struct order {
	char address[128];
	uint64_t addr, key;
};

static struct {
	pid_t pid;
	int to, from;
	char address[128];
} writer;

static struct node n;
static struct order order;
static char *source;
static cop_endpoint_peer_t target_peer;

static void write_again(void *arg, int rc);

static void start_writing(struct cop_endpoint_work *w)
{
	(void)w;
	if (cop_endpoint_peer(n.f, order.address, &target_peer) ||
		cop_endpoint_write(
			n.f, target_peer, source, LEN, order.addr, order.key, write_again, NULL))
		_exit(1);
}

static void write_again(void *arg, int rc)
{
	static struct cop_endpoint_work again = {.run = start_writing};

	(void)arg;
	if (rc == -ECANCELED)
		return;
	if (cop_endpoint_post(n.f, &again))
		return;
}

static void handle_order(struct node *self, const void *msg, size_t len)
{
	(void)self;
	if (len != sizeof(order) || order.key)
		return;
	memcpy(&order, msg, sizeof(order));
	start_writing(NULL);
}

static void be_writer(int in, int out)
{
	char byte;

	source = malloc(LEN);
	memset(source, 0x5a, LEN);
	open_node(&n, "tcp", "127.0.0.16", NULL);
	look_with(&n, handle_order);
	if (write(out, cop_endpoint_address(n.f), 128) != 128)
		_exit(1);
	while (read(in, &byte, 1) == 1)
		;
	cop_endpoint_close(n.f);
	_exit(0);
}

static int fork_writer(void **state)
{
	int to[2], from[2];

	(void)state;
	if (pipe(to) || pipe(from))
		return -1;
	writer.pid = fork();
	if (writer.pid == 0) {
		close(to[1]);
		close(from[0]);
		be_writer(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	writer.to = to[1];
	writer.from = from[0];
	return read(writer.from, writer.address, 128) == 128 ? 0 : -1;
}

static int join_writer(void **state)
{
	(void)state;
	close(writer.to);
	waitpid(writer.pid, NULL, 0);
	close(writer.from);
	return 0;
}

struct closing {
	cop_endpoint_peer_t peer;
	struct mem_call *m;
};

/* The rule of cop_endpoint_unreg: first the peer, then the memory, in one step. */
static void close_memory(void *arg)
{
	struct closing *c = arg;

	cop_endpoint_peer_drop(n.f, c->peer);
	cop_endpoint_unreg(c->m->mr);
	memset(c->m->buf, 0, LEN);
}

struct peek {
	const char *target;
	bool written, clean;
};

/* The bytes arrive on the progress thread. */
static void check_target(void *arg)
{
	struct peek *p = arg;

	p->written = p->target[LEN - 1] == 0x5a;
	p->clean = p->target[0] == 0 && memcmp(p->target, p->target + 1, LEN - 1) == 0;
}

static void memory_stays_as_it_is_once_peer_and_key_are_gone(void **state)
{
	char *target = calloc(1, LEN);
	struct peek peek = {.target = target};
	struct mem_call m;
	struct order o = {0};
	struct closing c = {.m = &m};

	(void)state;
	open_node(&n, "tcp", "127.0.0.11", NULL);
	m = reg_mem(&n, target, LEN);
	snprintf(o.address, sizeof(o.address), "%s", cop_endpoint_address(n.f));
	o.addr = m.addr;
	o.key = m.key;
	c.peer = peer_of(&n, writer.address);
	assert_int_equal(send_to(&n, c.peer, &o, sizeof(o), 1, NULL), 0);
	for (int i = 0; i < 1000 && !peek.written; i++) {
		nap_ms(10);
		on_thread(&n, check_target, &peek);
	}
	assert_true(peek.written);
	on_thread(&n, close_memory, &c);
	nap_ms(300);
	on_thread(&n, check_target, &peek);
	assert_true(peek.clean);
	cop_endpoint_close(n.f);
	free(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			memory_stays_as_it_is_once_peer_and_key_are_gone, fork_writer, join_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
