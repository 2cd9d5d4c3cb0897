/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/wire/wire.h"
#include "storage/packfile/packfile_priv.h"

/* The packs have several of the pieces that are read at once. */
#define CHUNK (512 * COP_KIB)
#define SOURCE "/the/source"

struct fixture {
	char dir[64], path[80];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/copper-packfile.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/p", f->dir);
	*state = f;
	return 0;
}

/* Nothing is left beside the file. */
static int tear_down(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* "d" with two names, of which one has attributes. */
static void *make_listing(uint64_t *version, size_t *len)
{
	struct cop_attr dir = {.ino = 7, .mtime_s = 1000, .ctime_s = 1000, .mode = S_IFDIR | 0755};
	struct cop_attr file = {.ino = 8, .size = 3, .ctime_s = 900, .mode = S_IFREG | 0644};
	struct cop_listing_builder b = {0};
	void *blob;

	dir.version = *version = cop_attr_version(&dir);
	file.version = cop_attr_version(&file);
	assert_int_equal(cop_listing_add(&b, "has", 3, DT_REG, &file, NULL, 0), 0);
	assert_int_equal(cop_listing_add_bare(&b, "bare", 4, DT_REG, 9), 0);
	assert_int_equal(cop_listing_build(&b, &dir, COP_LISTING_COMPLETE, &blob, len), 0);
	return blob;
}

static void fill(uint8_t *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static struct cop_packfile_record chunk(const char *path, uint64_t index)
{
	return (struct cop_packfile_record){.path = path,
		.version = 1000 + 2 * index,
		.size = 100 * CHUNK,
		.index = index,
		.kind = COP_PACKFILE_CHUNK};
}

static struct cop_packfile_writer *begin(struct fixture *f, uint64_t limit)
{
	struct cop_packfile_writer *w;

	assert_int_equal(cop_packfile_create(f->path, SOURCE, CHUNK, limit, &w), 0);
	return w;
}

static int add_chunk(struct cop_packfile_writer *w, const char *path, uint64_t index, size_t len)
{
	struct cop_packfile_record r = chunk(path, index);
	uint8_t *data = malloc(len);
	int rc;

	fill(data, len, (unsigned)index);
	rc = cop_packfile_add(w, &r, data, len);
	free(data);
	return rc;
}

static void write_pack(struct fixture *f, unsigned chunks)
{
	struct cop_packfile_record r = {.path = "d", .kind = COP_PACKFILE_LISTING};
	struct cop_packfile_writer *w = begin(f, COP_GIB);
	uint64_t bytes;
	struct stat st;
	size_t len;
	void *blob = make_listing(&r.version, &len);

	assert_int_equal(cop_packfile_add(w, &r, blob, len), 0);
	free(blob);
	for (unsigned i = 0; i < chunks; i++)
		assert_int_equal(add_chunk(w, "d/has", i, CHUNK - 1000 * i), 0);
	assert_int_equal(cop_packfile_commit(w, &bytes), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, bytes);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static int open_rc(struct fixture *f)
{
	struct cop_packfile *p = NULL;
	int rc = cop_packfile_open(f->path, SOURCE, CHUNK, geteuid(), &p);

	assert_int_equal(rc == 0, p != NULL);
	cop_packfile_free(p);
	return rc;
}

static struct cop_packfile *open_pack(struct fixture *f)
{
	struct cop_packfile *p;

	assert_int_equal(cop_packfile_open(f->path, SOURCE, CHUNK, geteuid(), &p), 0);
	return p;
}

static void check_chunk(struct cop_packfile *p, uint64_t index, size_t len)
{
	const struct cop_packfile_record *r =
		cop_packfile_chunk(p, "d/has", 1000 + 2 * index, 100 * CHUNK, index);
	uint8_t *got = malloc(len), *want = malloc(len);

	assert_non_null(r);
	assert_int_equal(r->len, len);
	assert_int_equal(cop_packfile_read(p, r, got), 0);
	fill(want, len, (unsigned)index);
	assert_memory_equal(got, want, len);
	free(got);
	free(want);
}

static void what_is_written_is_read_in_any_order(void **state)
{
	struct cop_listing_entry e;
	struct cop_packfile *p;
	const void *listing;

	write_pack(*state, 20);
	p = open_pack(*state);
	assert_int_equal(cop_packfile_count(p), 21);
	listing = cop_packfile_listing(p, "d");
	assert_non_null(listing);
	assert_true(cop_listing_find(listing, "has", 3, &e));
	assert_true(e.has_attr);
	assert_true(cop_listing_find(listing, "bare", 4, &e));
	assert_false(e.has_attr);
	assert_null(cop_packfile_listing(p, "d/has"));
	for (unsigned i = 0; i < 20; i++)
		check_chunk(p, i * 7 % 20, CHUNK - 1000 * (i * 7 % 20));
	cop_packfile_rest(p);
	check_chunk(p, 19, CHUNK - 19000);
	cop_packfile_free(p);
}

static void only_the_same_version_and_size_is_found(void **state)
{
	struct cop_packfile *p;

	write_pack(*state, 2);
	p = open_pack(*state);
	assert_non_null(cop_packfile_chunk(p, "d/has", 1002, 100 * CHUNK, 1));
	assert_null(cop_packfile_chunk(p, "d/has", 1004, 100 * CHUNK, 1));
	assert_null(cop_packfile_chunk(p, "d/has", 1002, 100 * CHUNK + 1, 1));
	assert_null(cop_packfile_chunk(p, "d/has", 1002, 100 * CHUNK, 2));
	assert_null(cop_packfile_chunk(p, "d/hat", 1002, 100 * CHUNK, 1));
	assert_non_null(cop_packfile_any(p, "d/has", 1));
	assert_null(cop_packfile_any(p, "d/has", 2));
	cop_packfile_free(p);
}

static void a_pack_without_records_is_one(void **state)
{
	struct cop_packfile_writer *w = begin(*state, COP_GIB);
	uint64_t bytes;

	assert_int_equal(cop_packfile_commit(w, &bytes), 0);
	assert_int_equal(open_rc(*state), 0);
}

static void who_reads_keeps_the_pack_that_is_replaced(void **state)
{
	struct cop_packfile *p;

	write_pack(*state, 3);
	p = open_pack(*state);
	write_pack(*state, 1);
	check_chunk(p, 2, CHUNK - 2000);
	cop_packfile_free(p);
	p = open_pack(*state);
	assert_int_equal(cop_packfile_count(p), 2);
	cop_packfile_free(p);
}

static void of_two_writers_the_last_one_wins_whole(void **state)
{
	struct cop_packfile_writer *a = begin(*state, COP_GIB), *b = begin(*state, COP_GIB);
	struct cop_packfile *p;
	uint64_t bytes;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(add_chunk(a, "d/has", i, 1000), 0);
		assert_int_equal(add_chunk(b, "d/has", i, 2000), 0);
	}
	assert_int_equal(cop_packfile_commit(a, &bytes), 0);
	assert_int_equal(cop_packfile_commit(b, &bytes), 0);
	p = open_pack(*state);
	check_chunk(p, 1, 2000);
	cop_packfile_free(p);
}

static void what_does_not_fit_the_limit_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct cop_packfile_writer *w = begin(f, 100000);
	struct cop_packfile *p;
	uint64_t bytes;

	assert_int_equal(add_chunk(w, "d/has", 0, 50000), 0);
	assert_int_equal(add_chunk(w, "d/has", 1, 50000), -EFBIG);
	assert_int_equal(add_chunk(w, "d/has", 2, 40000), 0);
	assert_int_equal(cop_packfile_commit(w, &bytes), 0);
	assert_in_range(bytes, 90000, 100000);
	p = open_pack(f);
	assert_int_equal(cop_packfile_count(p), 2);
	cop_packfile_free(p);
}

static void a_pack_that_is_abandoned_leaves_the_old_one(void **state)
{
	struct fixture *f = *state;
	struct cop_packfile_writer *w;

	write_pack(f, 1);
	assert_int_equal(
		cop_packfile_create("/dev/no-such/p", SOURCE, CHUNK, COP_GIB, &w), -ENOENT);
	w = begin(f, COP_GIB);
	assert_int_equal(add_chunk(w, "d/has", 0, 1000), 0);
	cop_packfile_abandon(w);
	assert_int_equal(open_rc(f), 0);
}

static void a_pack_that_others_could_have_written_is_refused(void **state)
{
	struct fixture *f = *state;
	struct cop_packfile *p;

	write_pack(f, 1);
	assert_int_equal(chmod(f->path, 0620), 0);
	assert_int_equal(open_rc(f), -EPERM);
	assert_int_equal(chmod(f->path, 0602), 0);
	assert_int_equal(open_rc(f), -EPERM);
	assert_int_equal(chmod(f->path, 0644), 0);
	assert_int_equal(open_rc(f), 0);
	if (geteuid())
		return;
	assert_int_equal(chown(f->path, 1234, 0), 0);
	assert_int_equal(cop_packfile_open(f->path, SOURCE, CHUNK, 4321, &p), -EPERM);
	assert_int_equal(cop_packfile_open(f->path, SOURCE, CHUNK, 1234, &p), 0);
	cop_packfile_free(p);
}

static void a_pack_of_something_else_is_refused(void **state)
{
	struct fixture *f = *state;
	struct cop_packfile *p;
	char link[96];

	assert_int_equal(open_rc(f), -ENOENT);
	write_pack(f, 1);
	assert_int_equal(cop_packfile_open(f->path, "/another", CHUNK, 0, &p), -ESTALE);
	assert_int_equal(cop_packfile_open(f->path, SOURCE, CHUNK / 2, 0, &p), -ESTALE);
	snprintf(link, sizeof(link), "%s/link", f->dir);
	assert_int_equal(symlink(f->path, link), 0);
	assert_int_equal(cop_packfile_open(link, SOURCE, CHUNK, 0, &p), -ELOOP);
	unlink(link);
	assert_true(cop_packfile_open(f->dir, SOURCE, CHUNK, 0, &p) < 0);
}

static void put_byte(struct fixture *f, off_t at, int change)
{
	int fd = open(f->path, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= (uint8_t)change;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void every_damaged_byte_is_found(void **state)
{
	struct fixture *f = *state;
	struct packfile_head head;
	struct cop_packfile *p;
	char *body = malloc(CHUNK);
	struct stat st;
	int fd;

	write_pack(f, 1);
	assert_int_equal(stat(f->path, &st), 0);
	fd = open(f->path, O_RDONLY);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	close(fd);
	for (off_t at = 0; at < st.st_size;
		at += at < 64 || at >= (off_t)head.tail ? 1 : CHUNK / 5) {
		put_byte(f, at, 0x10);
		if (at < 64 || at >= (off_t)head.tail) {
			assert_int_equal(open_rc(f), -EBADMSG);
		} else {
			p = open_pack(f);
			assert_int_equal(
				cop_packfile_read(p, cop_packfile_any(p, "d/has", 0), body),
				-EBADMSG);
			cop_packfile_free(p);
		}
		put_byte(f, at, 0x10);
	}
	free(body);
}

static void a_truncated_pack_is_refused_and_one_cut_off_meanwhile_is_an_error(void **state)
{
	struct fixture *f = *state;
	char *body = malloc(CHUNK);
	struct cop_packfile *p;
	struct stat st;

	write_pack(f, 2);
	assert_int_equal(stat(f->path, &st), 0);
	p = open_pack(f);
	assert_int_equal(truncate(f->path, CHUNK / 2), 0);
	assert_int_equal(cop_packfile_read(p, cop_packfile_any(p, "d/has", 1), body), -EBADMSG);
	cop_packfile_free(p);
	assert_int_equal(open_rc(f), -EBADMSG);
	assert_int_equal(truncate(f->path, 10), 0);
	assert_int_equal(open_rc(f), -EBADMSG);
	assert_int_equal(truncate(f->path, 0), 0);
	assert_int_equal(open_rc(f), -EBADMSG);
	free(body);
}

static void a_later_version_is_known_as_one(void **state)
{
	struct fixture *f = *state;
	struct packfile_head head;
	int fd;

	write_pack(f, 1);
	fd = open(f->path, O_RDWR);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	head.version++;
	head.sum = cop_hash64(&head, offsetof(struct packfile_head, sum), 0);
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	close(fd);
	assert_int_equal(open_rc(f), -EPROTO);
}

static void *read_all(void *arg)
{
	struct cop_packfile *p = arg;

	for (unsigned i = 0; i < 30; i++)
		check_chunk(p, i * 11 % 30, CHUNK - 1000 * (i * 11 % 30));
	return NULL;
}

static void many_threads_read_at_once(void **state)
{
	struct cop_packfile *p;
	pthread_t thread[6];

	write_pack(*state, 30);
	p = open_pack(*state);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, p), 0);
	cop_packfile_rest(p);
	for (unsigned i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	cop_packfile_free(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read_in_any_order),
		TEST(only_the_same_version_and_size_is_found),
		TEST(a_pack_without_records_is_one),
		TEST(who_reads_keeps_the_pack_that_is_replaced),
		TEST(of_two_writers_the_last_one_wins_whole),
		TEST(what_does_not_fit_the_limit_is_left_out),
		TEST(a_pack_that_is_abandoned_leaves_the_old_one),
		TEST(a_pack_that_others_could_have_written_is_refused),
		TEST(a_pack_of_something_else_is_refused),
		TEST(every_damaged_byte_is_found),
		TEST(a_truncated_pack_is_refused_and_one_cut_off_meanwhile_is_an_error),
		TEST(a_later_version_is_known_as_one),
		TEST(many_threads_read_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
