/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/scheduler/scheduler.h"

static void add(void *arg, const char *key, const char *value)
{
	cop_buf_printf(arg, "%s=%s ", key, value);
}

static int without_scheduler(void **state)
{
	(void)state;
	return clearenv();
}

static void absent_variables_give_no_attribute(void **state)
{
	struct cop_buf out = {0};

	(void)state;
	setenv("PBS_QUEUE", "", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	cop_resource_job(add, &out);
	assert_int_equal(out.len, 0);
	cop_buf_free(&out);
}

static void a_job_of_each_scheduler_is_described(void **state)
{
	struct cop_buf out = {0};

	(void)state;
	setenv("SLURM_JOB_ID", "17", 1);
	setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
	setenv("PBS_JOBID", "5.s", 1);
	setenv("FLUX_URI", "local:///x", 1);
	cop_resource_job(add, &out);
	assert_string_equal(out.data,
		"slurm.job_id=17 slurm.nodelist=n[1-2] slurm.cuda_visible_devices=0,1 "
		"pbs.job_id=5.s flux.uri=local:///x ");
	cop_buf_free(&out);
	setenv("SLURM_NODELIST", "first", 1);
	cop_resource_job(add, &out);
	assert_non_null(strstr(out.data, "slurm.nodelist=first "));
	cop_buf_free(&out);
}

static void the_process_is_described(void **state)
{
	struct cop_buf out = {0};

	(void)state;
	cop_resource_all(3, add, &out);
	assert_non_null(strstr(out.data, "service.name=copper service.version="));
	assert_non_null(strstr(out.data, "service.instance.id=3 host.name="));
	cop_buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(absent_variables_give_no_attribute, without_scheduler),
		cmocka_unit_test_setup(a_job_of_each_scheduler_is_described, without_scheduler),
		cmocka_unit_test_setup(the_process_is_described, without_scheduler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
