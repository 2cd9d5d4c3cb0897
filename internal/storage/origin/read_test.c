/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "storage/origin/origin_testing.h"

static ssize_t read_text(
	struct fixture *f, const char *path, uint64_t version, uint64_t offset, char out[64])
{
	struct iovec iov = {out, 63};
	ssize_t n = ask_read(f->o, path, version, offset, &iov, 1);

	out[n > 0 ? n : 0] = '\0';
	return n;
}

static uint64_t version_of(struct fixture *f, const char *path)
{
	struct cop_attr attr;

	assert_int_equal(ask_stat(f->o, path, &attr, NULL), 0);
	return attr.version;
}

static unsigned kept(struct fixture *f)
{
	struct cop_origin_fds *fds = &real(f->o)->fds;
	unsigned n = 0;

	pthread_mutex_lock(&fds->lock);
	for (unsigned i = 0; i < COP_ORIGIN_KEPT_FDS; i++)
		n += fds->slot[i].path != NULL;
	pthread_mutex_unlock(&fds->lock);
	return n;
}

static void hostile_paths_are_refused_before_any_system_call(void **state)
{
	static const char *const bad[] = {"/", "/etc", "//", "a/", "a//b", ".", "..", "./a", "a/.",
		"a/..", "a/../b", "../etc/passwd", "a/./b"};
	struct fixture *f = *state;
	struct cop_attr attr;
	char *deep = calloc(1, 5000), out[64];

	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		assert_int_equal(ask_stat(f->o, bad[i], &attr, NULL), -EINVAL);
		assert_int_equal(read_text(f, bad[i], 0, 0, out), -EINVAL);
	}
	memset(deep, 'n', 256);
	assert_int_equal(ask_stat(f->o, deep, &attr, NULL), -ENAMETOOLONG);
	for (int i = 0; i < 4096; i++)
		deep[i] = i % 2 ? '/' : 'd';
	assert_int_equal(ask_stat(f->o, deep, &attr, NULL), -ENAMETOOLONG);
	deep[4095] = '\0';
	assert_int_equal(cop_origin_path_check(deep), 0);
	free(deep);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS), 0);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_ERRORS), 0);
}

static void check_confinement(struct fixture *f)
{
	struct cop_attr attr;
	char target[4096] = "", out[64];

	assert_int_equal(ask_stat(f->o, "out", &attr, target), 0);
	assert_true(S_ISLNK(attr.mode));
	assert_string_equal(target, "/etc");
	assert_true(ask_stat(f->o, "out/passwd", &attr, NULL) < 0);
	assert_true(read_text(f, "out/passwd", 0, 0, out) < 0);
	assert_int_equal(read_text(f, "file-link", 0, 0, out), -ELOOP);
	assert_true(read_text(f, "dir-link/inside", 0, 0, out) < 0);
	assert_int_equal(read_text(f, "dir/inside", 0, 0, out), 2);
	assert_string_equal(out, "in");
	assert_int_equal(ask_stat(f->o, "", &attr, NULL), 0);
	assert_true(S_ISDIR(attr.mode));
	assert_int_equal(ask_stat(f->o, "dir/none", &attr, NULL), -ENOENT);
	assert_int_equal(ask_stat(f->o, "dir/inside/x", &attr, NULL), -ENOTDIR);
}

static void symlinks_lead_nowhere_with_and_without_openat2(void **state)
{
	struct fixture *f = *state;

	put_dir(f, "dir");
	put_file(f, "dir/inside", "in");
	assert_int_equal(symlink("/etc", in_source(f, "out")), 0);
	assert_int_equal(symlink("dir/inside", in_source(f, "file-link")), 0);
	assert_int_equal(symlink("dir", in_source(f, "dir-link")), 0);
	check_confinement(f);
	real(f->o)->no_openat2 = true;
	check_confinement(f);
}

static void a_read_fills_the_buffers_in_turn_and_stops_at_the_end(void **state)
{
	struct fixture *f = *state;
	char a[3], b[4], c[8] = "ccccccc", out[64];
	struct iovec iov[] = {{a, 3}, {NULL, 0}, {b, 4}, {c, 8}};

	put_file(f, "x", "0123456789");
	assert_int_equal(ask_read(f->o, "x", 0, 1, iov, 4), 9);
	assert_memory_equal(a, "123", 3);
	assert_memory_equal(b, "4567", 4);
	assert_memory_equal(c, "89ccccc", 7);
	assert_int_equal(read_text(f, "x", 0, 10, out), 0);
	assert_int_equal(read_text(f, "x", 0, 1000, out), 0);
	assert_int_equal(ask_read(f->o, "x", 0, 0, NULL, 0), 0);
	assert_int_equal(ask_read(f->o, "x", 0, (uint64_t)INT64_MAX + 1, iov, 4), -EINVAL);
	assert_int_equal(ask_read(f->o, "x", 0, INT64_MAX - 3, iov, 4), -EINVAL);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_BYTES), 9);
}

static void a_large_read_over_many_buffers_is_whole(void **state)
{
	struct fixture *f = *state;
	size_t size = 5 * COP_MIB + 123;
	char *want = malloc(size), *got = calloc(1, size);
	struct iovec iov[100];
	int fd = open(in_source(f, "big"), O_WRONLY | O_CREAT, 0644);

	for (size_t i = 0; i < size; i++)
		want[i] = (char)(i * 7 + i / 251);
	assert_int_equal(cop_write_full(fd, want, size), size);
	close(fd);
	for (int i = 0; i < 100; i++)
		iov[i] = (struct iovec){
			got + size / 100 * (size_t)i, i < 99 ? size / 100 : size - size / 100 * 99};
	assert_int_equal(ask_read(f->o, "big", version_of(f, "big"), 0, iov, 100), size);
	assert_memory_equal(want, got, size);
	free(want);
	free(got);
}

static void only_regular_files_are_read(void **state)
{
	struct fixture *f = *state;
	char out[64];

	put_dir(f, "dir");
	assert_int_equal(mkfifo(in_source(f, "fifo"), 0600), 0);
	assert_int_equal(read_text(f, "dir", 0, 0, out), -EISDIR);
	assert_int_equal(read_text(f, "fifo", 0, 0, out), -EINVAL);
	assert_int_equal(read_text(f, "none", 0, 0, out), -ENOENT);
}

static void another_version_is_stale(void **state)
{
	struct fixture *f = *state;
	uint64_t version;
	char out[64];

	put_file(f, "x", "one");
	version = version_of(f, "x");
	assert_int_equal(read_text(f, "x", version, 0, out), 3);
	put_file(f, "x", "other");
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_CHANGED), 0);
	assert_int_equal(read_text(f, "x", version, 0, out), -ESTALE);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_CHANGED), 1);
	assert_string_equal(cop_stats_first(&f->stats, COP_EXAMPLE_CHANGED), "x");
	assert_int_equal(read_text(f, "x", version_of(f, "x"), 0, out), 5);
	assert_string_equal(out, "other");
	assert_int_equal(read_text(f, "x", 0, 0, out), 5);
}

/* A rename replaces the file while its descriptor is kept. The old bytes never come with the new
 * version, nor the new bytes with the old one. */
static void a_kept_descriptor_never_mixes_versions(void **state)
{
	struct fixture *f = *state;
	char text[201], out[64], from[128];
	uint64_t before, after;

	memset(text, 'a', 200);
	text[200] = '\0';
	put_file(f, "x", text);
	before = version_of(f, "x");
	assert_int_equal(read_text(f, "x", before, 0, out), 63);
	assert_int_equal(kept(f), 1);
	memset(text, 'b', 200);
	put_file(f, "y", text);
	snprintf(from, sizeof(from), "%s/y", f->source);
	assert_int_equal(rename(from, in_source(f, "x")), 0);
	after = version_of(f, "x");
	assert_int_equal(read_text(f, "x", after, 0, out), 63);
	assert_int_equal(out[0], 'b');
	assert_int_equal(read_text(f, "x", before, 63, out), -ESTALE);
	assert_int_equal(kept(f), 1);
}

static void reads_in_a_row_open_a_file_once_and_its_end_closes_it(void **state)
{
	struct fixture *f = *state;
	char text[201], out[64];
	uint64_t version, ops;

	memset(text, 'a', 200);
	text[200] = '\0';
	put_file(f, "x", text);
	version = version_of(f, "x");
	ops = cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS);
	for (uint64_t at = 0; at < 200; at += 63)
		assert_true(read_text(f, "x", version, at, out) > 0);
	/* One open, then pread and statx for each read, and one more pread that finds the end. */
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_OPERATIONS) - ops, 1 + 4 * 2 + 1);
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_READS), 4);
	assert_int_equal(kept(f), 0);
}

static void descriptors_are_bounded_and_dropped_after_two_seconds(void **state)
{
	struct fixture *f = *state;
	char name[16], text[201], out[64];
	uint64_t last_ms = 0, end;

	memset(text, 'a', 200);
	text[200] = '\0';
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		put_file(f, name, text);
		last_ms = cop_now_ms();
		assert_int_equal(read_text(f, name, version_of(f, name), 0, out), 63);
		assert_in_range(kept(f), 1, COP_ORIGIN_KEPT_FDS);
	}
	end = cop_now_ms() + 10000;
	while (kept(f) && cop_now_ms() < end)
		usleep(20000);
	assert_int_equal(kept(f), 0);
	assert_true(cop_now_ms() - last_ms >= 2000);
}

struct hammer {
	struct fixture *f;
	uint64_t version;
	_Atomic int bad;
};

static void *hammer(void *arg)
{
	struct hammer *h = arg;
	char out[64];

	for (uint64_t i = 0; i < 300; i++) {
		ssize_t n = read_text(h->f, "x", h->version, i % 200, out);

		if (n != (ssize_t)COP_MIN(63, 200 - i % 200) ||
			out[0] != (char)('a' + i % 200 % 26))
			h->bad++;
	}
	return NULL;
}

static void parallel_reads_of_one_file_get_the_right_bytes(void **state)
{
	struct fixture *f = *state;
	struct hammer h = {.f = f};
	char text[201] = "";
	pthread_t t[4];

	for (int i = 0; i < 200; i++)
		text[i] = (char)('a' + i % 26);
	put_file(f, "x", text);
	h.version = version_of(f, "x");
	for (int i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&t[i], "hammer", hammer, &h), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(h.bad, 0);
	assert_true(kept(f) <= 1);
}

static void holes_are_distinguished_from_data(void **state)
{
	struct fixture *f = *state;
	struct cop_extent *e;
	size_t count;
	int fd, rc;

	fd = open(in_source(f, "sparse"), O_WRONLY | O_CREAT, 0644);
	assert_int_equal(ftruncate(fd, 4 << 20), 0);
	assert_int_equal(pwrite(fd, "data", 4, 1 << 20), 4);
	close(fd);
	e = ask_holes(f->o, "sparse", version_of(f, "sparse"), &rc, &count);
	assert_int_equal(rc, 0);
	assert_int_equal(count, 1);
	assert_true(e[0].start <= 1 << 20 && e[0].end > 1 << 20 && e[0].end <= 4 << 20);
	free(e);
	put_file(f, "full", "full");
	e = ask_holes(f->o, "full", 0, &rc, &count);
	assert_int_equal(count, 1);
	assert_int_equal(e[0].start, 0);
	assert_int_equal(e[0].end, 4);
	free(e);
	put_file(f, "empty", "");
	assert_null(ask_holes(f->o, "empty", 0, &rc, &count));
	assert_int_equal(rc, 0);
	assert_int_equal(truncate(in_source(f, "empty"), 1 << 20), 0);
	assert_null(ask_holes(f->o, "empty", 0, &rc, &count));
	assert_int_equal(rc, 0);
	assert_null(ask_holes(f->o, "full", 1, &rc, &count));
	assert_int_equal(rc, -ESTALE);
	assert_null(ask_holes(f->o, "", 0, &rc, &count));
	assert_int_equal(rc, -EISDIR);
}

static void statfs_describes_the_source(void **state)
{
	struct fixture *f = *state;
	struct answer *a = new_answer();
	struct cop_statfs *fs;
	struct statvfs want;
	size_t len;
	int rc;

	cop_origin_statfs(f->o, answered, a);
	fs = take_answer(a, &rc, &len);
	assert_int_equal(rc, 0);
	assert_int_equal(len, sizeof(*fs));
	assert_int_equal(statvfs(f->source, &want), 0);
	assert_int_equal(fs->blocks, want.f_blocks);
	assert_int_equal(fs->namemax, want.f_namemax);
	free(fs);
}

static pthread_t ran_on;

static void ran(void *arg, int rc)
{
	ran_on = pthread_self();
	answered(arg, rc, NULL, 0);
}

static void any_other_work_runs_on_the_pool(void **state)
{
	struct fixture *f = *state;
	struct answer *a = new_answer();
	unsigned queued, running;
	size_t len;
	int rc;

	cop_origin_run(f->o, ran, a);
	take_answer(a, &rc, &len);
	assert_int_equal(rc, 0);
	assert_false(pthread_equal(ran_on, pthread_self()));
	cop_origin_load(f->o, &queued, &running);
	assert_int_equal(queued, 0);
	assert_true(running <= 1);
}

static void a_source_that_cannot_be_used_is_named(void **state)
{
	struct fixture *f = *state;
	struct cop_origin_conf conf = {.source = in_source(f, "none"), .max_ops = 1};
	struct cop_origin *o = NULL;
	struct cop_err err = {0};

	assert_int_equal(cop_origin_open(&conf, &o, &err), -ENOENT);
	assert_non_null(strstr(err.text, conf.source));
	put_file(f, "file", "");
	conf.source = in_source(f, "file");
	assert_int_equal(cop_origin_open(&conf, &o, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "not a directory"));
	assert_null(o);
	assert_int_equal(cop_origin_dirfd(f->o), real(f->o)->base.dirfd);
	cop_origin_close(NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_wrong_size_is_stale(void **state)
{
	struct fixture *f = *state;
	char out[64];
	struct iovec iov = {out, sizeof(out)};
	uint64_t version;

	put_file(f, "a", "ten bytes!");
	version = version_of(f, "a");
	assert_int_equal(ask_read_of_size(f->o, "a", version, 10, 0, &iov, 1), 10);
	for (uint64_t size = 0; size < 100; size++)
		if (size != 10)
			assert_int_equal(
				ask_read_of_size(f->o, "a", version, size, 0, &iov, 1), -ESTALE);
	assert_int_equal(ask_read_of_size(f->o, "a", version, UINT64_MAX, 0, &iov, 1), -ESTALE);
	assert_int_equal(ask_read_of_size(f->o, "a", 0, 99, 0, &iov, 1), 10);
}

/* Sets the descriptor limit so low that no more can be opened. */
static struct rlimit no_more_descriptors(void)
{
	struct rlimit old, none;
	int lowest = dup(0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)lowest;
	close(lowest);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return old;
}

static void descriptors_that_are_kept_are_given_up_for_one_that_is_needed(void **state)
{
	struct fixture *f = *state;
	struct rlimit old;
	struct cop_attr attr;
	char out[64];

	put_file(f, "a",
		"a text that is longer than what is read of it at first, so that its descriptor is kept");
	put_file(f, "b", "short");
	assert_int_equal(read_text(f, "a", version_of(f, "a"), 0, out), 63);
	assert_int_equal(kept(f), 1);
	old = no_more_descriptors();
	assert_int_equal(ask_stat(f->o, "b", &attr, NULL), 0);
	assert_int_equal(kept(f), 0);
	setrlimit(RLIMIT_NOFILE, &old);
}

static void a_shortage_of_this_process_is_not_an_error_of_the_storage(void **state)
{
	struct fixture *f = *state;
	struct rlimit old;
	struct cop_attr attr;
	int rc;

	put_file(f, "b", "short");
	/* Starts a worker first, because starting one takes memory. */
	assert_int_equal(ask_stat(f->o, "b", &attr, NULL), 0);
	old = no_more_descriptors();
	rc = ask_stat(f->o, "b", &attr, NULL);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(rc, -EMFILE);
	assert_true(cop_is_shortage(rc));
	assert_int_equal(cop_stats_get(&f->stats, COP_ORIGIN_ERRORS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_wrong_size_is_stale),
		T(descriptors_that_are_kept_are_given_up_for_one_that_is_needed),
		T(a_shortage_of_this_process_is_not_an_error_of_the_storage),
		T(hostile_paths_are_refused_before_any_system_call),
		T(symlinks_lead_nowhere_with_and_without_openat2),
		T(a_read_fills_the_buffers_in_turn_and_stops_at_the_end),
		T(a_large_read_over_many_buffers_is_whole),
		T(only_regular_files_are_read),
		T(another_version_is_stale),
		T(a_kept_descriptor_never_mixes_versions),
		T(reads_in_a_row_open_a_file_once_and_its_end_closes_it),
		T(descriptors_are_bounded_and_dropped_after_two_seconds),
		T(parallel_reads_of_one_file_get_the_right_bytes),
		T(holes_are_distinguished_from_data),
		T(statfs_describes_the_source),
		T(any_other_work_runs_on_the_pool),
		T(a_source_that_cannot_be_used_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
