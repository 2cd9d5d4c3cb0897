/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "fabric/wire/wire_priv.h"

static const char text[] = "0123456789abcdef";

static void a_secret_under_16_bytes_is_refused(void **state)
{
	struct cop_wire_secret s;

	(void)state;
	assert_int_equal(cop_wire_secret_from(text, 0, &s), -EINVAL);
	assert_int_equal(cop_wire_secret_from(text, 15, &s), -EINVAL);
	assert_int_equal(cop_wire_secret_from("0123456789abcde\n\n\n", 18, &s), -EINVAL);
	assert_int_equal(cop_wire_secret_from("                    ", 20, &s), -EINVAL);
	assert_int_equal(cop_wire_secret_from(text, 16, &s), 0);
}

static void white_space_at_the_end_does_not_count(void **state)
{
	struct cop_wire_secret a, b, c;

	(void)state;
	assert_int_equal(cop_wire_secret_from(text, 16, &a), 0);
	assert_int_equal(cop_wire_secret_from("0123456789abcdef \t\r\n", 20, &b), 0);
	assert_int_equal(cop_wire_secret_from(" 0123456789abcdef", 17, &c), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
}

static void another_byte_is_another_secret(void **state)
{
	struct cop_wire_secret a, b;

	(void)state;
	assert_int_equal(cop_wire_secret_from("0123456789abcdef", 16, &a), 0);
	assert_int_equal(cop_wire_secret_from("0123456789abcdee", 16, &b), 0);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

static void a_mac_depends_on_secret_context_and_data(void **state)
{
	struct cop_wire_secret s = {{1}}, t = {{2}};
	uint8_t mac[32], other[32];

	(void)state;
	cop_wire_mac(&s, "context", "data", 4, mac);
	cop_wire_mac(&s, "context", "data", 4, other);
	assert_memory_equal(mac, other, 32);
	cop_wire_mac(&t, "context", "data", 4, other);
	assert_memory_not_equal(mac, other, 32);
	cop_wire_mac(&s, "contexu", "data", 4, other);
	assert_memory_not_equal(mac, other, 32);
	cop_wire_mac(&s, "context", "datb", 4, other);
	assert_memory_not_equal(mac, other, 32);
	cop_wire_mac(&s, "context", NULL, 0, other);
	assert_memory_not_equal(mac, other, 32);
	assert_int_equal(cop_wire_seed(&s, "sums"), cop_wire_seed(&s, "sums"));
	assert_int_not_equal(cop_wire_seed(&s, "sums"), cop_wire_seed(&t, "sums"));
	assert_int_not_equal(cop_wire_seed(&s, "sums"), cop_wire_seed(&s, "sumt"));
}

static void bytes_moved_between_context_and_data_change_the_mac(void **state)
{
	struct cop_wire_secret s = {{1}};
	uint8_t mac[32], other[32];

	(void)state;
	cop_wire_mac(&s, "ab", "cd", 2, mac);
	cop_wire_mac(&s, "abc", "d", 1, other);
	assert_memory_not_equal(mac, other, 32);
	cop_wire_derive(&s, "x", "ab", 2, "c", 1, mac, 32);
	cop_wire_derive(&s, "x", "a", 1, "bc", 2, other, 32);
	assert_memory_not_equal(mac, other, 32);
}

static void random_bytes_differ(void **state)
{
	uint8_t a[32] = {0}, b[32] = {0};

	(void)state;
	cop_wire_random(a, sizeof(a));
	cop_wire_random(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	assert_true(cop_wire_random64() != cop_wire_random64());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_under_16_bytes_is_refused),
		cmocka_unit_test(white_space_at_the_end_does_not_count),
		cmocka_unit_test(another_byte_is_another_secret),
		cmocka_unit_test(a_mac_depends_on_secret_context_and_data),
		cmocka_unit_test(bytes_moved_between_context_and_data_change_the_mac),
		cmocka_unit_test(random_bytes_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
