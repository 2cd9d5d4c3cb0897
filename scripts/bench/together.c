/* SPDX-License-Identifier: BSD-3-Clause */
/* together N COMMAND ARG...: runs N copies of a command at once, with `{}` in an argument replaced
 * by the copy's number and their standard output discarded, and prints one line:
 *
 *     wall CPU waiting
 *
 * in seconds: until the last one ended; of all of them together; and the longest time that one of
 * them waited for something other than a processor: its wall time less its CPU less the time it
 * spent in a run queue (/proc/PID/schedstat). The last is what a machine with more cores would see.
 */
#include "bench.h"

#include <fcntl.h>
#include <sys/resource.h>

#define COPIES_MAX 256

struct copy {
	pid_t pid;
	double wall, cpu, queued;
	int failed;
};

static char *filled(const char *arg, unsigned copy)
{
	const char *mark = strstr(arg, "{}");
	char *out;

	if (asprintf(&out, mark ? "%.*s%u%s" : "%.*s", mark ? (int)(mark - arg) : (int)strlen(arg),
		    arg, copy, mark ? mark + 2 : "") < 0)
		bench_die("no memory");
	return out;
}

static void __attribute__((noreturn)) run_copy(char **argv, unsigned copy, int gate)
{
	int null = open("/dev/null", O_RDWR);
	char go;

	for (unsigned i = 0; argv[i]; i++)
		argv[i] = filled(argv[i], copy);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/* End of file is the signal for all at once. */
	while (read(gate, &go, 1) < 0 && errno == EINTR)
		;
	execvp(argv[0], argv);
	bench_die("%s: %s", argv[0], strerror(errno));
}

/* Seconds that the main thread spent in a run queue; the process has ended but is not reaped
 * yet. */
static double queued(pid_t pid)
{
	unsigned long long ran, waited = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	fclose(f);
	return (double)waited / 1e9;
}

static void reap(struct copy *copies, unsigned n, double start)
{
	struct rusage ru;
	siginfo_t info;
	int status;

	for (unsigned left = n; left; left--) {
		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0)
			bench_die("waitid: %s", strerror(errno));
		for (unsigned i = 0; i < n; i++) {
			struct copy *c = &copies[i];

			if (c->pid != info.si_pid)
				continue;
			c->wall = bench_wall() - start;
			c->queued = queued(c->pid);
			wait4(c->pid, &status, 0, &ru);
			c->cpu = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
				 (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
			c->failed = status != 0;
		}
	}
}

int main(int argc, char **argv)
{
	static struct copy copies[COPIES_MAX];
	unsigned n = argc > 2 ? (unsigned)bench_size(argv[1]) : 0;
	double wall = 0, cpu = 0, waiting = 0, start;
	int gate[2], failed = 0;

	if (n == 0 || n > COPIES_MAX)
		bench_die("usage: together N COMMAND ARG...");
	if (pipe2(gate, O_CLOEXEC))
		bench_die("pipe: %s", strerror(errno));
	for (unsigned i = 0; i < n; i++) {
		copies[i].pid = fork();
		if (copies[i].pid < 0)
			bench_die("fork: %s", strerror(errno));
		if (copies[i].pid == 0) {
			close(gate[1]);
			run_copy(argv + 2, i, gate[0]);
		}
	}
	start = bench_wall();
	close(gate[1]);
	reap(copies, n, start);
	for (unsigned i = 0; i < n; i++) {
		double waited = copies[i].wall - copies[i].cpu - copies[i].queued;

		wall = copies[i].wall > wall ? copies[i].wall : wall;
		waiting = waited > waiting ? waited : waiting;
		cpu += copies[i].cpu;
		failed |= copies[i].failed;
	}
	printf("%.6f %.6f %.6f\n", wall, cpu, waiting);
	return failed;
}
