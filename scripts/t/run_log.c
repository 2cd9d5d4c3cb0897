/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that logs its run, for t1606: run_log WHAT. */
#define _GNU_SOURCE
#include <copper/run.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

static void *log_many(void *arg)
{
	for (int i = 0; i < 1000; i++)
		copper_run_metric((const char *)arg, i, i);
	return NULL;
}

static void threads(void)
{
	static const char *const keys[] = {"t0", "t1", "t2", "t3"};
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, log_many, (void *)(uintptr_t)keys[i]);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			copper_run_metric("child", i, i);
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	while (wait(NULL) > 0)
		continue;
}

/* The process of the first metric forks while another thread begins it. */
static void begin(int i)
{
	const struct timespec pause = {0, i * 200 % 40000};
	pthread_t thread;

	alarm(30);
	pthread_create(&thread, NULL, log_many, (void *)(uintptr_t) "begin");
	nanosleep(&pause, NULL);
	if (fork() == 0) {
		alarm(10);
		copper_run_metric("child", 1, i);
		_exit(0);
	}
	int status = 1;

	wait(&status);
	_exit(status != 0);
}

/* Prints how many of 100 such children ended. */
static void beginnings(void)
{
	int ended = 0, status;

	for (int i = 0; i < 100; i++) {
		if (fork() == 0)
			begin(i);
		if (wait(&status) > 0 && status == 0)
			ended++;
	}
	printf("%d\n", ended);
}

static double used_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void cost(void)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	double values[10] = {1. / 3}, one = 1e9, ten = 1e9;

	for (int k = 0; k < 10; k++) {
		double began = used_us();

		for (int i = 0; i < 5000; i++)
			copper_run_metric("train_loss", 1 / (1. + i), i);
		one = one < (used_us() - began) / 5000 ? one : (used_us() - began) / 5000;
		began = used_us();
		for (int i = 0; i < 500; i++)
			copper_run_metrics(keys, values, 10, i);
		ten = ten < (used_us() - began) / 5000 ? ten : (used_us() - began) / 5000;
	}
	printf("%.2f %.2f\n", one, ten);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "beginnings")) {
		beginnings();
	} else if (!strcmp(what, "cost")) {
		cost();
	} else if (!strcmp(what, "closed")) { /* all descriptors, and another file in their place */
		copper_run_metric("x", 1, 0);
		close_range(3, ~0U, 0);
		usleep(2000);
		while (open("/dev/null", O_WRONLY) < 250)
			continue;
		copper_run_metric("x", 2, 1);
	} else {
		copper_run_param("lr", "0.1");
		copper_run_tag("a\tb", "c\\\nd");
		copper_run_metric("loss", 0.1, 3);
		copper_run_status("FAILED", "as asked");
	}
	return 0;
}
