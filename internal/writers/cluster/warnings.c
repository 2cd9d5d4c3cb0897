/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's own warnings, written when it stopped: the files of the ranks do not contain them. */
#include "writers/cluster/cluster_priv.h"

#define WARNINGS_FILE "/profiling/cluster/cluster_warnings.csv"
#define WARNINGS_BYTES_MAX COP_MIB
#define WARNINGS_MAX 64

struct text {
	const char *at;
	size_t left;
};

static ssize_t read_text(void *arg, void *data, size_t len)
{
	struct text *t = arg;

	len = COP_MIN(len, t->left);
	memcpy(data, t->at, len);
	t->at += len;
	t->left -= len;
	return (ssize_t)len;
}

/* Adds one line, sanitized: the file is untrusted. */
static void add_item(const char *sentence, struct cop_buf *out)
{
	cop_buf_str(out, "- ");
	for (; *sentence; sentence++)
		cop_buf_add(out, (unsigned char)*sentence < ' ' ? " " : sentence, 1);
	cop_buf_str(out, "\n");
}

static int find_sentence(const struct cop_csv_record *head)
{
	for (unsigned i = 0; i < head->n; i++)
		if (!strcmp(head->field[i].text, "sentence"))
			return (int)i;
	return -1;
}

static void add_items(struct text *t, struct cop_buf *out)
{
	struct cop_csv csv = {0};
	struct cop_csv_record r;
	int column = -1;

	if (!cop_csv_open(&csv, read_text, t) && cop_csv_next(&csv, &r) > 0)
		column = find_sentence(&r);
	for (unsigned n = 0; column >= 0 && n < WARNINGS_MAX && cop_csv_next(&csv, &r) > 0; n++)
		if ((unsigned)column < r.n && !r.cut)
			add_item(r.field[column].text, out);
	cop_csv_free(&csv);
}

void cop_report_warnings(const char *job_dir, struct cop_buf *out)
{
	struct cop_buf items = {0};
	char *path, *data = NULL;
	size_t len;

	if (asprintf(&path, "%s" WARNINGS_FILE, job_dir) < 0)
		return;
	if (!cop_read_file(path, WARNINGS_BYTES_MAX, &data, &len))
		add_items(&(struct text){data, len}, &items);
	if (items.len)
		cop_buf_printf(out, "\n## Warnings\n\n%s", items.data);
	cop_buf_free(&items);
	free(data);
	free(path);
}
