/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs given on the command line. */
#include <glob.h>

#include "trace.h"

static int add_path(struct trace_case *c, const char *path)
{
	char **grown = reallocarray(c->path, c->paths + 2, sizeof(char *));

	if (!grown)
		return -ENOMEM;
	c->path = grown;
	c->path[c->paths] = strdup(path);
	c->path[c->paths + 1] = NULL;
	return c->path[c->paths++] ? 0 : -ENOMEM;
}

/* Uses an existing path literally; otherwise treats it as a pattern, because no shell expands the
 * text after NAME=. */
static int add_matching(struct trace_case *c, const char *path, struct cop_err *err)
{
	glob_t found = {0};
	int rc = !access(path, F_OK) || !strpbrk(path, "*?[") ? GLOB_NOMATCH
							      : glob(path, 0, NULL, &found);

	if (rc == GLOB_NOMATCH && (!access(path, F_OK) || !strpbrk(path, "*?[")))
		return add_path(c, path) ? cop_err_set(err, ENOMEM, "no memory") : 0;
	if (rc == GLOB_NOMATCH)
		return cop_err_set(err, ENOENT, "'%s' matches no file", path);
	if (rc)
		return cop_err_set(
			err, EIO, "'%s' cannot be expanded: a directory cannot be read", path);
	for (size_t i = 0; i < found.gl_pathc && !rc; i++)
		rc = add_path(c, found.gl_pathv[i]);
	globfree(&found);
	return rc ? cop_err_set(err, ENOMEM, "no memory") : 0;
}

/* Splits paths at commas, unless the whole text is one existing path. */
static int split(struct trace_case *c, char *paths, struct cop_err *err)
{
	char *save = NULL;
	int rc = 0;

	if (!access(paths, F_OK))
		return add_matching(c, paths, err);
	for (char *p = strtok_r(paths, ",", &save); p && !rc; p = strtok_r(NULL, ",", &save))
		rc = add_matching(c, p, err);
	return rc;
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
	if (!at->text)
		return cop_err_set(err, ENOMEM, "no memory");
	if (split(at, equals + 1, err))
		return -EINVAL;
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
		for (size_t k = 0; k < c->at[i].paths; k++)
			free(c->at[i].path[k]);
		free(c->at[i].path);
		free(c->at[i].text);
	}
	free(c->at);
	free(c->name);
}
