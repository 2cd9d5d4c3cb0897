/* SPDX-License-Identifier: BSD-3-Clause */
/* cputime PID...: prints the CPU time of each process in seconds, to the nanosecond, including
 * threads that have ended. */
#include "bench.h"

int main(int argc, char **argv)
{
	clockid_t clock;

	for (int i = 1; i < argc; i++) {
		int rc = clock_getcpuclockid((pid_t)bench_size(argv[i]), &clock);

		if (rc)
			bench_die("process %s: %s", argv[i], strerror(rc));
		printf("%.9f\n", bench_now(clock));
	}
	return argc < 2;
}
