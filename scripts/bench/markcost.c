/* SPDX-License-Identifier: BSD-3-Clause */
/* markcost EVENTS REPETITIONS: marks that many events as often, and prints the CPU time of one
 * event in seconds, the least of the repetitions, with what it takes to write them. */
#include "trace/mark/include/copper/mark.h"

#include "bench.h"

static double once(unsigned long events)
{
	double begin = bench_now(CLOCK_PROCESS_CPUTIME_ID);

	for (unsigned long i = 0; i < events / 2; i++) {
		COPPER_CRITICAL_PATH();
		__asm__ volatile("" ::: "memory");
	}
	return (bench_now(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)events;
}

int main(int argc, char **argv)
{
	double least = 1;

	if (argc != 3)
		bench_die("usage: markcost EVENTS REPETITIONS");
	for (unsigned long i = 0; i < bench_size(argv[2]); i++) {
		double one = once(bench_size(argv[1]));

		least = one < least ? one : least;
	}
	printf("%.3f\n", least * 1e9);
	return 0;
}
