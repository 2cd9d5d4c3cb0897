/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs that the command line names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

/* Splits paths at commas, unless all of it is one existing path. */
static int split(struct trace_case *c, char *paths)
{
	bool whole = !access(paths, F_OK);
	size_t n = 2;
	char *save = NULL;

	for (const char *p = paths; *p; p++)
		n += *p == ',';
	c->path = calloc(n, sizeof(*c->path));
	if (!c->path)
		return -ENOMEM;
	if (whole) {
		c->path[c->paths++] = paths;
		return 0;
	}
	for (char *p = strtok_r(paths, ",", &save); p; p = strtok_r(NULL, ",", &save))
		c->path[c->paths++] = p;
	return 0;
}

static int parse_case(struct trace_cases *c, const char *word, struct cop_err *err)
{
	struct trace_case *at = &c->at[c->n];
	char *equals;

	at->text = strdup(word);
	equals = at->text ? strchr(at->text, '=') : NULL;
	c->n += at->text != NULL;
	if (at->text && (!equals || equals == at->text || !equals[1]))
		return cop_err_set(err, EINVAL,
			"'%s' is not NAME=PATH[,PATH...]: a run needs a name and files", word);
	if (!at->text || split(at, equals + 1))
		return cop_err_set(err, ENOMEM, "no memory");
	if (!at->paths)
		return cop_err_set(err, EINVAL, "'%s' names no file", word);
	*equals = '\0';
	at->run.name = c->name[c->n - 1] = at->text;
	for (size_t i = 0; i + 1 < c->n; i++)
		if (!strcmp(c->name[i], at->text))
			return cop_err_set(err, EINVAL,
				"two runs are called '%s': give them different names, or all files to one, with commas between them",
				at->text);
	return 0;
}

int cop_cmd_trace_cases_open(struct trace_cases *c, const struct cop_opt_table *table,
	const struct trace_select *select, const struct cop_opt_many *words)
{
	struct cop_err err = {0};
	int code = 0;

	c->at = calloc(words->n, sizeof(*c->at));
	c->name = calloc(words->n, sizeof(*c->name));
	if (!c->at || !c->name)
		cop_err_set(&err, ENOMEM, "no memory");
	if (words->n > TRACE_CASES_MAX)
		cop_err_set(&err, EINVAL, "there are more than %u runs", TRACE_CASES_MAX);
	for (size_t i = 0; i < words->n && !err.text[0]; i++)
		parse_case(c, words->at[i], &err);
	if (err.text[0])
		return cop_opt_misuse(table, &err);
	for (size_t i = 0; i < c->n && !code; i++)
		code = cop_cmd_trace_open(&c->at[i].run, table, select,
			&(struct cop_opt_many){c->at[i].path, c->at[i].paths});
	return code;
}

void cop_cmd_trace_cases_close(struct trace_cases *c)
{
	for (size_t i = 0; i < c->n; i++) {
		cop_cmd_trace_close(&c->at[i].run);
		free(c->at[i].path);
		free(c->at[i].text);
	}
	free(c->at);
	free(c->name);
}
