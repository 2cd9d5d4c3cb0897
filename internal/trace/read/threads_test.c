/* SPDX-License-Identifier: BSD-3-Clause */
/* However many threads read a file, however it is compressed and wherever it is cut, the result is
 * the same as when one thread reads its text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "trace/read/read.h"

#define LINES 12000u

/* The result of a read. Events are summed up, because they arrive in any order. */
struct answer {
	_Atomic uint64_t events, sum;
	struct cop_trace_result result;
	struct cop_buf told;
};

static int take(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	struct answer *a = arg;
	char text[512];

	(void)worker;
	for (size_t i = 0; i < n; i++, e++) {
		int len = snprintf(text, sizeof(text),
			"%" PRIu64 " %d %.*s %.*s %.*s %.*s %" PRId64 " %" PRIu64, e->line, e->kind,
			(int)e->name.len, e->name.at, (int)e->file.len, e->file.at,
			(int)e->host.len, e->host.at, (int)e->tid.len, e->tid.at, e->ts_ns,
			e->dur_ns);

		atomic_fetch_add(&a->sum, cop_hash64(text, (size_t)len, 0));
		atomic_fetch_add(&a->events, 1);
	}
	return 0;
}

static void read_with(const char *path, unsigned threads, struct answer *a)
{
	struct cop_trace_files *files;
	char *paths[] = {(char *)path}, *at;

	*a = (struct answer){0};
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &a->told, NULL), 0);
	cop_trace_read(files,
		&(struct cop_trace_conf){.threads = threads,
			.names = true,
			.unfinished = true,
			.batch = take,
			.arg = a},
		&a->result, &a->told, NULL);
	cop_trace_faults(files, &a->result, &a->told);
	cop_trace_files_free(files);
	while (a->told.data && (at = strstr(a->told.data, path)))
		memmove(at, at + strlen(path), strlen(at + strlen(path)) + 1);
}

static void assert_same(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->sum, b->sum);
	assert_int_equal(a->result.broken, b->result.broken);
	assert_int_equal(a->result.unfinished, b->result.unfinished);
	assert_int_equal(a->result.unmatched, b->result.unmatched);
	assert_int_equal(a->result.first_ns, b->result.first_ns);
	assert_int_equal(a->result.last_ns, b->result.last_ns);
	assert_string_equal(a->told.data ? a->told.data : "", b->told.data ? b->told.data : "");
}

/* Checks that one, two, four and eight threads agree. The caller frees the notes in *first. */
static void read_bytes(const struct cop_buf *bytes, struct answer *first)
{
	char path[] = "/tmp/copper-trace.XXXXXX";
	int fd = mkstemp(path);
	struct answer a;

	assert_true(fd >= 0 && cop_write_full(fd, bytes->data, bytes->len) >= 0);
	close(fd);
	read_with(path, 1, first);
	for (unsigned threads = 2; threads <= 8; threads *= 2) {
		read_with(path, threads, &a);
		assert_same(first, &a);
		cop_buf_free(&a.told);
	}
	unlink(path);
}

/* ---- what is read */

static void put_line(struct cop_buf *out, unsigned i)
{
	unsigned r = i * 2654435761U >> 8;

	if (i % 997 == 5)
		cop_buf_printf(out, "{\"name\":\"broken at %u\n", i);
	else if (i % 7 == 3)
		cop_buf_printf(out,
			"{\"name\":\"half\",\"cat\":\"m\",\"pid\":1,\"tid\":%u,\"ts\":%u,\"ph\":\"%c\"}\n",
			i % 3, 1000 + i * 10, r % 5 < 3 ? 'B' : 'E');
	else
		cop_buf_printf(out,
			"{\"id\":%u,\"name\":\"write\",\"cat\":\"POSIX\",\"pid\":1,\"tid\":%u,\"ts\":%u,"
			"\"dur\":%u,\"ph\":\"X\",\"args\":{\"hhash\":7,\"fhash\":%u,\"ret\":%u}}\n",
			i, r % 5, 1000 + i * 10, 1 + r % 1000, 100 + r % 50, r);
}

/* Writes a text with its names in the middle, after most of their uses and before the others. */
static void put_text(struct cop_buf *out)
{
	cop_buf_str(out, "[\n");
	for (unsigned i = 0; i < LINES; i++) {
		put_line(out, i);
		for (unsigned k = 0; i == LINES / 2 && k < 50; k++)
			cop_buf_printf(out,
				"{\"id\":0,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ph\":\"M\","
				"\"args\":{\"hhash\":7,\"name\":\"/p/file%u\",\"value\":%u}}\n",
				k, 100 + k);
	}
	cop_buf_str(out, "]\n");
}

/* Appends one gzip member with these bytes. */
static void put_member(struct cop_buf *out, const char *data, size_t len, int level)
{
	z_stream z = {0};
	uLong bound;
	char *packed;

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&z, len);
	packed = malloc(bound);
	assert_non_null(packed);
	z.next_in = (unsigned char *)data;
	z.avail_in = (unsigned)len;
	z.next_out = (unsigned char *)packed;
	z.avail_out = (unsigned)bound;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	cop_buf_add(out, packed, bound - z.avail_out);
	deflateEnd(&z);
	free(packed);
}

/* Splits the text into members of this many bytes, wherever that cuts lines; 0: one member. */
static void put_members(struct cop_buf *out, const struct cop_buf *text, size_t bytes, int level)
{
	size_t part = bytes ? bytes : text->len;

	for (size_t at = 0; at < text->len; at += part)
		put_member(out, text->data + at, COP_MIN(part, text->len - at), level);
}

/* ---- tests */

static void the_answer_is_that_of_the_text(void **state)
{
	static const size_t parts[] = {0, 700, 4099, 65536, 262144, 1000003};
	struct cop_buf text = {0}, packed = {0};
	struct answer plain, a;

	(void)state;
	put_text(&text);
	read_bytes(&text, &plain);
	assert_true(plain.events > LINES / 2 && plain.result.broken == 13);
	assert_true(plain.result.unfinished && plain.result.unmatched);
	for (size_t i = 0; i < COP_ARRAY_SIZE(parts); i++) {
		packed.len = 0;
		put_members(&packed, &text, parts[i], i % 2 ? 6 : 1);
		read_bytes(&packed, &a);
		assert_same(&plain, &a);
		cop_buf_free(&a.told);
	}
	cop_buf_free(&plain.told);
	cop_buf_free(&packed);
	cop_buf_free(&text);
}

/* The result for such a file is the text that can be inflated, and a note about the end. */
static void a_file_that_is_cut_off_or_damaged_gives_what_is_before(void **state)
{
	static const size_t parts[] = {0, 4099, 262144};
	struct cop_buf text = {0}, packed = {0}, bad;
	struct answer a;

	(void)state;
	put_text(&text);
	for (size_t i = 0; i < COP_ARRAY_SIZE(parts); i++) {
		packed.len = 0;
		put_members(&packed, &text, parts[i], 6);
		for (unsigned k = 1; k < 6; k++) {
			bad = (struct cop_buf){.data = packed.data, .len = packed.len * k / 6};
			read_bytes(&bad, &a);
			assert_non_null(strstr(a.told.data, "the gzip data is cut off"));
			assert_true(a.events > 0);
			cop_buf_free(&a.told);
		}
		packed.data[packed.len / 2] ^= 0x55;
		read_bytes(&packed, &a);
		assert_non_null(strstr(a.told.data, "the gzip data is damaged"));
		cop_buf_free(&a.told);
	}
	cop_buf_free(&packed);
	cop_buf_free(&text);
}

static void what_follows_the_last_member_is_told(void **state)
{
	static const char zeros[5000];
	struct cop_buf text = {0}, packed = {0};
	struct answer plain, a;

	(void)state;
	put_text(&text);
	read_bytes(&text, &plain);
	put_members(&packed, &text, 50000, 6);
	cop_buf_add(&packed, zeros, sizeof(zeros));
	read_bytes(&packed, &a);
	assert_same(&plain, &a);
	cop_buf_free(&a.told);
	cop_buf_str(&packed, "more");
	put_members(&packed, &text, 50000, 6);
	read_bytes(&packed, &a);
	assert_int_equal(a.sum, plain.sum);
	assert_non_null(strstr(a.told.data, "something that is not gzip follows"));
	cop_buf_free(&a.told);
	cop_buf_free(&plain.told);
	cop_buf_free(&packed);
	cop_buf_free(&text);
}

/* An uncompressed member may contain the bytes of a whole gzip member, which must not be read as
 * one. */
static void what_looks_like_a_member_inside_another_is_none(void **state)
{
	struct cop_buf text = {0}, inner = {0}, packed = {0}, all = {0};
	struct answer plain, a;

	(void)state;
	put_text(&inner);
	for (unsigned i = 0; i < 40; i++) {
		size_t at = inner.len / 40 * i;

		cop_buf_add(&text, inner.data + at, inner.len / 40);
		packed.len = 0;
		put_member(&packed, inner.data, 3000 + i * 100, 6);
		cop_buf_add(&text, packed.data, packed.len);
		cop_buf_str(&text, "\n");
	}
	read_bytes(&text, &plain);
	put_members(&all, &text, 100000, 0);
	read_bytes(&all, &a);
	assert_same(&plain, &a);
	cop_buf_free(&a.told);
	cop_buf_free(&plain.told);
	cop_buf_free(&text);
	cop_buf_free(&inner);
	cop_buf_free(&packed);
	cop_buf_free(&all);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_is_that_of_the_text),
		cmocka_unit_test(a_file_that_is_cut_off_or_damaged_gives_what_is_before),
		cmocka_unit_test(what_follows_the_last_member_is_told),
		cmocka_unit_test(what_looks_like_a_member_inside_another_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
