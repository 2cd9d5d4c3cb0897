/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests with a name service that does not answer. */
#include "job/rendezvous/rdv_testing.h"

#include <dirent.h>
#include <netdb.h>
#include <semaphore.h>

static sem_t asked, answered;

/* Replaces the C library's function, which this program does not otherwise need. */
int getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	(void)name, (void)service, (void)hints, (void)list;
	sem_post(&asked);
	sem_wait(&answered);
	return EAI_AGAIN;
}

/* Whether the thread that waits for the name service exists. */
static bool resolver_runs(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	bool runs = false;

	while ((e = readdir(d)) && !runs) {
		char path[300], name[16] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f))
			runs = !strcmp(name, "cop-resolve\n");
		if (f)
			fclose(f);
	}
	closedir(d);
	return runs;
}

static void a_name_service_that_does_not_answer_delays_the_end_by_a_second(void **state)
{
	struct cop_rendezvous *a = start("127.0.0.41", 0, &ours, "a");
	struct cop_job_host nowhere = {.name = (char *)"nowhere.example", .port = 7720};
	struct result x;

	(void)state;
	result_init(&x);
	assert_int_equal(cop_rendezvous_ask(a, &nowhere, 60000, found, &x), 0);
	sem_wait(&asked);
	alarm(60); /* ends the test if stop waits for the answer */
	cop_rendezvous_stop(a);
	alarm(0);
	assert_int_equal(x.calls, 1);
	assert_int_equal(x.addresses, 0);
	assert_true(resolver_runs());
	/* The port is free at once. */
	cop_rendezvous_stop(start("127.0.0.41", 0, &ours, "b"));
	sem_post(&answered);
	sem_post(&answered);
	while (resolver_runs())
		nap(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_service_that_does_not_answer_delays_the_end_by_a_second),
	};

	sem_init(&asked, 0, 0);
	sem_init(&answered, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
