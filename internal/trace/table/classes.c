/* SPDX-License-Identifier: BSD-3-Clause */
/* A class has a name and a rule that selects its spans. Three classes are built in; users can
 * redefine them and add others. Expressions are matched against names and categories. */
#include "trace/table/sum_priv.h"

struct class
{
	char *name;
	struct cop_select *by_name, *by_cat; /* NULL: use the built-in rule */
};
struct cop_classes {
	struct class class[COP_CLASSES_MAX];
	unsigned n;
};

static const char *const builtin[COP_SUM_PARTS] = {
	[COP_SUM_APP] = "app_io", [COP_SUM_COMPUTE] = "compute", [COP_SUM_POSIX] = "posix"};

/* Names are short: searching for the first letter is faster than a search with a setup cost. */
static bool holds(struct cop_trace_str s, const char *word, size_t len)
{
	for (size_t i = 0; i + len <= s.len; i++)
		if (s.at[i] == *word && !memcmp(s.at + i, word, len))
			return true;
	return false;
}

bool cop_sum_is_posix(const struct cop_trace_event *e)
{
	return e->cat.len == 5 && !memcmp(e->cat.at, "POSIX", 5);
}

static bool is_builtin(unsigned part, const struct cop_trace_event *e)
{
	if (part == COP_SUM_APP)
		return holds(e->cat, "reader", 6) || holds(e->cat, "checkpoint", 10);
	return part == COP_SUM_POSIX ? cop_sum_is_posix(e) : holds(e->name, "compute", 7);
}

static int compile(struct class *c, const char *re, unsigned threads, struct cop_err *err)
{
	struct cop_select_conf name = {
		.text[COP_SELECT_NAME] = {&re, 1}, .to_s = -1, .name_option = "class"};
	struct cop_select_conf cat = {.text[COP_SELECT_CAT] = {&re, 1}, .to_s = -1};
	int rc = cop_select_new(&name, threads, &c->by_name, err);

	return rc ? rc : cop_select_new(&cat, threads, &c->by_cat, err);
}

static int add_class(struct cop_classes *c, const char *word, unsigned threads, struct cop_err *err)
{
	const char *equals = strchr(word, '=');
	unsigned i = 0;
	char *name;

	if (!equals || equals == word || !equals[1])
		return cop_err_set(err, EINVAL,
			"--class: '%s' is not NAME=RE, as in compute=forward|backward", word);
	name = strndup(word, (size_t)(equals - word));
	if (!name)
		return cop_err_set(err, ENOMEM, "no memory");
	while (i < c->n && strcmp(c->class[i].name, name))
		i++;
	if (i == COP_CLASSES_MAX || (i < c->n && c->class[i].by_name)) {
		free(name);
		return i == COP_CLASSES_MAX
			       ? cop_err_set(err, EINVAL, "--class: more than %u classes",
					 COP_CLASSES_MAX)
			       : cop_err_set(err, EINVAL, "--class: %s is defined twice",
					 c->class[i].name);
	}
	if (i == c->n)
		c->class[c->n++].name = name;
	else
		free(name);
	return compile(&c->class[i], equals + 1, threads, err);
}

int cop_classes_new(const char *const *word, unsigned n, unsigned threads, struct cop_classes **out,
	struct cop_err *err)
{
	struct cop_classes *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return cop_err_set(err, ENOMEM, "no memory");
	for (; c->n < COP_SUM_PARTS && !rc; c->n++) {
		c->class[c->n].name = strdup(builtin[c->n]);
		if (!c->class[c->n].name)
			rc = cop_err_set(err, ENOMEM, "no memory");
	}
	for (unsigned i = 0; i < n && !rc; i++)
		rc = add_class(c, word[i], threads, err);
	if (rc)
		cop_classes_free(c);
	else
		*out = c;
	return rc;
}

void cop_classes_free(struct cop_classes *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < COP_CLASSES_MAX; i++) {
		free(c->class[i].name);
		cop_select_free(c->class[i].by_name);
		cop_select_free(c->class[i].by_cat);
	}
	free(c);
}

unsigned cop_classes_count(const struct cop_classes *c)
{
	return c->n;
}

const char *cop_classes_name(const struct cop_classes *c, unsigned i)
{
	return c->class[i].name;
}

bool cop_classes_test(
	const struct cop_classes *c, unsigned i, unsigned worker, const struct cop_trace_event *e)
{
	const struct class *at = &c->class[i];

	if (!at->by_name)
		return is_builtin(i, e);
	return cop_select_test(at->by_name, worker, e) || cop_select_test(at->by_cat, worker, e);
}
