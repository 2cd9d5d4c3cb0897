/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads one list of sizes: "<path>: <bytes>" lines, then "Total bytes: N" and "total number of
 * files: N" (or entries). A name may contain ": ", so lines are parsed from the end. Copper 1.0
 * puts its totals between bars of =, and a sentence before the list of attributes. */
#include "report/usage/usage.h"
#include "writers/cluster/cluster.h"

#define LINE_MAX_BYTES (256 * COP_KIB)

static const char *const names[COP_USAGE_TABLES] = {
	[COP_USAGE_DATA] = "data_cache_size.output",
	[COP_USAGE_TREE] = "tree_cache_size.output",
	[COP_USAGE_METADATA] = "md_cache_size.output",
};

const char *cop_usage_name(enum cop_usage_table table)
{
	return names[table];
}

/* The partial result for one file. */
struct reading {
	uint64_t rows, bytes;
	uint64_t total_bytes, total_entries;
	bool has_bytes, has_entries;
	const char *why;
};

/* Parses the number after the last ": " of a line and truncates the line before the colon; false if
 * there is none. */
static bool cut_number(char *line, size_t *len, uint64_t *out)
{
	size_t at = *len;

	while (at && line[at - 1] >= '0' && line[at - 1] <= '9')
		at--;
	line[*len] = '\0';
	if (at < 2 || memcmp(line + at - 2, ": ", 2) || cop_parse_u64(line + at, out))
		return false;
	*len = at - 2;
	line[*len] = '\0';
	return true;
}

static void parse_line(struct reading *r, char *line, size_t len)
{
	uint64_t n;

	if (len && line[len - 1] == '\r')
		len--;
	if (!len || cop_observed_is_ornament(line, len))
		return;
	if (!cut_number(line, &len, &n)) {
		r->why = "a line has no number at its end";
	} else if (line[0] == '/') {
		r->rows++;
		r->bytes = cop_add_saturating(r->bytes, n);
	} else if (strcmp(line, "Total bytes") == 0) {
		r->total_bytes = n;
		r->has_bytes = true;
	} else if (strcmp(line, "total number of files") == 0 ||
		   strcmp(line, "total number of entries") == 0) {
		r->total_entries = n;
		r->has_entries = true;
	} else {
		r->why = "a line is neither a path nor a total";
	}
}

/* Parses the complete lines and moves the rest to the front. */
static size_t parse_lines(struct reading *r, char *data, size_t len, bool ended)
{
	char *at = data, *end;

	while ((end = memchr(at, '\n', len - (size_t)(at - data)))) {
		parse_line(r, at, (size_t)(end - at));
		at = end + 1;
	}
	len -= (size_t)(at - data);
	memmove(data, at, len);
	if (ended && len)
		parse_line(r, data, len);
	return len;
}

static int read_listing(
	struct reading *r, ssize_t (*read)(void *arg, void *data, size_t len), void *arg)
{
	char *data = malloc(LINE_MAX_BYTES + 1);
	size_t len = 0;
	ssize_t n = 0;
	int rc = data ? 0 : -ENOMEM;

	while (!rc && (n = read(arg, data + len, LINE_MAX_BYTES - len)) > 0) {
		len = parse_lines(r, data, len + (size_t)n, false);
		if (len == LINE_MAX_BYTES) {
			r->why = "a line is longer than any path";
			rc = -EBADMSG;
		}
	}
	if (!rc && n < 0)
		rc = (int)n;
	if (!rc)
		parse_lines(r, data, len, true);
	free(data);
	return rc;
}

/* Returns whether the file is usable, and its problem. */
static int check_reading(struct reading *r)
{
	bool whole = r->has_bytes && r->has_entries;

	if (!whole && !r->rows) {
		if (!r->why)
			r->why = "it is empty";
		return -EBADMSG;
	}
	if (!r->why && !whole)
		r->why = "it is truncated: the sum of its lines is used";
	if (!r->why && r->rows && (r->bytes != r->total_bytes || r->rows != r->total_entries))
		r->why = "its lines do not add up to its totals: the totals are used";
	return 0;
}

int cop_usage_add(struct cop_usage *u, enum cop_usage_table table,
	ssize_t (*read)(void *arg, void *data, size_t len), void *arg, const char **why)
{
	struct reading r = {0};
	int rc = read_listing(&r, read, arg);

	if (!rc)
		rc = check_reading(&r);
	*why = r.why;
	if (rc)
		return rc;
	u->table[table].files = cop_add_saturating(u->table[table].files, 1);
	u->table[table].bytes = cop_add_saturating(
		u->table[table].bytes, r.has_bytes && r.has_entries ? r.total_bytes : r.bytes);
	u->table[table].entries = cop_add_saturating(
		u->table[table].entries, r.has_bytes && r.has_entries ? r.total_entries : r.rows);
	return 0;
}

void cop_usage_free(struct cop_usage *u)
{
	cop_buf_free(&u->named);
	*u = (struct cop_usage){0};
}
