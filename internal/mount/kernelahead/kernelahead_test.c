/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the thread on an ordinary directory instead of a mount: what it reads and when it stops.
 * t0661 has a mount. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount/kernelahead/kernelahead.h"

#define FILE_BYTES (1 * COP_MIB)

static char dir[] = "/tmp/kernelahead-XXXXXX";
static _Atomic uint64_t programs, asked, tid;
static _Atomic bool in_bare, in_view;

static void begin(void *arg, uint32_t thread)
{
	(void)arg;
	atomic_store(&tid, thread);
}

static uint64_t waiting(void *arg)
{
	(void)arg;
	atomic_fetch_add(&asked, 1);
	return atomic_load(&programs);
}

static void used(void *arg, bool *bare, bool *view)
{
	(void)arg;
	*bare = atomic_load(&in_bare);
	*view = atomic_load(&in_view);
}

static struct cop_kernelahead *start(uint64_t most)
{
	struct cop_kernelahead_conf conf = {.mountpoint = dir,
		.view = "view",
		.most_bytes = most,
		.begin = begin,
		.waiting = waiting,
		.used = used};
	struct cop_kernelahead *k;

	atomic_store(&programs, 0);
	atomic_store(&asked, 0);
	assert_int_equal(cop_kernelahead_start(&conf, &k), 0);
	return k;
}

/* Waits until the thread has begun n requests. */
static void await(uint64_t n)
{
	for (unsigned i = 0; i < 20000 && atomic_load(&asked) < n; i++)
		usleep(1000);
	assert_true(atomic_load(&asked) >= n);
}

/* The thread checks for waiting programs before each file and before each piece of 128 KiB. */
static void each_piece_gives_way(void **state)
{
	struct cop_kernelahead *k = start(UINT64_MAX);

	(void)state;
	atomic_store(&programs, 1);
	cop_kernelahead_file(k, "d/file", 0, FILE_BYTES);
	await(5);
	atomic_store(&programs, 0);
	await(5 + FILE_BYTES / (128 * COP_KIB));
	assert_true(atomic_load(&tid) != (uint64_t)getpid());
	cop_kernelahead_stop(k);
}

static void the_bound_ends_it(void **state)
{
	struct cop_kernelahead *k = start(256 * COP_KIB);

	(void)state;
	cop_kernelahead_file(k, "d/file", 0, FILE_BYTES);
	await(4);
	cop_kernelahead_dir(k, "d");
	cop_kernelahead_file(k, "d/file", 0, FILE_BYTES);
	await(6);
	usleep(20000);
	assert_int_equal(atomic_load(&asked), 6);
	cop_kernelahead_stop(k);
}

/* A link, a pipe, a name that is gone, a path out of the mount: each costs one check. */
static void what_is_no_file_any_more_is_skipped(void **state)
{
	static const char *const names[] = {"link", "pipe", "gone", "../..", "d", "link/file"};
	struct cop_kernelahead *k = start(UINT64_MAX);

	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(names); i++)
		cop_kernelahead_file(k, names[i], 0, FILE_BYTES);
	cop_kernelahead_dir(k, "gone");
	cop_kernelahead_dir(k, "d");
	cop_kernelahead_file(k, "d/file", 0, 1);
	await(COP_ARRAY_SIZE(names) + 4);
	cop_kernelahead_stop(k);
}

/* The thread stops even with a long queue, and while programs wait. */
static void it_stops_at_any_time(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		struct cop_kernelahead *k = start(UINT64_MAX);
		uint64_t before;

		atomic_store(&programs, i % 2);
		for (unsigned n = 0; n < 100; n++)
			cop_kernelahead_file(k, "d/file", 0, FILE_BYTES);
		usleep(i * 20);
		cop_kernelahead_stop(k);
		before = atomic_load(&asked);
		usleep(2000);
		assert_int_equal(atomic_load(&asked), before);
	}
	cop_kernelahead_stop(NULL);
}

/* Returns how many requests the thread makes for a file of eight pieces and a name. */
static uint64_t requests(bool bare, bool view)
{
	struct cop_kernelahead *k = start(UINT64_MAX);
	uint64_t n = (bare || !view) * 2 + (view || !bare) * 2 + FILE_BYTES / (128 * COP_KIB);

	atomic_store(&in_bare, bare);
	atomic_store(&in_view, view);
	cop_kernelahead_file(k, "d/file", 0, FILE_BYTES);
	cop_kernelahead_name(k, "gone");
	await(n);
	usleep(20000);
	n = atomic_load(&asked);
	cop_kernelahead_stop(k);
	return n;
}

/* Pages are read once for both sides; names are looked up on each. */
static void the_side_that_programs_use_is_walked(void **state)
{
	(void)state;
	assert_int_equal(symlink(".", "view"), 0);
	assert_int_equal(requests(false, false), 12);
	assert_int_equal(requests(true, true), 12);
	assert_int_equal(requests(true, false), 10);
	assert_int_equal(requests(false, true), 10);
	atomic_store(&in_view, false);
	assert_int_equal(unlink("view"), 0);
}

static int make_dir(void **state)
{
	char *bytes = calloc(1, FILE_BYTES);
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("d", 0700) | mkfifo("pipe", 0600) | symlink("d", "link"), 0);
	fd = open("d/file", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, bytes, FILE_BYTES), FILE_BYTES);
	close(fd);
	free(bytes);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return unlink("d/file") | unlink("link") | unlink("pipe") | rmdir("d") | rmdir(dir);
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(each_piece_gives_way),
		T(the_bound_ends_it),
		T(what_is_no_file_any_more_is_skipped),
		T(the_side_that_programs_use_is_walked),
		T(it_stops_at_any_time),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
