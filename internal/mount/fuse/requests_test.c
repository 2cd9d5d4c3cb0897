/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests that every program causes: names, directories, bytes, changes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/fuse.h>
#include <stdio.h>

#include "mount/fuse/fuse_testing.h"

#define NAMES 300u
#define ABSENT 5000u

/* ---- names and attributes ---- */

static void a_name_has_its_attributes_and_one_reference(void **state)
{
	fuse_ino_t ino;

	(void)state;
	put_file("d", NULL);
	put_file("d/f", "12345");
	ino = lookup(lookup(FUSE_ROOT_ID, "d"), "f");
	assert_true(ino != 0);
	assert_int_equal(req.entry.attr.st_size, 5);
	assert_int_equal(req.entry.attr.st_mode, S_IFREG | 0644);
	assert_true(req.entry.attr_timeout == CACHE_SECONDS);
	assert_true(req.entry.entry_timeout == CACHE_SECONDS);
	assert_int_equal(atomic_load(&cop_fuse_inode(fs, ino)->refs), 1);
	assert_int_equal(cop_fuse_inode_count(fs), 2);
	cop_fuse_ops.getattr(begin_request(), ino, NULL);
	end_request();
	assert_int_equal(req.attr.st_size, 5);
	assert_true(req.attr_s == CACHE_SECONDS);
}

static void the_root_has_the_attributes_of_the_source(void **state)
{
	(void)state;
	cop_fuse_ops.getattr(begin_request(), FUSE_ROOT_ID, NULL);
	end_request();
	assert_int_equal(req.error, 0);
	assert_true(S_ISDIR(req.attr.st_mode));
	cop_origin_fake_fail(origin, "", -EACCES);
	cop_cache_drop_under(cache, "");
	cop_fuse_ops.getattr(begin_request(), FUSE_ROOT_ID, NULL);
	end_request();
	assert_int_equal(req.error, EACCES);
}

static void an_absent_name_is_an_entry_that_the_kernel_keeps_if_it_can(void **state)
{
	fuse_ino_t d;

	(void)state;
	put_file("d", NULL);
	d = lookup(FUSE_ROOT_ID, "d");
	assert_int_equal(lookup(d, "none"), 0);
	assert_int_equal(req.error, 0);
	assert_true(req.entry.entry_timeout == 60.0);
	fs->conn_caps = 0;
	assert_int_equal(lookup(d, "none"), 0);
	assert_int_equal(req.error, ENOENT);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_NEGATIVE), 2);
}

/* No notification makes the kernel forget all names in the root, so the node keeps a list. */
static void of_many_absent_names_in_the_root_the_kernel_keeps_each(void **state)
{
	char name[64];

	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < ABSENT; i++) {
			snprintf(name, sizeof(name), "there-is-no-such-name-%u", i);
			assert_int_equal(lookup(FUSE_ROOT_ID, name), 0);
			assert_int_equal(req.error, 0);
			assert_true(req.entry.entry_timeout == 60.0);
		}
}

static void a_name_of_256_bytes_is_too_long(void **state)
{
	char name[257];

	(void)state;
	memset(name, 'n', 256);
	name[256] = '\0';
	lookup(FUSE_ROOT_ID, name);
	assert_int_equal(req.error, ENAMETOOLONG);
	lookup(FUSE_ROOT_ID, name + 1);
	assert_int_equal(req.error, 0);
}

static void an_error_of_the_storage_is_the_error_of_the_name(void **state)
{
	(void)state;
	put_file("f", "x");
	cop_origin_fake_fail(origin, "", -EIO);
	cop_origin_fake_fail(origin, "f", -EIO);
	lookup(FUSE_ROOT_ID, "f");
	assert_int_equal(req.error, EIO);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_ERRORS), 1);
}

/* Asserts how often the storage was asked for the attributes of a name, and for a listing. */
static void assert_asked(size_t stats_, size_t lists)
{
	struct cop_origin_fake_counts n;

	cop_origin_fake_run(origin, SIZE_MAX);
	n = cop_origin_fake_counts(origin);
	assert_int_equal(n.stats, stats_);
	assert_int_equal(n.lists, lists);
}

/* Creates a directory d with the files a and b, and looks up only the directory. */
static fuse_ino_t put_two_names(void)
{
	fuse_ino_t d;

	put_file("d", NULL);
	put_file("d/a", "x");
	put_file("d/b", "xy");
	d = lookup(FUSE_ROOT_ID, "d");
	assert_asked(1, 1);
	return d;
}

static void the_first_name_in_a_directory_does_not_wait_for_the_others(void **state)
{
	fuse_ino_t d = put_two_names();

	(void)state;
	cop_fuse_ops.lookup(begin_request(), d, "a");
	cop_origin_fake_run(origin, 1);
	assert_int_equal(req.replies, 1);
	assert_int_equal(req.entry.attr.st_size, 1);
	assert_asked(2, 2);
	lookup(d, "b");
	assert_int_equal(req.entry.attr.st_size, 2);
	assert_int_equal(lookup(d, "none"), 0);
	assert_asked(2, 2);
}

/* The name could come from a different version than the names that the kernel has. */
static void when_a_directory_is_listed_again_a_name_waits_for_it(void **state)
{
	fuse_ino_t d;

	(void)state;
	put_file("d", NULL);
	put_file("d/a", "x");
	put_file("d/b", "x");
	d = lookup(FUSE_ROOT_ID, "d");
	lookup(d, "a");
	lookup(d, "b");
	assert_asked(2, 2);
	cop_cache_drop_under(cache, "d");
	lookup(d, "b");
	assert_asked(2, 3);
}

static void a_name_that_is_looked_up_while_the_listing_comes_waits_for_it(void **state)
{
	fuse_ino_t d = put_two_names();

	(void)state;
	cop_fuse_ops.lookup(begin_request(), d, "a");
	cop_origin_fake_run(origin, 1);
	assert_int_equal(req.replies, 1);
	assert_true(lookup(d, "b") != 0);
	assert_int_equal(req.entry.attr.st_size, 2);
	assert_asked(2, 2);
}

/* As when a request for the directory's entry also requests its listing. */
static void the_first_name_does_not_wait_for_a_listing_that_comes_at_a_root(void **state)
{
	struct cop_ask listing = {.kind = COP_ASK_LISTING, .path = "d", .along = true};
	struct cop_obj *obj;
	fuse_ino_t d = put_two_names();

	(void)state;
	assert_int_equal(cop_fetch_get(fetch, &listing, NULL, &obj), 0);
	cop_fuse_ops.lookup(begin_request(), d, "a");
	assert_int_equal(req.replies, 0);
	cop_origin_fake_run(origin, SIZE_MAX);
	assert_int_equal(req.replies, 1);
	assert_asked(2, 2);
	/* Later lookups wait. */
	cop_cache_drop_under(cache, "d");
	assert_int_equal(cop_fetch_get(fetch, &listing, NULL, &obj), 0);
	lookup(d, "b");
	assert_int_equal(req.entry.attr.st_size, 2);
	assert_asked(2, 3);
}

/* ---- what the kernel holds ---- */

static void an_inode_lives_until_it_is_forgotten_as_often_as_it_was_looked_up(void **state)
{
	fuse_ino_t d, f;

	(void)state;
	put_file("d", NULL);
	put_file("d/f", "x");
	d = lookup(FUSE_ROOT_ID, "d");
	f = lookup(d, "f");
	assert_int_equal(lookup(d, "f"), f);
	assert_int_equal(lookup(d, "f"), f);
	forget(f, 2);
	assert_int_equal(cop_fuse_inode_count(fs), 2);
	/* The directory stays while an inode in it is referenced. */
	forget(d, 1);
	assert_int_equal(cop_fuse_inode_count(fs), 2);
	forget(f, 1);
	assert_int_equal(cop_fuse_inode_count(fs), 0);
	assert_int_equal(cop_stats_get(&stats, COP_FUSE_FORGET), 3);
}

static void many_are_forgotten_at_once(void **state)
{
	struct fuse_forget_data gone[2];

	(void)state;
	put_file("a", "x");
	put_file("b", "x");
	gone[0] = (struct fuse_forget_data){lookup(FUSE_ROOT_ID, "a"), 1};
	gone[1] = (struct fuse_forget_data){lookup(FUSE_ROOT_ID, "b"), 1};
	cop_fuse_ops.forget_multi(begin_request(), 2, gone);
	end_request();
	assert_int_equal(cop_fuse_inode_count(fs), 0);
}

static void a_lookup_that_was_interrupted_leaves_nothing(void **state)
{
	(void)state;
	put_file("f", "x");
	req.lost = -ENOENT;
	lookup(FUSE_ROOT_ID, "f");
	assert_int_equal(cop_fuse_inode_count(fs), 0);
}

/* ---- directories ---- */

static void put_names(unsigned count)
{
	char path[32];

	put_file("d", NULL);
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "d/name%u", i);
		put_file(path, "x");
	}
}

/* Counts each entry of a reply; returns the offset of the last entry. */
static uint64_t count_names(unsigned met[NAMES], unsigned *dots, bool plus)
{
	uint64_t off = 0;

	for (size_t at = 0; at < req.len;) {
		const struct fuse_dirent *d =
			(void *)(req.data + at +
				 (plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET) -
				 FUSE_NAME_OFFSET);
		unsigned n;
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)d->namelen, d->name);
		if (sscanf(name, "name%u", &n) == 1)
			met[n]++;
		else
			*dots += strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
		off = d->off;
		at += plus ? FUSE_DIRENTPLUS_SIZE((const struct fuse_direntplus *)(req.data + at))
			   : FUSE_DIRENT_SIZE(d);
	}
	return off;
}

static void each_name_comes_once_however_small_the_pages(void **state)
{
	static const size_t sizes[] = {64, 100, 511, 4096, 65536};
	fuse_ino_t d;

	(void)state;
	put_names(NAMES);
	d = lookup(FUSE_ROOT_ID, "d");
	for (size_t s = 0; s < COP_ARRAY_SIZE(sizes); s++) {
		unsigned met[NAMES] = {0}, dots = 0, pages = 0;
		uint64_t off = 0;

		for (;; pages++) {
			read_dir(d, sizes[s], (off_t)off, false);
			assert_int_equal(req.error, 0);
			assert_true(req.len <= sizes[s] && pages <= NAMES + 3);
			if (!req.len)
				break;
			off = count_names(met, &dots, false);
		}
		assert_int_equal(dots, 2);
		for (unsigned i = 0; i < NAMES; i++)
			assert_int_equal(met[i], 1);
	}
	/* A plain READDIR gives the kernel no inodes. */
	assert_int_equal(cop_fuse_inode_count(fs), 1);
}

static void names_with_attributes_are_looked_up_and_those_not_delivered_are_not(void **state)
{
	unsigned met[NAMES] = {0}, dots = 0, sum = 0;
	fuse_ino_t d;

	(void)state;
	put_names(COP_ORIGIN_LISTING_ATTRS);
	d = lookup(FUSE_ROOT_ID, "d");
	req.lost = -ENOENT;
	read_dir(d, 65536, 0, true);
	assert_int_equal(cop_fuse_inode_count(fs), 1);
	req.lost = 0;
	read_dir(d, 65536, 0, true);
	count_names(met, &dots, true);
	for (unsigned i = 0; i < NAMES; i++)
		sum += met[i];
	assert_int_equal(sum, COP_ORIGIN_LISTING_ATTRS);
	assert_int_equal(cop_fuse_inode_count(fs), 1 + sum);
}

static void an_unreadable_directory_gives_its_error(void **state)
{
	fuse_ino_t d;

	(void)state;
	put_file("d", NULL);
	d = lookup(FUSE_ROOT_ID, "d");
	cop_origin_fake_fail(origin, "d", -EACCES);
	read_dir(d, 4096, 0, false);
	assert_int_equal(req.error, EACCES);
}

/* ---- bytes ---- */

static void any_part_of_a_file_is_its_bytes(void **state)
{
	const size_t size = 3 * CHUNK + 777;
	char *bytes = malloc(size);
	fuse_ino_t f;
	static const struct {
		size_t off, len;
	} part[] = {{0, 1}, {0, 4 * CHUNK}, {CHUNK - 1, 2}, {CHUNK, CHUNK}, {2 * CHUNK + 5, CHUNK},
		{3 * CHUNK + 776, 1}, {3 * CHUNK + 700, 4096}};

	(void)state;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	cop_origin_fake_put(origin, "f", S_IFREG | 0644, bytes, size);
	f = lookup(FUSE_ROOT_ID, "f");
	for (size_t i = 0; i < COP_ARRAY_SIZE(part); i++) {
		size_t len = COP_MIN(part[i].len, size - part[i].off);

		read_file(f, part[i].len, (off_t)part[i].off);
		assert_int_equal(req.error, 0);
		assert_int_equal(req.len, len);
		assert_memory_equal(req.data, bytes + part[i].off, len);
	}
	free(bytes);
}

static void past_the_end_there_is_nothing(void **state)
{
	fuse_ino_t f;

	(void)state;
	put_file("f", "12345");
	put_file("empty", "");
	f = lookup(FUSE_ROOT_ID, "f");
	read_file(f, 10, 5);
	assert_int_equal(req.len, 0);
	read_file(f, 10, INT64_MAX);
	assert_int_equal(req.len, 0);
	read_file(f, 10, 3);
	assert_int_equal(req.len, 2);
	read_file(lookup(FUSE_ROOT_ID, "empty"), 10, 0);
	assert_int_equal(req.len, 0);
	assert_int_equal(req.error, 0);
}

static void nothing_is_a_terminal(void **state)
{
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	f = lookup(FUSE_ROOT_ID, "f");
	cop_fuse_ops.ioctl(begin_request(), f, 0, NULL, NULL, 0, NULL, 0, 0);
	end_request();
	assert_int_equal(req.error, ENOTTY);
}

static void change_names(unsigned i, fuse_ino_t f)
{
	const struct fuse_lowlevel_ops *o = &cop_fuse_ops;

	switch (i) {
	case 0:
		o->mknod(&req, FUSE_ROOT_ID, "g", S_IFREG | 0644, 0);
		break;
	case 1:
		o->mkdir(&req, FUSE_ROOT_ID, "g", 0755);
		break;
	case 2:
		o->unlink(&req, FUSE_ROOT_ID, "f");
		break;
	case 3:
		o->rmdir(&req, FUSE_ROOT_ID, "f");
		break;
	case 4:
		o->symlink(&req, "f", FUSE_ROOT_ID, "g");
		break;
	case 5:
		o->rename(&req, FUSE_ROOT_ID, "f", FUSE_ROOT_ID, "g", 0);
		break;
	default:
		o->link(&req, f, FUSE_ROOT_ID, "g");
	}
}

static void change_file(unsigned i, fuse_ino_t f)
{
	const struct fuse_lowlevel_ops *o = &cop_fuse_ops;
	struct fuse_file_info fi = {0};
	struct stat attr = {0};

	switch (i) {
	case 0:
		o->setattr(&req, f, &attr, FUSE_SET_ATTR_SIZE, NULL);
		break;
	case 1:
		o->create(&req, FUSE_ROOT_ID, "g", 0644, &fi);
		break;
	case 2:
		o->write(&req, f, "y", 1, 0, &fi);
		break;
	case 3:
		o->setxattr(&req, f, "user.a", "y", 1, 0);
		break;
	case 4:
		o->removexattr(&req, f, "user.a");
		break;
	case 5:
		o->fallocate(&req, f, 0, 0, 10, &fi);
		break;
	default:
		o->copy_file_range(&req, f, 0, &fi, f, 1, &fi, 1, 0);
	}
}

static void nothing_can_be_changed(void **state)
{
	static void (*const kinds[])(unsigned i, fuse_ino_t f) = {change_names, change_file};
	fuse_ino_t f;

	(void)state;
	put_file("f", "x");
	f = lookup(FUSE_ROOT_ID, "f");
	for (unsigned i = 0; i < 14; i++) {
		begin_request();
		kinds[i / 7](i % 7, f);
		end_request();
		assert_int_equal(req.error, EROFS);
		assert_int_equal(cop_stats_get(&stats, COP_FUSE_REFUSED), i + 1);
	}
	read_file(f, 10, 0);
	assert_int_equal(req.len, 1);
	assert_memory_equal(req.data, "x", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_name_has_its_attributes_and_one_reference),
		T(the_root_has_the_attributes_of_the_source),
		T(an_absent_name_is_an_entry_that_the_kernel_keeps_if_it_can),
		T(of_many_absent_names_in_the_root_the_kernel_keeps_each),
		T(a_name_of_256_bytes_is_too_long),
		T(an_error_of_the_storage_is_the_error_of_the_name),
		T(the_first_name_in_a_directory_does_not_wait_for_the_others),
		T(when_a_directory_is_listed_again_a_name_waits_for_it),
		T(a_name_that_is_looked_up_while_the_listing_comes_waits_for_it),
		T(the_first_name_does_not_wait_for_a_listing_that_comes_at_a_root),
		T(an_inode_lives_until_it_is_forgotten_as_often_as_it_was_looked_up),
		T(many_are_forgotten_at_once),
		T(a_lookup_that_was_interrupted_leaves_nothing),
		T(each_name_comes_once_however_small_the_pages),
		T(names_with_attributes_are_looked_up_and_those_not_delivered_are_not),
		T(an_unreadable_directory_gives_its_error),
		T(any_part_of_a_file_is_its_bytes),
		T(past_the_end_there_is_nothing),
		T(nothing_is_a_terminal),
		T(nothing_can_be_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
