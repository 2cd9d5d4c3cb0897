/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "markup.h"

static struct cop_buf out;

static int teardown(void **state)
{
	(void)state;
	cop_buf_free(&out);
	return 0;
}

static void becomes(const char *text, size_t len, const char *want)
{
	cop_buf_free(&out);
	cop_html_bytes(&out, text, len);
	assert_string_equal(out.data ? out.data : "", want);
}
#define BECOMES(text, want) becomes(text, sizeof(text) - 1, want)

static void markup_in_a_text_is_text(void **state)
{
	(void)state;
	BECOMES("<script>alert('\"&')</script>",
		"&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;");
	BECOMES("", "");
}

static void letters_of_other_scripts_stay(void **state)
{
	(void)state;
	BECOMES("/früh/数据/\360\237\230\200", "/früh/数据/\360\237\230\200");
	BECOMES("мир/שלום/مرحبا/สวัสดี", "мир/שלום/مرحبا/สวัสดี");
	BECOMES("नमस्ते/e\xcc\x81", "नमस्ते/e\xcc\x81"); /* marks that combine */
}

static void what_is_not_utf8_is_shown_by_its_bytes(void **state)
{
	(void)state;
	BECOMES("a\xff"
		"b",
		"a\\xffb");
	BECOMES("\xc0\xbc", "\\xc0\\xbc");          /* '<' in two bytes */
	BECOMES("\xe0\x80\xbc", "\\xe0\\x80\\xbc"); /* in three */
	BECOMES("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half of a pair */
	BECOMES("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	BECOMES("end\xe2\x82", "end\\xe2\\x82"); /* cut */
}

static void what_nobody_sees_is_shown_by_its_number(void **state)
{
	(void)state;
	BECOMES("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f");
	BECOMES("z\0y", "z\\x00y");
	BECOMES("gpj.\xe2\x80\xae"
		"exe",
		"gpj.\\u{202e}exe"); /* right to left */
	BECOMES("\xef\xbb\xbf", "\\u{feff}");
}

static void a_format_is_escaped_as_a_whole(void **state)
{
	(void)state;
	cop_html_printf(&out, "%s: %d <", "<b>", 7);
	assert_string_equal(out.data, "&lt;b&gt;: 7 &lt;");
}

static void numbers_are_as_people_read_them(void **state)
{
	static const struct {
		cop_html_show *show;
		double n;
		const char *want;
	} cases[] = {
		{cop_html_count, 0, "0"},
		{cop_html_count, 999, "999"},
		{cop_html_count, 1000, "1,000"},
		{cop_html_count, 1234567, "1,234,567"},
		{cop_html_count, -1234, "-1,234"},
		{cop_html_count, -0.2, "0"},
		{cop_html_count, NAN, "-"},
		{cop_html_count, 1e300, "1e+300"},
		{cop_html_size, 1536, "1.5 KiB"},
		{cop_html_size, -1, "-"},
		{cop_html_size, NAN, "-"},
		{cop_html_time, 0, "0 s"},
		{cop_html_time, 1e-7, "100 ns"},
		{cop_html_time, 0.9996e-6, "1 µs"},
		{cop_html_time, 42e-6, "42 µs"},
		{cop_html_time, 0.0031, "3.1 ms"},
		{cop_html_time, 3.14159, "3.14 s"},
		{cop_html_time, 59.96, "1 min 00 s"},
		{cop_html_time, 250, "4 min 10 s"},
		{cop_html_time, 3600, "1 h 00 min"},
		{cop_html_time, 90061, "25 h 01 min"},
		{cop_html_time, INFINITY, "-"},
	};
	char text[COP_HTML_NUMBER];

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++)
		assert_string_equal(cases[i].show(cases[i].n, text), cases[i].want);
	assert_string_equal(cop_html_share(1, 8, text), "12 %");
	assert_string_equal(cop_html_share(1, 1000, text), "under 1 %");
	assert_string_equal(cop_html_share(1, 0, text), "-");
}

/* Whatever the number, it ends within its buffer. */
static void no_number_is_too_long(void **state)
{
	static const double odd[] = {
		1e308, -1e308, 1e18, -1e15, 9.9999e14, 1e9, -1e9, 3599.9, 5e-324};
	static cop_html_show *const shows[] = {cop_html_count, cop_html_size, cop_html_time};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(odd); i++)
		for (size_t s = 0; s < COP_ARRAY_SIZE(shows); s++) {
			char text[COP_HTML_NUMBER];

			memset(text, 'x', sizeof(text));
			shows[s](odd[i], text);
			assert_non_null(memchr(text, '\0', sizeof(text)));
		}
}

static void a_table_has_its_caption_and_cells(void **state)
{
	static const struct cop_html_col col[] = {{"path", false}, {"requests", true}};

	(void)state;
	cop_html_table(&out, "\"quoted\" <caption>", col, 2);
	cop_html_row(&out);
	cop_html_cell_path(&out, "/a<b", 4);
	cop_html_cell_number(&out, cop_html_count, 1200);
	cop_html_row_end(&out);
	cop_html_table_end(&out);
	assert_non_null(strstr(out.data, "aria-label=\"&quot;quoted&quot; &lt;caption&gt;\""));
	assert_non_null(strstr(out.data, "<caption>&quot;quoted&quot; &lt;caption&gt;</caption>"));
	assert_non_null(strstr(
		out.data, "<tr><td><code>/a&lt;b</code></td><td class=\"n\">1,200</td></tr>"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(markup_in_a_text_is_text, teardown),
		cmocka_unit_test_teardown(letters_of_other_scripts_stay, teardown),
		cmocka_unit_test_teardown(what_is_not_utf8_is_shown_by_its_bytes, teardown),
		cmocka_unit_test_teardown(what_nobody_sees_is_shown_by_its_number, teardown),
		cmocka_unit_test_teardown(a_format_is_escaped_as_a_whole, teardown),
		cmocka_unit_test(numbers_are_as_people_read_them),
		cmocka_unit_test(no_number_is_too_long),
		cmocka_unit_test_teardown(a_table_has_its_caption_and_cells, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
