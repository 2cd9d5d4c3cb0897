/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts an option's text to the value of its field, according to its kind. */
#include <ctype.h>

#include "base/opt/opt_priv.h"

#define MAX_CPU 65535

bool cop_opt_lone(const struct cop_opt *o)
{
	return o->kind == COP_OPT_FLAG || o->kind == COP_OPT_IGNORED;
}

const char *cop_opt_label(const struct cop_opt *o, char out[64])
{
	if (o->name)
		snprintf(out, 64, "--%s", o->name);
	else
		snprintf(out, 64, "-%c", o->letter);
	return out;
}

/* The largest value allowed: the row's limit, else what the field can hold. */
static uint64_t limit_of(const struct cop_opt *o)
{
	static const uint64_t most[] = {
		[COP_OPT_U16] = UINT16_MAX,
		[COP_OPT_U32] = UINT32_MAX,
		[COP_OPT_U64] = UINT64_MAX,
		[COP_OPT_I64] = INT64_MAX,
		[COP_OPT_SIZE] = UINT64_MAX,
		[COP_OPT_MS] = UINT32_MAX,
		[COP_OPT_DURATION] = UINT32_MAX,
	};

	return o->max ? o->max : most[o->kind];
}

/* Prints whole multiples of a unit without decimals. */
static void tell_size(uint64_t bytes, struct cop_buf *out)
{
	static const char *const units[] = {"", " KiB", " MiB", " GiB", " TiB"};
	size_t u = 0;

	while (bytes && bytes % 1024 == 0 && u + 1 < COP_ARRAY_SIZE(units)) {
		bytes /= 1024;
		u++;
	}
	cop_buf_printf(out, "%llu%s", (unsigned long long)bytes, units[u]);
}

static void tell_duration(uint64_t ms, struct cop_buf *out)
{
	if (ms % 1000)
		cop_buf_printf(out, "%llums", (unsigned long long)ms);
	else
		cop_buf_printf(out, "%llus", (unsigned long long)ms / 1000);
}

static void tell_number(const struct cop_opt *o, uint64_t value, struct cop_buf *out)
{
	if (o->kind == COP_OPT_SIZE)
		tell_size(value, out);
	else if (o->kind == COP_OPT_DURATION)
		tell_duration(value, out);
	else
		cop_buf_printf(out, "%llu", (unsigned long long)value);
}

void cop_opt_range(const struct cop_opt *o, struct cop_buf *out)
{
	switch (o->kind) {
	case COP_OPT_CPUS:
	case COP_OPT_ENUM:
		for (const struct cop_opt_word *w = o->words; w && w->word; w++)
			cop_buf_printf(out, "%s%s", w == o->words ? "" : ", ", w->word);
		break;
	case COP_OPT_U16:
	case COP_OPT_U32:
	case COP_OPT_U64:
	case COP_OPT_I64:
	case COP_OPT_SIZE:
	case COP_OPT_MS:
	case COP_OPT_DURATION:
		tell_number(o, o->min, out);
		cop_buf_str(out, "..");
		tell_number(o, limit_of(o), out);
		break;
	default:
		cop_buf_str(out, "");
	}
}

static int refuse_value(
	const struct cop_opt *o, const char *text, const char *what, struct cop_err *err)
{
	char label[64];

	return cop_err_set(err, EINVAL, "%s: '%s' is not %s", cop_opt_label(o, label), text, what);
}

static int refuse_range(const struct cop_opt *o, const char *text, struct cop_err *err)
{
	struct cop_buf range = {0};
	char label[64];

	cop_opt_range(o, &range);
	cop_err_set(err, EINVAL, "%s: %s is out of range %s", cop_opt_label(o, label), text,
		range.data ? range.data : "");
	cop_buf_free(&range);
	return -EINVAL;
}

/* Parses a whole number followed by ms, s, m or h; without a unit, seconds. */
static int parse_duration(const char *text, uint64_t *ms)
{
	static const struct {
		const char *suffix;
		uint64_t ms;
	} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	size_t digits = strspn(text, "0123456789");
	char number[32];
	int rc;

	if (digits >= sizeof(number))
		return -ERANGE;
	memcpy(number, text, digits);
	number[digits] = '\0';
	rc = cop_parse_u64(number, ms);
	if (rc)
		return rc;
	for (size_t i = 0; i < COP_ARRAY_SIZE(units); i++) {
		if (strcmp(text + digits, units[i].suffix))
			continue;
		return __builtin_mul_overflow(*ms, units[i].ms, ms) ? -ERANGE : 0;
	}
	return -EINVAL;
}

static int parse_number(const struct cop_opt *o, const char *text, uint64_t *value)
{
	switch (o->kind) {
	case COP_OPT_SIZE:
		return cop_parse_size(text, value);
	case COP_OPT_DURATION:
		return parse_duration(text, value);
	default:
		return cop_parse_u64(text, value);
	}
}

static int set_number(const struct cop_opt *o, const char *text, void *field, struct cop_err *err)
{
	uint64_t value = 0;
	int rc = parse_number(o, text, &value);

	if (rc == -EINVAL)
		return refuse_value(o, text,
			o->kind == COP_OPT_SIZE       ? "a size (such as 64K or 2G)"
			: o->kind == COP_OPT_MS       ? "a number of milliseconds"
			: o->kind == COP_OPT_DURATION ? "a time (such as 30, 500ms or 2m)"
						      : "a number",
			err);
	if (rc || value < o->min || value > limit_of(o))
		return refuse_range(o, text, err);
	switch (o->kind) {
	case COP_OPT_U16:
		*(uint16_t *)field = (uint16_t)value;
		break;
	case COP_OPT_U64:
	case COP_OPT_SIZE:
		*(uint64_t *)field = value;
		break;
	case COP_OPT_I64:
		*(int64_t *)field = (int64_t)value;
		break;
	default:
		*(uint32_t *)field = (uint32_t)value;
	}
	return 0;
}

static int set_enum(const struct cop_opt *o, const char *text, void *field, struct cop_err *err)
{
	struct cop_buf words = {0};
	char label[64];

	for (const struct cop_opt_word *w = o->words; w->word; w++) {
		if (!strcmp(w->word, text)) {
			*(unsigned *)field = w->value;
			return 0;
		}
	}
	cop_opt_range(o, &words);
	cop_err_set(err, EINVAL, "%s: '%s' is not one of %s", cop_opt_label(o, label), text,
		words.data ? words.data : "");
	cop_buf_free(&words);
	return -EINVAL;
}

/* Parses a processor number; false if it is missing or absurdly large. */
static bool read_cpu(const char **p, unsigned long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	errno = 0;
	*cpu = strtoul(*p, &end, 10);
	*p = end;
	return !errno && *cpu <= MAX_CPU;
}

static bool is_cpu_list(const char *p)
{
	unsigned long first, last;

	for (;;) {
		if (!read_cpu(&p, &first))
			return false;
		if (*p == '-') {
			p++;
			if (!read_cpu(&p, &last) || last < first)
				return false;
		}
		if (*p != ',')
			return !*p;
		p++;
	}
}

static int set_text(const struct cop_opt *o, const char *text, void *field, struct cop_err *err)
{
	struct cop_opt_list *list = field;
	char label[64];

	if (!*text)
		return cop_err_set(err, EINVAL, "%s: the value is empty", cop_opt_label(o, label));
	if (o->kind == COP_OPT_STRING || o->kind == COP_OPT_OPTIONAL)
		*(const char **)field = text;
	else if (list->n == COP_OPT_LIST_MAX)
		return cop_err_set(err, EINVAL, "%s: more than %u of them", cop_opt_label(o, label),
			COP_OPT_LIST_MAX);
	else
		list->at[list->n++] = text;
	return 0;
}

static bool is_word(const struct cop_opt *o, const char *text)
{
	const struct cop_opt_word *w = o->words;

	while (w && w->word && strcmp(w->word, text))
		w++;
	return w && w->word;
}

int cop_opt_set(const struct cop_opt *o, const char *text, void *into, struct cop_err *err)
{
	void *field = cop_opt_field(into, o->offset);

	switch (o->kind) {
	case COP_OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case COP_OPT_IGNORED:
		return 0;
	case COP_OPT_CPUS:
		if (!is_word(o, text) && !is_cpu_list(text))
			return refuse_value(o, text, "a list of processors (such as 0-3,8)", err);
		*(const char **)field = text;
		return 0;
	case COP_OPT_STRING:
	case COP_OPT_OPTIONAL:
	case COP_OPT_LIST:
		return set_text(o, text, field, err);
	case COP_OPT_ENUM:
		return set_enum(o, text, field, err);
	default:
		return set_number(o, text, field, err);
	}
}
