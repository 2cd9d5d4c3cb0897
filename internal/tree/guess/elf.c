/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/guess/policy_priv.h"

#define SONAME ".so"
/* The names are contiguous: the gap between two of them is smaller than this. */
#define APART ((ptrdiff_t)(16 * COP_KIB))

bool cop_mention_is_elf(const void *data, size_t len)
{
	return len > 4 && memcmp(data, "\177ELF", 4) == 0;
}

static bool is_in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '+';
}

/* The string around *at, if it is a library name: it starts after a NUL and ends with one. Advances
 * *at past it. */
static bool tell_around(
	const char *begin, const char **at, const char *end, cop_mention_fn fn, void *arg)
{
	const char *first = *at, *last = *at;

	while (first > begin && is_in_name(first[-1]))
		first--;
	while (last < end && is_in_name(*last))
		last++;
	if (first == begin || first[-1] != '\0' || first == *at || last == end || *last != '\0') {
		*at = last;
		return false;
	}
	*at = last;
	fn(arg, first, (size_t)(last - first));
	return true;
}

void cop_mention_elf(const void *data, size_t len, cop_mention_fn fn, void *arg)
{
	const char *begin = data, *end = begin + len, *at = begin;

	if (!cop_mention_is_elf(data, len))
		return;
	while ((at = memmem(at, (size_t)(end - at), SONAME, sizeof(SONAME) - 1)))
		if (tell_around(begin, &at, end, fn, arg) && end - at > APART)
			end = at + APART;
}
