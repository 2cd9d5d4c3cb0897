/* SPDX-License-Identifier: BSD-3-Clause */
/* Wraps the header for programs. All commands of a user on one host append to one file per run. */
#define COPPER_RUN_PRIVATE
#include "include/copper/run.h"

#include "writers/runs/runs.h"

void cop_program_begin(void)
{
	copper_run_i_1.shared = 1;
}

void cop_program_pair(enum cop_runrec_list l, const char *key, const char *value)
{
	copper_run_i_pair(cop_runrec_list_name(l), key, value);
}

void cop_program_point(const char *key, uint64_t step, double value)
{
	copper_run_metric(key, value, (long long)step);
}

void cop_program_status(const char *word, const char *reason)
{
	copper_run_status(word, reason);
}

const char *cop_program_id(void)
{
	return copper_run_i_1.told ? "" : copper_run_id();
}

bool cop_program_again(void)
{
	struct stat st;

	return copper_run_i_1.fd && !fstat(copper_run_i_1.fd, &st) && st.st_nlink == 0;
}
