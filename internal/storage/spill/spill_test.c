/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/spill/spill_priv.h"

#define LEN 5000u
#define ROOM 8192u /* that a part of LEN takes in the file */
#define SEED 77u

static struct cop_stats stats;
static struct cop_cache *cache;
static struct cop_spill *spill;
static int file; /* another descriptor of its file */

static struct cop_key key_of(uint64_t index)
{
	return (struct cop_key){.table = COP_TABLE_DATA,
		.path = "large",
		.path_len = 5,
		.version = 7,
		.index = index};
}

static void open_on(int fd, uint64_t size, uint64_t memory)
{
	struct cop_spill_conf conf = {
		.dir = "here", .size = size, .memory = memory, .sum_seed = SEED, .stats = &stats};

	memset(&stats, 0, sizeof(stats));
	file = dup(fd);
	cache = conf.cache = cop_cache_new(10 * LEN, &stats);
	assert_int_equal(cop_spill_start(&conf, fd, &spill), 0);
}

static void open_spill(uint64_t size, uint64_t memory)
{
	open_on(memfd_create("spill", MFD_CLOEXEC), size, memory);
}

static void close_spill(void)
{
	assert_true(cop_spill_close(spill));
	cop_cache_check(cache);
	cop_spill_free(spill);
	cop_cache_free(cache);
	close(file);
}

static void start_nothing(void *arg)
{
	(void)arg;
}

static void fill_with(uint8_t *data, uint64_t index)
{
	for (unsigned i = 0; i < LEN; i++)
		data[i] = (uint8_t)(i * 7 + index * 13);
}

static void put_for(uint64_t index, enum cop_duty duty)
{
	struct cop_key key = key_of(index);
	struct cop_completion done = {.len = LEN, .keep = true, .packed = index % 2};
	struct cop_obj *obj;

	assert_int_equal(cop_cache_find(cache, &key, NULL, &obj), COP_FOUND_LEAD);
	cop_cache_set_duty(cache, obj, duty);
	cop_cache_reserve(cache, obj, LEN, true, start_nothing, NULL);
	done.data = malloc(LEN);
	fill_with(done.data, index);
	done.sum = cop_hash64(done.data, LEN, SEED);
	cop_cache_complete(cache, obj, &done);
}

static void put_parts(uint64_t from, uint64_t end)
{
	for (; from < end; from++)
		put_for(from, COP_DUTY_NONE);
}

static uint64_t count(enum cop_counter c)
{
	return cop_stats_get(&stats, c);
}

static void await_writes(void)
{
	unsigned left;

	do {
		usleep(1000);
		pthread_mutex_lock(&spill->lock);
		left = spill->writing;
		pthread_mutex_unlock(&spill->lock);
	} while (left);
}

struct result {
	sem_t done;
	int rc;
	struct cop_spill_part part;
};

static void take_result(void *arg, int rc, const struct cop_spill_part *part)
{
	struct result *r = arg;

	r->rc = rc;
	if (!rc)
		r->part = *part;
	sem_post(&r->done);
}

static void ask(struct result *r, uint64_t index)
{
	struct cop_key key = key_of(index);

	sem_init(&r->done, 0, 0);
	cop_spill_read(spill, &key, take_result, r);
}

static int answer_of(struct result *r)
{
	while (sem_wait(&r->done) && errno == EINTR)
		;
	sem_destroy(&r->done);
	return r->rc;
}

/* 0 if it is read as it was put. */
static int read_part(uint64_t index)
{
	uint8_t want[LEN];
	struct result r;

	ask(&r, index);
	if (answer_of(&r))
		return r.rc;
	fill_with(want, index);
	assert_int_equal(r.part.len, LEN);
	assert_int_equal(r.part.packed, index % 2);
	assert_int_equal(r.part.sum, cop_hash64(want, LEN, SEED));
	assert_memory_equal(r.part.data, want, LEN);
	cop_cache_release(cache, r.part.data, LEN);
	return 0;
}

static bool has(uint64_t index)
{
	struct cop_key key = key_of(index);

	return cop_spill_has(spill, &key);
}

static unsigned count_had(uint64_t from, uint64_t end)
{
	unsigned n = 0;

	for (; from < end; from++)
		n += has(from);
	return n;
}

static void what_leaves_memory_comes_back_as_it_was(void **state)
{
	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 60);
	assert_true(count_had(0, 60) >= 50);
	for (uint64_t i = 0; i < 60; i++)
		if (has(i))
			assert_int_equal(read_part(i), 0);
	await_writes();
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(read_part(i), has(i) ? 0 : -ENOENT);
	assert_int_equal(count(COP_SPILL_WRITTEN_BYTES), count_had(0, 60) * LEN);
	assert_int_equal(count(COP_SPILL_DROPPED_BYTES), 0);
	assert_int_equal(count(COP_CACHE_REFETCHES), 0);
	close_spill();
}

static void copies_and_what_is_not_of_files_never_go_there(void **state)
{
	struct cop_key key = {.table = COP_TABLE_TREE, .path = "d", .path_len = 1};
	struct cop_obj *obj;

	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	for (uint64_t i = 0; i < 30; i++)
		put_for(i, COP_DUTY_COPY);
	for (key.index = 0; key.index < 30; key.index++) {
		assert_int_equal(cop_cache_find(cache, &key, NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(cache, obj,
			&(struct cop_completion){.data = calloc(1, LEN), .len = LEN, .keep = true});
	}
	await_writes();
	assert_int_equal(count(COP_SPILL_WRITTEN_BYTES), 0);
	assert_int_equal(spill->end, 0);
	for (uint64_t i = 100; i < 130; i++)
		put_for(i, COP_DUTY_HOME);
	assert_true(count_had(100, 130) >= 20);
	close_spill();
}

/* What is read back and leaves again is not written again. */
static void each_part_is_written_once(void **state)
{
	uint64_t end;

	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 30);
	await_writes();
	end = spill->end;
	for (unsigned round = 0; round < 3; round++)
		for (uint64_t i = 0; i < 30; i++) {
			struct cop_key key = key_of(i);

			if (has(i) && !cop_cache_has(cache, &key))
				put_for(i, COP_DUTY_NONE);
		}
	await_writes();
	assert_in_range(spill->end, end, 30 * ROOM);
	assert_int_equal(spill->end, spill->index.count * (uint64_t)ROOM);
	close_spill();
}

static void a_full_file_keeps_what_it_has_until_nobody_reads_it(void **state)
{
	struct cop_cache_usage u;

	(void)state;
	open_spill(10 * ROOM, 1000 * LEN);
	put_parts(0, 25);
	await_writes();
	assert_int_equal(count_had(0, 25), 10);
	for (uint64_t i = 25; i < 100; i++) {
		put_for(i, COP_DUTY_NONE);
		if (i % 5 == 0)
			for (uint64_t k = 0; k < 25; k++)
				assert_true(!has(k) || read_part(k) == 0);
	}
	assert_int_equal(count_had(0, 25), 10);
	assert_true(count(COP_SPILL_DROPPED_BYTES) > 50 * LEN);
	for (uint64_t i = 100; i < 200; i++) {
		put_for(i, COP_DUTY_NONE);
		await_writes();
	}
	assert_int_equal(count_had(0, 100), 0);
	assert_int_equal(count_had(100, 200), 10);
	cop_cache_usage(cache, &u);
	assert_true(u.spill_bytes <= u.spill_limit_bytes);
	assert_int_equal(u.spill_limit_bytes, 10 * ROOM);
	close_spill();
}

static void the_index_and_what_is_on_its_way_are_bounded(void **state)
{
	(void)state;
	open_spill(10000 * ROOM, 4 * SPILL_ENTRY_BYTES * 12);
	put_parts(0, 40);
	assert_int_equal(count_had(0, 40), 0); /* not even one is as small */
	close_spill();
	open_spill(10000 * ROOM, 4 * SPILL_ENTRY_BYTES * 80);
	for (uint64_t i = 0; i < 200; i++) {
		put_for(i, COP_DUTY_NONE);
		await_writes();
		assert_in_range(spill->index.count, 0, 80);
	}
	assert_int_equal(count(COP_SPILL_WRITTEN_BYTES), 80 * LEN);
	close_spill();
}

static void forgetting_makes_the_file_begin_anew(void **state)
{
	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 30);
	cop_spill_forget(spill);
	assert_int_equal(count_had(0, 30), 0);
	await_writes();
	assert_int_equal(spill->end, 0);
	put_parts(100, 130);
	assert_true(count_had(100, 130) >= 20);
	for (uint64_t i = 100; i < 130; i++)
		assert_int_equal(read_part(i), has(i) ? 0 : -ENOENT);
	close_spill();
}

static void assert_left_alone(void)
{
	struct cop_cache_usage u;

	assert_int_equal(count(COP_SPILL_FAILED), 1);
	assert_int_equal(count_had(0, 1000), 0);
	cop_cache_usage(cache, &u);
	assert_int_equal(u.spill_limit_bytes, 0);
	put_parts(1000, 1030);
	assert_int_equal(count_had(1000, 1030), 0);
	close_spill();
}

static void a_full_disk_is_left_alone(void **state)
{
	(void)state;
	open_on(open("/dev/full", O_RDWR | O_CLOEXEC), 100 * ROOM, 1000 * LEN);
	put_parts(0, 30);
	await_writes();
	assert_left_alone();
}

static void a_disk_that_gives_other_bytes_is_left_alone_and_gets_its_room_back(void **state)
{
	struct cop_key key = key_of(3);
	struct stat st;
	off_t at;

	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 100);
	await_writes();
	pthread_mutex_lock(&spill->lock);
	at = (off_t)cop_spill_find(spill, &key)->offset;
	pthread_mutex_unlock(&spill->lock);
	assert_int_equal(pwrite(file, "x", 1, at + 4017), 1);
	assert_int_equal(read_part(3), -EBADMSG);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_left_alone();
}

static void a_disk_that_lost_bytes_is_left_alone(void **state)
{
	uint64_t i = 0;

	(void)state;
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 30);
	await_writes();
	while (!has(i))
		i++;
	assert_int_equal(ftruncate(file, 100), 0);
	assert_int_equal(read_part(i), -EIO);
	assert_left_alone();
}

/* ---- a disk that does not answer ---- */

static sem_t reads_begun, reads_may_end;

static ssize_t hanging_pread(int fd, void *data, size_t len, off_t offset)
{
	sem_post(&reads_begun);
	while (sem_wait(&reads_may_end) && errno == EINTR)
		;
	return pread(fd, data, len, offset);
}

static void hang(uint64_t slow_ms)
{
	sem_init(&reads_begun, 0, 0);
	sem_init(&reads_may_end, 0, 0);
	open_spill(100 * ROOM, 1000 * LEN);
	put_parts(0, 30);
	await_writes();
	pthread_mutex_lock(&spill->lock);
	spill->pread = hanging_pread;
	spill->slow_ms = slow_ms;
	pthread_mutex_unlock(&spill->lock);
}

static void a_disk_that_does_not_answer_is_left_alone_and_all_readers_go_elsewhere(void **state)
{
	struct result r[10];
	unsigned n = 0;

	(void)state;
	hang(50);
	for (uint64_t i = 0; n < COP_ARRAY_SIZE(r); i++)
		if (has(i))
			ask(&r[n++], i);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(answer_of(&r[i]), -EIO);
	for (unsigned i = 0; i < SPILL_WORKERS; i++)
		sem_post(&reads_may_end);
	assert_left_alone();
}

static void closing_ends_what_has_not_begun_and_does_not_wait_for_a_disk_that_hangs(void **state)
{
	struct result r[10];
	unsigned n = 0, cancelled = 0;

	(void)state;
	hang(1000000);
	for (uint64_t i = 0; n < COP_ARRAY_SIZE(r); i++)
		if (has(i))
			ask(&r[n++], i);
	for (unsigned i = 0; i < SPILL_WORKERS; i++)
		while (sem_wait(&reads_begun) && errno == EINTR)
			;
	assert_false(cop_spill_close(spill));
	for (unsigned i = 0; i < SPILL_WORKERS; i++)
		sem_post(&reads_may_end);
	for (unsigned i = 0; i < n; i++) {
		cancelled += answer_of(&r[i]) == -ECANCELED;
		if (!r[i].rc)
			cop_cache_release(cache, r[i].part.data, LEN);
	}
	assert_int_equal(cancelled, COP_ARRAY_SIZE(r) - SPILL_WORKERS);
	close_spill();
}

/* ---- where it may be ---- */

static void assert_refused(const char *dir, int code, const char *why)
{
	char note[COP_SPILL_NOTE_SIZE];
	struct cop_err err = {0};
	uint64_t size = 0;

	assert_int_equal(cop_spill_check(dir, &size, note, &err), -code);
	if (!strstr(err.text, why) || !strstr(err.text, dir))
		fail_msg("'%s' and '%s' are not in '%s'", dir, why, err.text);
}

static void places_that_will_not_do_are_refused_with_a_sentence(void **state)
{
	(void)state;
	assert_refused("/nowhere/at/all", ENOENT, "that each node has on a disk of its own");
	assert_refused("/proc/self/maps", ENOTDIR, "not a directory");
	assert_refused("/proc", EINVAL, "of type proc, which is in memory itself");
	if (geteuid() == 0 && !access("/dev/shm", W_OK))
		assert_refused("/dev/shm", EINVAL, "give a larger --cache-size");
}

/* Where tests run, /var/tmp may be of any kind. */
static void a_file_there_has_no_name_and_no_other_reader(void **state)
{
	struct cop_spill_conf conf = {.dir = "/var/tmp", .memory = 1000 * LEN, .stats = &stats};
	char note[COP_SPILL_NOTE_SIZE];
	struct cop_err err = {0};
	struct stat st;

	(void)state;
	if (cop_spill_check(conf.dir, &conf.size, note, &err))
		skip();
	assert_string_equal(note, "");
	assert_true(conf.size >= 16 * COP_MIB);
	cache = conf.cache = cop_cache_new(10 * LEN, &stats);
	assert_int_equal(cop_spill_open(&conf, note, &spill, &err), 0);
	assert_int_equal(fstat(spill->fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(cop_spill_close(spill));
	cop_spill_free(spill);
	conf.size = (uint64_t)1 << 50;
	assert_int_equal(cop_spill_check(conf.dir, &conf.size, note, &err), 0);
	assert_non_null(strstr(note, "it uses half of those"));
	assert_true(conf.size < (uint64_t)1 << 49);
	cop_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_memory_comes_back_as_it_was),
		cmocka_unit_test(copies_and_what_is_not_of_files_never_go_there),
		cmocka_unit_test(each_part_is_written_once),
		cmocka_unit_test(a_full_file_keeps_what_it_has_until_nobody_reads_it),
		cmocka_unit_test(the_index_and_what_is_on_its_way_are_bounded),
		cmocka_unit_test(forgetting_makes_the_file_begin_anew),
		cmocka_unit_test(a_full_disk_is_left_alone),
		cmocka_unit_test(
			a_disk_that_gives_other_bytes_is_left_alone_and_gets_its_room_back),
		cmocka_unit_test(a_disk_that_lost_bytes_is_left_alone),
		cmocka_unit_test(
			a_disk_that_does_not_answer_is_left_alone_and_all_readers_go_elsewhere),
		cmocka_unit_test(
			closing_ends_what_has_not_begun_and_does_not_wait_for_a_disk_that_hangs),
		cmocka_unit_test(places_that_will_not_do_are_refused_with_a_sentence),
		cmocka_unit_test(a_file_there_has_no_name_and_no_other_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
