/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "prof/machine/machine_priv.h"

/* A directory that imitates /proc and /sys. */
static char root[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/copper-machine-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
	char path[256], *slash;

	snprintf(path, sizeof(path), "%s%s", root, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(cop_make_dirs(path, 0755), 0);
	*slash = '/';
	assert_int_equal(cop_write_file(path, text, strlen(text), 0644), 0);
}

static uint64_t clock_ms;

static struct cop_machine_sum sample(struct cop_machine *m)
{
	struct cop_machine_sum s = {0};

	clock_ms += 5000;
	assert_true(cop_machine_look(m, clock_ms, false) > clock_ms);
	cop_machine_add_own(&s, m);
	return s;
}

static void is_value(const struct cop_machine_sum *s, unsigned metric, uint64_t thousandths)
{
	assert_int_equal(s->of[metric].hosts, 1);
	assert_int_equal(s->of[metric].sum, thousandths);
	assert_int_equal(s->of[metric].most, thousandths);
}

static const char headings[] = "Inter-|   Receive                            |  Transmit\n"
			       " face |bytes    packets errs drop fifo frame compressed multicast|"
			       "bytes    packets errs drop fifo colls carrier compressed\n";

static void put_network(unsigned long long in, unsigned long long out)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"%s    lo: 999000000 1 0 0 0 0 0 0 999000000 1 0 0 0 0 0 0\n"
		"  eth0: %llu 1 0 0 0 0 0 0 %llu 1 0 0 0 0 0 0\n"
		"hsn0:5000000 1 0 0 0 0 0 0 7000000 1 0 0 0 0 0 0\n",
		headings, in, out);
	put("/proc/net/dev", text);
}

static void a_host_has_the_values_of_its_kernel(void **state)
{
	struct cop_machine_sum s;
	struct cop_machine *m;

	(void)state;
	put("/proc/stat", "cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 1 1 1\n");
	put("/proc/meminfo", "MemTotal:       2000 kB\nMemFree:  1 kB\nMemAvailable:    500 kB\n");
	put_network(1000000, 2000000);
	m = cop_machine_new(root, 5000);
	put("/proc/stat", "cpu  120 5 110 750 110 3 1 1 50 0\ncpu0 1 1 1 1\n");
	put_network(4500000, 2000000);
	s = sample(m);
	is_value(&s, COP_MACHINE_CPU_PERCENT, 40000);
	is_value(&s, COP_MACHINE_MEMORY_MB, 1536);
	is_value(&s, COP_MACHINE_MEMORY_PERCENT, 75000);
	is_value(&s, COP_MACHINE_RECEIVED_MB, 3500);
	is_value(&s, COP_MACHINE_SENT_MB, 0);
	assert_int_equal(s.of[COP_MACHINE_GPU].hosts, 0);
	/* A recreated interface counts from zero, and its earlier count is kept. */
	put_network(0, 0);
	s = sample(m);
	put_network(1000000, 500000);
	s = sample(m);
	is_value(&s, COP_MACHINE_RECEIVED_MB, 4500);
	is_value(&s, COP_MACHINE_SENT_MB, 500);
	/* Processor times have not advanced. */
	assert_int_equal(s.of[COP_MACHINE_CPU_PERCENT].hosts, 0);
	cop_machine_free(m);
}

static void what_the_kernel_does_not_report_has_no_value(void **state)
{
	struct cop_machine *m = cop_machine_new(root, 5000);
	struct cop_machine_sum s = sample(m);

	(void)state;
	for (unsigned i = 0; i < COP_MACHINE_METRICS; i++)
		if (i < COP_MACHINE_DISK_PERCENT || i > COP_MACHINE_DISK_FREE_MB)
			assert_int_equal(s.of[i].hosts, 0);
	put("/proc/stat", "cpu  4\n");
	put("/proc/meminfo", "MemTotal: x kB\nMemAvailable: 4 kB\n");
	put("/proc/net/dev", "eth0: 5");
	s = sample(m);
	assert_int_equal(s.of[COP_MACHINE_CPU_PERCENT].hosts, 0);
	assert_int_equal(s.of[COP_MACHINE_MEMORY_MB].hosts, 0);
	is_value(&s, COP_MACHINE_RECEIVED_MB, 0);
	cop_machine_free(m);
}

static void gpus_are_sampled_in_the_order_of_their_cards(void **state)
{
	static const unsigned second = COP_MACHINE_GPU + COP_MACHINE_GPU_METRICS;
	struct cop_machine *m;
	struct cop_machine_sum s;

	(void)state;
	/* A display adapter, one of its connectors, and two GPUs, one without hwmon. */
	put("/sys/class/drm/card0/device/vendor", "0x1a03\n");
	put("/sys/class/drm/card10/device/mem_info_vram_total", "4000000000\n");
	put("/sys/class/drm/card10/device/mem_info_vram_used", "1000000000\n");
	put("/sys/class/drm/card10/device/gpu_busy_percent", "7\n");
	put("/sys/class/drm/card2-DP-1/device/mem_info_vram_total", "1\n");
	put("/sys/class/drm/card2/device/mem_info_vram_total", "64000000000\n");
	put("/sys/class/drm/card2/device/mem_info_vram_used", "32000000000\n");
	put("/sys/class/drm/card2/device/gpu_busy_percent", "93\n");
	put("/sys/class/drm/card2/device/hwmon/hwmon3/power1_average", "250500000\n");
	put("/sys/class/drm/card2/device/hwmon/hwmon3/power1_cap", "501000000\n");
	m = cop_machine_new(root, 5000);
	assert_int_equal(m->gpus, 2);
	s = sample(m);
	is_value(&s, COP_MACHINE_GPU + COP_MACHINE_GPU_PERCENT, 93000);
	is_value(&s, COP_MACHINE_GPU + COP_MACHINE_GPU_MEMORY_MB, 32000000);
	is_value(&s, COP_MACHINE_GPU + COP_MACHINE_GPU_MEMORY_PERCENT, 50000);
	is_value(&s, COP_MACHINE_GPU + COP_MACHINE_GPU_WATTS, 250500);
	is_value(&s, COP_MACHINE_GPU + COP_MACHINE_GPU_WATTS_PERCENT, 50000);
	is_value(&s, second + COP_MACHINE_GPU_PERCENT, 7000);
	is_value(&s, second + COP_MACHINE_GPU_MEMORY_PERCENT, 25000);
	assert_int_equal(s.of[second + COP_MACHINE_GPU_WATTS].hosts, 0);
	cop_machine_free(m);
}

static void names_are_those_of_mlflow(void **state)
{
	char name[COP_MACHINE_NAME_SIZE];

	(void)state;
	cop_machine_name(COP_MACHINE_CPU_PERCENT, name);
	assert_string_equal(name, "cpu_utilization_percentage");
	cop_machine_name(COP_MACHINE_DISK_FREE_MB, name);
	assert_string_equal(name, "disk_available_megabytes");
	cop_machine_name(COP_MACHINE_GPU, name);
	assert_string_equal(name, "gpu_0_utilization_percentage");
	cop_machine_name(COP_MACHINE_METRICS - 1, name);
	assert_string_equal(name, "gpu_15_power_usage_percentage");
}

static void the_end_is_a_sample_unless_the_last_one_is_as_good(void **state)
{
	struct cop_machine *m;

	(void)state;
	put("/proc/stat", "cpu  100 0 0 100\n");
	m = cop_machine_new(root, 5000);
	clock_ms = 100000;
	(void)sample(m);
	put("/proc/stat", "cpu  200 0 0 100\n");
	assert_int_equal(cop_machine_look(m, clock_ms + 999, true), clock_ms + 5000);
	assert_int_equal(m->all, 200);
	assert_int_equal(cop_machine_look(m, clock_ms + 1000, false), clock_ms + 5000);
	assert_int_equal(m->all, 200);
	assert_int_equal(cop_machine_look(m, clock_ms + 1000, true), clock_ms + 6000);
	assert_int_equal(m->all, 300);
	assert_true(cop_machine_look(NULL, clock_ms, true) == UINT64_MAX);
	cop_machine_free(m);
}

/* ---- NVIDIA ---- */

static void a_line_of_nvidia_smi_is_read_or_left_out(void **state)
{
	static const struct {
		const char *line;
		unsigned known; /* 0: no GPU */
		double percent, watts;
	} rows[] = {{"0, 45, 1234, 81559, 65.31, 400.00", 63, 45, 65.31},
		{"3, 0, 0, 15360, 9.05, 70.00", 63, 0, 9.05},
		{"1, 45 %, 1234 MiB, 81559 MiB, 65.31 W, 400.00 W", 63, 45, 65.31},
		/* A multi-instance GPU, and a GPU without a power sensor. */
		{"0, [N/A], 1234, 40960, 65.00, 400.00", 61, 0, 65},
		{"0, 12, 1234, 4096, [N/A], [N/A]", 15, 12, 0},
		{"0, [Not Supported], [Not Supported], [Not Supported], [Not Supported], [Not Supported]",
			1, 0, 0},
		{"0, [Unknown Error], 1, 2, [GPU requires reset], [Insufficient Permissions]", 13,
			0, 0},
		{"0,45,1,2,3,4", 63, 45, 3}, {"15, 1, 2, 3, 4, 5", 63, 1, 4},
		{"16, 1, 2, 3, 4, 5", 0, 0, 0}, {"[N/A], 1, 2, 3, 4, 5", 0, 0, 0},
		{"-1, 1, 2, 3, 4, 5", 0, 0, 0}, {"0, 1, 2, 3, 4", 0, 0, 0},
		{"0, 1, 2, 3, 4, 5, 6", 0, 0, 0}, {"", 0, 0, 0},
		{"999999999999999999999999, 1, 2, 3, 4, 5", 0, 0, 0},
		{"index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W]",
			0, 0, 0},
		{"No devices were found", 0, 0, 0},
		{"Failed to initialize NVML: Driver/library version mismatch", 0, 0, 0},
		{"Field \"power.limit\" is not a valid field to query.", 0, 0, 0},
		{"Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error", 0, 0,
			0},
		{"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
			0, 0, 0}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		struct cop_nvidia_row r;
		char line[256];

		snprintf(line, sizeof(line), "%s", rows[i].line);
		assert_int_equal(cop_nvidia_parse(line, &r), rows[i].known != 0);
		if (!rows[i].known)
			continue;
		assert_int_equal(r.known, rows[i].known);
		assert_true(fabs(r.value[COP_NVIDIA_PERCENT] - rows[i].percent) < 1e-9);
		assert_true(fabs(r.value[COP_NVIDIA_WATTS] - rows[i].watts) < 1e-9);
	}
}

/* Puts a fake nvidia-smi first in PATH. */
static void put_program(const char *script)
{
	char path[256];

	put("/bin/nvidia-smi", script);
	snprintf(path, sizeof(path), "%s/bin/nvidia-smi", root);
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", root);
	assert_int_equal(setenv("PATH", path, 1), 0);
}

/* Samples until the metric has a value (or none, if !has), for at most a minute. */
static struct cop_machine_sum sample_until(struct cop_machine *m, unsigned metric, bool has)
{
	struct cop_machine_sum s = sample(m);

	for (int i = 0; i < 6000 && (s.of[metric].hosts == 1) != has; i++) {
		usleep(10000);
		s = sample(m);
	}
	return s;
}

static bool file_has(const char *name, char text[64])
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	f = fopen(path, "r");
	*text = '\0';
	if (f && fgets(text, 64, f))
		text[strcspn(text, "\n")] = '\0';
	if (f)
		fclose(f);
	return *text;
}

/* Waits at most a minute for the process to end. */
static void has_ended(const char *pid)
{
	for (int i = 0; i < 6000 && kill(atoi(pid), 0) == 0; i++)
		usleep(10000);
	assert_int_equal(kill(atoi(pid), 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void nvidia_gpus_come_after_the_others_and_end_with_the_node(void **state)
{
	static const unsigned first = COP_MACHINE_GPU + COP_MACHINE_GPU_METRICS,
			      second = first + COP_MACHINE_GPU_METRICS;
	char script[512], text[64];
	struct cop_machine *m;
	struct cop_machine_sum s;

	(void)state;
	put("/sys/class/drm/card0/device/mem_info_vram_total", "4000000000\n");
	snprintf(script, sizeof(script),
		"#!/bin/sh\necho $$ >%s/pid\necho \"$*\" >%s/words\n"
		"while :; do\n"
		"printf '0, 45, 1000, 4000, 65.25, 100.00\\n1, [N/A], 500'; sleep 0.1\n"
		"printf ', 2000, [N/A], [N/A]\\n'; sleep 0.1\ndone\n",
		root, root);
	put_program(script);
	m = cop_machine_new(root, 5000);
	s = sample_until(m, second + COP_MACHINE_GPU_MEMORY_MB, true);
	is_value(&s, first + COP_MACHINE_GPU_PERCENT, 45000);
	is_value(&s, first + COP_MACHINE_GPU_MEMORY_MB, 1048576);
	is_value(&s, first + COP_MACHINE_GPU_MEMORY_PERCENT, 25000);
	is_value(&s, first + COP_MACHINE_GPU_WATTS, 65250);
	is_value(&s, first + COP_MACHINE_GPU_WATTS_PERCENT, 65250);
	is_value(&s, second + COP_MACHINE_GPU_MEMORY_MB, 524288);
	assert_int_equal(s.of[second + COP_MACHINE_GPU_PERCENT].hosts, 0);
	assert_int_equal(s.of[second + COP_MACHINE_GPU_WATTS].hosts, 0);
	assert_true(file_has("/words", text));
	assert_non_null(strstr(text, "--query-gpu=index,"));
	assert_true(file_has("/pid", text));
	assert_int_equal(kill(atoi(text), 0), 0);
	cop_machine_free(m);
	has_ended(text);
}

static void an_nvidia_smi_that_hangs_or_fails_holds_nothing_up(void **state)
{
	static const unsigned busy = COP_MACHINE_GPU + COP_MACHINE_GPU_PERCENT;
	char script[256], text[64];
	struct cop_machine *m;
	struct cop_machine_sum s;

	(void)state;
	snprintf(script, sizeof(script),
		"#!/bin/sh\necho $$ >%s/pid\necho '0, 45, 1, 2, 3, 4'\nexec sleep 1000\n", root);
	put_program(script);
	m = cop_machine_new(root, 2000);
	s = sample_until(m, busy, true);
	is_value(&s, busy, 45000);
	s = sample_until(m, busy, false); /* stale by now */
	assert_int_equal(s.of[busy].hosts, 0);
	cop_machine_free(m);
	assert_true(file_has("/pid", text));
	has_ended(text);

	put_program("#!/bin/sh\nyes | tr -d '\\n' | head -c 100000\n"
		    "echo NVIDIA-SMI has failed\necho '0, 7, 1, 2, 3, 4'\nexit 9\n");
	m = cop_machine_new(root, 5000);
	s = sample_until(m, busy, true);
	is_value(&s, busy, 7000);
	cop_machine_free(m);

	assert_int_equal(setenv("PATH", root, 1), 0);
	m = cop_machine_new(root, 5000);
	s = sample(m);
	assert_int_equal(s.of[busy].hosts, 0);
	cop_machine_free(m);
}

static void sums_travel_and_damage_is_noticed(void **state)
{
	struct cop_machine_sum a = {0}, b = {0}, back;
	struct cop_buf text = {0};

	(void)state;
	cop_machine_set(&a, COP_MACHINE_CPU_PERCENT, 10000);
	cop_machine_set(&b, COP_MACHINE_CPU_PERCENT, 90000);
	cop_machine_set(&b, COP_MACHINE_METRICS - 1, UINT64_MAX);
	cop_machine_add(&a, &b);
	cop_machine_add(&a, &b);
	assert_int_equal(a.of[COP_MACHINE_CPU_PERCENT].hosts, 3);
	assert_int_equal(a.of[COP_MACHINE_CPU_PERCENT].sum, 190000);
	assert_int_equal(a.of[COP_MACHINE_CPU_PERCENT].most, 90000);
	assert_true(a.of[COP_MACHINE_METRICS - 1].sum == UINT64_MAX);
	cop_machine_encode(&a, &text);
	assert_int_equal(cop_machine_decode(text.data, text.len, &back), 0);
	assert_memory_equal(&a, &back, sizeof(a));
	for (size_t len = 1; len < text.len; len++)
		(void)cop_machine_decode(text.data, len, &back);
	assert_int_equal(cop_machine_decode(text.data, text.len - 1, &back), -EBADMSG);
	assert_int_equal(back.of[COP_MACHINE_CPU_PERCENT].hosts, 0);
	assert_int_equal(cop_machine_decode("\1\1\1\1\1\1\1\1", 8, &back), -EBADMSG);
	assert_int_equal(cop_machine_decode("\x7f\1\1\1", 4, &back), -EBADMSG);
	assert_int_equal(cop_machine_decode("\1\0\1\1", 4, &back), -EBADMSG);
	assert_int_equal(cop_machine_decode("", 0, &back), 0);
	cop_buf_free(&text);
}

static void this_host_has_values(void **state)
{
	struct cop_machine *m = cop_machine_new("", 5000);
	struct cop_machine_sum s = sample(m);

	(void)state;
	assert_int_equal(s.of[COP_MACHINE_MEMORY_PERCENT].hosts, 1);
	assert_in_range(s.of[COP_MACHINE_MEMORY_PERCENT].sum, 1, 100000);
	assert_int_equal(s.of[COP_MACHINE_RECEIVED_MB].hosts, 1);
	cop_machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_host_has_the_values_of_its_kernel, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			what_the_kernel_does_not_report_has_no_value, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			gpus_are_sampled_in_the_order_of_their_cards, make_root, remove_root),
		cmocka_unit_test(a_line_of_nvidia_smi_is_read_or_left_out),
		cmocka_unit_test_setup_teardown(
			nvidia_gpus_come_after_the_others_and_end_with_the_node, make_root,
			remove_root),
		cmocka_unit_test_setup_teardown(
			an_nvidia_smi_that_hangs_or_fails_holds_nothing_up, make_root, remove_root),
		cmocka_unit_test(names_are_those_of_mlflow),
		cmocka_unit_test_setup_teardown(
			the_end_is_a_sample_unless_the_last_one_is_as_good, make_root, remove_root),
		cmocka_unit_test(sums_travel_and_damage_is_noticed),
		cmocka_unit_test(this_host_has_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
