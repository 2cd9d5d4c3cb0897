/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/log/log.h"
#include "prof/tracer/tracer_priv.h"

static char job[64];

static int make_job(void **state)
{
	(void)state;
	strcpy(job, "/tmp/cop-tracer-XXXXXX");
	return mkdtemp(job) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int remove_job(void **state)
{
	(void)state;
	return nftw(job, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct cop_tracer_conf conf_of(void)
{
	return (struct cop_tracer_conf){.job_dir = job,
		.host = "nid-01.site",
		.source = "/soft/",
		.pid = 4711,
		.rank = 3,
		.limit = 512 * COP_MIB};
}

static struct cop_tracer *start(const struct cop_tracer_conf *conf)
{
	struct cop_tracer *t = NULL;
	struct cop_err err = {0};

	assert_int_equal(cop_tracer_start(conf, &t, &err), 0);
	return t;
}

static char *file_name(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/trace/nid-01.site-4711.pfw.gz", job);
	return path;
}

/* The text of the file as zlib reads it, up to the last complete line. *longest: the size of the
 * longest member. */
static char *text_of(size_t *longest)
{
	FILE *f = fopen(file_name(), "r");
	size_t len = 0, cap = 64 * COP_MIB, n, member = 0, got;
	unsigned char *in = malloc(cap);
	char *out = malloc(cap);
	z_stream z = {0};
	int rc = Z_OK;

	assert_non_null(f);
	n = fread(in, 1, cap, f);
	fclose(f);
	z.next_in = in;
	z.avail_in = (unsigned)n;
	for (*longest = 0; z.avail_in && rc == Z_OK; member = 0) {
		assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
		z.next_out = (unsigned char *)out + len;
		z.avail_out = (unsigned)(cap - 1 - len);
		rc = inflate(&z, Z_FINISH);
		got = (size_t)((char *)z.next_out - out) - len;
		len += got;
		member = got;
		*longest = COP_MAX(*longest, member);
		rc = rc == Z_STREAM_END ? Z_OK : Z_DATA_ERROR;
		inflateEnd(&z);
	}
	free(in);
	out[len] = '\0';
	return out;
}

static unsigned long count(const char *text, const char *part)
{
	unsigned long n = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

static void read_event(struct cop_tracer *t, const char *path, int64_t bytes)
{
	const struct cop_tracer_arg args[] = {
		{.key = "ret", .value = bytes}, {.key = "outcome", .text = "hit"}};
	struct cop_tracer_event e = {.phase = COP_TRACER_POSIX,
		.name = "read",
		.begin_ns = cop_now_ns(),
		.end_ns = cop_now_ns(),
		.tid = 99,
		.path = path,
		.path_len = strlen(path),
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	cop_tracer_event(t, &e);
}

static uint64_t fixed_now(void)
{
	return 5000000;
}

static int64_t fixed_wall(void)
{
	return 1700000000123456789;
}

static void check_text(const char *text, const char *want)
{
	if (strcmp(text, want))
		fail_msg("wanted:\n%s\ngot:\n%s", want, text);
}

/* Compares every kind of line byte by byte. */
static void lines_are_of_the_form(void **state)
{
	const struct cop_tracer_arg args[] = {
		{.key = "ret", .value = -2}, {.key = "outcome", .text = "hit"}};
	struct cop_tracer_event e = {.name = "lookup",
		.begin_ns = 6000999,
		.end_ns = 7001000,
		.tid = 8,
		.arg = args,
		.args = 2,
		.path = "a (b)/\"c\"",
		.path_len = 9};
	struct cop_tracer_conf conf = conf_of();
	struct cop_buf out = {0};
	struct rings rings;
	struct format f;
	char want[4096];

	(void)state;
	cop_clocks_for_test(fixed_now, fixed_wall);
	assert_int_equal(cop_tracer_format_init(&f, &conf), 0);
	assert_int_equal(cop_tracer_rings_init(&rings), 0);
	cop_tracer_put(&rings, KIND_EVENT, &e);
	e.phase = COP_TRACER_LEAVES;
	e.path = NULL;
	cop_tracer_put(&rings, KIND_EVENT, &e);
	e.phase = COP_TRACER_COUNTER;
	cop_tracer_put(&rings, KIND_EVENT, &e);
	{
		struct ring *ring = atomic_load(&rings.ring[0]);
		uint64_t at = 0;

		while (at < atomic_load(&ring->head)) {
			const struct record *one = (void *)(ring->data + at);

			if (one->kind == KIND_EVENT)
				cop_tracer_lines(&f, one, &out);
			at += one->size;
		}
	}
	{
		unsigned long long host = cop_hash64("nid-01.site", 11, 0) & INT64_MAX,
				   file = cop_hash64("a (b)/\"c\"", 9,
						  cop_hash64("/soft/", 6, 0) & INT64_MAX) &
					  INT64_MAX;

		snprintf(want, sizeof(want),
			"{\"id\":0,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":4711,\"tid\":8,\"ph\":\"M\","
			"\"args\":{\"hhash\":%llu,\"name\":\"/soft/a  b / c \",\"value\":%llu}}\n"
			"{\"id\":1,\"name\":\"lookup\",\"cat\":\"POSIX\",\"pid\":4711,\"tid\":8,"
			"\"ts\":1700000000124457,\"dur\":1000,\"ph\":\"X\","
			"\"args\":{\"hhash\":%llu,\"fhash\":%llu,\"ret\":-2,\"outcome\":\"hit\"}}\n"
			"{\"id\":18446744073709551614,\"name\":\"lookup\",\"cat\":\"copper\",\"pid\":4711,\"tid\":8,"
			"\"ts\":1700000000124457,\"ph\":\"s\",\"bp\":\"e\",\"args\":{\"hhash\":%llu,\"outcome\":\"hit\"}}\n"
			"{\"id\":2,\"name\":\"lookup\",\"cat\":\"copper\",\"pid\":4711,\"tid\":8,"
			"\"ts\":1700000000124457,\"ph\":\"C\",\"args\":{\"ret\":-2,\"outcome\":\"hit\"}}\n",
			host, file, host, file, host);
	}
	check_text(out.data, want);
	cop_clocks_for_test(NULL, NULL);
	cop_buf_free(&out);
	cop_tracer_rings_fini(&rings);
	cop_tracer_format_fini(&f);
}

static void a_trace_begins_and_ends_as_its_form_wants(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct cop_tracer *t = start(&conf);
	size_t longest;
	char *text;

	(void)state;
	read_event(t, "lib/a.so", 4096);
	read_event(t, "lib/a.so", 100);
	read_event(t, "lib/b.so", 100);
	cop_tracer_clock(t, -5, 30);
	cop_tracer_stop(t);
	text = text_of(&longest);
	assert_ptr_equal(
		strstr(text, "[\n{\"id\":0,\"name\":\"start\",\"cat\":\"dftracer\","), text);
	assert_string_equal(text + strlen(text) - 3, "\n]\n");
	assert_int_equal(count(text, "\"name\":\"end\",\"cat\":\"dftracer\""), 1);
	assert_int_equal(count(text, "\"name\":\"FH\""), 2);
	assert_int_equal(count(text, "\"name\":\"/soft/lib/a.so\""), 1);
	assert_int_equal(count(text, "\"name\":\"HH\""), 1);
	assert_int_equal(count(text, "\"name\":\"rank\",\"value\":3"), 1);
	assert_int_equal(count(text, "\"cat\":\"POSIX\""), 3);
	assert_int_equal(count(text, "\"name\":\"clock\",\"value\":-5,\"rtt\":30}}"), 1);
	assert_int_equal(count(text, "\"name\":\"LO\""), 0);
	free(text);
}

/* Hold the writer in its hook, so that it does not drain the rings. */
static sem_t held, go_on;

static void hold(void *ctx)
{
	bool *once = ctx;

	if (*once)
		return;
	*once = true;
	sem_post(&held);
	sem_wait(&go_on);
}

static void count_once(void *ctx)
{
	const struct cop_tracer_arg arg = {.key = "value", .value = 17};
	struct cop_tracer_event e = {.phase = COP_TRACER_COUNTER,
		.name = "last",
		.begin_ns = cop_now_ns(),
		.arg = &arg,
		.args = 1};

	cop_tracer_event(*(struct cop_tracer **)ctx, &e);
}

static void the_counters_of_the_end_are_in_it(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct cop_tracer *t;
	char *text, *at;
	size_t longest;

	(void)state;
	conf.hooks = (struct cop_tracer_hooks){.last = count_once, .ctx = &t};
	t = start(&conf);
	read_event(t, "lib/a.so", 1);
	cop_tracer_stop(t);
	text = text_of(&longest);
	at = strstr(text, "\"name\":\"last\"");
	assert_true(at && at > strstr(text, "\"POSIX\""));
	assert_non_null(strstr(at, "\"name\":\"end\""));
	assert_int_equal(count(text, "\"name\":\"last\""), 1);
	free(text);
}

static void a_full_ring_counts_what_it_lost(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	bool once = false;
	struct cop_tracer *t;
	unsigned long there;
	char *text, lost[64];
	size_t longest;

	(void)state;
	sem_init(&held, 0, 0);
	sem_init(&go_on, 0, 0);
	conf.hooks = (struct cop_tracer_hooks){.second = hold, .ctx = &once};
	t = start(&conf);
	sem_wait(&held);
	for (int i = 0; i < 10000; i++)
		read_event(t, "lib/a.so", i);
	sem_post(&go_on);
	cop_tracer_stop(t);
	text = text_of(&longest);
	there = count(text, "\"cat\":\"POSIX\"");
	assert_in_range(there, 1000, 9999);
	snprintf(lost, sizeof(lost), "\"name\":\"ring\",\"value\":%lu}}", 10000 - there);
	assert_int_equal(count(text, lost), 1);
	free(text);
}

static void the_limit_holds_and_what_is_left_out_is_said(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	bool once = false;
	struct cop_tracer *t;
	unsigned long there, left, lost = 0;
	struct stat st;
	char *text, path[32], *at;
	size_t longest;

	(void)state;
	(void)once;
	conf.limit = 64 * COP_KIB;
	t = start(&conf);
	for (int i = 0; i < 100000; i++) {
		snprintf(path, sizeof(path), "lib/%d", i);
		read_event(t, path, i);
	}
	cop_tracer_stop(t);
	assert_int_equal(stat(file_name(), &st), 0);
	assert_in_range(st.st_size, 50 * COP_KIB, 64 * COP_KIB);
	text = text_of(&longest);
	there = count(text, "\"cat\":\"POSIX\"");
	at = strstr(text, "\"name\":\"limit\",\"value\":");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\"name\":\"limit\",\"value\":%lu", &left), 1);
	for (at = text; (at = strstr(at, "\"name\":\"ring\",\"value\":")); at++)
		sscanf(at, "\"name\":\"ring\",\"value\":%lu", &lost);
	assert_int_equal(there + left + lost, 100000);
	assert_string_equal(text + strlen(text) - 3, "\n]\n");
	free(text);
}

/* Two threads report events and exit, and others take over their rings. Every loss is reported, and
 * no member is too long. */
#define EVENTS 5000

static void *report(void *arg)
{
	char path[32];

	for (int i = 0; i < EVENTS; i++) {
		snprintf(path, sizeof(path), "lib/%d", i % 1000);
		read_event(arg, path, i);
	}
	return NULL;
}

static void threads_report_at_the_same_time(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct cop_tracer *t = start(&conf);
	unsigned long there, lost = 0;
	pthread_t thread[2];
	size_t longest;
	char *text, *at;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++)
			assert_int_equal(cop_thread_start(&thread[i], "reporter", report, t), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
	}
	cop_tracer_stop(t);
	text = text_of(&longest);
	there = count(text, "\"cat\":\"POSIX\"");
	for (at = text; (at = strstr(at, "\"name\":\"ring\",\"value\":")); at++)
		sscanf(at, "\"name\":\"ring\",\"value\":%lu", &lost);
	assert_true(there + lost >= 6 * EVENTS);
	assert_true(there + lost <= 6 * EVENTS + 6); /* lost records may be thread names */
	assert_true(longest <= COP_MIB);
	assert_int_equal(count(text, "\"name\":\"/soft/lib/7\""), 1);
	free(text);
}

/* Stands in for a killed node: reads the file while the tracer is running, and cuts it anywhere. */
static void what_is_there_of_a_killed_node_can_be_read(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct cop_tracer *t = start(&conf);
	struct stat st = {0};
	size_t longest;
	char *text;

	(void)state;
	read_event(t, "lib/a.so", 1);
	for (int i = 0; i < 600 && st.st_size == 0; i++) {
		usleep(100000);
		stat(file_name(), &st);
	}
	while (true) {
		text = text_of(&longest);
		assert_ptr_equal(strstr(text, "[\n{\"id\":0,\"name\":\"start\""), text);
		assert_int_equal(text[strlen(text) - 1], '\n');
		if (count(text, "\"cat\":\"POSIX\"") == 1)
			break;
		free(text);
		usleep(100000);
	}
	free(text);
	cop_tracer_stop(t);
}

static void a_disk_that_is_full_ends_the_trace_and_nothing_else(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct rlimit old, low = {.rlim_cur = 20000};
	struct cop_tracer *t;
	size_t longest;
	char *text, path[32];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	t = start(&conf);
	setrlimit(RLIMIT_FSIZE, &low);
	for (int i = 0; i < 20000; i++) {
		snprintf(path, sizeof(path), "lib/%lx", (unsigned long)random());
		read_event(t, path, i);
	}
	cop_tracer_stop(t);
	setrlimit(RLIMIT_FSIZE, &old);
	text = text_of(&longest);
	assert_true(!*text || text[strlen(text) - 1] == '\n');
	free(text);
}

/* Replaces the file with a full pipe, where every write blocks. Returns its other end. */
static int hang_file(void)
{
	char link[32], to[160], page[4096] = "";
	int fd = 3, end[2], flags;
	ssize_t n;

	for (;; fd++) {
		assert_true(fd < 1024);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (!strcmp(to, file_name()))
			break;
	}
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	flags = fcntl(end[1], F_GETFL);
	fcntl(end[1], F_SETFL, flags | O_NONBLOCK);
	while (write(end[1], page, sizeof(page)) > 0)
		;
	fcntl(end[1], F_SETFL, flags);
	assert_int_equal(dup2(end[1], fd), fd);
	close(end[1]);
	return end[0];
}

static unsigned threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void count_call(void *ctx)
{
	(*(_Atomic unsigned *)ctx)++;
}

static void a_job_directory_that_hangs_delays_the_end_by_seconds_only(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct timespec nap = {0, 1000000};
	unsigned before = threads(), seen;
	_Atomic unsigned calls = 0;
	struct cop_tracer *t;
	int pipe_end;

	(void)state;
	conf.hooks =
		(struct cop_tracer_hooks){.second = count_call, .last = count_call, .ctx = &calls};
	t = start(&conf);
	pipe_end = hang_file();
	read_event(t, "lib/a.so", 1);
	alarm(60); /* if the stop waits for the write, the test fails */
	cop_tracer_stop(t);
	alarm(0);
	assert_true(threads() > before);
	seen = calls;
	close(pipe_end); /* now the write fails, and the thread exits */
	while (threads() > before)
		nanosleep(&nap, NULL);
	assert_int_equal(calls, seen);
}

static void a_file_of_this_name_is_not_touched(void **state)
{
	struct cop_tracer_conf conf = conf_of();
	struct cop_tracer *t = NULL;
	struct cop_err err = {0};
	char dir[96];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/trace", job);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(symlink("/tmp/cop-tracer-nowhere", file_name()), 0);
	assert_int_equal(cop_tracer_start(&conf, &t, &err), -EEXIST);
	assert_non_null(strstr(err.text, file_name()));
	assert_int_equal(access("/tmp/cop-tracer-nowhere", F_OK), -1);
}

static void without_a_tracer_nothing_happens(void **state)
{
	(void)state;
	read_event(NULL, "lib/a.so", 1);
	cop_tracer_clock(NULL, 1, 1);
	cop_tracer_stop(NULL);
	assert_true(cop_tracer_now_us(NULL) > 1700000000000000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_job, remove_job)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lines_are_of_the_form),
		T(a_trace_begins_and_ends_as_its_form_wants),
		T(the_counters_of_the_end_are_in_it),
		T(a_full_ring_counts_what_it_lost),
		T(the_limit_holds_and_what_is_left_out_is_said),
		T(threads_report_at_the_same_time),
		T(what_is_there_of_a_killed_node_can_be_read),
		T(a_disk_that_is_full_ends_the_trace_and_nothing_else),
		T(a_job_directory_that_hangs_delays_the_end_by_seconds_only),
		T(a_file_of_this_name_is_not_touched),
		T(without_a_tracer_nothing_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
