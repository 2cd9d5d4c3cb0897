/* SPDX-License-Identifier: BSD-3-Clause */
/* book BOOK HOSTS OUT: filters a site's address book to the hosts of a job and writes the job's
 * own, as a node does when it starts. Prints the seconds. */
#include "bench.h"

#include "job/hosts/hosts.h"

int main(int argc, char **argv)
{
	struct cop_job_hosts hosts = {0};
	struct cop_err err = {0};
	uint64_t start;
	char **address;

	if (argc != 4)
		bench_die("usage: book BOOK HOSTS OUT");
	start = cop_now_ns();
	if (cop_job_hosts_load(argv[2], 7720, &hosts, &err))
		bench_die("%s", err.text);
	address = calloc(hosts.count, sizeof(*address));
	if (!address)
		bench_die("out of memory");
	if (cop_job_book_load(argv[1], &hosts, "cxi0", address, &err) ||
		cop_job_book_write(argv[3], &hosts, address, &err))
		bench_die("%s", err.text);
	printf("%.6f\n", (double)(cop_now_ns() - start) / 1e9);
	return 0;
}
