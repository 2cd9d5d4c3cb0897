/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks on this machine's loopback network that resolve each other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/reach/reach_priv.h"

#define NODES 3
#define RANKS (NODES + 1) /* the last is a client */
#define PEER_TIMEOUT_MS 600
#define CLIENT NODES

struct node {
	uint32_t rank;
	struct cop_reach_conf conf;
	struct cop_wire_secret secret;
	struct cop_reach *reach;
	struct cop_rpc *rpc;
	struct cop_stats stats;
	_Atomic unsigned served, found, not_found, mismatches, rejections;
	_Atomic uint32_t mismatch_rank;
	char why[600]; /* the last one that was reported */
};

struct world {
	struct cop_job_host host[NODES];
	struct cop_job_hosts hosts;
	struct node node[RANKS];
};

/* ---- the world ---- */

static int bound_socket(const char *address, uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	inet_pton(AF_INET, address, &at.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static uint16_t free_port(const char *address)
{
	uint16_t port = 0;

	close(bound_socket(address, &port));
	return port;
}

/* Opens a port, as another program might. */
static int take_port(const char *address, uint16_t port)
{
	int fd = bound_socket(address, &port);

	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	struct node *n = ctx;

	atomic_fetch_add(&n->served, 1);
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = 0});
}

static void mismatch(void *ctx, uint32_t rank)
{
	struct node *n = ctx;

	atomic_store(&n->mismatch_rank, rank);
	atomic_fetch_add(&n->mismatches, 1);
}

static void no_way(void *ctx, uint32_t rank, const char *why)
{
	struct node *n = ctx;

	assert_int_equal(rank, 1);
	snprintf(n->why, sizeof(n->why), "%s", why);
	atomic_fetch_add(&n->rejections, 1);
}

static void looked(void *ctx, uint32_t rank, const char *address, const char *why)
{
	struct node *n = ctx;

	(void)rank;
	if (!address)
		snprintf(n->why, sizeof(n->why), "%s", why ? why : "");
	atomic_fetch_add(address ? &n->found : &n->not_found, 1);
}

static int new_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->hosts = (struct cop_job_hosts){.host = w->host, .count = NODES};
	for (uint32_t r = 0; r < NODES; r++) {
		assert_true(asprintf(&w->host[r].name, "127.0.7.%u", r + 1) > 0);
		w->host[r].port = free_port(w->host[r].name);
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		struct node *n = &w->node[r];

		n->rank = r;
		n->secret = (struct cop_wire_secret){{1, 2, 3}};
		n->conf = (struct cop_reach_conf){.rank = r,
			.nodes = NODES,
			.hosts = &w->hosts,
			.net_type = "tcp",
			.job_dir = "",
			.secret = &n->secret,
			.config_hash = 77,
			.peer_timeout_ms = PEER_TIMEOUT_MS,
			.stats = &n->stats,
			.rpc = &n->rpc,
			.ctx = n,
			.serve = serve,
			.mismatch = mismatch,
			.no_way = no_way,
			.looked = looked};
	}
	*state = w;
	return 0;
}

static void down(struct node *n)
{
	if (!n->reach)
		return;
	cop_reach_close_door(n->reach);
	cop_reach_cancel(n->reach);
	if (n->rpc)
		cop_rpc_close(n->rpc);
	cop_reach_free(n->reach);
	n->reach = NULL;
	n->rpc = NULL;
}

static int free_world(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < RANKS; r++)
		down(&w->node[r]);
	for (uint32_t r = 0; r < NODES; r++)
		free(w->host[r].name);
	free(w);
	return 0;
}

static struct node *open_rank(struct world *w, uint32_t rank, const char *book)
{
	struct node *n = &w->node[rank];
	struct cop_err err = {0};

	n->reach = cop_reach_new(&n->conf);
	assert_non_null(n->reach);
	if (book)
		assert_int_equal(cop_reach_use_book(n->reach, book, NULL, &err), 0);
	if (cop_reach_open(n->reach, rank < NODES ? w->host[rank].name : "127.0.7.100", &err))
		fail_msg("%s", err.text);
	return n;
}

static struct node *up(struct world *w, uint32_t rank)
{
	struct node *n = open_rank(w, rank, NULL);
	struct cop_err err = {0};
	int rc = rank < NODES ? cop_reach_listen(n->reach, &err)
			      : cop_reach_listen_as_client(n->reach, "127.0.7.100", &err);

	if (rc)
		fail_msg("%s", err.text);
	return n;
}

struct call {
	sem_t done;
	int status;
	bool answered;
};

static void done(void *arg, const struct cop_rpc_result *r)
{
	struct call *c = arg;

	c->status = r->status;
	c->answered = r->answered;
	sem_post(&c->done);
}

static void begin_call(struct node *from, uint32_t to, struct call *c)
{
	*c = (struct call){.status = 0};
	sem_init(&c->done, 0, 0);
	cop_rpc_call(
		from->rpc, &(struct cop_rpc_call){.rank = to, .op = 9, .done = done, .arg = c});
}

static int end_call(struct call *c)
{
	while (sem_wait(&c->done) && errno == EINTR)
		;
	sem_destroy(&c->done);
	return c->status;
}

static int ask_for(struct node *from, uint32_t to)
{
	struct call c;

	begin_call(from, to, &c);
	return end_call(&c);
}

/* ---- by the rendezvous ---- */

static void ranks_find_each_other_by_asking_their_machines(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES; r++)
		up(w, r);
	for (uint32_t r = 0; r < NODES; r++)
		for (uint32_t to = 0; to < NODES; to++)
			if (to != r)
				assert_int_equal(ask_for(&w->node[r], to), 0);
	for (uint32_t r = 0; r < NODES; r++) {
		assert_int_equal(atomic_load(&w->node[r].served), NODES - 1);
		assert_true(atomic_load(&w->node[r].found) > 0);
		assert_int_equal(atomic_load(&w->node[r].mismatches), 0);
		assert_null(cop_reach_in_book(w->node[r].reach, r));
		assert_null(cop_reach_in_book(w->node[r].reach, 0));
	}
}

static void a_rank_of_the_other_version_of_ip_is_named_at_once(void **state)
{
	struct world *w = *state;
	struct cop_ip six;

	cop_ip_parse("::1", &six);
	if (!cop_ip_is_here(&six))
		skip();
	free(w->host[1].name);
	w->host[1].name = strdup("::1");
	up(w, 0);
	up(w, 1);
	assert_int_equal(ask_for(&w->node[0], 1), -EHOSTDOWN);
	assert_int_equal(atomic_load(&w->node[0].rejections), 1);
	assert_non_null(strstr(w->node[0].why, "ofi+tcp://[::1]:"));
	assert_non_null(strstr(w->node[0].why, "different versions of IP"));
}

static void who_is_not_there_is_not_found_and_a_sentence_says_why(void **state)
{
	struct world *w = *state;
	struct node *n = up(w, 1);

	assert_int_equal(ask_for(n, 0), -EHOSTDOWN);
	assert_true(atomic_load(&n->not_found) > 0);
	assert_int_equal(atomic_load(&n->found), 0);
	assert_non_null(strstr(n->why, "127.0.7.1"));
	/* Rank 0 starts, and is asked again after rpc's pause. */
	up(w, 0);
	for (int i = 0; i < 100 && ask_for(n, 0); i++)
		usleep(50000);
	assert_int_equal(ask_for(n, 0), 0);
}

/* Once the barrier has ended, nobody waits for ranks that are not there yet: a node whose barrier
 * lasts asked before, and waits for longer. */
static void after_the_barrier_questions_end_in_half_the_time(void **state)
{
	struct world *w = *state;
	struct node *n, *lasts;
	struct call c, longer;
	uint64_t from;

	w->node[1].conf.peer_timeout_ms = w->node[2].conf.peer_timeout_ms = 6000;
	n = up(w, 1);
	lasts = up(w, 2);
	begin_call(lasts, 0, &longer);
	from = cop_now_ms();
	begin_call(n, 0, &c);
	usleep(100000);
	cop_reach_barrier_ended(n->reach, true);
	assert_true(atomic_load(&n->reach->ready));
	assert_int_equal(end_call(&c), -EHOSTDOWN);
	assert_int_equal(sem_trywait(&longer.done), -1);
	assert_true(cop_now_ms() - from >= 2500);
	assert_int_equal(end_call(&longer), -EHOSTDOWN);
}

static void another_secret_is_refused(void **state)
{
	struct world *w = *state;

	up(w, 0);
	w->node[1].secret = (struct cop_wire_secret){{9}};
	up(w, 1);
	assert_true(ask_for(&w->node[1], 0) < 0);
	assert_int_equal(atomic_load(&w->node[0].served), 0);
	assert_true(cop_stats_get(&w->node[0].stats, COP_FABRIC_REJECTED) > 0);
}

static void another_config_hash_is_reported_with_the_rank(void **state)
{
	struct world *w = *state;

	up(w, 0);
	w->node[1].conf.config_hash = 78;
	up(w, 1);
	assert_int_equal(ask_for(&w->node[1], 0), -EPROTO);
	/* The answering side is notified after it has answered. */
	for (int i = 0; i < 1000 && !atomic_load(&w->node[0].mismatches); i++)
		usleep(10000);
	assert_true(atomic_load(&w->node[0].mismatches) > 0);
	assert_int_equal(atomic_load(&w->node[0].mismatch_rank), 1);
	assert_int_equal(atomic_load(&w->node[0].served), 0);
}

/* ---- clients ---- */

static void a_client_is_served_and_has_no_place(void **state)
{
	struct world *w = *state;

	up(w, 0);
	up(w, CLIENT);
	assert_int_equal(ask_for(&w->node[CLIENT], 0), 0);
	assert_int_equal(atomic_load(&w->node[0].served), 1);
	assert_true(atomic_load(&w->node[CLIENT].found) > 0);
	assert_int_equal(ask_for(&w->node[0], CLIENT + 1), -EHOSTDOWN);
}

static void a_client_that_knows_an_older_tree_is_not_a_mismatch(void **state)
{
	struct world *w = *state;

	up(w, 0);
	w->node[CLIENT].conf.config_hash = 78;
	w->node[CLIENT].conf.mismatch = NULL;
	up(w, CLIENT);
	assert_int_equal(ask_for(&w->node[CLIENT], 0), -EPROTO);
	assert_int_equal(atomic_load(&w->node[0].mismatches), 0);
}

/* ---- ports ---- */

static int listen_again(struct world *w, uint32_t rank, struct cop_err *err, bool *duplicate)
{
	struct node *n = open_rank(w, rank, NULL);
	int rc = cop_reach_listen(n->reach, err);

	*duplicate = cop_reach_is_duplicate(n->reach);
	return rc;
}

static void the_same_rank_twice_is_a_duplicate(void **state)
{
	struct world *w = *state;
	struct cop_err err = {0};
	bool duplicate;
	char self[40];

	up(w, 0);
	w->node[1].conf.rank = 0;
	assert_int_equal(listen_again(w, 1, &err, &duplicate), -EADDRINUSE);
	assert_true(duplicate);
	assert_false(cop_reach_is_duplicate(w->node[0].reach));
	snprintf(self, sizeof(self), "as process %d ", (int)getpid());
	assert_non_null(strstr(err.text, "127.0.7.1 (rank 0) of this tree runs already, "));
	assert_non_null(strstr(err.text, self));
	assert_non_null(strstr(err.text, "'copper stop MOUNTPOINT'"));
}

static void a_port_of_another_program_is_named(void **state)
{
	struct world *w = *state;
	struct cop_err err = {0};
	int fd = take_port(w->host[0].name, w->host[0].port);
	bool duplicate;

	assert_int_equal(listen_again(w, 0, &err, &duplicate), -EADDRINUSE);
	assert_false(duplicate);
	assert_non_null(strstr(err.text, "it is taken by process "));
	close(fd);
}

static void if_the_user_chose_no_port_the_second_one_serves(void **state)
{
	struct world *w = *state;
	struct cop_err err = {0};
	int fd = take_port(w->host[0].name, w->host[0].port), second;
	bool duplicate;

	w->host[0].second_port = free_port(w->host[0].name);
	assert_int_equal(listen_again(w, 0, &err, &duplicate), 0);
	up(w, 1);
	assert_int_equal(ask_for(&w->node[1], 0), 0);
	down(&w->node[0]);
	second = take_port(w->host[0].name, w->host[0].second_port);
	assert_int_equal(listen_again(w, 0, &err, &duplicate), -EADDRINUSE);
	assert_false(duplicate);
	close(second);
	close(fd);
}

/* ---- by the book ---- */

static void write_book(struct world *w, char path[40], uint32_t count)
{
	struct cop_buf text = {0};
	int fd;

	for (uint32_t r = 0; r < count; r++)
		cop_buf_printf(&text, "%s ofi+tcp://%s:%u\n", w->host[r].name, w->host[r].name,
			free_port(w->host[r].name));
	strcpy(path, "/tmp/cop-reach-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(cop_write_full(fd, text.data, text.len), text.len);
	close(fd);
	cop_buf_free(&text);
}

static void with_a_book_no_machine_is_asked(void **state)
{
	struct world *w = *state;
	char path[40];

	write_book(w, path, NODES);
	/* It opens without a rendezvous, which others need only when the rank is silent. */
	open_rank(w, 0, path);
	open_rank(w, 1, path);
	assert_non_null(cop_reach_in_book(w->node[1].reach, 1));
	assert_string_equal(cop_reach_in_book(w->node[1].reach, 0),
		cop_endpoint_address(cop_rpc_fabric(w->node[0].rpc)));
	assert_int_equal(ask_for(&w->node[1], 0), 0);
	assert_int_equal(atomic_load(&w->node[1].found), 0);
	unlink(path);
}

static void a_book_without_a_host_is_refused_with_its_name(void **state)
{
	struct world *w = *state;
	struct cop_reach *r = cop_reach_new(&w->node[0].conf);
	struct cop_err err = {0};
	char path[40];

	write_book(w, path, NODES - 1);
	assert_true(cop_reach_use_book(r, path, NULL, &err) < 0);
	assert_non_null(strstr(err.text, "127.0.7.3"));
	cop_reach_free(r);
	unlink(path);
}

/* With a book, a rank starts even if its port is taken. */
static void with_a_book_a_port_in_use_does_not_matter(void **state)
{
	struct world *w = *state;
	struct cop_err err = {0};
	char path[40];
	int fd = take_port(w->host[0].name, w->host[0].port);

	write_book(w, path, NODES);
	open_rank(w, 0, path);
	assert_int_equal(cop_reach_listen(w->node[0].reach, &err), 0);
	close(fd);
	unlink(path);
}

/* ---- leaving ---- */

static void a_rank_that_leaves_cancels_its_calls(void **state)
{
	struct world *w = *state;
	struct node *n;
	struct call c;

	w->node[1].conf.peer_timeout_ms = 60000;
	n = up(w, 1);
	begin_call(n, 0, &c);
	usleep(100000);
	cop_reach_close_door(n->reach);
	cop_reach_cancel(n->reach);
	assert_int_equal(end_call(&c), -ECANCELED);
	assert_int_equal(ask_for(n, 2), -ECANCELED);
}

static void behind_a_closed_door_no_machine_is_asked(void **state)
{
	struct world *w = *state;

	up(w, 0);
	up(w, 1);
	cop_reach_close_door(w->node[1].reach);
	assert_int_equal(ask_for(&w->node[1], 0), -EHOSTDOWN);
	assert_int_equal(atomic_load(&w->node[1].found) + atomic_load(&w->node[1].not_found), 0);
	/* Other nodes enter as before. */
	assert_int_equal(ask_for(&w->node[0], 1), 0);
}

/* ---- the config hash ---- */

static void the_config_hash_changes_with_each_option(void **state)
{
	struct world *w = *state;
	struct cop_topo t = {NODES, 2, 1};
	uint64_t first = cop_reach_config_hash(&t, 4096, "/src", &w->hosts), hash[7];
	struct cop_job_host swapped = w->host[0];

	assert_int_equal(cop_reach_config_hash(&t, 4096, "/src", &w->hosts), first);
	hash[0] = cop_reach_config_hash(&t, 8192, "/src", &w->hosts);
	hash[1] = cop_reach_config_hash(&t, 4096, "/other", &w->hosts);
	hash[2] = cop_reach_config_hash(&(struct cop_topo){NODES, 3, 1}, 4096, "/src", &w->hosts);
	hash[3] = cop_reach_config_hash(&(struct cop_topo){NODES, 2, 2}, 4096, "/src", &w->hosts);
	w->host[0] = w->host[1];
	w->host[1] = swapped;
	hash[4] = cop_reach_config_hash(&t, 4096, "/src", &w->hosts);
	w->host[1].port++;
	hash[5] = cop_reach_config_hash(&t, 4096, "/src", &w->hosts);
	w->hosts.count--;
	hash[6] = cop_reach_config_hash(&t, 4096, "/src", &w->hosts);
	for (size_t i = 0; i < COP_ARRAY_SIZE(hash); i++) {
		assert_int_not_equal(hash[i], first);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(hash[i], hash[k]);
	}
}

int main(void)
{
#define IN_A_WORLD(f) cmocka_unit_test_setup_teardown(f, new_world, free_world)
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(ranks_find_each_other_by_asking_their_machines),
		IN_A_WORLD(a_rank_of_the_other_version_of_ip_is_named_at_once),
		IN_A_WORLD(who_is_not_there_is_not_found_and_a_sentence_says_why),
		IN_A_WORLD(after_the_barrier_questions_end_in_half_the_time),
		IN_A_WORLD(another_secret_is_refused),
		IN_A_WORLD(another_config_hash_is_reported_with_the_rank),
		IN_A_WORLD(a_client_is_served_and_has_no_place),
		IN_A_WORLD(a_client_that_knows_an_older_tree_is_not_a_mismatch),
		IN_A_WORLD(the_same_rank_twice_is_a_duplicate),
		IN_A_WORLD(a_port_of_another_program_is_named),
		IN_A_WORLD(if_the_user_chose_no_port_the_second_one_serves),
		IN_A_WORLD(with_a_book_no_machine_is_asked),
		IN_A_WORLD(a_book_without_a_host_is_refused_with_its_name),
		IN_A_WORLD(with_a_book_a_port_in_use_does_not_matter),
		IN_A_WORLD(a_rank_that_leaves_cancels_its_calls),
		IN_A_WORLD(behind_a_closed_door_no_machine_is_asked),
		IN_A_WORLD(the_config_hash_changes_with_each_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
