/* SPDX-License-Identifier: BSD-3-Clause */
/* The files are written here by hand. t0545 and testdata/fuzz/mention have some of Python's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/guess/policy_priv.h"

#define MAGIC_38 3413
#define MAGIC_311 3495
#define MAGIC_313 3571
#define MAGIC_314 3627
#define MAGIC_315 3666

/* ---- a writer ---- */

static struct {
	uint8_t at[4096];
	size_t len;
} file;

static void put(const void *bytes, size_t n)
{
	assert_true(file.len + n <= sizeof(file.at));
	memcpy(file.at + file.len, bytes, n);
	file.len += n;
}

static void put_type(char type)
{
	put(&type, 1);
}

static void put_u32(uint32_t v)
{
	uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

	put(b, 4);
}

static void put_head(unsigned magic)
{
	uint8_t head[16] = {(uint8_t)magic, (uint8_t)(magic >> 8), '\r', '\n'};

	file.len = 0;
	put(head, 16);
}

/* type: Z (short), a (long), with 0x80 if it can be referred to */
static void put_text(int type, const char *text)
{
	uint8_t n = (uint8_t)strlen(text);

	put_type((char)type);
	if ((type & 0x7f) == 'Z' || (type & 0x7f) == 'z')
		put(&n, 1);
	else
		put_u32(n);
	put(text, n);
}

static void put_ref(uint32_t n)
{
	put_type('r');
	put_u32(n);
}

static void put_tuple(unsigned n)
{
	uint8_t count = (uint8_t)n;

	put_type(')');
	put(&count, 1);
}

/* Instructions: opcodes of 3.8 to 3.12 and their values. */
#define EXTEND "\x90"
#define IMPORT "\x6c"
#define FROM "\x6d"
#define OTHER "\x64"

/* The beginning of a function, up to its constants. */
static void put_code(unsigned magic, int type, const char *code, size_t len)
{
	put_type((char)type);
	for (unsigned i = 0; i < (magic == MAGIC_38 ? 6 : 5); i++)
		put_u32(i);
	put_type('s');
	put_u32((uint32_t)len);
	put(code, len);
}

#define PUT_CODE(magic, type, code) put_code(magic, type, code, sizeof(code) - 1)

static void put_function(unsigned magic, int type)
{
	PUT_CODE(magic, type, OTHER "\1" IMPORT "\0");
}

/* The end of a function, behind its names. */
static void put_end(unsigned magic)
{
	put_tuple(0);
	if (magic == MAGIC_38)
		put_tuple(0);
	else
		put_text('s', "");
	if (magic == MAGIC_38)
		put_tuple(0);
	put_text('z', "file.py");
	put_text('Z', "f");
	if (magic != MAGIC_38)
		put_text('Z', "C.f");
	put_u32(1);
	put_text('s', "lines");
	if (magic != MAGIC_38)
		put_text('s', "handlers");
}

/* ---- a reader ---- */

static char found[512];

static void add(void *arg, const char *name, size_t len)
{
	assert_ptr_equal(arg, &file);
	strcat(found, " ");
	strncat(found, name, len);
}

static bool look(size_t len)
{
	uint8_t *copy = malloc(len + !len);
	bool ok;

	/* So that the sanitizer sees what is read past the end. */
	memcpy(copy, file.at, len);
	*found = '\0';
	ok = cop_mention_python(copy, len, add, &file);
	free(copy);
	return ok;
}

/* ---- tests ---- */

/* Constants of every type, a function in which json and os occur first, and names. */
static size_t write_module(unsigned magic)
{
	static const uint8_t real[8];

	put_head(magic);
	/* import sys; from . import json; from xml.dom import os; import a name that is none */
	PUT_CODE(magic, 'c' | 0x80,
		OTHER "\3" IMPORT "\0" OTHER "\1" IMPORT "\4" FROM "\1" IMPORT "\2" OTHER "\0" FROM
		      "\3" IMPORT "\5" EXTEND "\1" IMPORT "\0" IMPORT);
	put_tuple(13);
	put_type('N');
	put_type('i');
	put_u32(5);
	put_type('g');
	put(real, 8);
	put_type('y');
	put(real, 8);
	put(real, 8);
	/* Two digits of a negative number. */
	put_type('l');
	put_u32((uint32_t)-2);
	put_u32(7);
	put_type('f');
	put("\3"
	    "1.5",
		4);
	put_type('x');
	put("\1"
	    "1\1"
	    "2",
		4);
	put_type('>');
	put_u32(2);
	put_text('u', "set");
	put_type('T');
	put_type('{');
	put_text('a', "key");
	put_type('F');
	put_type('0');
	put_type('[');
	put_u32(1);
	put_type('.');
	put_type(':');
	put_type('N');
	put_type('N');
	put_type('N');
	/* The module has number 0, this function 1, its names 2 and 3. */
	put_function(magic, 'c' | 0x80);
	put_tuple(1);
	put_type('S');
	put_tuple(2);
	put_text('Z' | 0x80, "os");
	put_text('z' | 0x80, "json");
	put_end(magic);
	put_text('t', "last");
	put_tuple(5);
	put_text('Z' | 0x80, "sys");
	put_ref(3);
	put_text('a', "xml.dom");
	put_ref(2);
	put_text('Z', "");
	return file.len;
}

static void what_the_module_imports_is_found(void **state)
{
	static const unsigned magics[] = {MAGIC_38, MAGIC_311};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		size_t len = write_module(magics[i]);

		put_end(magics[i]);
		assert_true(look(file.len));
		assert_string_equal(found, " sys json xml.dom xml.dom.os");
		/* Nothing behind the names is read. */
		assert_true(look(len));
		for (size_t n = 0; n < len; n++)
			assert_false(look(n));
	}
}

/* Three hundred names; the number of the last but one is 298. */
static void many_names_have_numbers_of_two_parts(void **state)
{
	char name[8];

	(void)state;
	put_head(MAGIC_311);
	PUT_CODE(MAGIC_311, 'c', EXTEND "\1" IMPORT "\x2a" EXTEND "\1" FROM "\x2b" IMPORT "\1");
	put_tuple(0);
	put_type('(');
	put_u32(300);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		put_text('Z', name);
	}
	assert_true(look(file.len));
	assert_string_equal(found, " n298 n298.n299 n1");
}

static void each_version_has_its_instructions(void **state)
{
	static const struct {
		unsigned magic;
		const char *code;
	} versions[] = {{MAGIC_313, "\x47\0\x4b\2\x4a\1\x6c\1"},
		{MAGIC_314, "\x45\0\x49\2\x48\1\x6c\1"}, {MAGIC_315, "\x43\0\x48\x8\x47\1\x6c\1"}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_head(versions[i].magic);
		put_code(versions[i].magic, 'c', versions[i].code, 8);
		put_tuple(0);
		put_tuple(3);
		put_text('Z', "used");
		put_text('Z', "member");
		put_text('Z', "module");
		assert_true(look(file.len));
		assert_string_equal(found, " module module.member");
	}
}

/* In Python 3.15 the two low bits of an import's argument say whether it is lazy, or eager in any
 * mode, as in a try block; the name's number is above them. */
static void lazy_imports_are_not_followed(void **state)
{
	static const char code[] = "\x48\1\x48\5\x47\2\x48\xc\x48\x12\x47\2\x48\xfc";
	static const char *const names[] = {"lazy", "from", "member", "plain", "eager"};

	(void)state;
	put_head(MAGIC_315);
	PUT_CODE(MAGIC_315, 'c', code);
	/* A constant of a type that is new in 3.15. */
	put_tuple(1);
	put_type('}');
	put_text('Z', "key");
	put_type('N');
	put_type('0');
	put_tuple(5);
	for (unsigned i = 0; i < 5; i++)
		put_text('Z', names[i]);
	assert_true(look(file.len));
	assert_string_equal(found, " plain eager eager.member");
}

static void versions_that_are_not_known_are_reported(void **state)
{
	static const struct {
		unsigned magic, reported;
	} heads[] = {{MAGIC_313, 0}, {3600, 3600}, {MAGIC_315, 0}, {3700, 3700}, {62211, 0}};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		put_head(heads[i].magic);
		assert_int_equal(cop_mention_new_python(file.at, 16), heads[i].reported);
		assert_int_equal(cop_mention_new_python(file.at, 15), 0);
	}
	memcpy(file.at, "#!/usr/bin/python3\n", 19);
	assert_int_equal(cop_mention_new_python(file.at, 19), 0);
}

static void a_long_name_is_passed_over(void **state)
{
	char name[130];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	put_head(MAGIC_311);
	PUT_CODE(MAGIC_311, 'c', IMPORT "\0" FROM "\1" IMPORT "\1");
	put_tuple(0);
	put_tuple(2);
	put_text('Z', name);
	put_text('Z', "os");
	assert_true(look(file.len));
	assert_int_equal(strlen(found), 1 + strlen(name) + strlen(" os"));
}

static void other_files_mention_nothing(void **state)
{
	(void)state;
	write_module(MAGIC_311);
	file.at[2] = '\n';
	assert_false(look(file.len));
	write_module(MAGIC_311);
	/* Python 2.7, and a version that is not known yet. */
	put_head(62211);
	assert_false(look(4000));
	put_head(3700);
	assert_false(look(4000));
	memcpy(file.at, "#!/usr/bin/python3\nimport os\n", 29);
	assert_false(look(29));
	put_head(MAGIC_311);
	put_tuple(0);
	assert_false(look(file.len));
	assert_string_equal(found, "");
}

static void names_that_are_none_end_it(void **state)
{
	static const int types[] = {'N', 'c', 'q'};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_head(MAGIC_38);
		put_function(MAGIC_38, 'c');
		put_tuple(0);
		put_tuple(2);
		put_text('Z', "os");
		put_type((char)types[i]);
		assert_false(look(file.len));
		assert_string_equal(found, "");
	}
	put_head(MAGIC_38);
	put_function(MAGIC_38, 'c');
	put_tuple(0);
	put_tuple(1);
	put_ref(0);
	assert_false(look(file.len));
	put_head(MAGIC_38);
	put_function(MAGIC_38, 'c');
	put_tuple(0);
	put_text('Z', "no tuple");
	assert_false(look(file.len));
}

/* The file may come from anybody, so its depth must not be that of the stack. */
static void deep_files_are_refused(void **state)
{
	(void)state;
	for (unsigned depth = 90; depth <= 110; depth += 20) {
		put_head(MAGIC_311);
		put_function(MAGIC_311, 'c');
		for (unsigned i = 0; i < depth; i++)
			put_tuple(1);
		put_type('N');
		put_tuple(1);
		put_text('Z', "os");
		assert_int_equal(look(file.len), depth == 90);
	}
	put_head(MAGIC_311);
	put_function(MAGIC_311, 'c');
	memset(file.at + file.len, '(', sizeof(file.at) - file.len);
	assert_false(look(sizeof(file.at)));
}

/* A count without that many objects behind it. */
static void lengths_are_not_believed(void **state)
{
	static const char types[] = "(<>[sauli";

	(void)state;
	for (const char *type = types; *type; type++) {
		put_head(MAGIC_311);
		put_function(MAGIC_311, 'c');
		put_type(*type);
		put_u32(UINT32_MAX);
		put_type('N');
		assert_false(look(file.len));
	}
}

/* ---- programs and libraries ---- */

static bool look_at_elf(const char *bytes, size_t len)
{
	char *copy = malloc(len + !len);
	bool ok;

	memcpy(copy, bytes, len);
	*found = '\0';
	ok = cop_mention_is_elf(copy, len);
	cop_mention_elf(copy, len, add, &file);
	free(copy);
	return ok;
}

static void libraries_are_strings_of_their_own(void **state)
{
	static const char bytes[] = "\177ELF\2\1\0libm.so.6\0x/liba.so\0no lib.so here\0"
				    "_x.cpython-311.so\0.so\0libstdc++.so.6\0\1libz.so\0libcut.so";

	(void)state;
	assert_true(look_at_elf(bytes, sizeof(bytes) - 1));
	assert_string_equal(found, " libm.so.6 _x.cpython-311.so libstdc++.so.6");
	for (size_t n = 0; n < sizeof(bytes); n++)
		look_at_elf(bytes, n);
	assert_false(look_at_elf(bytes + 1, sizeof(bytes) - 1));
	assert_string_equal(found, "");
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(what_the_module_imports_is_found),
		T(many_names_have_numbers_of_two_parts),
		T(each_version_has_its_instructions),
		T(lazy_imports_are_not_followed),
		T(versions_that_are_not_known_are_reported),
		T(a_long_name_is_passed_over),
		T(other_files_mention_nothing),
		T(names_that_are_none_end_it),
		T(deep_files_are_refused),
		T(lengths_are_not_believed),
		T(libraries_are_strings_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
