/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses argv. */
#include <assert.h>

#include "base/opt/opt_priv.h"

struct walk {
	const struct cop_opt_table *table;
	char **argv;
	char **given;                       /* the same words in their original order */
	int argc, next;                     /* next: index of the next word to parse */
	size_t operands;                    /* how many we have seen */
	const struct cop_opt_operand *many; /* the operand that takes all remaining words */
	void *into;
	enum cop_opt_ask ask;
	struct cop_buf *notes;
	struct cop_err *err;
};

static const struct {
	const char *name;
	enum cop_opt_ask ask;
} built_in[] = {
	{"help", COP_OPT_ASK_HELP},
	{"help-all", COP_OPT_ASK_HELP_ALL},
	{"dump-options", COP_OPT_ASK_DUMP},
};

static const struct cop_opt *row_of_letter(const struct cop_opt_table *t, char letter)
{
	for (size_t i = 0; i < t->rows; i++)
		if (t->row[i].letter == letter)
			return &t->row[i];
	return NULL;
}

static const struct cop_opt *row_of_name(
	const struct cop_opt_table *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->rows; i++) {
		const char *n = t->row[i].name;

		if (n && !strncmp(n, name, len) && !n[len])
			return &t->row[i];
	}
	return NULL;
}

static int unknown_name(struct walk *w, const char *name, size_t len)
{
	const struct cop_opt_table *t = w->table;
	const char **names = calloc(t->rows + COP_ARRAY_SIZE(built_in) + 1, sizeof(*names));
	char word[64];
	const char *near = NULL;
	size_t n = 0;

	snprintf(word, sizeof(word), "%.*s", (int)COP_MIN(len, sizeof(word)), name);
	if (names) {
		for (size_t i = 0; i < t->rows; i++)
			if (t->row[i].name && !t->row[i].hidden)
				names[n++] = t->row[i].name;
		for (size_t i = 0; i < 2; i++)
			names[n++] = built_in[i].name;
		near = cop_opt_suggest(word, names);
	}
	free(names);
	if (near)
		return cop_err_set(
			w->err, EINVAL, "unknown option '--%s' (did you mean '--%s'?)", word, near);
	return cop_err_set(
		w->err, EINVAL, "unknown option '--%s' (see %s --help)", word, t->command);
}

static int missing_value(struct walk *w, const struct cop_opt *o)
{
	char label[64];

	return cop_err_set(w->err, EINVAL, "%s: %s is missing", cop_opt_label(o, label),
		o->arg ? o->arg : "the value");
}

/* Applies a flag or an ignored option, which take no value. */
static int apply_lone(struct walk *w, const struct cop_opt *o)
{
	char label[64];

	if (o->kind == COP_OPT_IGNORED && w->notes)
		cop_buf_printf(w->notes, "%s: note: %s is ignored: %s\n", w->table->command,
			cop_opt_label(o, label), o->help);
	return cop_opt_set(o, "", w->into, w->err);
}

/* Takes the next word as the value. */
static int apply_next(struct walk *w, const struct cop_opt *o)
{
	if (w->next >= w->argc)
		return missing_value(w, o);
	return cop_opt_set(o, w->argv[w->next++], w->into, w->err);
}

static int walk_long(struct walk *w, const char *name)
{
	size_t len = strcspn(name, "=");
	const struct cop_opt *o = row_of_name(w->table, name, len);

	for (size_t i = 0; !o && i < COP_ARRAY_SIZE(built_in); i++) {
		if (!strcmp(name, built_in[i].name)) {
			w->ask = built_in[i].ask;
			return 0;
		}
	}
	if (!o)
		return unknown_name(w, name, len);
	if (o->kind == COP_OPT_OPTIONAL && !name[len]) {
		*(const char **)cop_opt_field(w->into, o->offset) = "";
		return 0;
	}
	if (cop_opt_lone(o))
		return name[len] ? cop_err_set(w->err, EINVAL, "--%s: takes no value", o->name)
				 : apply_lone(w, o);
	return name[len] ? cop_opt_set(o, name + len + 1, w->into, w->err) : apply_next(w, o);
}

/* -k8, -k 8, -fk8 */
static int walk_letters(struct walk *w, const char *letters)
{
	for (; *letters && !w->ask; letters++) {
		const struct cop_opt *o = row_of_letter(w->table, *letters);
		int rc;

		if (!o && *letters == 'h') {
			w->ask = COP_OPT_ASK_HELP;
			continue;
		}
		if (!o)
			return cop_err_set(w->err, EINVAL, "unknown option '-%c' (see %s --help)",
				*letters, w->table->command);
		if (!cop_opt_lone(o))
			return letters[1] ? cop_opt_set(o, letters + 1, w->into, w->err)
					  : apply_next(w, o);
		rc = apply_lone(w, o);
		if (rc)
			return rc;
	}
	return 0;
}

static const struct cop_opt_old *find_old(const struct cop_opt_table *t, const char *word)
{
	for (const struct cop_opt_old *o = t->old; o && o->word; o++)
		if (strcmp(o->word, word) == 0 && row_of_name(t, o->name, strlen(o->name)))
			return o;
	return NULL;
}

/* -profile_top_n 20 */
static int walk_old(struct walk *w, const struct cop_opt_old *old)
{
	const struct cop_opt *o = row_of_name(w->table, old->name, strlen(old->name));

	if (cop_opt_lone(o))
		return apply_lone(w, o);
	if (w->next >= w->argc)
		return cop_err_set(w->err, EINVAL, "-%s: %s is missing", old->word,
			o->arg ? o->arg : "the value");
	if (old->zero_is_none && strcmp(w->argv[w->next], "0") == 0) {
		w->next++;
		return 0;
	}
	return apply_next(w, o);
}

/* Collects the operands at the start of argv, over words already parsed. */
static int take_many(struct walk *w, const char *text)
{
	struct cop_opt_many *field = cop_opt_field(w->into, w->many->offset);

	field->at = w->given;
	w->given[field->n++] = (char *)text;
	return 0;
}

static int walk_operand(struct walk *w, const char *text)
{
	const struct cop_opt_operand *p = w->table->operand + w->operands;
	const char **field;

	if (w->many) {
		if (!*text)
			return cop_err_set(w->err, EINVAL, "%s is empty", w->many->name);
		return take_many(w, text);
	}
	if (w->operands >= w->table->operands)
		return cop_err_set(w->err, EINVAL, "'%s' is one argument too many (see %s --help)",
			text, w->table->command);
	if (!*text)
		return cop_err_set(w->err, EINVAL, "%s is empty", p->name);
	w->operands++;
	if (p->many) {
		w->many = p;
		return take_many(w, text);
	}
	field = cop_opt_field(w->into, p->offset);
	if (*field && strcmp(*field, text))
		return cop_err_set(
			w->err, EINVAL, "%s is given twice: '%s' and '%s'", p->name, *field, text);
	*field = text;
	return 0;
}

/* Operands are saved for a second pass, because an option that is an alias for one may follow. */
static int walk_word(struct walk *w, const char *text, int *kept)
{
	const struct cop_opt_old *old = text[0] == '-' ? find_old(w->table, text + 1) : NULL;

	if (old)
		return walk_old(w, old);
	if (text[0] == '-' && text[1] == '-')
		return walk_long(w, text + 2);
	if (text[0] == '-' && text[1])
		return walk_letters(w, text + 1);
	w->argv[(*kept)++] = (char *)text;
	return 0;
}

static int walk_all(struct walk *w)
{
	int rc = 0, kept = 0;

	while (!rc && !w->ask && w->next < w->argc) {
		const char *text = w->argv[w->next++];

		if (!strcmp(text, "--"))
			break;
		if (w->table->rest && (text[0] != '-' || !text[1])) {
			w->next--;
			break;
		}
		rc = walk_word(w, text, &kept);
	}
	if (rc || w->ask)
		return rc;
	if (w->table->rest) {
		if (w->next < w->argc)
			*(char ***)cop_opt_field(w->into, w->table->rest_offset) =
				w->given + w->next;
		return 0;
	}
	while (w->next < w->argc)
		w->argv[kept++] = w->argv[w->next++];
	for (int i = 0; !rc && i < kept; i++)
		rc = walk_operand(w, w->argv[i]);
	return rc;
}

static bool is_absent(const struct cop_opt_operand *p, void *into)
{
	if (p->many)
		return ((struct cop_opt_many *)cop_opt_field(into, p->offset))->n == 0;
	return !*(const char **)cop_opt_field(into, p->offset);
}

static int check_operands(const struct cop_opt_table *t, void *into, struct cop_err *err)
{
	for (size_t i = 0; i < t->operands; i++)
		if (t->operand[i].required && is_absent(&t->operand[i], into))
			return cop_err_set(err, EINVAL, "%s is missing (see %s --help)",
				t->operand[i].name, t->command);
	return 0;
}

void cop_opt_defaults(const struct cop_opt_table *t, void *into)
{
	if (t->init)
		t->init(into);
	for (size_t i = 0; i < t->rows; i++) {
		const struct cop_opt *o = &t->row[i];
		int rc = o->initial ? cop_opt_set(o, o->initial, into, NULL) : 0;

		assert(!rc);
		(void)rc;
	}
}

int cop_opt_parse(const struct cop_opt_table *t, int argc, char **argv, void *into,
	enum cop_opt_ask *ask, struct cop_buf *notes, struct cop_err *err)
{
	struct walk w = {.table = t, .next = 0, .into = into, .notes = notes, .err = err};
	char **copy;
	int rc;

	*ask = COP_OPT_ASK_NONE;
	cop_opt_defaults(t, into);
	w.argc = argc > 0 ? argc - 1 : 0;
	copy = calloc((size_t)w.argc + 1, sizeof(*copy));
	if (!copy)
		return cop_err_set(err, ENOMEM, "no memory for the command line");
	if (w.argc)
		memcpy(copy, argv + 1, (size_t)w.argc * sizeof(*copy));
	w.argv = copy;
	w.given = argv + 1;
	rc = walk_all(&w);
	*ask = rc ? COP_OPT_ASK_NONE : w.ask;
	if (!rc && !w.ask)
		rc = check_operands(t, into, err);
	if (!rc && !w.ask && t->check)
		rc = t->check(into, err);
	free(copy);
	return rc;
}
