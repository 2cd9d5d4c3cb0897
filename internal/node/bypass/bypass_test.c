/* SPDX-License-Identifier: BSD-3-Clause */
/* All tests scan a directory laid out like /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "node/bypass/bypass_priv.h"

#define STARTED 5000

struct fixture {
	char dir[64], proc[96], source[96], mountpoint[96];
	unsigned major, minor;
	struct cop_stats stats;
	struct cop_bypass *p;
};

static void make(const char *path, const char *text)
{
	assert_int_equal(cop_write_file(path, text, strlen(text), 0600), 0);
}

__attribute__((format(printf, 4, 5))) static void put(
	const struct fixture *f, const char *who, const char *name, const char *fmt, ...)
{
	char path[256], text[8192];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s/%s", f->proc, who, name);
	make(path, text);
}

static void make_link(const struct fixture *f, const char *who, const char *name, const char *to)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s/%s", f->proc, who, name);
	unlink(path);
	assert_int_equal(symlink(to, path), 0);
}

static void started(const struct fixture *f, const char *who, unsigned flags, int ticks)
{
	put(f, who, "stat", "1 (a) b) (c) S 1 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 %d 1 1\n", flags,
		ticks);
}

static void own_by(const struct fixture *f, const char *who, unsigned uid)
{
	put(f, who, "status", "Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, getuid(), uid, uid);
}

/* Creates a program that uses no file of the source. */
static void process(const struct fixture *f, const char *who)
{
	static const char *const folders[] = {"", "/ns", "/fd", "/fdinfo"};
	char path[256];

	for (size_t i = 0; i < COP_ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", f->proc, who, folders[i]);
		assert_int_equal(cop_make_dirs(path, 0700), 0);
	}
	started(f, who, 0x400000, STARTED);
	own_by(f, who, getuid());
	snprintf(path, sizeof(path), "%s/program", f->dir);
	make_link(f, who, "exe", path);
	snprintf(path, sizeof(path), "%s/namespace", f->dir);
	make_link(f, who, "ns/mnt", path);
	put(f, who, "mountinfo",
		"1 0 8:1 / / rw - ext4 a rw\n2 1 0:50 / %s ro - fuse.copper copper ro\n",
		f->mountpoint);
	put(f, who, "maps", "7f0000000000-7f0000001000 r-xp 00000000 08:01 7    /lib/libc.so\n");
}

static void maps(const struct fixture *f, const char *who, const char *perms, const char *file)
{
	put(f, who, "maps",
		"5000-6000 rw-p 00000000 00:00 0    [heap]\n"
		"6000-7000 rw-p 00000000 00:00 0 \n"
		"7000-8000 %s 00000000 %02x:%02x 7    %s/%s\n"
		"8000-9000 %s 00001000 %02x:%02x 7    %s/%s\n",
		perms, f->major, f->minor, f->source, file, perms, f->major, f->minor, f->source,
		file);
}

static void has_open(const struct fixture *f, const char *who, unsigned flags, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->source, file);
	make_link(f, who, "fd/3", path);
	put(f, who, "fdinfo/3", "pos:\t0\nflags:\t0%o\nmnt_id:\t29\nino:\t7\n", flags);
}

static void file(const struct fixture *f, const char *name, size_t bytes)
{
	char path[256], *text = calloc(1, bytes + 1);

	memset(text, 'x', bytes);
	snprintf(path, sizeof(path), "%s/%s", f->source, name);
	make(path, text);
	free(text);
}

static struct cop_bypass_conf conf_of(struct fixture *f)
{
	return (struct cop_bypass_conf){.proc = f->proc,
		.source = f->source,
		.mountpoint = f->mountpoint,
		.every_ms = 3600000,
		.stats = &f->stats};
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct cop_bypass_conf conf;
	struct stat st;
	char path[160];

	strcpy(f->dir, "/tmp/past_test.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->proc, sizeof(f->proc), "%s/proc", f->dir);
	snprintf(f->source, sizeof(f->source), "%s/soft", f->dir);
	snprintf(f->mountpoint, sizeof(f->mountpoint), "%s/soft/mnt", f->dir);
	assert_int_equal(cop_make_dirs(f->mountpoint, 0700), 0);
	assert_int_equal(stat(f->source, &st), 0);
	f->major = major(st.st_dev);
	f->minor = minor(st.st_dev);
	snprintf(path, sizeof(path), "%s/program", f->dir);
	make(path, "");
	snprintf(path, sizeof(path), "%s/namespace", f->dir);
	make(path, "");
	snprintf(path, sizeof(path), "%s/another", f->dir);
	make(path, "");
	file(f, "libx.so", 1000);
	file(f, "data", 30);
	process(f, "self");
	snprintf(path, sizeof(path), "%s/another", f->dir);
	make_link(f, "self", "exe", path);
	conf = conf_of(f);
	assert_int_equal(cop_bypass_new(&conf, &f->p), 0);
	*state = f;
	return 0;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int remove_tree(const char *path)
{
	return nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cop_bypass_free(f->p);
	remove_tree(f->dir);
	free(f);
	return 0;
}

static void assert_counts(struct fixture *f, unsigned files, unsigned bytes, unsigned programs)
{
	assert_int_equal(cop_stats_get(&f->stats, COP_PAST_FILES), files);
	assert_int_equal(cop_stats_get(&f->stats, COP_PAST_BYTES), bytes);
	assert_int_equal(cop_stats_get(&f->stats, COP_PAST_PROGRAMS), programs);
}

/* ---- cases ---- */

static void mapped_and_open_files_of_the_source_count_once(void **state)
{
	struct fixture *f = *state;
	char first[128];

	process(f, "10");
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	assert_string_equal(cop_stats_first(&f->stats, COP_EXAMPLE_PAST), "");
	maps(f, "10", "r-xp", "libx.so");
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
	process(f, "11");
	maps(f, "11", "r--s", "libx.so");
	has_open(f, "11", 0100000, "data");
	cop_bypass_look_now(f->p);
	cop_bypass_look_now(f->p);
	assert_counts(f, 2, 1030, 2);
	snprintf(first, sizeof(first), "%s/libx.so", f->source);
	assert_string_equal(cop_stats_first(&f->stats, COP_EXAMPLE_PAST), first);
	/* The pid now belongs to another process. */
	started(f, "11", 0, STARTED + 1);
	cop_bypass_look_now(f->p);
	assert_counts(f, 2, 1030, 3);
}

static void what_a_job_writes_does_not_count(void **state)
{
	struct fixture *f = *state;

	process(f, "10");
	maps(f, "10", "rw-s", "libx.so");
	has_open(f, "10", 0100001, "data");
	cop_bypass_look_now(f->p);
	has_open(f, "10", 0100002, "data");
	cop_bypass_look_now(f->p);
	has_open(f, "10", 010000000, "data");
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	maps(f, "10", "rw-p", "libx.so");
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
}

static void only_regular_files_that_are_there_count(void **state)
{
	struct fixture *f = *state;

	process(f, "10");
	maps(f, "10", "r-xp", "gone (deleted)");
	has_open(f, "10", 0200000, ".");
	cop_bypass_look_now(f->p);
	has_open(f, "10", 0100000, "mnt/libx.so");
	cop_bypass_look_now(f->p);
	put(f, "10", "maps", "7000-8000 r-xp 0 1:1 7    %sware/libx.so\n7000-8000 r-xp\n/\n",
		f->source);
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
}

static void only_programs_of_this_user_and_this_job_count(void **state)
{
	struct fixture *f = *state;
	char path[128];

	process(f, "9");
	maps(f, "9", "r-xp", "libx.so");
	started(f, "9", 0, STARTED - 1);
	process(f, "10");
	maps(f, "10", "r-xp", "libx.so");
	started(f, "10", 0x200000, STARTED);
	cop_bypass_look_now(f->p);
	started(f, "10", 0, STARTED);
	own_by(f, "10", getuid() + 1);
	cop_bypass_look_now(f->p);
	own_by(f, "10", getuid());
	snprintf(path, sizeof(path), "%s/another", f->dir);
	make_link(f, "10", "exe", path);
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	snprintf(path, sizeof(path), "%s/program", f->dir);
	make_link(f, "10", "exe", path);
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
}

static void a_number_that_an_older_process_had_is_noticed(void **state)
{
	struct fixture *f = *state;
	char was[128], now[128];

	process(f, "9");
	maps(f, "9", "r-xp", "libx.so");
	started(f, "9", 0, STARTED - 1);
	cop_bypass_look_now(f->p);
	started(f, "9", 0, STARTED);
	for (int i = 0; i < 8; i++)
		cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
	/* Immediately, if a scan saw that the pid was free. */
	process(f, "8");
	maps(f, "8", "r-xp", "data");
	started(f, "8", 0, STARTED - 1);
	cop_bypass_look_now(f->p);
	snprintf(was, sizeof(was), "%s/8", f->proc);
	snprintf(now, sizeof(now), "%s/gone", f->proc);
	assert_int_equal(rename(was, now), 0);
	cop_bypass_look_now(f->p);
	assert_int_equal(rename(now, was), 0);
	started(f, "8", 0, STARTED);
	cop_bypass_look_now(f->p);
	assert_counts(f, 2, 1030, 2);
}

static void processes_from_before_are_not_asked_when_they_began(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_conf conf = conf_of(f);
	char self[128], another[128];

	process(f, "8");
	process(f, "12");
	maps(f, "8", "r-xp", "libx.so");
	maps(f, "12", "r-xp", "data");
	/* As in /proc, where self is a link to this process's pid. */
	snprintf(self, sizeof(self), "%s/self", f->proc);
	assert_int_equal(remove_tree(self), 0);
	process(f, "9");
	snprintf(another, sizeof(another), "%s/another", f->dir);
	make_link(f, "9", "exe", another);
	make_link(f, ".", "self", "9");
	cop_bypass_free(f->p);
	assert_int_equal(cop_bypass_new(&conf, &f->p), 0);
	cop_bypass_look_now(f->p);
	/* A larger pid may be a program's. */
	assert_counts(f, 1, 30, 1);
}

static void a_process_that_ends_meanwhile_is_passed_over(void **state)
{
	static const char *const names[] = {
		"maps", "fdinfo/3", "mountinfo", "ns/mnt", "exe", "status", "stat"};
	struct fixture *f = *state;
	char path[160];

	process(f, "10");
	has_open(f, "10", 0, "data");
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/10/%s", f->proc, names[i]);
		assert_int_equal(unlink(path), 0);
		if (i)
			cop_bypass_look_now(f->p);
	}
	put(f, "10", "stat", "1 (x");
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
}

static void in_a_view_nothing_counts(void **state)
{
	static const char *const below[] = {"", "/m", "/lib/python"};
	struct fixture *f = *state;
	char path[128];

	process(f, "10");
	maps(f, "10", "r-xp", "libx.so");
	has_open(f, "10", 0, "data");
	snprintf(path, sizeof(path), "%s/another", f->dir);
	make_link(f, "10", "ns/mnt", path);
	for (size_t i = 0; i < COP_ARRAY_SIZE(below); i++) {
		put(f, "10", "mountinfo", "2 1 0:50 / %s%s ro - fuse.copper copper ro\n", f->source,
			below[i]);
		cop_bypass_look_now(f->p);
	}
	/* The same in this process's own namespace, where only part of the source is
	 * bind-mounted. */
	snprintf(path, sizeof(path), "%s/namespace", f->dir);
	make_link(f, "10", "ns/mnt", path);
	put(f, "10", "mountinfo", "2 1 0:50 / %s ro - fuse.copper copper ro\n", f->dir);
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
}

/* In a container, the same path may belong to the image. */
static void in_another_namespace_the_device_decides(void **state)
{
	struct fixture *f = *state;
	char path[128];

	process(f, "10");
	snprintf(path, sizeof(path), "%s/another", f->dir);
	make_link(f, "10", "ns/mnt", path);
	put(f, "10", "maps", "7000-8000 r-xp 0 %02x:%02x 7    %s/libx.so\n", f->major, f->minor + 1,
		f->source);
	has_open(f, "10", 0, "data");
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	maps(f, "10", "r-xp", "libx.so");
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
}

static void a_look_is_bounded_and_the_next_goes_on(void **state)
{
	const unsigned n = 2 * COP_BYPASS_PROCESSES + 1;
	struct fixture *f = *state;
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", 100 + i);
		process(f, name);
		maps(f, name, "r-xp", "libx.so");
	}
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, COP_BYPASS_PROCESSES);
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 2 * COP_BYPASS_PROCESSES);
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, n);
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, n);
	assert_int_equal(f->p->after, 100 + COP_BYPASS_PROCESSES - 1);
}

static void lines_of_one_process_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct cop_buf text = {0};
	char path[160];

	for (unsigned i = 0; i < COP_BYPASS_MAPS; i++)
		cop_buf_str(&text, "6000-7000 rw-p 00000000 00:00 0 \n");
	cop_buf_printf(
		&text, "7000-8000 r-xp 0 %x:%x 7    %s/libx.so\n", f->major, f->minor, f->source);
	process(f, "10");
	snprintf(path, sizeof(path), "%s/10/maps", f->proc);
	make(path, text.data);
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	make(path, strchr(text.data, '\n') + 1);
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 1000, 1);
	cop_buf_free(&text);
}

static void maps_are_read_again_when_a_program_has_grown(void **state)
{
	struct fixture *f = *state;

	process(f, "10");
	put(f, "10", "statm", "100 1 1 1 0 1 0\n");
	cop_bypass_look_now(f->p);
	maps(f, "10", "r-xp", "libx.so");
	has_open(f, "10", 0, "data");
	cop_bypass_look_now(f->p);
	assert_counts(f, 1, 30, 1);
	put(f, "10", "statm", "101 1 1 1 0 1 0\n");
	cop_bypass_look_now(f->p);
	assert_counts(f, 2, 1030, 1);
	/* The table is bounded, and forgets everything when it is full. */
	for (unsigned i = 0; i < COP_BYPASS_TABLE; i++)
		cop_bypass_know(f->p, &(struct cop_bypass_process){.pid = 11, .pages = i + 1});
	assert_false(
		cop_bypass_is_known(f->p, &(struct cop_bypass_process){.pid = 11, .pages = 1}));
}

static void files_beyond_the_table_are_only_counted(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_process q = {.pid = 10};
	char path[160];

	for (unsigned i = 0; i < COP_BYPASS_TABLE; i++) {
		snprintf(path, sizeof(path), "%s/none%u", f->source, i);
		cop_bypass_found(f->p, &q, path);
	}
	process(f, "10");
	maps(f, "10", "r-xp", "libx.so");
	cop_bypass_look_now(f->p);
	assert_counts(f, 0, 0, 0);
	assert_int_equal(cop_stats_get(&f->stats, COP_PAST_BEYOND), 2);
}

static void a_source_with_the_system_in_it_is_not_looked_at(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_conf conf = conf_of(f);
	struct cop_bypass *p = f->p;
	char shell[4096];

	conf.source = "/";
	assert_int_equal(cop_bypass_start(&conf, &p), 0);
	assert_null(p);
	assert_non_null(realpath("/bin/sh", shell));
	*strrchr(shell, '/') = '\0';
	conf.source = shell;
	assert_int_equal(cop_bypass_start(&conf, &p), 0);
	assert_null(p);
	conf.source = "/nonexistent";
	assert_int_equal(cop_bypass_start(&conf, &p), -ENOENT);
	assert_null(p);
	conf = conf_of(f);
	conf.proc = f->source;
	assert_int_equal(cop_bypass_start(&conf, &p), -ENOENT);
	assert_null(p);
}

static void whoever_asks_for_a_look_waits_for_it(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_conf conf = conf_of(f);
	struct cop_bypass *p;

	process(f, "10");
	assert_int_equal(cop_bypass_start(&conf, &p), 0);
	assert_non_null(p);
	maps(f, "10", "r-xp", "libx.so");
	cop_bypass_look(p, 600000);
	assert_counts(f, 1, 1000, 1);
	has_open(f, "10", 0, "data");
	cop_bypass_look(p, 600000);
	assert_counts(f, 2, 1030, 1);
	cop_bypass_stop(p);
	cop_bypass_look(NULL, 600000);
	cop_bypass_stop(NULL);
}

static void it_looks_by_itself(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_conf conf = conf_of(f);
	struct cop_bypass *p;

	conf.every_ms = 1;
	process(f, "10");
	maps(f, "10", "r-xp", "libx.so");
	assert_int_equal(cop_bypass_start(&conf, &p), 0);
	for (int i = 0; i < 60000 && !cop_stats_get(&f->stats, COP_PAST_PROGRAMS); i++)
		usleep(1000);
	cop_bypass_stop(p);
	assert_counts(f, 1, 1000, 1);
}

/* Opening a FIFO blocks until there is a writer, as a file on storage that hangs does. */
static void a_look_that_hangs_does_not_hold_up_the_end(void **state)
{
	struct fixture *f = *state;
	struct cop_bypass_conf conf = conf_of(f);
	struct cop_bypass *p;
	char path[256];
	uint64_t began;
	int writer;

	process(f, "10");
	maps(f, "10", "r-xp", "libx.so");
	snprintf(path, sizeof(path), "%s/10/fdinfo/3", f->proc);
	has_open(f, "10", 0, "data");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(cop_bypass_start(&conf, &p), 0);
	began = cop_now_ms();
	cop_bypass_look(p, 300);
	assert_counts(f, 1, 1000, 1);
	/* The scan has used up its time. */
	cop_bypass_look(p, 300);
	cop_bypass_stop(p);
	assert_true(cop_now_ms() - began >= 300);
	/* The scan continues when the storage responds, but counts nothing more. */
	while ((writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
		usleep(1000);
	assert_int_equal(write(writer, "flags:\t00\n", 10), 10);
	close(writer);
	usleep(50000);
	assert_counts(f, 1, 1000, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(mapped_and_open_files_of_the_source_count_once),
		CASE(what_a_job_writes_does_not_count),
		CASE(only_regular_files_that_are_there_count),
		CASE(only_programs_of_this_user_and_this_job_count),
		CASE(a_number_that_an_older_process_had_is_noticed),
		CASE(processes_from_before_are_not_asked_when_they_began),
		CASE(a_process_that_ends_meanwhile_is_passed_over),
		CASE(in_a_view_nothing_counts),
		CASE(in_another_namespace_the_device_decides),
		CASE(a_look_is_bounded_and_the_next_goes_on),
		CASE(lines_of_one_process_are_bounded),
		CASE(maps_are_read_again_when_a_program_has_grown),
		CASE(files_beyond_the_table_are_only_counted),
		CASE(a_source_with_the_system_in_it_is_not_looked_at),
		CASE(whoever_asks_for_a_look_waits_for_it),
		CASE(it_looks_by_itself),
		CASE(a_look_that_hangs_does_not_hold_up_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
