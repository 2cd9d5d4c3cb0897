/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads one rank's profiling_first_touch.csv. Ranks do not share a clock, so paths are ordered by
 * how many others a rank had touched before them: the minimum over all ranks. */
#include "report/firsttouch/firsttouch_priv.h"

#define FIELDS 4

static int set_why(struct cop_buf *why, const char *text)
{
	cop_buf_str(why, text);
	return -EBADMSG;
}

static int set_source(struct first_touch *f, const char *path, size_t len, struct cop_buf *why)
{
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (path[0] != '/')
		return set_why(why, "it does not name its source");
	len -= len == 1;
	if (!f->source) {
		f->source = strndup(path, len);
		f->source_len = len;
		return f->source ? 0 : -ENOMEM;
	}
	return len == f->source_len && memcmp(path, f->source, len) == 0
		       ? 0
		       : set_why(why, "it names another source than the ranks before it");
}

/* Makes the path relative to the source; false if it is not below the source. */
static bool relative_to_root(
	const struct first_touch *f, const char *path, size_t len, struct cop_manifest_item *item)
{
	if (len < f->source_len || memcmp(path, f->source, f->source_len) != 0)
		return false;
	item->path = path + f->source_len;
	item->len = len - f->source_len;
	if (item->len && *item->path != '/')
		return false;
	item->path += item->len > 0;
	item->len -= item->len > 0;
	return cop_manifest_path_ok(item->path, item->len);
}

/* Accepts digits only: unlike sscanf, rejects signs and numbers above 64 bits. */
static bool parse_number(const char **text, uint64_t *out)
{
	char digits[21];
	size_t len = strspn(*text, "0123456789");

	if (len >= sizeof(digits))
		return false;
	memcpy(digits, *text, len);
	digits[len] = '\0';
	*text += len;
	return cop_parse_u64(digits, out) == 0;
}

/* Parses ranges such as "0-4096;8192-12288". */
static bool parse_ranges(const char *text, struct cop_manifest_item *item)
{
	while (*text) {
		uint64_t start, end;

		if (!parse_number(&text, &start) || *text != '-')
			return false;
		text++;
		if (!parse_number(&text, &end) || start >= end)
			return false;
		cop_manifest_range_add(item, start, end);
		if (*text == ';')
			text++;
		else if (*text)
			return false;
	}
	return true;
}

/* Adds the directory of a looked-up name, because its listing answers the lookup. */
static int add_directory(
	struct first_touch *f, const struct cop_manifest_item *name, uint64_t order)
{
	const char *slash = name->len ? memrchr(name->path, '/', name->len) : NULL;
	struct cop_manifest_item dir = {.kind = COP_MANIFEST_DIR,
		.path = name->path,
		.len = slash ? (size_t)(slash - name->path) : 0};

	return cop_manifest_set_add(f->set, &dir, order);
}

static int add_row(
	struct first_touch *f, const struct cop_csv_record *r, uint64_t row, struct cop_buf *why)
{
	struct cop_manifest_item item = {.kind = COP_MANIFEST_NAME};
	const char *table = r->field[1].text;
	int rc = 0;

	if (!relative_to_root(f, r->field[2].text, r->field[2].len, &item))
		return set_why(why, "a path is not below its source");
	if (strcmp(table, "tree") == 0)
		item.kind = COP_MANIFEST_DIR;
	else if (strcmp(table, "data") == 0)
		item.kind = COP_MANIFEST_FILE;
	else if (strcmp(table, "metadata") != 0)
		return 0; /* skip an item from a later version */
	if (!parse_ranges(r->field[3].text, &item))
		return set_why(why, "a byte range is malformed");
	/* The source itself is never looked up. */
	if (!item.len && item.kind != COP_MANIFEST_DIR)
		return 0;
	if (item.kind != COP_MANIFEST_DIR)
		rc = add_directory(f, &item, 2 * row);
	return rc ? rc : cop_manifest_set_add(f->set, &item, 2 * row + 1);
}

/* Errors other than -ENOMEM have a reason in why. The rows before a bad line are used. */
int cop_firsttouch_read(struct first_touch *f, struct cop_csv *csv, struct cop_buf *why)
{
	static const char *const columns[FIELDS] = {"order", "table", "path", "ranges"};
	struct cop_csv_record r;
	uint64_t row = 0;
	int rc;

	for (; (rc = cop_csv_next(csv, &r)) > 0; row++) {
		if (r.n < FIELDS || r.cut)
			return set_why(why, r.cut ? "it is truncated: its last line has no end"
						  : "a line has the wrong number of fields");
		for (unsigned i = 0; row == 0 && i < FIELDS; i++)
			if (strcmp(r.field[i].text, columns[i]) != 0)
				return set_why(why, "its first line is not the expected header");
		if (row == 1)
			rc = strcmp(r.field[1].text, "source") == 0
				     ? set_source(f, r.field[2].text, r.field[2].len, why)
				     : set_why(why, "it does not name its source");
		else if (row > 1)
			rc = add_row(f, &r, row, why);
		if (rc < 0)
			return rc;
	}
	if (rc == -EBADMSG)
		cop_buf_printf(
			why, "it is not a CSV file: line %" PRIu64 ": %s", csv->line, csv->why);
	else if (rc < 0 && rc != -ENOMEM)
		cop_buf_printf(why, "it cannot be read: %s", strerror(-rc));
	else if (!rc && row < 2)
		return set_why(why, row ? "it does not name its source" : "it is empty");
	return rc;
}
