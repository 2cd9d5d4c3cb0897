/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as one line: what the scanner of the flat forms reads, json-c reads alike. Input that
 * contains a NUL is left out, since json-c ends there. */
#include <stdlib.h>
#include <string.h>

#include "trace/read/read_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_str(struct cop_trace_str a, struct cop_trace_str b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static void compare(const struct record *a, const struct record *b)
{
	const struct cop_trace_event *x = &a->e, *y = &b->e;

	if (a->half != b->half || x->kind != y->kind || x->ts_ns != y->ts_ns ||
		x->dur_ns != y->dur_ns || x->count != y->count || x->has_size != y->has_size ||
		x->size != y->size || x->ph != y->ph || x->bp != y->bp || x->s != y->s ||
		x->id_kind != y->id_kind || x->id_is_text != y->id_is_text ||
		!x->args.len != !y->args.len)
		abort();
	if (!same_str(x->name, y->name) || !same_str(x->cat, y->cat) ||
		!same_str(x->file, y->file) || !same_str(x->host, y->host) ||
		!same_str(x->scope, y->scope) || !same_str(x->of, y->of) ||
		!same_str(x->rank, y->rank) || !same_str(x->id, y->id))
		abort();
}

/* json-c rewrites whole numbers, and cuts those beyond 64 bits. An escape may stand for a
 * letter. */
static bool is_plain(const struct fields *f)
{
	static const unsigned letters[] = {F_PH, F_BP, F_S};

	for (size_t i = 0; i < COP_ARRAY_SIZE(letters); i++)
		if ((f->seen & (1U << letters[i])) && f->f[letters[i]].type == T_ESCAPED)
			return false;
	for (unsigned i = 0; i < FIELDS; i++)
		if ((f->seen & (1U << i)) && f->f[i].type == T_NUMBER &&
			(f->f[i].len > 18 || f->f[i].at[0] == '-'))
			return false;
	return true;
}

/* If a name occurs twice, json-c keeps the last one. So does the scanner, but a value that nests
 * counts as absent there. */
static void check(struct judge *j, const char *p, const char *end)
{
	char one[8192], two[8192];
	struct scratch s = {one, 0, sizeof(one)}, t = {two, 0, sizeof(two)};
	struct fields f, g;
	struct record r, q;
	const char *why, *after, *wrong;
	const char *mine = cop_trace_scan(p, end, &f);

	if (!mine)
		return;
	after = cop_trace_judge(j, p, mine, &t, &g, &why);
	if (!after || after != mine || f.seen != g.seen)
		abort();
	if (!is_plain(&f))
		return;
	wrong = cop_trace_event_of(&f, &s, &r);
	why = cop_trace_event_of(&g, &t, &q);
	if (!wrong != !why)
		abort();
	if (!wrong)
		compare(&r, &q);
}

/* The value of \uXXXX at p; 0: there is none. */
static unsigned escaped_at(const char *p, const char *end)
{
	char digits[5] = "", *stop;
	unsigned value;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return 0;
	memcpy(digits, p + 2, 4);
	value = (unsigned)strtoul(digits, &stop, 16);
	return stop == digits + 4 ? value : 0;
}

/* json-c (0.16) reads a pair such as \ud836\udc00, which is U+1D800 (RFC 8259, section 7), as
 * U+FFFD: once it has put a pair together, it takes the character for half of a pair if its lowest
 * 16 bits are in D800..DFFF. This changes one bit of such a pair, so that it is another character
 * and all of the line is compared. */
static void spare_json_c(char *p, const char *end)
{
	for (; p < end; p += 2) {
		unsigned high, low;

		while (p < end && *p != '\\')
			p++;
		high = escaped_at(p, end);
		if (high < 0xd800 || high >= 0xdc00)
			continue;
		low = escaped_at(p + 6, end);
		if (low < 0xdc00 || low >= 0xe000)
			continue;
		/* Bits 11 to 15 of the character are bits 1 to 5 of the first half. */
		if ((high & 0x3e) == 0x36)
			p[5] = "0123456789abcdef"[(high & 0xf) ^ 2];
		p += 10;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct judge *judge;
	char *copy, *begin;

	if (size > 4096 || memchr(data, 0, size))
		return 0;
	judge = judge ? judge : cop_trace_judge_new(true);
	copy = malloc(size + SCAN_PAD);
	if (!judge || !copy)
		abort();
	memcpy(copy, data, size);
	cop_trace_pad(copy + size);
	begin = memchr(copy, '{', size);
	if (begin) {
		spare_json_c(begin, copy + size);
		check(judge, begin, copy + size);
	}
	free(copy);
	return 0;
}
