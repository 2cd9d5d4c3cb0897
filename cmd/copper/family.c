/* SPDX-License-Identifier: BSD-3-Clause */
#include "family.h"

static int print_help(const struct family *f)
{
	printf("usage: %s", f->head);
	for (size_t i = 0; i < f->n; i++)
		printf("  %-12s%s\n", f->commands[i].name, f->commands[i].summary);
	fputs(f->tail, stdout);
	printf("%s SUBCOMMAND --help: its options\n", f->command);
	return fflush(stdout) ? 1 : 0;
}

/* For completion and the manual: prints all options without duplicates. */
static int print_options(const struct family *f)
{
	printf("command\t%s\t%s\noperand\t", f->command, f->summary);
	for (size_t i = 0; i < f->n; i++)
		printf("%s%s", i ? "|" : "", f->commands[i].name);
	printf("\t%s\n%s", f->optional ? "optional" : "required", f->operands);
	for (size_t i = 0; i < f->n; i++) {
		struct cop_buf text = {0};

		cop_opt_dump_rows(f->tables[i], f->tables, i, &text);
		if (text.data)
			fputs(text.data, stdout);
		cop_buf_free(&text);
	}
	return fflush(stdout) ? 1 : 0;
}

int cop_cmd_family_unknown(const struct family *f, const char *word)
{
	const char *names[FAMILY_MAX + 2] = {NULL}, *near;
	const char *what = word[0] == '-' ? "option" : "subcommand";
	size_t n = 0;

	for (; n < f->n && n < FAMILY_MAX; n++)
		names[n] = f->commands[n].name;
	names[n] = "--help";
	near = cop_opt_suggest(word, names);
	if (near)
		fprintf(stderr, "%s: unknown %s '%s' (did you mean '%s'?)\n", f->command, what,
			word, near);
	else
		fprintf(stderr, "%s: unknown %s '%s' (see %s --help)\n", f->command, what, word,
			f->command);
	return 2;
}

bool cop_cmd_family_run(const struct family *f, int argc, char **argv, int *status)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "--help-all")) {
		*status = print_help(f);
		return true;
	}
	if (!strcmp(word, "--dump-options")) {
		*status = print_options(f);
		return true;
	}
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(word, f->commands[i].name)) {
			*status = f->commands[i].run(argc - 1, argv + 1);
			return true;
		}
	return false;
}
