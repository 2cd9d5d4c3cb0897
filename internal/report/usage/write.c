/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the cache sums as text, CSV and JSON. */
#include "base/base/json.h"
#include "report/usage/usage.h"
#include "writers/cluster/cluster.h"

/* Rows in every format: the three tables, their sum and, if known, the budget. */
#define ROWS_MAX (COP_USAGE_TABLES + 4)

struct usage_row {
	const char *name;
	bool budget;
	uint64_t files, bytes, entries;
};

static unsigned fill_rows(const struct cop_usage *u, struct usage_row row[ROWS_MAX])
{
	static const char *const tables[COP_USAGE_TABLES] = {"data", "tree", "metadata"};
	struct usage_row sum = {.name = "combined"};
	unsigned n = 0;

	for (; n < COP_USAGE_TABLES; n++) {
		row[n] = (struct usage_row){tables[n], false, u->table[n].files, u->table[n].bytes,
			u->table[n].entries};
		sum.files = cop_add_saturating(sum.files, row[n].files);
		sum.bytes = cop_add_saturating(sum.bytes, row[n].bytes);
		sum.entries = cop_add_saturating(sum.entries, row[n].entries);
	}
	row[n++] = sum;
	if (u->has_budget) {
		row[n++] = (struct usage_row){
			.name = "budget_limit", .budget = true, .bytes = u->limit_bytes};
		row[n++] = (struct usage_row){
			.name = "budget_used", .budget = true, .bytes = u->used_bytes};
		row[n++] = (struct usage_row){.name = "budget_remaining",
			.budget = true,
			.bytes = u->limit_bytes > u->used_bytes ? u->limit_bytes - u->used_bytes
								: 0};
	}
	return n;
}

void cop_usage_csv(const struct cop_usage *u, struct cop_buf *out)
{
	struct usage_row row[ROWS_MAX];
	unsigned n = fill_rows(u, row);
	char human[16];

	cop_buf_str(out, "table,files_found,used_bytes,used_human,entries\n");
	for (unsigned i = 0; i < n; i++)
		cop_buf_printf(out, "%s,%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 "\n", row[i].name,
			row[i].files, row[i].bytes, cop_format_size(row[i].bytes, human),
			row[i].entries);
}

void cop_usage_text(const struct cop_usage *u, struct cop_buf *out)
{
	struct usage_row row[ROWS_MAX];
	unsigned n = fill_rows(u, row);
	char human[16];

	cop_buf_printf(out, "%-17s %8s %12s %20s  %s\n", "table", "files", "entries", "bytes", "");
	for (unsigned i = 0; i < n; i++) {
		cop_format_size(row[i].bytes, human);
		if (row[i].budget)
			cop_buf_printf(out, "%-17s %8s %12s %20" PRIu64 "  %s\n", row[i].name, "",
				"", row[i].bytes, human);
		else
			cop_buf_printf(out, "%-17s %8" PRIu64 " %12" PRIu64 " %20" PRIu64 "  %s\n",
				row[i].name, row[i].files, row[i].entries, row[i].bytes, human);
	}
}

void cop_usage_json(const struct cop_usage *u, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	struct usage_row row[ROWS_MAX];
	unsigned n = fill_rows(u, row);

	cop_json_object(&j, NULL);
	for (unsigned i = 0; i < n; i++) {
		if (row[i].budget) {
			cop_json_u64(&j, row[i].name, row[i].bytes);
			continue;
		}
		cop_json_object(&j, row[i].name);
		cop_json_u64(&j, "files", row[i].files);
		cop_json_u64(&j, "bytes", row[i].bytes);
		cop_json_u64(&j, "entries", row[i].entries);
		cop_json_end(&j);
	}
	cop_json_u64(&j, "faults", u->faults);
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

static int write_text(
	const char *dir, const char *name, const struct cop_buf *text, struct cop_err *err)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return cop_err_set(err, ENOMEM, "no memory to write %s", name);
	rc = text->failed ? -ENOMEM : cop_write_file(path, text->data, text->len, 0644);
	if (rc)
		cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
	free(path);
	return rc;
}

int cop_usage_write(const struct cop_usage *u, const char *dir, struct cop_err *err)
{
	struct cop_buf text = {0}, csv = {0};
	int rc;

	cop_usage_text(u, &text);
	cop_usage_csv(u, &csv);
	rc = write_text(dir, "cache_usage_summary.txt", &text, err);
	if (!rc)
		rc = write_text(dir, "cache_usage_summary.csv", &csv, err);
	cop_buf_free(&text);
	cop_buf_free(&csv);
	return rc;
}
