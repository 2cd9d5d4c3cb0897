/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudo file systems below the source, simulated with directories of a real file system, and the
 * mount point as seen through the mount. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount/fuse/fuse_testing.h"

static char source[64];

static void put(const char *path, const char *text)
{
	char full[160];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", source, path);
	if (!text) {
		assert_int_equal(mkdir(full, 0755), 0);
		return;
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(cop_write_full(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void add_place(const char *path, enum place place, bool proc)
{
	struct place_path *p = &fs->places[fs->n_places++];

	*p = (struct place_path){.path = strdup(path), .place = place, .proc = proc};
}

static int setup_real(void **state)
{
	struct cop_origin_conf conf = {.source = source, .max_ops = 2, .stats = &stats};
	struct cop_origin *o;
	struct cop_err err;

	(void)state;
	snprintf(source, sizeof(source), "/tmp/cop-fs-XXXXXX");
	if (!mkdtemp(source) || cop_origin_open(&conf, &o, &err))
		return -1;
	origin_is_real = true;
	setup_with(o);
	asker = (struct fuse_ctx){.uid = geteuid(), .pid = getpid()};
	fs->places = calloc(3, sizeof(*fs->places));
	add_place("sys", PLACE_LOCAL, false);
	add_place("proc", PLACE_LOCAL, true);
	add_place("mnt", PLACE_SELF, false);
	put("sys", NULL);
	put("sys/d", NULL);
	put("sys/f", "12345");
	put("proc", NULL);
	put("proc/f", "secret");
	put("tree", "x");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int teardown_real(void **state)
{
	teardown(state);
	return nftw(source, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static fuse_ino_t lookup_below(const char *dir, const char *name)
{
	return lookup(lookup(FUSE_ROOT_ID, dir), name);
}

static struct fuse_file_info open_file(fuse_ino_t f)
{
	struct fuse_file_info fi = {0};

	cop_fuse_ops.open(begin_request(), f, &fi);
	end_request();
	return req.opened;
}

static void what_it_has_is_asked_for_each_time(void **state)
{
	fuse_ino_t f = lookup_below("sys", "f");

	(void)state;
	assert_int_equal(req.entry.attr.st_size, 5);
	assert_true(req.entry.entry_timeout == 0 && req.entry.attr_timeout == 0);
	put("sys/f", "1234567");
	cop_fuse_ops.getattr(begin_request(), f, NULL);
	end_request();
	assert_int_equal(req.attr.st_size, 7);
	assert_true(req.attr_s == 0);
	lookup_below("sys", "none");
	assert_int_equal(req.error, ENOENT);
	put("sys/none", "now");
	lookup_below("sys", "none");
	assert_int_equal(req.error, 0);
	/* None of this went through the tree. */
	assert_int_equal(cop_stats_get(&stats, COP_ORIGIN_OPERATIONS), 0);
}

static void its_bytes_come_through_an_open_file(void **state)
{
	fuse_ino_t f = lookup_below("sys", "f");
	struct fuse_file_info fi = open_file(f);

	(void)state;
	assert_int_equal(req.error, 0);
	assert_true(fi.direct_io);
	cop_fuse_ops.read(begin_request(), f, 3, 1, &fi);
	end_request();
	assert_int_equal(req.len, 3);
	assert_memory_equal(req.data, "234", 3);
	cop_fuse_ops.read(begin_request(), f, 3, 5, &fi);
	end_request();
	assert_int_equal(req.len, 0);
	cop_fuse_ops.release(begin_request(), f, &fi);
	end_request();
	assert_int_equal(fcntl((int)fi.fh, F_GETFD), -1);
	cop_fuse_ops.lseek(begin_request(), f, 0, SEEK_DATA, &fi);
	end_request();
	assert_int_equal(req.error, EINVAL);
}

/* The kernel never received the descriptor. */
static void an_open_that_was_interrupted_is_closed(void **state)
{
	fuse_ino_t f = lookup_below("sys", "f");
	struct fuse_file_info fi;

	(void)state;
	req.lost = -ENOENT;
	fi = open_file(f);
	/* A worker closes it after the failed reply. */
	close_origin();
	assert_int_equal(fcntl((int)fi.fh, F_GETFD), -1);
}

static unsigned count_names(const char *want)
{
	unsigned found = 0;

	for (size_t at = 0; at < req.len;) {
		const struct fuse_dirent *d = (void *)(req.data + at);

		found += strlen(want) == d->namelen && !memcmp(d->name, want, d->namelen);
		at += FUSE_DIRENT_SIZE(d);
	}
	return found;
}

static void its_names_are_read_from_any_place(void **state)
{
	fuse_ino_t sys = lookup(FUSE_ROOT_ID, "sys");
	unsigned dirs = 0, files = 0, pages = 0;
	uint64_t off = 0;

	(void)state;
	for (; pages < 10; pages++) {
		/* There is space for only one name. */
		read_dir(sys, 40, (off_t)off, false);
		if (!req.len)
			break;
		dirs += count_names("d");
		files += count_names("f");
		off = ((const struct fuse_dirent *)(void *)req.data)->off;
	}
	assert_int_equal(pages, 4);
	assert_int_equal(dirs, 1);
	assert_int_equal(files, 1);
	read_dir(sys, 4096, 0, true);
	assert_true(req.len > 0);
	/* READDIRPLUS gives the kernel no inodes here. */
	assert_int_equal(cop_fuse_inode_count(fs), 1);
	read_dir(lookup_below("sys", "f"), 4096, 0, false);
	assert_int_equal(req.error, ENOTDIR);
}

static void its_links_are_shown_as_they_are(void **state)
{
	char path[160];
	fuse_ino_t l;

	(void)state;
	snprintf(path, sizeof(path), "%s/sys/l", source);
	assert_int_equal(symlink("/source/x", path), 0);
	l = lookup_below("sys", "l");
	cop_fuse_ops.readlink(begin_request(), l);
	end_request();
	assert_int_equal(req.len, strlen("/source/x"));
	assert_memory_equal(req.data, "/source/x", req.len);
	open_file(l);
	assert_int_equal(req.error, ELOOP);
}

static void self_is_the_process_that_asks(void **state)
{
	char path[160], pid[16];
	fuse_ino_t l;

	(void)state;
	snprintf(path, sizeof(path), "%s/proc/self", source);
	assert_int_equal(symlink("1", path), 0);
	l = lookup_below("proc", "self");
	cop_fuse_ops.readlink(begin_request(), l);
	end_request();
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(req.len, strlen(pid));
	assert_memory_equal(req.data, pid, req.len);
}

static void another_user_sees_nothing_below_proc(void **state)
{
	fuse_ino_t proc = lookup(FUSE_ROOT_ID, "proc"), f = lookup(proc, "f");

	(void)state;
	assert_int_equal(req.error, 0);
	read_dir(proc, 4096, 0, false);
	assert_int_equal(count_names("f"), 1);
	asker.uid++;
	cop_fuse_ops.getattr(begin_request(), f, NULL);
	end_request();
	assert_int_equal(req.error, EACCES);
	open_file(f);
	assert_int_equal(req.error, EACCES);
	read_dir(proc, 4096, 0, false);
	assert_int_equal(req.error, EACCES);
	/* Everybody may access proc itself, and other pseudo file systems. */
	cop_fuse_ops.getattr(begin_request(), proc, NULL);
	end_request();
	assert_int_equal(req.error, 0);
	lookup_below("sys", "f");
	assert_int_equal(req.error, 0);
}

static void the_mount_point_is_an_empty_directory_inside(void **state)
{
	fuse_ino_t mnt = lookup(FUSE_ROOT_ID, "mnt");

	(void)state;
	assert_int_equal(req.entry.attr.st_mode, S_IFDIR | 0555);
	read_dir(mnt, 4096, 0, false);
	assert_int_equal(req.error, 0);
	assert_int_equal(req.len, 0);
	lookup(mnt, "anything");
	assert_int_equal(req.error, ENOENT);
}

static void names_beside_it_belong_to_the_tree(void **state)
{
	(void)state;
	lookup(FUSE_ROOT_ID, "tree");
	assert_int_equal(req.error, 0);
	assert_true(req.entry.entry_timeout > 0);
	assert_true(cop_stats_get(&stats, COP_ORIGIN_OPERATIONS) > 0);
}

#define REAL(name) cmocka_unit_test_setup_teardown(name, setup_real, teardown_real)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL(what_it_has_is_asked_for_each_time),
		REAL(its_bytes_come_through_an_open_file),
		REAL(an_open_that_was_interrupted_is_closed),
		REAL(its_names_are_read_from_any_place),
		REAL(its_links_are_shown_as_they_are),
		REAL(self_is_the_process_that_asks),
		REAL(another_user_sees_nothing_below_proc),
		REAL(the_mount_point_is_an_empty_directory_inside),
		REAL(names_beside_it_belong_to_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
