/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw tables (*.output in copper-formats(5)): the events of each path, in order of first touch,
 * and the size of each path, sorted by name. */
#include "base/table/table.h"
#include "prof/profile/profile_priv.h"

static const struct {
	const char *title;
	const char *line[SLOTS];
} events[CATEGORIES] = {
	[CATEGORY_METADATA] = {"md_cache_event_table", {"cache hits", "cache misses", "neg"}},
	[CATEGORY_DATA] = {"data_cache_event_table", {"cache hits", "cache misses", "neg"}},
	[CATEGORY_TREE] = {"tree_cache_event_table", {"cache hits", "cache misses", "neg"}},
	[CATEGORY_TTL] = {"Metadata ENOENT TTL Events", {"stores", "serves", "expires", "clears"}},
};

static void add_escaped(struct cop_buf *out, struct cop_buf *scratch, const char *root,
	const char *path, size_t len)
{
	scratch->len = 0;
	cop_prof_text_path(scratch, root, path, len);
	cop_csv_escaped(out, scratch->data ? scratch->data : "", scratch->len);
	out->failed |= scratch->failed;
}

int cop_prof_fill_events(const struct report *r, unsigned type, struct cop_buf *out)
{
	const char *const *line = events[type].line;
	struct cop_buf scratch = {0};
	struct rows rows = {0};
	int rc = cop_prof_rows_all(r->p, type, &rows);

	cop_buf_printf(out, "%s {\n", events[type].title);
	for (size_t i = 0; i < rows.n; i++) {
		add_escaped(out, &scratch, r->root, rows.row[i].path, rows.row[i].len);
		cop_buf_str(out, " {\n");
		for (unsigned k = 0; k < SLOTS && line[k]; k++)
			cop_buf_printf(out, "%s: %" PRIu64 "%s\n", line[k], rows.row[i].count[k],
				k + 1 < SLOTS && line[k + 1] ? "," : "");
		cop_buf_str(out, "}\n");
	}
	cop_buf_str(out, "}\n");
	cop_buf_free(&scratch);
	cop_prof_rows_free(&rows);
	return rc;
}

/* The chunks of a file arrive separately. Each is a row until they are added up. */
struct sizes {
	struct rows rows;
	int rc;
};

static void collect_path(void *arg, const char *path, size_t len, uint64_t bytes)
{
	struct sizes *s = arg;
	struct row row = {.len = (uint32_t)len, .events = bytes};

	if (s->rc || len > PATH_LEN_MAX)
		return;
	row.own = malloc(len + 1);
	if (!row.own) {
		s->rc = -ENOMEM;
		return;
	}
	memcpy(row.own, path, len);
	row.path = row.own;
	s->rc = cop_prof_rows_push(&s->rows, &row);
	if (s->rc)
		free(row.own);
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = memcmp(x->path, y->path, COP_MIN(x->len, y->len));

	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static void write_sizes(
	const struct report *r, const struct rows *rows, bool files, struct cop_buf *out)
{
	struct cop_buf scratch = {0};
	uint64_t all = 0, paths = 0, bytes = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->row[i];

		bytes += row->events;
		if (i + 1 < rows->n && by_name(row, row + 1) == 0)
			continue;
		add_escaped(out, &scratch, r->root, row->path, row->len);
		cop_buf_printf(out, ": %" PRIu64 "\n", bytes);
		all += bytes;
		paths++;
		bytes = 0;
	}
	cop_buf_printf(out, "Total bytes: %" PRIu64 "\ntotal number of %s: %" PRIu64 "\n", all,
		files ? "files" : "entries", paths);
	cop_buf_free(&scratch);
}

int cop_prof_fill_sizes(const struct report *r, unsigned type, struct cop_buf *out)
{
	struct sizes s = {.rc = 0};

	r->sizes->each(r->sizes->ctx, type, collect_path, &s);
	if (s.rows.n)
		qsort(s.rows.row, s.rows.n, sizeof(*s.rows.row), by_name);
	if (!s.rc)
		write_sizes(r, &s.rows, type == COP_PROF_DATA, out);
	cop_prof_rows_free(&s.rows);
	return s.rc;
}
