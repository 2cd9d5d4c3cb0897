/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt/opt_priv.h"

static uint64_t number_in(const struct cop_opt *o, const void *field)
{
	switch (o->kind) {
	case COP_OPT_U16:
		return *(const uint16_t *)field;
	case COP_OPT_U64:
	case COP_OPT_SIZE:
	case COP_OPT_I64:
		return *(const uint64_t *)field;
	default:
		return *(const uint32_t *)field;
	}
}

static const char *word_of(const struct cop_opt *o, unsigned value)
{
	const struct cop_opt_word *w = o->words;

	while (w->word && w->value != value)
		w++;
	return w->word ? w->word : "";
}

static void show_value(const struct cop_opt *o, const void *field, struct cop_buf *out)
{
	switch (o->kind) {
	case COP_OPT_FLAG:
		cop_buf_str(out, *(const bool *)field ? "true" : "false");
		break;
	case COP_OPT_STRING:
	case COP_OPT_OPTIONAL:
	case COP_OPT_CPUS:
		cop_buf_str(out, *(const char *const *)field ? *(const char *const *)field : "");
		break;
	case COP_OPT_ENUM:
		cop_buf_str(out, word_of(o, *(const unsigned *)field));
		break;
	case COP_OPT_I64:
		cop_buf_printf(out, "%" PRId64, *(const int64_t *)field);
		break;
	case COP_OPT_MS:
	case COP_OPT_DURATION:
		cop_buf_printf(out, "%" PRIu64 "ms", number_in(o, field));
		break;
	default:
		cop_buf_printf(out, "%" PRIu64, number_in(o, field));
	}
}

void cop_opt_each_changed(const struct cop_opt_table *t, const void *into, const void *defaults,
	void (*visit)(void *arg, const char *name, const char *value), void *arg)
{
	for (size_t i = 0; i < t->rows; i++) {
		const struct cop_opt *o = &t->row[i];
		struct cop_buf a = {0}, b = {0};

		if (!o->name || o->hidden || o->kind == COP_OPT_LIST || o->kind == COP_OPT_IGNORED)
			continue;
		show_value(o, (const char *)into + o->offset, &a);
		show_value(o, (const char *)defaults + o->offset, &b);
		if (!a.failed && !b.failed && strcmp(a.data, b.data) != 0)
			visit(arg, o->name, a.data);
		cop_buf_free(&a);
		cop_buf_free(&b);
	}
}
