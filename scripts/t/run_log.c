/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that logs its run, for t1606: run_log WHAT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

static int opened;
static int counted_open(const char *path, int flags, ...)
{
	opened += strstr(path, ".log") != NULL;
	return open(path, flags, 0666);
}

#define open counted_open
#include <copper/run.h>
#undef open
#include <locale.h>
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

static void log_one(int i, int fd)
{
	(void)fd;
	copper_run_metric("train_loss", 1 / (1. + i), i);
}

static void log_ten(int i, int fd)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	static const double values[10] = {1. / 3};

	(void)fd;
	copper_run_metrics(keys, values, 10, i);
}

/* As many bytes as a line of log_one has. */
static void write_one(int i, int fd)
{
	static const char line[] =
		"metric\ttrain_loss\t1234\t1790000000.123456\t0.0012345678901234567\n";

	(void)i;
	if (write(fd, line, sizeof(line) - 1) < 0)
		abort();
}

/* The cost of a metric, of one of ten at once, and of a bare write: the least of ten rounds. */
static void cost(const char *file)
{
	void (*const work[])(int i, int fd) = {log_one, log_ten, write_one};
	double least[] = {1e9, 1e9, 1e9};
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);

	for (int k = 0; k < 30; k++) {
		double began = used_us(), us;

		for (int i = 0; i < 5000; i++)
			work[k % 3](i, fd);
		us = (used_us() - began) / (k % 3 == 1 ? 50000 : 5000);
		least[k % 3] = least[k % 3] < us ? least[k % 3] : us;
	}
	printf("%.2f %.2f %.2f\n", least[0], least[1], least[2]);
}

/* System calls that write, of this process. */
static long writes(void)
{
	FILE *f = fopen("/proc/self/io", "r");
	char line[100];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "syscw: %ld", &n);
	if (f)
		fclose(f);
	return n;
}

/* Prints how many writes 1000 metrics are, and how many 1000 times ten. */
static void count_writes(void)
{
	long before, one, ten;

	log_one(0, 0);
	before = writes();
	for (int i = 0; i < 1000; i++)
		log_one(i, 0);
	one = writes() - before;
	before = writes();
	for (int i = 0; i < 1000; i++)
		log_ten(i, 0);
	ten = writes() - before;
	printf("%ld %ld\n", one, ten);
}

/* In a directory that may not be written. Prints how often a file was opened. */
static void denied(void)
{
	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		abort();
	for (int i = 0; i < 1000; i++)
		log_one(i, 0);
	printf("%d\n", opened);
}

/* One process after the other, 20 at a time. */
static void ranks(int n)
{
	for (int rank = 0; rank < n; rank++) {
		if (rank >= 20)
			wait(NULL);
		if (fork() == 0) {
			copper_run_metric("rank", 1, rank);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		continue;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "beginnings")) {
		beginnings();
	} else if (!strcmp(what, "cost")) {
		cost(argv[2]);
	} else if (!strcmp(what, "writes")) {
		count_writes();
	} else if (!strcmp(what, "denied")) {
		denied();
	} else if (!strcmp(what, "ranks")) {
		ranks(atoi(argv[2]));
	} else if (!strcmp(what, "numbers")) { /* in the locale of the environment */
		setlocale(LC_ALL, "");
		printf("%.1f\n", 2.5);
		copper_run_metric("loss", 2.5, 0);
		copper_run_metric("loss", 2.5e-20, 1);
		copper_run_metric("loss", 1.5e300, 2);
		copper_run_metric("loss", 1e300 * 1e300, 3);
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
