/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "trace/timeline/timeline_testing.h"

static int add_all(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = cop_timeline_add(arg, worker, &e[i]);
	return rc;
}

/* Returns the page for a file with this text; the caller frees it. */
static struct cop_buf page_of(const char *text, size_t len, size_t limit)
{
	char path[] = "/tmp/copper-page.XXXXXX", *paths[] = {path};
	struct cop_timeline *t = cop_timeline_new(1, "/tmp", limit);
	struct cop_buf out = {0}, notes = {0};
	struct cop_trace_result result;
	struct cop_trace_files *files;
	int fd = mkstemp(path);

	assert_true(fd >= 0 && t);
	assert_int_equal(cop_write_full(fd, text, len), len);
	close(fd);
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &notes, NULL), 0);
	assert_int_equal(cop_trace_read(files,
				 &(struct cop_trace_conf){.threads = 1,
					 .names = true,
					 .args = true,
					 .unfinished = true,
					 .batch = add_all,
					 .arg = t},
				 &result, &notes, NULL),
		0);
	assert_int_equal(cop_timeline_write(t, files, cop_merge_put_in_buf, &out), 0);
	cop_timeline_free(t);
	cop_trace_files_free(files);
	cop_buf_free(&notes);
	unlink(path);
	assert_false(out.failed);
	return out;
}

/* Returns the inflated content of an element of the page, followed by a NUL; the caller frees
 * it. */
static char *data_of(const struct cop_buf *page, const char *id, size_t *len)
{
	char mark[64];
	const char *at, *end;
	unsigned char *packed;
	size_t size;
	uLongf room = COP_MIB;
	char *out = malloc(room + 1);

	snprintf(mark, sizeof(mark), "id=\"%s\">", id);
	at = strstr(page->data, mark);
	assert_non_null(at);
	at += strlen(mark);
	end = strchr(at, '<');
	packed = malloc((size_t)(end - at));
	assert_int_equal(sodium_base642bin(packed, (size_t)(end - at), at, (size_t)(end - at), NULL,
				 &size, NULL, sodium_base64_VARIANT_ORIGINAL),
		0);
	assert_int_equal(uncompress((Bytef *)out, &room, packed, size), Z_OK);
	free(packed);
	out[room] = '\0';
	*len = room;
	return out;
}

static void check_head(const char *text, size_t limit, const char *const *want, size_t n)
{
	struct cop_buf page = page_of(text, strlen(text), limit);
	size_t len;
	char *head = data_of(&page, "head", &len);

	for (size_t i = 0; i < n; i++)
		if (!strstr(head, want[i]))
			fail_msg("%s is not in %s", want[i], head);
	free(head);
	cop_buf_free(&page);
}
#define CHECK_HEAD(text, limit, ...)                                                               \
	check_head(text, limit, (const char *const[]){__VA_ARGS__},                                \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#define X(name, ts, dur)                                                                           \
	"{\"name\":\"" name "\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":" ts ",\"dur\":" dur      \
	",\"ph\":\"X\"}\n"

static void spans_inside_of_others_have_rows_of_their_own(void **state)
{
	(void)state;
	CHECK_HEAD(X("a", "10", "100") X("b", "20", "30") X("c", "30", "5") X("d", "60", "5")
			   X("e", "110", "5"),
		1000, "\"rows\":[2,2,1]", "\"spans\":5", "\"total\":105000",
		"\"left\":{\"spans\":0,");
	/* Spans that overlap without nesting do not hide each other. */
	CHECK_HEAD(X("a", "10", "10") X("b", "15", "10"), 1000, "\"rows\":[1,1]");
}

static void asynchronous_spans_have_as_many_rows_as_overlap(void **state)
{
	(void)state;
	CHECK_HEAD(
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":1,\"id\":1,\"ph\":\"b\"}\n"
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":2,\"id\":2,\"ph\":\"b\"}\n"
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":3,\"id\":1,\"ph\":\"e\"}\n"
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":4,\"id\":2,\"ph\":\"e\"}\n"
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":5,\"id\":3,\"ph\":\"b\"}\n"
		"{\"name\":\"r\",\"cat\":\"io\",\"pid\":1,\"tid\":2,\"ts\":6,\"id\":3,\"ph\":\"e\"}\n",
		1000, "\"extras\":[{\"process\":0,\"name\":\"io\",\"rows\":[2,1]");
}

static void counters_instants_and_flows_are_in_it(void **state)
{
	(void)state;
	CHECK_HEAD(
		X("a", "10", "5") X("b", "30",
			"5") "{\"name\":\"f\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":11,\"id\":7,\"ph\":\"s\"}\n"
			     "{\"name\":\"f\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":31,\"id\":7,\"ph\":\"f\"}\n"
			     "{\"name\":\"f\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":40,\"id\":8,\"ph\":\"f\"}\n"
			     "{\"name\":\"i\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":33,\"ph\":\"i\"}\n"
			     "{\"name\":\"m\",\"pid\":1,\"tid\":2,\"ts\":34,\"ph\":\"C\",\"args\":{\"x\":1,\"y\":2.5}}\n",
		1000, "\"arrows\":1", "\"instants\":1", "\"series\":\"x\",\"n\":1",
		"\"series\":\"y\",\"n\":1");
}

static void a_begin_without_an_end_lasts_to_the_last_event_of_its_thread(void **state)
{
	(void)state;
	CHECK_HEAD("{\"name\":\"h\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":5,\"ph\":\"B\"}\n" X(
			   "a", "10", "90"),
		1000, "\"spans\":2", "\"rows\":[1,1]", "\"total\":95000");
}

static void an_empty_trace_makes_a_page(void **state)
{
	(void)state;
	CHECK_HEAD("[]\n", 1000, "\"spans\":0", "\"total\":0", "\"processes\":[]");
}

static void the_longest_spans_are_kept_and_the_page_says_so(void **state)
{
	struct cop_buf text = {0}, page;
	char *head;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		cop_buf_printf(&text,
			"{\"name\":\"n\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":%u,\"dur\":%u,"
			"\"ph\":\"X\"}\n",
			5000 * i, i % 3 ? 2 : 1000 + i);
	page = page_of(text.data, text.len, 1000);
	head = data_of(&page, "head", &len);
	assert_non_null(strstr(head, "\"spans\":1000"));
	assert_non_null(strstr(head, "\"left\":{\"spans\":2000,"));
	free(head);
	cop_buf_free(&page);
	cop_buf_free(&text);
}

static void nothing_of_a_trace_is_markup(void **state)
{
	const char *text = "{\"name\":\"</script><img src=x onerror=alert(1)>\",\"cat\":\"<b>\","
			   "\"pid\":\"<i>\",\"tid\":2,\"ts\":1,\"dur\":1,\"ph\":\"X\","
			   "\"args\":{\"<u>\":\"\\u003cimg>\x01\xff\"}}\n";
	struct cop_buf page = page_of(text, strlen(text), 1000);
	size_t len;
	char *args = data_of(&page, "args", &len);

	(void)state;
	assert_null(strstr(page.data, "onerror"));
	assert_null(strstr(page.data, "<img"));
	assert_null(strstr(page.data, "<i>"));
	assert_non_null(strstr(page.data, "default-src 'none'"));
	assert_null(strstr(page.data, "unsafe"));
	assert_null(strstr(page.data, "http://"));
	assert_null(strstr(page.data, "https://"));
	if (!strstr(args, "\\u0001\\ufffd"))
		fail_msg("%s", args);
	free(args);
	cop_buf_free(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_inside_of_others_have_rows_of_their_own),
		cmocka_unit_test(asynchronous_spans_have_as_many_rows_as_overlap),
		cmocka_unit_test(counters_instants_and_flows_are_in_it),
		cmocka_unit_test(a_begin_without_an_end_lasts_to_the_last_event_of_its_thread),
		cmocka_unit_test(an_empty_trace_makes_a_page),
		cmocka_unit_test(the_longest_spans_are_kept_and_the_page_says_so),
		cmocka_unit_test(nothing_of_a_trace_is_markup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
