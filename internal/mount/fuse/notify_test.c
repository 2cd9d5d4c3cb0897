/* SPDX-License-Identifier: BSD-3-Clause */
/* The notifications that the kernel receives. This test is the other end of the session and reads
 * them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/fuse.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base/compat.h"
#include "mount/fuse/fuse_priv.h"

#if COP_HAVE_FUSE_CUSTOM_IO

struct world {
	struct cop_fuse fs;
	struct inode *dir, *sub, *file[3]; /* dir/f0, dir/f1, dir/sub/f2 */
	char told[4096];  /* "-NAME " for each name that was invalidated, "@ " for an inode */
	sem_t hang, hung; /* the next write posts hung and waits for hang */
	_Atomic bool hangs;
};

static struct world *w;
static _Atomic int calls;
static sem_t called;

static ssize_t from_node(int fd, struct iovec *iov, int count, void *arg)
{
	const struct fuse_out_header *head = iov[0].iov_base;
	size_t at = strlen(w->told);
	ssize_t len = 0;

	(void)fd, (void)arg;
	for (int i = 0; i < count; i++)
		len += (ssize_t)iov[i].iov_len;
	if (head->unique)
		return len;
	if (atomic_exchange(&w->hangs, false)) {
		sem_post(&w->hung);
		sem_wait(&w->hang);
	}
	if (head->error == FUSE_NOTIFY_INVAL_ENTRY)
		snprintf(w->told + at, sizeof(w->told) - at, "-%s ", (const char *)iov[2].iov_base);
	else if (head->error == FUSE_NOTIFY_INVAL_INODE)
		snprintf(w->told + at, sizeof(w->told) - at, "@ ");
	return len;
}

static ssize_t to_node(int fd, void *buf, size_t len, void *arg)
{
	(void)fd, (void)buf, (void)len, (void)arg;
	return -ENODEV;
}

static void greet(struct fuse_session *s)
{
	struct {
		struct fuse_in_header head;
		struct fuse_init_in init;
	} in = {.head = {.len = sizeof(in), .opcode = FUSE_INIT, .unique = 1},
		.init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 65536}};
	struct fuse_buf buf = {.mem = &in, .size = sizeof(in)};

	fuse_session_process_buf(s, &buf);
}

static struct inode *get_inode(struct inode *dir, const char *name, uint32_t mode)
{
	struct cop_attr attr = {.mode = mode, .version = 1, .ino = 1};

	return cop_fuse_inode_get(&w->fs, dir, name, strlen(name), &attr, PLACE_TREE);
}

static int set_up(void **state)
{
	static const struct fuse_custom_io io = {.writev = from_node, .read = to_node};
	static const struct fuse_lowlevel_ops ops = {0};
	char name[] = "test";
	char *argv[] = {name};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	int null[2];

	(void)state;
	w = calloc(1, sizeof(*w));
	assert_int_equal(cop_fuse_inodes_init(&w->fs), 0);
	cop_fuse_absent_init(&w->fs.absent);
	sem_init(&w->hang, 0, 0);
	sem_init(&w->hung, 0, 0);
	sem_init(&called, 0, 0);
	atomic_store(&calls, 0);
	w->fs.session = fuse_session_new(&args, &ops, sizeof(ops), w);
	assert_non_null(w->fs.session);
	fuse_opt_free_args(&args);
	assert_int_equal(pipe(null), 0);
	close(null[1]);
	assert_int_equal(fuse_session_custom_io(w->fs.session, &io, null[0]), 0);
	greet(w->fs.session);
	w->dir = get_inode(w->fs.root, "dir", S_IFDIR);
	w->file[0] = get_inode(w->dir, "f0", S_IFREG);
	w->file[1] = get_inode(w->dir, "f1", S_IFREG);
	w->sub = get_inode(w->dir, "sub", S_IFDIR);
	w->file[2] = get_inode(w->sub, "f2", S_IFREG);
	assert_int_equal(cop_fuse_notify_start(&w->fs), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cop_fuse_notify_stop(&w->fs);
	assert_int_equal(atomic_load(&w->fs.turning), 0);
	fuse_session_destroy(w->fs.session);
	cop_fuse_absent_fini(&w->fs.absent);
	cop_fuse_inodes_fini(&w->fs);
	free(w);
	return 0;
}

static void then(void *arg)
{
	assert_ptr_equal(arg, w);
	atomic_fetch_add(&calls, 1);
	sem_post(&called);
}

static bool was_told(const char *what)
{
	return strstr(w->told, what) != NULL;
}

static void names_are_invalidated_before_the_callback_runs(void **state)
{
	(void)state;
	assert_int_equal(cop_fuse_forget_in(&w->fs, "dir", then, w), 0);
	sem_wait(&called);
	assert_true(was_told("-f0 ") && was_told("-f1 ") && was_told("-sub ") && was_told("@ "));
	assert_false(was_told("-f2 ") || was_told("-dir "));
}

static unsigned times_told(const char *what)
{
	unsigned n = 0;

	for (const char *at = w->told; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void where_there_are_views_both_sides_are_told(void **state)
{
	(void)state;
	atomic_store(&w->fs.viewed, true);
	assert_true(cop_fuse_note_absent(&w->fs, "none", 4));
	assert_int_equal(cop_fuse_invalidate(&w->fs, "", then, w), 0);
	sem_wait(&called);
	assert_int_equal(times_told("-f2 "), 2);
	assert_int_equal(times_told("-dir "), 2);
	assert_int_equal(times_told("-none "), 2);
	assert_int_equal(times_told("@ "), 6);
}

static void below_a_directory_the_deepest_goes_first(void **state)
{
	(void)state;
	assert_true(cop_fuse_note_absent(&w->fs, "none", 4));
	assert_int_equal(cop_fuse_invalidate(&w->fs, "", then, w), 0);
	sem_wait(&called);
	assert_true(strncmp(w->told, "-f2 ", 4) == 0);
	assert_true(was_told("-f0 ") && was_told("-f1 ") && was_told("-none "));
	assert_true(strstr(w->told, "-f0 ") < strstr(w->told, "-dir "));
	assert_true(strstr(w->told, "-f1 ") < strstr(w->told, "-dir "));
}

static void without_memory_names_are_not_said_to_be_forgotten(void **state)
{
	uint64_t epoch = atomic_load(&w->fs.epoch);

	(void)state;
	cop_fuse_starve(&w->fs, true);
	assert_int_equal(cop_fuse_forget_in(&w->fs, "dir", then, w), -ENOMEM);
	assert_int_equal(cop_fuse_forget_in(&w->fs, NULL, then, w), -ENOMEM);
	assert_int_equal(atomic_load(&w->fs.turning), 0);
	cop_fuse_starve(&w->fs, false);
	assert_int_equal(cop_fuse_forget_in(&w->fs, NULL, then, w), 0);
	sem_wait(&called);
	assert_int_equal(atomic_load(&calls), 1);
	assert_string_equal(w->told, "");
	assert_true(atomic_load(&w->fs.epoch) > epoch);
}

static void without_memory_to_say_what_the_kernel_forgets_all(void **state)
{
	(void)state;
	assert_true(cop_fuse_note_absent(&w->fs, "none", 4));
	cop_fuse_starve(&w->fs, true);
	cop_fuse_expire_names(&w->fs, w->sub);
	cop_fuse_notify_stop(&w->fs);
	assert_true(was_told("-f0 ") && was_told("-f1 ") && was_told("-f2 ") && was_told("-sub ") &&
		    was_told("-dir ") && was_told("-none "));
}

static void without_memory_an_invalidation_fails_and_the_kernel_forgets_all(void **state)
{
	(void)state;
	cop_fuse_starve(&w->fs, true);
	assert_int_equal(cop_fuse_invalidate(&w->fs, "dir/sub", then, w), -ENOMEM);
	cop_fuse_notify_stop(&w->fs);
	assert_int_equal(atomic_load(&calls), 0);
	assert_true(was_told("-f2 ") && was_told("-sub ") && was_told("-f0 "));
}

/* The kernel blocks on the first notification, while the others are queued. */
static void a_kernel_that_waits_is_asked_for_no_more_than_the_queue_holds(void **state)
{
	int waiting = 0;

	(void)state;
	atomic_store(&w->hangs, true);
	cop_fuse_forget_name(&w->fs, w->file[0]);
	sem_wait(&w->hung);
	while (waiting < 100000 && cop_fuse_forget_in(&w->fs, NULL, then, w) == 0)
		waiting++;
	assert_in_range(waiting, 1000, 99999);
	assert_int_equal(atomic_load(&calls), 0);
	assert_int_equal(cop_fuse_forget_in(&w->fs, "dir", then, w), -ENOBUFS);
	assert_int_equal(atomic_load(&w->fs.turning), 0);
	cop_fuse_expire_names(&w->fs, w->sub);
	sem_post(&w->hang);
	for (int i = 0; i < waiting; i++)
		sem_wait(&called);
	cop_fuse_notify_stop(&w->fs);
	assert_int_equal(atomic_load(&calls), waiting);
	assert_true(was_told("-f2 ") && was_told("-dir "));
}

/* Notes absent names of 200 bytes, starting with number `from`, until the kernel may cache no
 * more. */
static unsigned note_many(unsigned from, unsigned most)
{
	char name[256];
	unsigned i;

	for (i = from; i < from + most; i++) {
		snprintf(name, sizeof(name), "%0200u", i);
		if (!cop_fuse_note_absent(&w->fs, name, 200))
			break;
	}
	return i - from;
}

static void the_list_of_absent_names_is_bounded_and_the_kernel_forgets_the_oldest(void **state)
{
	const unsigned many = 4 * COP_MIB / 200;

	(void)state;
	assert_true(cop_fuse_note_absent(&w->fs, "first", 5));
	assert_true(cop_fuse_note_absent(&w->fs, "second", 6));
	/* This name is looked up again, so now the other one is the oldest. */
	assert_true(cop_fuse_note_absent(&w->fs, "first", 5));
	atomic_store(&w->hangs, true);
	assert_int_equal(note_many(0, many), many);
	assert_in_range(w->fs.absent.bytes, 3 * COP_MIB, COP_FUSE_ABSENT_BYTES);
	/* The kernel accepts no notifications now, so it may not cache more names. */
	sem_wait(&w->hung);
	assert_in_range(note_many(many, many), 1, many - 1);
	sem_post(&w->hang);
	cop_fuse_notify_stop(&w->fs);
	assert_true(strncmp(w->told, "-second -first -0", 17) == 0);
	assert_int_equal(note_many(2 * many, many), many);
}

/* The mount is gone, so there is nothing to send. */
static void after_the_end_a_callback_runs_at_once(void **state)
{
	(void)state;
	cop_fuse_notify_stop(&w->fs);
	assert_int_equal(cop_fuse_forget_in(&w->fs, "dir", then, w), 0);
	assert_int_equal(cop_fuse_forget_in(&w->fs, NULL, then, w), 0);
	assert_int_equal(atomic_load(&calls), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_invalidated_before_the_callback_runs),
		TEST(where_there_are_views_both_sides_are_told),
		TEST(below_a_directory_the_deepest_goes_first),
		TEST(without_memory_names_are_not_said_to_be_forgotten),
		TEST(without_memory_to_say_what_the_kernel_forgets_all),
		TEST(without_memory_an_invalidation_fails_and_the_kernel_forgets_all),
		TEST(a_kernel_that_waits_is_asked_for_no_more_than_the_queue_holds),
		TEST(the_list_of_absent_names_is_bounded_and_the_kernel_forgets_the_oldest),
		TEST(after_the_end_a_callback_runs_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("1..0 # SKIP this libfuse takes no other end than the kernel");
	return 77;
}

#endif
