/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "trace/read/index_priv.h"
#include "trace/read/read_testing.h"

#define EVENTS 3000u

/* ---- a file in a directory of its own ---- */

struct place {
	char dir[32], file[64], index[96];
};

static void place_init(struct place *p)
{
	strcpy(p->dir, "/tmp/copper-index.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->file, sizeof(p->file), "%s/t.pfw", p->dir);
	snprintf(p->index, sizeof(p->index), "%s" COP_TRACE_INDEX_END, p->file);
	setenv("XDG_CACHE_HOME", p->dir, 1);
}

static void place_fini(struct place *p)
{
	char cache[160];
	const char *below[] = {"copper/trace-index", "copper"};

	snprintf(cache, sizeof(cache), "%s/%s/%016llx" COP_TRACE_INDEX_END, p->dir, below[0],
		(unsigned long long)cop_hash64(p->file, strlen(p->file), 0));
	unlink(cache);
	for (size_t i = 0; i < COP_ARRAY_SIZE(below); i++) {
		snprintf(cache, sizeof(cache), "%s/%s", p->dir, below[i]);
		rmdir(cache);
	}
	unlink(p->index);
	unlink(p->file);
	assert_int_equal(rmdir(p->dir), 0);
}

/* Writes events of a program that opens one file per hundred events and defines the file's name
 * after its use; every 1500th event is a checkpoint. */
static void put_line(struct cop_buf *b, unsigned i)
{
	if (i % 100 == 50)
		cop_buf_printf(b,
			"{\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ph\":\"M\","
			"\"args\":{\"name\":\"/pfs/file-%u\",\"value\":%u}}\n",
			i / 100, 1000 + i / 100);
	if (i % 1500 == 250)
		cop_buf_printf(b,
			"{\"name\":\"save\",\"cat\":\"ckpt\",\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":7,"
			"\"ph\":\"X\",\"args\":{\"step\":%u}}\n",
			10 * i + 5, i);
	cop_buf_printf(b,
		"{\"name\":\"%s\",\"cat\":\"POSIX\",\"pid\":%u,\"tid\":%u,\"ts\":%u,\"dur\":3,\"ph\":\"X\","
		"\"args\":{\"fhash\":%u,\"ret\":%u}}\n",
		i % 3 ? "read" : "write", 1 + i / 1000, i % 2, 10 * i, 1000 + i / 100, i);
}

static struct cop_buf lines_of(unsigned n)
{
	struct cop_buf b = {0};

	cop_buf_str(&b, "[\n");
	for (unsigned i = 0; i < n; i++)
		put_line(&b, i);
	cop_buf_str(&b, "]\n");
	assert_false(b.failed);
	return b;
}

enum form { PLAIN, ONE_MEMBER, MANY_MEMBERS, FORMS };

static void add_gzip(struct cop_buf *out, const char *data, size_t len)
{
	z_stream z = {0};
	char *room = malloc(2 * len + 1024);

	/* A low memory level produces many blocks. */
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 1, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)data;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)room;
	z.avail_out = (uInt)(2 * len + 1024);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	cop_buf_add(out, room, z.total_out);
	deflateEnd(&z);
	free(room);
}

static void write_trace(const struct place *p, const struct cop_buf *text, enum form form)
{
	struct cop_buf out = {0};
	size_t part = form == MANY_MEMBERS ? 5000 : text->len;

	if (form == PLAIN)
		cop_buf_add(&out, text->data, text->len);
	for (size_t at = 0; form != PLAIN && at < text->len; at += part)
		add_gzip(&out, text->data + at, COP_MIN(part, text->len - at));
	assert_int_equal(cop_write_file(p->file, out.data, out.len, 0644), 0);
	cop_buf_free(&out);
}

/* ---- making ---- */

static void on_done(void *arg, const struct cop_trace_index_result *r)
{
	struct cop_trace_index_result *out = arg;

	*out = *r;
	out->path = NULL;
}

static struct cop_trace_index_result make_index(const struct place *p, uint64_t chunk)
{
	struct cop_trace_index_result result = {0};
	char *paths[] = {(char *)p->file};
	struct cop_trace_files *files;
	struct cop_buf notes = {0};

	assert_int_equal(cop_trace_files_new(paths, 1, &files, &notes, NULL), 0);
	assert_int_equal(cop_trace_index(files,
				 &(struct cop_trace_index_conf){.threads = 1,
					 .small_bytes = 1,
					 .chunk_bytes = chunk,
					 .share = chunk < 50000 ? 1 : 0,
					 .done = on_done,
					 .arg = &result},
				 NULL),
		0);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	return result;
}

/* ---- asking ---- */

struct question {
	const char *name, *pid, *file, *cat; /* NULL: any */
	int64_t from_ns, to_ns;
	bool meta;
};
struct answer {
	const struct question *q;
	struct cop_buf text;
	struct cop_trace_result result;
	struct cop_buf notes;
	uint64_t passed; /* events delivered */
};

static bool is_wanted(const char *want, struct cop_trace_str s)
{
	return !want || cop_trace_str_is(s, want);
}

static bool asks_word(void *arg, unsigned what, struct cop_trace_str s)
{
	const struct question *q = arg;

	return is_wanted(what == COP_TRACE_WORD_NAME  ? q->name
			 : what == COP_TRACE_WORD_PID ? q->pid
			 : what == COP_TRACE_WORD_CAT ? q->cat
						      : q->file,
		s);
}

static int take_events(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	struct answer *a = arg;
	const struct question *q = a->q;

	(void)worker;
	a->passed += n;
	for (; n; n--, e++) {
		bool meta = e->kind == COP_TRACE_META;

		if (meta ? !q->meta
			 : !is_wanted(q->name, e->name) || !is_wanted(q->pid, e->pid) ||
					!is_wanted(q->file, e->file) ||
					!is_wanted(q->cat, e->cat) || e->ts_ns < q->from_ns ||
					e->ts_ns > q->to_ns)
			continue;
		cop_buf_printf(&a->text, "%lld %.*s %.*s %.*s %.*s %llu\n", (long long)e->ts_ns,
			(int)e->name.len, e->name.at, (int)e->pid.len, e->pid.at, (int)e->file.len,
			e->file.at, (int)e->args.len, e->args.at, (unsigned long long)e->size);
	}
	return 0;
}

static void ask(const struct place *p, const struct question *q, struct answer *a)
{
	struct cop_trace_pick pick = {.word = asks_word,
		.arg = (void *)q,
		.from_ns = q->from_ns,
		.to_ns = q->to_ns,
		.meta = q->meta};
	char *paths[] = {(char *)p->file};
	struct cop_trace_files *files;

	pick.words |= q->name ? 1u << COP_TRACE_WORD_NAME : 0;
	pick.words |= q->pid ? 1u << COP_TRACE_WORD_PID : 0;
	pick.words |= q->cat ? 1u << COP_TRACE_WORD_CAT : 0;
	pick.words |= q->file ? 1u << COP_TRACE_WORD_FILE : 0;
	*a = (struct answer){.q = q};
	cop_buf_str(&a->text, "");
	cop_buf_str(&a->notes, "");
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &a->notes, NULL), 0);
	assert_int_equal(cop_trace_read(files,
				 &(struct cop_trace_conf){.threads = 1,
					 .names = true,
					 .args = true,
					 .pick = &pick,
					 .batch = take_events,
					 .arg = a},
				 &a->result, &a->notes, NULL),
		0);
	cop_trace_faults(files, &a->result, &a->notes);
	cop_trace_files_free(files);
}

static void answer_free(struct answer *a)
{
	cop_buf_free(&a->text);
	cop_buf_free(&a->notes);
}

static void check_same(const struct answer *got, const struct answer *want)
{
	assert_string_equal(got->text.data, want->text.data);
	assert_int_equal(got->result.first_ns, want->result.first_ns);
	assert_int_equal(got->result.last_ns, want->result.last_ns);
	assert_int_equal(got->result.broken, want->result.broken);
	assert_int_equal(got->result.omitted, want->result.omitted);
	for (unsigned k = 0; k < COP_TRACE_KINDS; k++)
		assert_int_equal(got->result.events[k], want->result.events[k]);
}

#define ALWAYS .from_ns = INT64_MIN, .to_ns = INT64_MAX
static const struct question questions[] = {
	{ALWAYS, .meta = true},
	{ALWAYS, .name = "save"},
	{ALWAYS, .name = "write"},
	{ALWAYS, .name = "absent"},
	{ALWAYS, .pid = "2"},
	{ALWAYS, .file = "/pfs/file-7"},
	{ALWAYS, .file = "/pfs/file-7", .name = "read"},
	{ALWAYS, .cat = "ckpt", .meta = true},
	{.from_ns = 15000000, .to_ns = 15100000},
	{.from_ns = 29990000, .to_ns = INT64_MAX},
	{.from_ns = INT64_MIN, .to_ns = 0},
	{.from_ns = 10000000, .to_ns = 11000000, .name = "save"},
};

/* Queries with and without the index, and compares the results; *passed is the number of events
 * delivered with it. */
static void compare(const struct place *p, const struct question *q, uint64_t *passed)
{
	char aside[128];
	struct answer with, without;

	snprintf(aside, sizeof(aside), "%s.aside", p->index);
	ask(p, q, &with);
	assert_int_equal(rename(p->index, aside), 0);
	ask(p, q, &without);
	assert_int_equal(rename(aside, p->index), 0);
	check_same(&with, &without);
	assert_string_equal(with.notes.data, without.notes.data);
	*passed = with.passed;
	answer_free(&with);
	answer_free(&without);
}

/* ---- tests ---- */

static void answers_are_the_same_with_and_without_an_index(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	uint64_t passed;
	struct place p;

	(void)state;
	place_init(&p);
	for (unsigned form = 0; form < FORMS; form++) {
		struct cop_trace_index_result r;

		write_trace(&p, &text, form);
		r = make_index(&p, 6000);
		if (r.what == COP_TRACE_INDEX_REFUSED)
			fail_msg("form %u: %s", form, r.why);
		assert_int_equal(r.what, COP_TRACE_INDEX_MADE);
		assert_int_equal(r.events, EVENTS + EVENTS / 100 + EVENTS / 1500);
		assert_true(r.chunks > 1);
		for (size_t i = 0; i < COP_ARRAY_SIZE(questions); i++)
			compare(&p, &questions[i], &passed);
		unlink(p.index);
	}
	cop_buf_free(&text);
	place_fini(&p);
}

/* In a file of one member, windows take space, so the points are farther apart. */
static void what_nobody_asks_for_is_not_read(void **state)
{
	struct cop_buf text = lines_of(30 * EVENTS);
	struct cop_trace_index_result r;
	struct place p;
	uint64_t passed;

	(void)state;
	place_init(&p);
	for (unsigned form = 0; form < FORMS; form++) {
		write_trace(&p, &text, form);
		r = make_index(&p, 100000);
		assert_int_equal(r.what, COP_TRACE_INDEX_MADE);
		assert_true(r.bytes <= r.file_bytes / 20);
		compare(&p, &questions[8], &passed); /* a few microseconds */
		assert_true(passed < 10 * EVENTS);
		compare(&p, &questions[3], &passed); /* a name that does not occur */
		assert_int_equal(passed, 0);
		compare(&p, &questions[1], &passed); /* a rare name, everywhere */
		assert_true(passed < 2 * EVENTS);
		compare(&p, &questions[5], &passed); /* one file */
		assert_true(passed < 10 * EVENTS);
		unlink(p.index);
	}
	cop_buf_free(&text);
	place_fini(&p);
}

static void halves_and_broken_lines_are_found_by_every_question(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	uint64_t passed;
	struct place p;

	(void)state;
	place_init(&p);
	text.len -= 2;
	cop_buf_str(&text,
		"{\"name\":\"f\",\"cat\":\"c\",\"pid\":1,\"tid\":1,\"ts\":1,\"ph\":\"B\"}\n"
		"{\"name\":\"x\",\"ph\":\n");
	for (unsigned i = 0; i < EVENTS; i++)
		put_line(&text, i);
	cop_buf_str(&text, "{\"name\":\"dump\",\"pid\":1,\"ts\":1,\"ph\":\"v\"}\n");
	for (unsigned i = 0; i < EVENTS; i++)
		put_line(&text, i);
	cop_buf_str(&text,
		"{\"pid\":1,\"tid\":1,\"ts\":9999999,\"ph\":\"E\"}\n"
		"{\"name\":\"g\",\"cat\":\"c\",\"pid\":1,\"tid\":1,\"ts\":5,\"ph\":\"B\"}\n");
	for (unsigned form = 0; form < FORMS; form++) {
		write_trace(&p, &text, form);
		assert_int_equal(make_index(&p, 20000).what, COP_TRACE_INDEX_MADE);
		for (size_t i = 0; i < COP_ARRAY_SIZE(questions); i++)
			compare(&p, &questions[i], &passed);
		unlink(p.index);
	}
	cop_buf_free(&text);
	place_fini(&p);
}

static void a_file_that_is_cut_off_says_so_to_every_question(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	uint64_t passed;
	struct place p;
	struct stat st;

	(void)state;
	place_init(&p);
	for (unsigned form = 0; form < FORMS; form++) {
		write_trace(&p, &text, form);
		assert_int_equal(stat(p.file, &st), 0);
		assert_int_equal(truncate(p.file, st.st_size - 70), 0);
		assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
		for (size_t i = 0; i < COP_ARRAY_SIZE(questions); i++)
			compare(&p, &questions[i], &passed);
		unlink(p.index);
	}
	cop_buf_free(&text);
	place_fini(&p);
}

/* In a document, the rank and the base time are outside the events. */
static void members_of_a_document_hold_in_every_part(void **state)
{
	struct cop_buf text = {0};
	const struct question q = {
		.from_ns = INT64_C(1000000020000000), .to_ns = INT64_C(1000000020100000)};
	uint64_t passed;
	struct place p;

	(void)state;
	place_init(&p);
	for (unsigned tail = 0; tail < 2; tail++) {
		const char *base = "\"baseTimeNanoseconds\":1000000000000000";

		text.len = 0;
		cop_buf_printf(&text, "{\"distributedInfo\":{\"rank\":3},%s%s\"traceEvents\":[\n",
			tail ? "" : base, tail ? "" : ",");
		for (unsigned i = 0; i < EVENTS; i++)
			cop_buf_printf(&text,
				"%s{\"name\":\"k%u\",\"cat\":\"kernel\",\"pid\":1,\"tid\":1,\"ts\":%u,"
				"\"dur\":1,\n\"ph\":\"X\",\"args\":{\"Input Dims\":[[1,2],[3]]}}",
				i ? ",\n" : "", i % 7, 10 * i);
		cop_buf_printf(&text,
			"]%s%s,\"other\":[{\"ph\":\"X\",\"ts\":1,\"name\":\"no\"}]}\n",
			tail ? "," : "", tail ? base : "");
		for (unsigned form = 0; form < FORMS; form++) {
			write_trace(&p, &text, form);
			assert_int_equal(make_index(&p, 20000).what, COP_TRACE_INDEX_MADE);
			compare(&p, &q, &passed);
			assert_true(passed > 0 && passed < EVENTS);
			compare(&p, &questions[0], &passed);
			unlink(p.index);
		}
	}
	cop_buf_free(&text);
	place_fini(&p);
}

static void check_note(const struct place *p, const char *want)
{
	const struct question *q = &questions[1];
	struct answer a;

	ask(p, q, &a);
	if (*want)
		assert_non_null(strstr(a.notes.data, want));
	else
		assert_string_equal(a.notes.data, "");
	assert_int_equal(strlen(a.text.data) > 0, 1);
	answer_free(&a);
}

static void an_index_of_another_state_of_the_file_is_not_used(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	struct place p;
	struct stat st;
	struct timespec times[2];

	(void)state;
	place_init(&p);
	write_trace(&p, &text, ONE_MEMBER);
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
	check_note(&p, "");
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_CURRENT);
	assert_int_equal(stat(p.file, &st), 0);
	times[0] = times[1] = (struct timespec){st.st_mtim.tv_sec, st.st_mtim.tv_nsec + 1};
	assert_int_equal(utimensat(AT_FDCWD, p.file, times, 0), 0);
	check_note(&p, "has changed since its index was made");
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
	check_note(&p, "");
	/* Same size and mtime, different bytes. */
	text.data[30] = 'z';
	write_trace(&p, &text, ONE_MEMBER);
	assert_int_equal(utimensat(AT_FDCWD, p.file, times, 0), 0);
	check_note(&p, "has changed since its index was made");
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
	if (!geteuid()) {
		assert_int_equal(chown(p.index, 12345, 12345), 0);
		check_note(&p, "belongs to another user");
	}
	assert_int_equal(cop_write_file(p.index, "something else", 14, 0644), 0);
	check_note(&p, "is none");
	cop_buf_free(&text);
	place_fini(&p);
}

/* A corrupt byte anywhere in the index is either detected or never used. */
static void a_damaged_index_changes_no_answer(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	struct place p;
	char *whole;
	size_t len;

	(void)state;
	place_init(&p);
	write_trace(&p, &text, ONE_MEMBER);
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
	assert_int_equal(cop_read_file(p.index, COP_MIB, &whole, &len), 0);
	for (size_t at = 0; at < len; at += 1 + len / 60) {
		const struct question *q = &questions[at % COP_ARRAY_SIZE(questions)];
		struct answer with, without;

		whole[at] ^= 0x10;
		assert_int_equal(cop_write_file(p.index, whole, len, 0644), 0);
		whole[at] ^= 0x10;
		ask(&p, q, &with);
		unlink(p.index);
		ask(&p, q, &without);
		check_same(&with, &without);
		answer_free(&with);
		answer_free(&without);
	}
	for (size_t cut = 0; cut < len; cut += 1 + len / 8) {
		assert_int_equal(cop_write_file(p.index, whole, cut, 0644), 0);
		check_note(&p, "index");
	}
	free(whole);
	cop_buf_free(&text);
	place_fini(&p);
}

static void *make_one(void *arg)
{
	return make_index(arg, 6000).what == COP_TRACE_INDEX_REFUSED ? arg : NULL;
}

static void four_builders_at_once_leave_one_whole_index(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	pthread_t thread[4];
	uint64_t passed;
	struct place p;
	void *failed;

	(void)state;
	place_init(&p);
	write_trace(&p, &text, ONE_MEMBER);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&thread[i], "builder", make_one, &p), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	compare(&p, &questions[5], &passed);
	assert_true(passed < EVENTS);
	cop_buf_free(&text);
	place_fini(&p);
}

/* A temporary file beside the trace cannot be created: the directory has been removed. */
static void without_a_place_beside_the_file_the_cache_directory_has_it(void **state)
{
	struct cop_buf text = lines_of(EVENTS);
	struct place p;
	char *cache;
	struct answer a;

	(void)state;
	place_init(&p);
	write_trace(&p, &text, PLAIN);
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_MADE);
	cache = cop_index_place(p.file, 1);
	assert_non_null(cache);
	*strrchr(cache, '/') = '\0';
	assert_int_equal(cop_make_dirs(cache, 0700), 0);
	cache[strlen(cache)] = '/';
	assert_int_equal(rename(p.index, cache), 0);
	ask(&p, &questions[3], &a);
	assert_int_equal(a.passed, 0);
	answer_free(&a);
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_CURRENT);
	free(cache);
	cop_buf_free(&text);
	place_fini(&p);
}

static void small_files_and_others_have_none(void **state)
{
	struct place p;
	struct cop_trace_index_result r = {0};
	char *paths[1];
	struct cop_trace_files *files;
	struct cop_buf notes = {0};

	(void)state;
	place_init(&p);
	paths[0] = p.file;
	assert_int_equal(cop_write_file(p.file, "no trace", 8, 0644), 0);
	assert_int_equal(make_index(&p, 6000).what, COP_TRACE_INDEX_REFUSED);
	assert_int_equal(cop_write_file(p.file, "[]\n", 3, 0644), 0);
	assert_string_equal(make_index(&p, 6000).why, "it has no events");
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &notes, NULL), 0);
	assert_int_equal(cop_trace_index(files,
				 &(struct cop_trace_index_conf){.done = on_done, .arg = &r}, NULL),
		0);
	assert_int_equal(r.what, COP_TRACE_INDEX_SMALL);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	place_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_the_same_with_and_without_an_index),
		cmocka_unit_test(what_nobody_asks_for_is_not_read),
		cmocka_unit_test(halves_and_broken_lines_are_found_by_every_question),
		cmocka_unit_test(a_file_that_is_cut_off_says_so_to_every_question),
		cmocka_unit_test(members_of_a_document_hold_in_every_part),
		cmocka_unit_test(an_index_of_another_state_of_the_file_is_not_used),
		cmocka_unit_test(a_damaged_index_changes_no_answer),
		cmocka_unit_test(four_builders_at_once_leave_one_whole_index),
		cmocka_unit_test(without_a_place_beside_the_file_the_cache_directory_has_it),
		cmocka_unit_test(small_files_and_others_have_none),
	};

#ifdef __SANITIZE_THREAD__
	/* The other tests build and read in one thread; threads_test reads in several. */
	cmocka_set_test_filter("four_builders_*");
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
