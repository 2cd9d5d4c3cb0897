/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's rarer requests, and errors, interruptions and checks in all requests. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <unistd.h>

#include "mount/fuse/fuse_testing.h"

static uint64_t shift_ns;

static uint64_t shifted_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * COP_NS_PER_S + (uint64_t)ts.tv_nsec + shift_ns;
}

/* ---- opening and closing ---- */

static void the_kernel_opens_by_itself_where_it_can(void **state)
{
	struct fuse_file_info fi = {0};
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	f = lookup(FUSE_ROOT_ID, "f");
	fs->conn_caps = FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT;
	cop_fuse_ops.open(begin_request(), f, &fi);
	end_request();
	assert_int_equal(req.error, ENOSYS);
	cop_fuse_ops.opendir(begin_request(), FUSE_ROOT_ID, &fi);
	end_request();
	assert_int_equal(req.error, ENOSYS);
}

static void where_opens_come_pages_and_names_are_kept(void **state)
{
	struct fuse_file_info fi = {0};
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	f = lookup(FUSE_ROOT_ID, "f");
	fs->conn_caps = 0;
	cop_fuse_ops.open(begin_request(), f, &fi);
	end_request();
	assert_true(req.opened.keep_cache);
	assert_false(req.opened.direct_io);
	cop_fuse_ops.opendir(begin_request(), FUSE_ROOT_ID, &fi);
	end_request();
	assert_true(req.opened.keep_cache && req.opened.cache_readdir);
	cop_fuse_ops.release(begin_request(), f, &fi);
	end_request();
	assert_int_equal(req.error, 0);
	cop_fuse_ops.releasedir(begin_request(), FUSE_ROOT_ID, &fi);
	end_request();
	assert_int_equal(req.error, 0);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_OPEN), 1);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_RELEASEDIR), 1);
}

static void who_observes_sees_each_read_and_each_name(void **state)
{
	struct fuse_file_info fi = {0};
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	fs->conf.observe = true;
	f = lookup(FUSE_ROOT_ID, "f");
	assert_true(req.entry.entry_timeout == 0 && req.entry.attr_timeout == 0);
	cop_fuse_ops.open(begin_request(), f, &fi);
	end_request();
	assert_false(req.opened.keep_cache);
	cop_fuse_ops.opendir(begin_request(), FUSE_ROOT_ID, &fi);
	end_request();
	assert_false(req.opened.keep_cache || req.opened.cache_readdir);
}

/* ---- what is asked for once ---- */

static void a_file_system_is_as_large_as_the_storage(void **state)
{
	(void)state;
	cop_fuse_ops.statfs(begin_request(), FUSE_ROOT_ID);
	end_request();
	assert_int_equal(req.error, 0);
	assert_int_equal(req.space.f_blocks, 1000000);
	assert_int_equal(req.space.f_bavail, 400000);
	assert_int_equal(req.space.f_files, 100000);
	assert_int_equal(req.space.f_namemax, 255);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_STATFS), 1);
}

static void extended_attributes_are_never_asked_for_again(void **state)
{
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	f = lookup(FUSE_ROOT_ID, "f");
	cop_fuse_ops.getxattr(begin_request(), f, "security.capability", 20);
	end_request();
	assert_int_equal(req.error, ENOSYS);
	cop_fuse_ops.listxattr(begin_request(), f, 0);
	end_request();
	assert_int_equal(req.error, ENOSYS);
}

static void the_file_of_copper_1_is_refused_whatever_the_storage_has(void **state)
{
	(void)state;
	put_file(".spec_ioctl_file", "x");
	lookup(FUSE_ROOT_ID, ".spec_ioctl_file");
	assert_int_equal(req.error, EOPNOTSUPP);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
}

/* ---- links ---- */

static void put_link(const char *path, const char *target)
{
	cop_origin_fake_put(origin, path, S_IFLNK | 0777, target, strlen(target));
}

static void assert_link(fuse_ino_t ino, const char *target)
{
	cop_fuse_ops.readlink(begin_request(), ino);
	end_request();
	assert_int_equal(req.error, 0);
	assert_int_equal(req.len, strlen(target));
	assert_memory_equal(req.data, target, req.len);
}

static void a_link_stays_inside_the_mount(void **state)
{
	fuse_ino_t d;

	(void)state;
	put_file("d", NULL);
	put_link("d/near", "../f");
	put_link("d/back", "/source/lib/x");
	put_link("d/away", "/etc/hosts");
	d = lookup(FUSE_ROOT_ID, "d");
	assert_link(lookup(d, "near"), "../f");
	assert_link(lookup(d, "away"), "/etc/hosts");
	lookup(d, "back");
	/* Its size is that of the target as shown. */
	assert_int_equal(req.entry.attr.st_size, strlen("../lib/x"));
	assert_link(req.entry.ino, "../lib/x");
}

static void on_the_side_of_views_a_link_is_as_in_the_source(void **state)
{
	fuse_ino_t view, d, l;

	(void)state;
	put_file("d", NULL);
	put_file("d/f", "x");
	put_link("d/back", "/source/lib/x");
	view = lookup(FUSE_ROOT_ID, COP_FUSE_VIEW_ROOT);
	assert_int_not_equal(view, 0);
	assert_int_equal(lookup(view, COP_FUSE_VIEW_ROOT), 0);
	d = lookup(view, "d");
	assert_int_not_equal(d, lookup(FUSE_ROOT_ID, "d"));
	l = lookup(d, "back");
	assert_int_equal(req.entry.attr.st_size, strlen("/source/lib/x"));
	assert_link(l, "/source/lib/x");
	assert_link(lookup(lookup(FUSE_ROOT_ID, "d"), "back"), "../lib/x");
	assert_link(l, "/source/lib/x");
	cop_fuse_ops.getattr(begin_request(), l, NULL);
	end_request();
	assert_int_equal(req.attr.st_size, strlen("/source/lib/x"));
	cop_fuse_ops.getattr(begin_request(), lookup(lookup(FUSE_ROOT_ID, "d"), "back"), NULL);
	end_request();
	assert_int_equal(req.attr.st_size, strlen("../lib/x"));
	/* Both sides share one set of pages in the kernel. */
	assert_int_equal(lookup(d, "f"), lookup(lookup(FUSE_ROOT_ID, "d"), "f"));
}

static void expect_shown(fuse_ino_t dir, const char *name, mode_t mode, const char *target)
{
	fuse_ino_t i = lookup(dir, name);

	assert_int_equal(req.entry.attr.st_mode, mode);
	cop_fuse_ops.getattr(begin_request(), i, NULL);
	end_request();
	assert_int_equal(req.attr.st_mode, mode);
	if (!target)
		return;
	assert_int_equal(req.attr.st_size, strlen(target));
	assert_link(i, target);
}

static void a_fifo_cannot_be_opened_on_the_mount_and_is_a_link_to_the_storages_in_a_view(
	void **state)
{
	fuse_ino_t view, d;

	(void)state;
	put_file("d", NULL);
	cop_origin_fake_put(origin, "fifo", S_IFIFO | 0640, "", 0);
	cop_origin_fake_put(origin, "d/socket", S_IFSOCK | 0600, "", 0);
	expect_shown(FUSE_ROOT_ID, "fifo", S_IFSOCK | 0640, NULL);
	d = lookup(FUSE_ROOT_ID, "d");
	expect_shown(d, "socket", S_IFSOCK | 0600, NULL);
	view = lookup(FUSE_ROOT_ID, COP_FUSE_VIEW_ROOT);
	expect_shown(view, "fifo", S_IFLNK | 0777, ".copper-storage/fifo");
	d = lookup(view, "d");
	expect_shown(d, "socket", S_IFLNK | 0777, "../.copper-storage/d/socket");
	assert_int_equal(lookup(FUSE_ROOT_ID, COP_FUSE_STORAGE), 0);
	d = lookup(view, COP_FUSE_STORAGE);
	assert_true(S_ISDIR(req.entry.attr.st_mode));
	assert_int_not_equal(d, 0);
}

static void a_link_does_not_wait_for_the_names_around_it(void **state)
{
	fuse_ino_t l;

	(void)state;
	put_link("l", "f");
	cop_fuse_ops.lookup(begin_request(), FUSE_ROOT_ID, "l");
	cop_origin_fake_run(origin, 1);
	assert_int_equal(req.replies, 1);
	l = req.entry.ino;
	cop_fuse_ops.readlink(begin_request(), l);
	assert_int_equal(req.replies, 1);
	assert_int_equal(req.error, 0);
	assert_memory_equal(req.data, "f", req.len);
	cop_origin_fake_run(origin, SIZE_MAX);
	assert_int_equal(cop_origin_fake_counts(origin).stats, 1);
}

static void a_link_that_has_become_a_file_is_stale(void **state)
{
	fuse_ino_t l;

	(void)state;
	put_link("l", "f");
	l = lookup(FUSE_ROOT_ID, "l");
	put_file("l", "x");
	cop_cache_drop_under(cache, "");
	cop_fuse_ops.readlink(begin_request(), l);
	end_request();
	assert_int_equal(req.error, ESTALE);
	cop_origin_fake_put(origin, "l", 0, NULL, 0);
	cop_cache_drop_under(cache, "");
	cop_fuse_ops.readlink(begin_request(), l);
	end_request();
	assert_int_equal(req.error, ENOENT);
}

/* ---- bytes ---- */

static void seek(fuse_ino_t f, off_t off, int whence)
{
	cop_fuse_ops.lseek(begin_request(), f, off, whence, &(struct fuse_file_info){0});
	end_request();
}

static void a_file_is_data_up_to_its_end(void **state)
{
	fuse_ino_t f;

	(void)state;
	put_file("f", "12345");
	f = lookup(FUSE_ROOT_ID, "f");
	seek(f, 2, SEEK_DATA);
	assert_int_equal(req.found, 2);
	seek(f, 2, SEEK_HOLE);
	assert_int_equal(req.found, 5);
	seek(f, 5, SEEK_HOLE);
	assert_int_equal(req.error, ENXIO);
	seek(f, 5, SEEK_DATA);
	assert_int_equal(req.error, ENXIO);
	seek(f, -1, SEEK_HOLE);
	assert_int_equal(req.error, ENXIO);
	seek(f, 0, SEEK_END);
	assert_int_equal(req.error, EINVAL);
}

/* A file with fewer blocks than bytes has holes, so the storage is asked where they are. */
static void of_a_sparse_file_the_storage_is_asked(void **state)
{
	fuse_ino_t f;

	(void)state;
	put_file("f", "12345");
	f = lookup(FUSE_ROOT_ID, "f");
	cop_fuse_inode(fs, f)->attr.blocks = 0;
	seek(f, 1, SEEK_DATA);
	assert_int_equal(req.found, 1);
	seek(f, 1, SEEK_HOLE);
	assert_int_equal(req.found, 5);
	/* By then its version has changed. */
	put_file("f", "54321");
	cop_cache_drop_under(cache, "");
	seek(f, 1, SEEK_DATA);
	assert_int_equal(req.error, ESTALE);
}

static void a_file_that_is_another_by_now_is_stale(void **state)
{
	fuse_ino_t f, g;

	(void)state;
	put_file("f", "12345");
	put_file("g", "12345");
	f = lookup(FUSE_ROOT_ID, "f");
	g = lookup(FUSE_ROOT_ID, "g");
	put_file("f", "54321");
	read_file(f, 5, 0);
	assert_int_equal(req.error, ESTALE);
	/* The file existed when it was opened. */
	cop_origin_fake_put(origin, "g", 0, NULL, 0);
	read_file(g, 5, 0);
	assert_int_equal(req.error, ESTALE);
}

static void a_program_gets_eio_for_what_only_a_node_understands(void **state)
{
	static const int own[] = {ESHUTDOWN, ECANCELED, EBADMSG, EHOSTDOWN};
	fuse_ino_t d;

	(void)state;
	put_file("d", NULL);
	d = lookup(FUSE_ROOT_ID, "d");
	for (size_t i = 0; i < COP_ARRAY_SIZE(own); i++) {
		cop_origin_fake_fail(origin, "d", -own[i]);
		read_dir(d, 4096, 0, false);
		assert_int_equal(req.error, EIO);
	}
	cop_origin_fake_fail(origin, "d", 0);
	read_dir(d, 4096, 0, false);
	assert_int_equal(req.error, 0);
}

/* ---- files past the tree ---- */

static fuse_ino_t large_file(void)
{
	fs->conf.max_cacheable = 4;
	put_file("f", "12345");
	return lookup(FUSE_ROOT_ID, "f");
}

static void a_file_over_the_limit_is_read_from_the_storage_each_time(void **state)
{
	fuse_ino_t f = large_file();

	(void)state;
	for (unsigned i = 1; i <= 2; i++) {
		read_file(f, 10, 1);
		assert_int_equal(req.len, 4);
		assert_memory_equal(req.data, "2345", 4);
		assert_int_equal(cop_stats_get(&stats, COP_FUSE_BYPASS_READS), i);
		assert_int_equal(cop_origin_fake_counts(origin).reads, i);
	}
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_BYPASS_BYTES), 8);
	fs->conf.max_cacheable = 5;
	read_file(f, 10, 1);
	assert_int_equal(req.len, 4);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_BYPASS_READS), 2);
}

static void a_file_over_the_limit_that_changed_or_went_is_stale(void **state)
{
	fuse_ino_t f = large_file();

	(void)state;
	put_file("f", "abcde");
	read_file(f, 10, 0);
	assert_int_equal(req.error, ESTALE);
	cop_origin_fake_put(origin, "f", 0, NULL, 0);
	read_file(f, 10, 0);
	assert_int_equal(req.error, ESTALE);
	cop_origin_fake_fail(origin, "f", -EIO);
	read_file(f, 10, 0);
	assert_int_equal(req.error, EIO);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_BYPASS_BYTES), 0);
}

/* ---- absent names ---- */

/* Lets time pass, so that the next lookup of the name checks the directory. */
static void absent_again(fuse_ino_t d)
{
	shift_ns += 3600 * COP_NS_PER_S;
	lookup(d, "later");
}

static void absence_is_checked_in_time_and_a_new_name_is_seen(void **state)
{
	fuse_ino_t d, old;

	(void)state;
	cop_clocks_for_test(shifted_ns, NULL);
	put_file("d", NULL);
	put_file("d/old", "x");
	d = lookup(FUSE_ROOT_ID, "d");
	old = lookup(d, "old");
	lookup(d, "later");
	assert_int_equal(cop_stats_get(&stats, COP_ENOENT_EXPIRES), 0);
	absent_again(d);
	assert_int_equal(req.entry.ino, 0);
	assert_int_equal(cop_stats_get(&stats, COP_ENOENT_EXPIRES), 1);
	assert_int_equal(cop_stats_get(&stats, COP_ENOENT_CLEARS), 0);
	put_file("d/later", "here");
	absent_again(d);
	assert_int_equal(req.error, 0);
	assert_int_equal(req.entry.attr.st_size, 4);
	assert_int_equal(cop_stats_get(&stats, COP_ENOENT_CLEARS), 1);
	/* Known names are unchanged. */
	assert_int_equal(lookup(d, "old"), old);
	cop_clocks_for_test(NULL, NULL);
}

static void absent_in_a_directory_that_went_is_absent(void **state)
{
	fuse_ino_t d;

	(void)state;
	cop_clocks_for_test(shifted_ns, NULL);
	put_file("d", NULL);
	d = lookup(FUSE_ROOT_ID, "d");
	lookup(d, "later");
	cop_origin_fake_put(origin, "d", 0, NULL, 0);
	absent_again(d);
	assert_int_equal(req.entry.ino, 0);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_NEGATIVE), 2);
	cop_clocks_for_test(NULL, NULL);
}

/* ---- the reader was killed ---- */

static void replies_that_nobody_gets_leave_nothing(void **state)
{
	struct cop_cache_usage before, after;
	fuse_ino_t d, f;

	(void)state;
	put_file("d", NULL);
	put_file("d/f", "12345");
	d = lookup(FUSE_ROOT_ID, "d");
	f = lookup(d, "f");
	read_file(f, 5, 0);
	cop_cache_usage(cache, &before);
	req.lost = -ENOENT;
	read_file(f, 5, 0);
	read_dir(d, 4096, 0, false);
	read_dir(d, 4096, 0, true);
	cop_fuse_ops.getattr(begin_request(), f, NULL);
	end_request();
	cop_fuse_ops.statfs(begin_request(), FUSE_ROOT_ID);
	end_request();
	assert_int_equal(atomic_load(&cop_fuse_inode(fs, f)->refs), 1);
	assert_int_equal(cop_fuse_inode_count(fs), 2);
	cop_cache_usage(cache, &after);
	assert_true(after.used_bytes >= before.used_bytes);
	/* A reference to a chunk would keep it from being dropped. */
	cop_cache_drop_under(cache, "");
	cop_cache_usage(cache, &after);
	assert_int_equal(after.used_bytes, 0);
	req.lost = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_kernel_opens_by_itself_where_it_can),
		T(where_opens_come_pages_and_names_are_kept),
		T(who_observes_sees_each_read_and_each_name),
		T(a_file_system_is_as_large_as_the_storage),
		T(extended_attributes_are_never_asked_for_again),
		T(the_file_of_copper_1_is_refused_whatever_the_storage_has),
		T(a_link_stays_inside_the_mount),
		T(on_the_side_of_views_a_link_is_as_in_the_source),
		T(a_fifo_cannot_be_opened_on_the_mount_and_is_a_link_to_the_storages_in_a_view),
		T(a_link_that_has_become_a_file_is_stale),
		T(a_link_does_not_wait_for_the_names_around_it),
		T(a_file_is_data_up_to_its_end),
		T(of_a_sparse_file_the_storage_is_asked),
		T(a_file_that_is_another_by_now_is_stale),
		T(a_program_gets_eio_for_what_only_a_node_understands),
		T(a_file_over_the_limit_is_read_from_the_storage_each_time),
		T(a_file_over_the_limit_that_changed_or_went_is_stale),
		T(absence_is_checked_in_time_and_a_new_name_is_seen),
		T(absent_in_a_directory_that_went_is_absent),
		T(replies_that_nobody_gets_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
