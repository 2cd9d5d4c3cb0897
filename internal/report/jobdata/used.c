/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what copper paths wrote to paths_dir: the "label: number" lines of roots_and_counts.txt,
 * and the first rows of a table in paths_summary.md. */
#include "report/jobdata/jobdata_priv.h"

#define FILE_MAX (16 * COP_MIB)
#define UNUSED_MAX 20
#define UNUSED_HEADING "## Largest directories that nothing used needs"

/* Puts the next line, NUL-terminated, into *line. */
static bool next_line(char **at, char **line)
{
	char *end;

	if (!*at || !**at)
		return false;
	*line = *at;
	end = strchr(*at, '\n');
	*at = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return true;
}

int cop_jobdata_parse_counts(struct cop_jobdata *j, char *text)
{
	char *line;
	int rc = 0;

	while (!rc && next_line(&text, &line)) {
		char *colon = strrchr(line, ':');
		uint64_t n;

		if (!colon || colon == line || colon[1] != ' ' || cop_parse_u64(colon + 2, &n))
			continue;
		*colon = '\0';
		rc = cop_jobdata_add_value(&j->use, line, (double)n);
	}
	return rc;
}

/* Removes the escapes of a table cell from a name. */
static void plain_name(char *name)
{
	char *to = name;

	for (char *at = name; *at; at++)
		if (at[0] != '\\' || at[1] != '|')
			*to++ = *at;
	name[cop_csv_unescape(name, (size_t)(to - name))] = '\0';
}

/* Parses "| `DIRECTORY` | BYTES | SIZE | FILES | DIRECTORIES |". A name may contain bars, so
 * columns are counted from the end. */
static int parse_row(struct cop_jobdata *j, char *line)
{
	struct cop_jobdata_unused *u;
	char *cell[5], *name;

	for (int i = 4; i >= 0; i--) {
		char *bar = strrchr(line, '|');

		if (!bar || bar == line)
			return 0;
		*bar = '\0';
		cell[i] = i ? strrchr(line, '|') : line;
		if (!cell[i]++)
			return 0;
	}
	name = cell[0] + strspn(cell[0], " `");
	while (*name && strchr(" `", name[strlen(name) - 1]))
		name[strlen(name) - 1] = '\0';
	if (*name != '/')
		return 0;
	plain_name(name);
	u = cop_jobdata_more(&j->unused, &j->unused_n, sizeof(*u), UNUSED_MAX);
	if (!u)
		return -ENOMEM;
	u->directory = cop_jobdata_copy(name, strlen(name));
	u->bytes = strtod(cell[1], NULL);
	u->files = strtod(cell[3], NULL);
	return u->directory ? 0 : -ENOMEM;
}

int cop_jobdata_parse_unused(struct cop_jobdata *j, char *text)
{
	char *at = strstr(text, "\n" UNUSED_HEADING), *line;
	int rc = 0;

	if (!at)
		return 0;
	at++;
	next_line(&at, &line);
	while (!rc && next_line(&at, &line) && strncmp(line, "## ", 3) != 0)
		if (*line == '|' && j->unused_n < UNUSED_MAX)
			rc = parse_row(j, line);
	return rc;
}

static int with_file(struct cop_jobdata *j, const char *name,
	int (*parse)(struct cop_jobdata *j, char *text), bool *found)
{
	char *path, *text = NULL;
	size_t len;
	int rc = 0;

	if (asprintf(&path, "%s/paths_dir/%s", j->dir, name) < 0)
		return -ENOMEM;
	*found = !cop_read_file(path, FILE_MAX, &text, &len);
	if (*found)
		rc = parse(j, text);
	free(text);
	free(path);
	return rc;
}

int cop_jobdata_used(struct cop_jobdata *j)
{
	bool summary;
	int rc = with_file(j, "roots_and_counts.txt", cop_jobdata_parse_counts, &j->has_use);

	return rc ? rc : with_file(j, "paths_summary.md", cop_jobdata_parse_unused, &summary);
}
