/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans arbitrary bytes as an object. Input that the scanner accepts as strict must give the same
 * result in json-c, and the scanner must accept all that json-c accepts in strict mode. Input with
 * a NUL is skipped, since json-c stops there. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "trace/read/read_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- json-c ---- */

/* Copies a value in the form that the scanner would return; nested values count as absent. */
static bool copy_value(struct scratch *s, struct json_object *value, struct field *f)
{
	const char *text;
	char *copy;
	size_t len;

	switch (json_object_get_type(value)) {
	case json_type_string:
		text = json_object_get_string(value);
		len = (size_t)json_object_get_string_len(value);
		f->type = T_STRING;
		break;
	case json_type_int:
	case json_type_double:
		text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
		len = strlen(text);
		f->type = T_NUMBER;
		break;
	case json_type_boolean:
	case json_type_null:
		text = value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)
			     : "null";
		len = strlen(text);
		f->type = T_WORD;
		break;
	default:
		return true;
	}
	copy = cop_trace_scratch(s, len);
	if (!copy)
		return false;
	memcpy(copy, text, len);
	f->at = copy;
	f->len = (uint32_t)len;
	return true;
}

static void set(struct fields *out, unsigned i, struct field f)
{
	out->f[i] = f;
	out->seen |= UINT64_C(1) << i;
}

static bool take_id2(struct scratch *s, struct json_object *value, struct fields *out)
{
	static const char *const names[] = {"local", "global"};
	static const unsigned fields[] = {F_ID2_LOCAL, F_ID2_GLOBAL};
	struct json_object *id;

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		struct field f = {.type = T_ABSENT};

		if (!json_object_object_get_ex(value, names[i], &id))
			continue;
		if (!copy_value(s, id, &f))
			return false;
		if (f.type != T_ABSENT)
			set(out, fields[i], f);
	}
	return true;
}

static bool take_members(
	struct scratch *s, struct json_object *object, bool args, struct fields *out)
{
	json_object_object_foreach(object, key, value)
	{
		unsigned i = cop_trace_field_for_test(key, strlen(key), args);
		struct field f = {.at = "", .type = T_ABSENT};
		bool nested = json_object_is_type(value, json_type_object);

		if (i == F_ARGS && nested && !take_members(s, value, true, out))
			return false;
		if (i == F_ID2 && nested && !take_id2(s, value, out))
			return false;
		if (i == F_ARGS && nested)
			f.type = T_WORD;
		else if (cop_trace_is_nested(i) &&
			 (nested || json_object_is_type(value, json_type_array)))
			f.type = T_WORD;
		else if (i == FIELDS || i == F_ARGS || i == F_ID2 || cop_trace_is_nested(i))
			continue;
		else if (!copy_value(s, value, &f))
			return false;
		if (f.type != T_ABSENT)
			set(out, i, f);
	}
	return true;
}

/* Parses the object at p with json-c. Returns the position after it, or NULL. */
static const char *judge(
	bool strict, const char *p, const char *end, struct scratch *s, struct fields *out)
{
	struct json_tokener *t = json_tokener_new_ex(COP_JSON_NESTED_MAX + 8);
	struct json_object *object;
	const char *after = NULL;

	out->seen = 0;
	json_tokener_set_flags(
		t, strict ? JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS : 0);
	object = json_tokener_parse_ex(t, p, (int)(end - p));
	if (object && json_object_is_type(object, json_type_object) &&
		take_members(s, object, false, out))
		after = p + json_tokener_get_parse_end(t);
	json_object_put(object);
	json_tokener_free(t);
	return after;
}

/* ---- both ---- */

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
		x->flow_in != y->flow_in || x->flow_out != y->flow_out)
		abort();
	if (!same_str(x->name, y->name) || !same_str(x->cat, y->cat) ||
		!same_str(x->file, y->file) || !same_str(x->host, y->host) ||
		!same_str(x->scope, y->scope) || !same_str(x->of, y->of) ||
		!same_str(x->rank, y->rank) || !same_str(x->bind_id, y->bind_id) ||
		!same_str(x->id, y->id))
		abort();
}

/* Whether the fields can be compared: json-c rewrites integers and clamps those beyond 64 bits, and
 * an escape may stand for a letter. */
static bool is_plain(const struct fields *f)
{
	static const unsigned letters[] = {F_PH, F_BP, F_S};

	for (size_t i = 0; i < COP_ARRAY_SIZE(letters); i++)
		if (cop_trace_has(f, letters[i]) && f->f[letters[i]].type == T_ESCAPED)
			return false;
	for (unsigned i = 0; i < FIELDS; i++)
		if (cop_trace_has(f, i) && f->f[i].type == T_NUMBER &&
			(f->f[i].len > 18 || f->f[i].at[0] == '-'))
			return false;
	return true;
}

static void check(const char *p, const char *end)
{
	char one[16384], two[16384];
	struct scratch s = {one, 0, sizeof(one)}, t = {two, 0, sizeof(two)};
	struct cop_json_scan scan;
	struct fields f, g;
	struct record r, q;
	const char *after, *wrong, *why;
	const char *mine = cop_trace_scan(p, end, &f, &scan);

	/* json-c skips blanks after the object and accepts newlines within strings. */
	after = judge(true, p, end, &t, &g);
	if (after && mine ? cop_json_blanks(mine) < after
			  : after && !memchr(p, '\n', (size_t)(end - p)))
		abort();
	if (!mine || scan.odd)
		return;
	t.used = 0;
	after = judge(false, p, mine, &t, &g);
	if (after != mine || f.seen != g.seen)
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

/* Returns the value of \uXXXX at p; 0 if there is none. */
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
 * U+FFFD: after combining a pair, it mistakes the character for half of a pair if its lowest 16
 * bits are in D800..DFFF. This function flips one bit of such a pair to make it another character,
 * so that the whole line can be compared. */
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
	char *copy, *begin;

	if (size > 4096 || memchr(data, 0, size) || memmem(data, size, "\\u0000", 6))
		return 0;
	copy = malloc(size + COP_JSON_PAD);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	cop_json_pad(copy + size);
	begin = memchr(copy, '{', size);
	if (begin) {
		spare_json_c(begin, copy + size);
		check(begin, copy + size);
	}
	free(copy);
	return 0;
}
