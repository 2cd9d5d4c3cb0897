/* SPDX-License-Identifier: BSD-3-Clause */
/* What an ask learns about the process it was sent to. */
#include "job/rendezvous/rdv_testing.h"

/* The kernel accepts connections on behalf of a stopped process, and refuses them if there is no
 * process. */
static void a_port_that_is_silent_is_a_sign_of_life_and_one_that_refuses_is_none(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a"),
			      *b = start("127.0.0.42", 0, &ours, "b");
	struct cop_job_host at = {.name = (char *)"127.0.0.45", .port = free_port("127.0.0.45")},
			    there = host_of(b, "127.0.0.42");
	int fd = plain_socket("127.0.0.45", at.port, true);
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &there, 5000, found, &x), 0);
	await(&x, 1);
	assert_true(x.lives);
	assert_int_equal(cop_rendezvous_ask(a, &at, 300, found, &x), 0);
	await(&x, 2);
	assert_true(x.lives);
	/* A second port that refuses changes nothing. */
	at.second_port = free_port("127.0.0.45");
	assert_int_equal(cop_rendezvous_ask(a, &at, 1500, found, &x), 0);
	await(&x, 3);
	assert_true(x.lives);
	close(fd);
	assert_int_equal(cop_rendezvous_ask(a, &at, 300, found, &x), 0);
	await(&x, 4);
	assert_false(x.lives);
	assert_int_equal(x.addresses, 1);
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

/* On a busy machine an ask may time out before the thread gets to it. */
static void an_ask_whose_time_is_over_is_tried_all_the_same(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a"),
			      *b = start("127.0.0.42", 0, &ours, "b");
	struct cop_job_host there = host_of(b, "127.0.0.42");
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &there, 0, found, &x), 0);
	await(&x, 1);
	assert_true(x.lives);
	cop_rendezvous_stop(a);
	cop_rendezvous_stop(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_port_that_is_silent_is_a_sign_of_life_and_one_that_refuses_is_none),
		cmocka_unit_test(an_ask_whose_time_is_over_is_tried_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
