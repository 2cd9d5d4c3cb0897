/* SPDX-License-Identifier: BSD-3-Clause */
/* One node over a fake origin, with the real cache and tree/fetch, and a manifest given as a
 * string. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree/prefetch/prefetch_priv.h"

/* As large as what a root reads at a time, so that no chunk is read along with another. */
#define CHUNK (4 * COP_MIB)
#define WHOLE (6 * CHUNK)

struct world {
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_fetch *fetch;
	struct cop_prefetch *p;
	struct cop_buf body;
	int error; /* the error that every piece gets */
	bool by_part, forming;
	void (*have)(void *arg, enum cop_manifest_kind kind, const char *path, uint64_t start,
		uint64_t end);
	char had[512];
	char report[512];
};

static int piece(void *ctx, uint64_t index, void **data, size_t *len)
{
	struct world *w = ctx;
	size_t at = 0, n = 0;

	if (w->error)
		return w->error;
	for (uint64_t i = 0; i <= index; i++, at += n)
		if (!(n = cop_manifest_piece(w->body.data, w->body.len, at)))
			return -ENODATA;
	*data = malloc(n);
	memcpy(*data, w->body.data + at - n, n);
	*len = n;
	return 0;
}

static struct world *open_world(uint64_t budget)
{
	struct world *w = calloc(1, sizeof(*w));
	struct cop_fetch_conf conf = {.topo = {1, 8, 1},
		.chunk_bytes = CHUNK,
		.enoent_ttl_ms = 60000,
		.stats = &w->stats,
		.manifest = piece,
		.ctx = w};

	w->cache = conf.cache = cop_cache_new(budget, &w->stats);
	w->origin = conf.origin = cop_origin_fake_new();
	w->fetch = cop_fetch_new(&conf);
	return w;
}

static void put_file(struct world *w, const char *path, size_t len)
{
	char *data = calloc(1, len + 1);

	cop_origin_fake_put(w->origin, path, S_IFREG | 0644, data, len);
	free(data);
}

static void put_dir(struct world *w, const char *path)
{
	cop_origin_fake_put(w->origin, path, S_IFDIR | 0755, "", 0);
}

static void start(struct world *w, const char *body)
{
	struct cop_prefetch_conf conf = {.fetch = w->fetch,
		.cache = w->cache,
		.stats = &w->stats,
		.whole_file_max = WHOLE,
		.have = w->have,
		.arg = w,
		.forming = w->forming,
		.by_part = w->by_part};

	if (body)
		cop_buf_str(&w->body, body);
	assert_int_equal(cop_prefetch_start(&conf, &w->p), 0);
}

static bool ended(struct world *w)
{
	bool over;

	pthread_mutex_lock(&w->p->lock);
	over = w->p->state == DONE || w->p->state == STOPPED;
	pthread_mutex_unlock(&w->p->lock);
	return over;
}

/* Runs the origin until the prefetch has ended; its report is in w->report. */
static void finish_all(struct world *w)
{
	struct cop_buf b = {0};

	for (int i = 0; i < 20000 && !ended(w); i++)
		if (!cop_origin_fake_run(w->origin, 1000))
			usleep(500);
	assert_true(ended(w));
	cop_prefetch_json(w->p, &b);
	snprintf(w->report, sizeof(w->report), "%s", b.data);
	cop_buf_free(&b);
}

static void run_manifest(struct world *w, const char *body)
{
	start(w, body);
	finish_all(w);
}

static void close_world(struct world *w)
{
	cop_prefetch_stop(w->p);
	cop_fetch_close(w->fetch);
	cop_origin_close(w->origin);
	cop_prefetch_free(w->p);
	cop_cache_check(w->cache);
	cop_fetch_free(w->fetch);
	cop_cache_free(w->cache);
	cop_buf_free(&w->body);
	free(w);
}

static uint64_t counter(struct world *w, enum cop_counter c)
{
	return cop_stats_get(&w->stats, c);
}

static bool has(struct world *w, enum cop_ask_kind kind, const char *path)
{
	struct cop_obj *obj =
		cop_fetch_peek(w->fetch, &(struct cop_ask){.kind = kind, .path = path});

	if (obj)
		cop_obj_put(w->cache, obj);
	return obj;
}

/* Which chunks of a file are cached, in the version that its directory's listing has: "011" means
 * the second and the third. */
static const char *chunks(struct world *w, const char *dir, const char *name)
{
	static char text[64];
	struct cop_obj *list = cop_fetch_peek(
			       w->fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = dir}),
		       *obj;
	struct cop_listing_entry e;
	char path[256];
	size_t n = 0;

	assert_non_null(list);
	assert_true(cop_listing_find(list->data, name, strlen(name), &e));
	snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);
	for (; cop_fetch_chunk_len(w->fetch, e.attr.size, n); n++) {
		obj = cop_fetch_peek(w->fetch, &(struct cop_ask){.kind = COP_ASK_CHUNK,
						       .path = path,
						       .version = e.attr.version,
						       .size = e.attr.size,
						       .index = n});
		text[n] = obj ? '1' : '0';
		if (obj)
			cop_obj_put(w->cache, obj);
	}
	text[n] = '\0';
	cop_obj_put(w->cache, list);
	return text;
}

static void named_objects_are_cached_and_were_requested_once(void **state)
{
	struct world *w = open_world(COP_GIB);
	struct cop_origin_fake_counts c;

	(void)state;
	put_dir(w, "lib");
	put_file(w, "lib/a", 100);
	put_file(w, "lib/b", 100);
	put_dir(w, "other");
	run_manifest(w,
		"d .\nd lib\nf 100 0 0-100 lib/a\nn lib/b\nn lib/absent\nd lib\nf 100 0 0-100 lib/a\nend 7\n");
	assert_true(has(w, COP_ASK_LISTING, "") && has(w, COP_ASK_LISTING, "lib"));
	assert_false(has(w, COP_ASK_LISTING, "other"));
	assert_string_equal(chunks(w, "lib", "a"), "1");
	assert_string_equal(chunks(w, "lib", "b"), "0");
	c = cop_origin_fake_counts(w->origin);
	assert_int_equal(c.lists, 2);
	assert_int_equal(c.reads, 1);
	/* The source's own attributes. */
	assert_int_equal(c.stats, 1);
	assert_int_equal(counter(w, COP_PREFETCH_FAILED), 0);
	assert_string_equal(w->report,
		"{\"state\":\"done\",\"why\":null,\"items\":7,\"listings\":3,\"files\":2}");
	close_world(w);
}

static void ranges_are_asked_for_by_chunk_and_then_the_rest_of_the_file(void **state)
{
	struct world *w = open_world(COP_GIB);

	(void)state;
	put_file(w, "f", 4 * CHUNK + 1);
	put_file(w, "large", WHOLE + 1);
	put_file(w, "unread", 2 * CHUNK);
	/* A reader would not fetch the large file whole. */
	run_manifest(w,
		"d .\nf 16777217 0 4194304-4194305 f\nf 25165825 0 4194303-4194305,12582912-12582913,25165824-25165825 large\n"
		"f 8388608 0 - unread\n");
	assert_string_equal(chunks(w, "", "f"), "11111");
	assert_string_equal(chunks(w, "", "large"), "1101001");
	assert_string_equal(chunks(w, "", "unread"), "00");
	assert_int_equal(counter(w, COP_PREFETCH_OBJECTS), 2 + 5 + 4);
	assert_int_equal(counter(w, COP_PREFETCH_PRESENT), 0);
	close_world(w);
}

static void a_stale_manifest_brings_what_is_there_now(void **state)
{
	struct world *w = open_world(COP_GIB);

	(void)state;
	put_file(w, "grown", 2 * CHUNK + 1);
	put_file(w, "shrunk", 10);
	put_dir(w, "was-a-file");
	put_file(w, "was-a-dir", 10);
	run_manifest(w,
		"d .\nd gone\nd was-a-dir\nf 4096 0 0-4096 grown\nf 99999 0 0-8192,90000-99999 shrunk\nf 5 0 0-5 was-a-file\n"
		"f 5 0 0-5 gone/x\nf 5 0 0-5 was-a-dir/x\nf 5 0 0-5 missing\n");
	assert_string_equal(chunks(w, "", "grown"), "111");
	assert_string_equal(chunks(w, "", "shrunk"), "1");
	assert_int_equal(counter(w, COP_PREFETCH_CHANGED), 6);
	assert_non_null(strstr(w->report, "\"state\":\"done\",\"why\":null"));
	close_world(w);
}

static void without_a_listing_names_are_requested_one_by_one(void **state)
{
	struct world *w = open_world(COP_GIB);

	(void)state;
	put_dir(w, "closed");
	put_file(w, "closed/f", 100);
	cop_origin_fake_fail(w->origin, "closed", EACCES);
	run_manifest(w, "d closed\nf 100 0 0-100 closed/f\nn closed/absent\n");
	assert_true(has(w, COP_ASK_ENTRY, "closed/f") && has(w, COP_ASK_ENTRY, "closed/absent"));
	assert_int_equal(cop_origin_fake_counts(w->origin).reads, 1);
	assert_int_equal(counter(w, COP_PREFETCH_FAILED), 1);
	close_world(w);
}

static void a_prefetch_stops_before_anything_is_evicted(void **state)
{
	struct world *w = open_world(COP_MIB);
	struct cop_cache_usage u;
	char line[64];

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(line, sizeof(line), "f%d", i);
		put_file(w, line, 4096);
		cop_buf_printf(&w->body, "f 4096 0 0-4096 f%d\n", i);
	}
	run_manifest(w, NULL);
	assert_non_null(
		strstr(w->report, "{\"state\":\"stopped\",\"why\":\"the cache is nearly full"));
	cop_cache_usage(w->cache, &u);
	assert_true(u.used_bytes <= u.limit_bytes);
	assert_true(u.used_bytes >= u.limit_bytes / 2);
	assert_int_equal(counter(w, COP_CACHE_EVICTIONS), 0);
	close_world(w);
}

static void nothing_is_requested_after_it_gave_up(void **state)
{
	struct world *w = open_world(COP_MIB);
	unsigned queued = 0, running;

	(void)state;
	put_file(w, "large", CHUNK);
	put_dir(w, "closed");
	put_file(w, "closed/f", 100);
	cop_origin_fake_fail(w->origin, "closed", EACCES);
	start(w, "f 4194304 0 0-4194304 large\nf 100 0 0-100 closed/f\n");
	for (int i = 0; i < 20000 && queued < 2; i++) {
		usleep(500);
		cop_origin_load(w->origin, &queued, &running);
	}
	/* The listing that knows the large file, which does not fit; then the one that fails. */
	assert_int_equal(cop_origin_fake_run(w->origin, 1), 1);
	usleep(50000);
	finish_all(w);
	assert_non_null(strstr(w->report, "\"state\":\"stopped\""));
	assert_false(has(w, COP_ASK_ENTRY, "closed/f"));
	close_world(w);
}

static void no_more_is_under_way_than_the_windows_allow(void **state)
{
	struct world *w = open_world(COP_GIB);
	unsigned queued = 0, running, most = 0;
	char name[64];

	(void)state;
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		put_dir(w, name);
		cop_buf_printf(&w->body, "d d%d\n", i);
		snprintf(name, sizeof(name), "d%d/f", i);
		put_file(w, name, 10);
		cop_buf_printf(&w->body, "f 10 0 0-10 d%d/f\n", i);
	}
	start(w, NULL);
	for (int i = 0; i < 20000 && !ended(w); i++) {
		usleep(200);
		cop_origin_load(w->origin, &queued, &running);
		most = COP_MAX(most, queued);
		cop_origin_fake_run(w->origin, 7);
	}
	finish_all(w);
	assert_in_range(most, SLOTS_LISTINGS, SLOTS);
	assert_int_equal(cop_origin_fake_counts(w->origin).lists, 500);
	assert_int_equal(cop_origin_fake_counts(w->origin).reads, 500);
	close_world(w);
}

static void without_a_manifest_there_is_nothing_to_do(void **state)
{
	struct world *w = open_world(COP_MIB);

	(void)state;
	w->error = -ENODATA;
	run_manifest(w, NULL);
	assert_non_null(strstr(w->report, "{\"state\":\"done\",\"why\":\"there is no manifest\""));
	close_world(w);
	w = open_world(COP_MIB);
	w->error = -EIO;
	run_manifest(w, NULL);
	assert_non_null(strstr(
		w->report, "{\"state\":\"stopped\",\"why\":\"the manifest could not be fetched\""));
	close_world(w);
}

static void garbage_does_nothing(void **state)
{
	struct world *w = open_world(COP_MIB);

	(void)state;
	run_manifest(w, "hello\nd ../..\nd /etc\nf x\n\\\n");
	assert_int_equal(cop_origin_fake_counts(w->origin).lists, 0);
	assert_non_null(strstr(w->report, "\"state\":\"done\""));
	close_world(w);
}

static void a_long_manifest_comes_in_pieces(void **state)
{
	struct world *w = open_world(COP_GIB);

	(void)state;
	put_dir(w, "d");
	for (int i = 0; i < 20000; i++)
		cop_buf_printf(&w->body, "n d/some-name-that-is-not-there-%d\n", i);
	run_manifest(w, "f 5 0 0-5 d/last\n");
	assert_true(w->body.len > 2 * COP_MANIFEST_PIECE);
	assert_non_null(strstr(w->report, "\"items\":20001,"));
	assert_int_equal(counter(w, COP_PREFETCH_CHANGED), 1);
	close_world(w);
}

static size_t requests_at_origin(const struct world *w)
{
	struct cop_origin_fake_counts c = cop_origin_fake_counts(w->origin);

	return c.lists + c.pages + c.stats + c.reads;
}

/* Until this many files were requested. */
static void await_files(struct world *w, uint64_t files)
{
	for (int i = 0; i < 20000 && (atomic_load(&w->p->files) < files || !ended(w)); i++)
		if (!cop_origin_fake_run(w->origin, 1000))
			usleep(500);
	assert_int_equal(atomic_load(&w->p->files), files);
}

static void a_part_is_fetched_when_its_first_file_is_opened(void **state)
{
	static const char body[] = "part 0 d/a\nd d\nf 5 0 0-5 d/a\npart 3 d/b\nf 5 0 0-5 d/b\n"
				   "f 5 0 0-5 d/c\n";
	struct world *w = open_world(COP_GIB);

	(void)state;
	for (char name[] = "d/a"; name[2] <= 'c'; name[2]++)
		put_file(w, name, 5);
	w->by_part = true;
	run_manifest(w, body);
	assert_non_null(strstr(w->report, "no program has begun a part"));
	assert_int_equal(requests_at_origin(w), 0);
	cop_prefetch_opened(w->p, "d/c");
	cop_prefetch_opened(NULL, "d/a");
	assert_int_equal(cop_prefetch_begun(w->p), 0);
	cop_prefetch_opened(w->p, "d/b");
	await_files(w, 2);
	assert_string_equal(chunks(w, "d", "b"), "1");
	assert_string_equal(chunks(w, "d", "c"), "1");
	assert_string_equal(chunks(w, "d", "a"), "0");
	cop_prefetch_opened(w->p, "d/b");
	cop_prefetch_opened(w->p, "d/a");
	await_files(w, 3);
	assert_int_equal(cop_prefetch_begun(w->p), 3);
	close_world(w);
	/* A given manifest is fetched at once. */
	w = open_world(COP_GIB);
	put_file(w, "d/a", 5);
	run_manifest(w, body);
	assert_non_null(strstr(w->report, "\"items\":4,"));
	assert_true(has(w, COP_ASK_LISTING, "d"));
	close_world(w);
}

/* The program may begin before the node has the manifest. */
static void a_file_that_was_opened_early_begins_its_part(void **state)
{
	struct world *w = open_world(COP_GIB);
	struct cop_prefetch p = {.conf = {.fetch = w->fetch, .by_part = true}};

	(void)state;
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.wake, NULL);
	for (unsigned i = 0; i < 2 * EARLY; i++)
		cop_prefetch_opened(&p, i == 5 ? "d/b" : "d/x");
	assert_true(cop_prefetch_parse_piece(&p, "part 0 d/a\nd a\npart 0 d/b\nd b\n", 30));
	assert_true(cop_prefetch_know_parts(&p));
	assert_int_equal(cop_prefetch_begun(&p), 2);
	cop_prefetch_take_begun(&p);
	assert_int_equal(p.n_todo, 1);
	assert_int_equal(p.todo[0], 1);
	cop_buf_free(&p.text);
	cop_buf_free(&p.items);
	cop_buf_free(&p.ranges);
	free(p.todo);
	pthread_mutex_destroy(&p.lock);
	pthread_cond_destroy(&p.wake);
	close_world(w);
}

static void note(
	void *arg, enum cop_manifest_kind kind, const char *path, uint64_t start, uint64_t end)
{
	struct world *w = arg;
	size_t n = strlen(w->had);

	snprintf(w->had + n, sizeof(w->had) - n, "%c %s %llu-%llu;", "dnf"[kind], path,
		(unsigned long long)start, (unsigned long long)end);
}

/* The rest of a file is fetched after what the manifest names, and is not reported. What is
 * requested at the same time arrives in any order. */
static void what_the_manifest_names_is_reported_when_it_is_here(void **state)
{
	static const char *const records[] = {"d d 0-0;", "n d/gone 0-0;", "f d/a 10-20;",
		"f d/a 4194300-4194304;", "f d/a 4194304-4194400;"};
	struct world *w = open_world(COP_GIB);
	size_t len = 0;

	(void)state;
	put_file(w, "d/a", 2 * CHUNK);
	w->have = note;
	run_manifest(w, "d d\nn d/gone\nf 8388608 0 10-20,4194300-4194400 d/a\nf 1 0 0-1 d/gone\n");
	assert_string_equal(chunks(w, "d", "a"), "11");
	for (size_t i = 0; i < COP_ARRAY_SIZE(records); len += strlen(records[i++]))
		if (!strstr(w->had, records[i]))
			fail_msg("no %s in %s", records[i], w->had);
	assert_int_equal(strlen(w->had), len);
	close_world(w);
}

/* The parents that chunks come from may not be there yet. */
static void until_the_tree_is_formed_only_names_are_requested(void **state)
{
	struct world *w = open_world(COP_GIB);

	(void)state;
	put_file(w, "d/a", 5);
	w->forming = true;
	start(w, "d d\nf 5 0 0-5 d/a\n");
	for (int i = 0; i < 20000 && !has(w, COP_ASK_LISTING, "d"); i++) {
		usleep(1000);
		cop_origin_fake_run(w->origin, 3);
	}
	assert_true(has(w, COP_ASK_LISTING, "d"));
	for (int i = 0; i < 20; i++) {
		usleep(1000);
		cop_origin_fake_run(w->origin, 3);
	}
	assert_int_equal(cop_origin_fake_counts(w->origin).reads, 0);
	assert_false(ended(w));
	cop_prefetch_formed(w->p);
	finish_all(w);
	assert_string_equal(chunks(w, "d", "a"), "1");
	close_world(w);
}

/* Requests that complete after the thread has ended also drop their references: close_world checks
 * it. */
static void a_node_that_stops_in_the_middle_requests_nothing_more(void **state)
{
	(void)state;
	for (int turn = 0; turn < 20; turn++) {
		struct world *w = open_world(COP_GIB);
		char name[32];
		size_t requested;

		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "d%d", i);
			put_dir(w, name);
			cop_buf_printf(&w->body, "d %s\nn %s/x\n", name, name);
		}
		start(w, NULL);
		for (int i = 0; i < turn; i++) {
			usleep(100);
			cop_origin_fake_run(w->origin, 3);
		}
		cop_prefetch_stop(w->p);
		requested = requests_at_origin(w);
		if (turn % 2)
			cop_origin_fake_run(w->origin, 10);
		assert_int_equal(requests_at_origin(w), requested);
		close_world(w);
	}
}

static void a_null_prefetch_is_ignored(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	cop_prefetch_json(NULL, &b);
	assert_string_equal(
		b.data, "{\"state\":\"off\",\"why\":null,\"items\":0,\"listings\":0,\"files\":0}");
	cop_buf_free(&b);
	cop_prefetch_formed(NULL);
	cop_prefetch_stop(NULL);
	cop_prefetch_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_objects_are_cached_and_were_requested_once),
		cmocka_unit_test(ranges_are_asked_for_by_chunk_and_then_the_rest_of_the_file),
		cmocka_unit_test(a_stale_manifest_brings_what_is_there_now),
		cmocka_unit_test(without_a_listing_names_are_requested_one_by_one),
		cmocka_unit_test(a_prefetch_stops_before_anything_is_evicted),
		cmocka_unit_test(nothing_is_requested_after_it_gave_up),
		cmocka_unit_test(no_more_is_under_way_than_the_windows_allow),
		cmocka_unit_test(without_a_manifest_there_is_nothing_to_do),
		cmocka_unit_test(garbage_does_nothing),
		cmocka_unit_test(a_long_manifest_comes_in_pieces),
		cmocka_unit_test(a_part_is_fetched_when_its_first_file_is_opened),
		cmocka_unit_test(a_file_that_was_opened_early_begins_its_part),
		cmocka_unit_test(what_the_manifest_names_is_reported_when_it_is_here),
		cmocka_unit_test(until_the_tree_is_formed_only_names_are_requested),
		cmocka_unit_test(a_node_that_stops_in_the_middle_requests_nothing_more),
		cmocka_unit_test(a_null_prefetch_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
