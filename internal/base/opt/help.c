/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints an option table, as help for users and as a dump for shell completion and the manual. */
#include "base/opt/opt_priv.h"

#define WIDTH 80
#define HELP_COLUMN 29

static void put_usage(const struct cop_opt_table *t, struct cop_buf *out)
{
	cop_buf_printf(out, "usage: %s [options]", t->command);
	for (size_t i = 0; i < t->operands; i++) {
		cop_buf_printf(out, t->operand[i].required ? " %s" : " [%s]", t->operand[i].name);
		if (t->operand[i].many)
			cop_buf_str(out, "...");
	}
	if (t->rest)
		cop_buf_printf(out, " [--] %s", t->rest);
	cop_buf_printf(out, "\n%s\n", t->summary);
}

static const char *shown_default(const struct cop_opt *o)
{
	return o->shown ? o->shown : o->initial;
}

/* Formats "-k, --fanout N", unindented; long names line up whether or not there is a letter. */
static int put_spelling(const struct cop_opt *o, char *out, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c%s", o->letter, o->name ? ", " : "  ");
	if (o->kind == COP_OPT_OPTIONAL)
		return snprintf(out, size, "%s--%s[=%s]", letter, o->name, o->arg);
	return snprintf(out, size, "%s%s%s%s%s", letter, o->name ? "--" : "",
		o->name ? o->name : "", o->arg ? " " : "", o->arg ? o->arg : "");
}

static void put_explanation(const struct cop_opt *o, struct cop_buf *out)
{
	char left[64];
	int len = put_spelling(o, left, sizeof(left));
	const char *value = shown_default(o);

	cop_buf_printf(out, "  %-*s%s%s", HELP_COLUMN - 2, left, len >= HELP_COLUMN - 2 ? " " : "",
		o->help);
	if (value)
		cop_buf_printf(out, " (%s)", value);
	cop_buf_str(out, "\n");
}

/* Lists the names of rare options, without their help texts, wrapping lines. */
static void name_rare(const struct cop_opt_table *t, struct cop_buf *out)
{
	static const char head[] = "  more (--help-all):";
	size_t column = sizeof(head) - 1;
	bool any = false;

	for (size_t i = 0; i < t->rows; i++) {
		const struct cop_opt *o = &t->row[i];
		char text[64];
		int len;

		if (!o->rare || o->hidden)
			continue;
		len = snprintf(text, sizeof(text), "--%s", o->name);
		if (!any)
			cop_buf_str(out, head);
		any = true;
		if (column + 1 + (size_t)len > WIDTH - 1) {
			cop_buf_str(out, "\n   ");
			column = 3;
		}
		cop_buf_printf(out, " %s", text);
		column += 1 + (size_t)len;
	}
	if (any)
		cop_buf_str(out, "\n");
}

void cop_opt_help(const struct cop_opt_table *t, bool all, struct cop_buf *out)
{
	static const struct cop_opt help = {
		.name = "help", .letter = 'h', .help = "show this help"};

	put_usage(t, out);
	for (size_t i = 0; i < t->rows; i++)
		if (!t->row[i].hidden && (all || !t->row[i].rare))
			put_explanation(&t->row[i], out);
	put_explanation(&help, out);
	if (!all)
		name_rare(t, out);
}

static const char *or_dash(const char *text)
{
	return text && *text ? text : "-";
}

static void dump_row(const struct cop_opt *o, struct cop_buf *out)
{
	static const char *const kinds[] = {
		[COP_OPT_FLAG] = "flag",
		[COP_OPT_STRING] = "string",
		[COP_OPT_OPTIONAL] = "optional",
		[COP_OPT_LIST] = "list",
		[COP_OPT_U16] = "number",
		[COP_OPT_U32] = "number",
		[COP_OPT_U64] = "number",
		[COP_OPT_I64] = "number",
		[COP_OPT_SIZE] = "size",
		[COP_OPT_MS] = "milliseconds",
		[COP_OPT_DURATION] = "time",
		[COP_OPT_CPUS] = "cpus",
		[COP_OPT_ENUM] = "word",
		[COP_OPT_IGNORED] = "ignored",
	};
	const char letter[] = {'-', o->letter, '\0'};
	struct cop_buf range = {0};

	cop_opt_range(o, &range);
	cop_buf_printf(out, "option\t%s%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o->name ? "--" : "-",
		o->name ? o->name : "", letter, kinds[o->kind], or_dash(o->arg),
		or_dash(shown_default(o)), or_dash(range.data), o->help);
	out->failed |= range.failed;
	cop_buf_free(&range);
}

void cop_opt_dump(const struct cop_opt_table *t, struct cop_buf *out)
{
	cop_buf_printf(out, "command\t%s\t%s\n", t->command, t->summary);
	for (size_t i = 0; i < t->operands; i++)
		cop_buf_printf(out, "operand\t%s%s\t%s\n", t->operand[i].name,
			t->operand[i].many ? "..." : "",
			t->operand[i].required ? "required" : "optional");
	for (size_t i = 0; i < t->rows; i++)
		dump_row(&t->row[i], out);
}

static bool has_row(const struct cop_opt_table *t, const struct cop_opt *o)
{
	for (size_t i = 0; i < t->rows; i++)
		if (o->name && t->row[i].name && !strcmp(o->name, t->row[i].name))
			return true;
	return false;
}

void cop_opt_dump_rows(const struct cop_opt_table *t, const struct cop_opt_table *const *earlier,
	size_t n, struct cop_buf *out)
{
	for (size_t i = 0; i < t->rows; i++) {
		bool known = false;

		for (size_t k = 0; k < n && !known; k++)
			known = has_row(earlier[k], &t->row[i]);
		if (!known)
			dump_row(&t->row[i], out);
	}
}

int cop_opt_misuse(const struct cop_opt_table *t, const struct cop_err *err)
{
	fprintf(stderr, "%s: %s\n", t->command, err->text);
	return 2;
}

static int print_asked(const struct cop_opt_table *t, enum cop_opt_ask ask)
{
	struct cop_buf text = {0};
	bool ok;

	if (ask == COP_OPT_ASK_DUMP)
		cop_opt_dump(t, &text);
	else
		cop_opt_help(t, ask == COP_OPT_ASK_HELP_ALL, &text);
	ok = !text.failed && cop_write_full(STDOUT_FILENO, text.data, text.len) >= 0;
	cop_buf_free(&text);
	return ok ? 0 : 1;
}

bool cop_opt_start(const struct cop_opt_table *t, int argc, char **argv, void *into, int *exit_code)
{
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	enum cop_opt_ask ask;
	int rc = cop_opt_parse(t, argc, argv, into, &ask, &notes, &err);

	if (notes.len)
		fputs(notes.data, stderr);
	cop_buf_free(&notes);
	if (rc)
		*exit_code = cop_opt_misuse(t, &err);
	else if (ask)
		*exit_code = print_asked(t, ask);
	else
		return true;
	return false;
}
