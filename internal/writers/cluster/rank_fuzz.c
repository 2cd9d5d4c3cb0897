/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a rank's file. The first byte selects its kind, and the second the number of bytes per
 * read. Every rejection must have a reason; a file added twice must count twice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "writers/cluster/cluster_priv.h"

struct input {
	const uint8_t *data;
	size_t len, step;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->step), in->len);

	memcpy(data, in->data, n);
	in->data += n;
	in->len -= n;
	return (ssize_t)n;
}

static void check_double(const struct rows *once, const struct rows *twice)
{
	if (once->n != twice->n)
		abort();
	for (size_t i = 0; i < once->n; i++)
		if (strcmp(once->row[i].name, twice->row[i].name) ||
			twice->row[i].sum !=
				cop_report_number_add(once->row[i].sum, once->row[i].sum))
			abort();
}

/* A job directory may contain anything. */
static void check_name(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	enum cop_report_kind kind;
	size_t stem;

	if (!name)
		abort();
	for (int tagged = 0; tagged < 2; tagged++)
		if (cop_report_rank_name(name, tagged ? "final" : "", &stem, &kind) &&
			(stem >= strlen(name) || kind >= COP_REPORT_KINDS))
			abort();
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_report_cluster *twice = cop_report_cluster_new();
	struct input in = {.data = data + 2, .len = size - 2};
	struct rank_reader r;
	struct cop_buf why = {0};
	int rc;

	if (size < 2 || !twice || cop_report_reader_open(&r)) {
		cop_report_cluster_free(twice);
		return 0;
	}
	check_name(data, size);
	in.step = data[1] + 1u;
	if (cop_csv_open(&r.csv, read_input, &in))
		abort();
	rc = cop_report_read_csv(&r, data[0] % COP_REPORT_KINDS, &why);
	if (rc && (rc != -EBADMSG || !why.len))
		abort();
	if (!rc) {
		if (cop_report_cluster_merge(twice, r.file) ||
			cop_report_cluster_merge(twice, r.file))
			abort();
		check_double(&r.file->metrics, &twice->metrics);
		check_double(&r.file->ops, &twice->ops);
	}
	cop_buf_free(&why);
	cop_report_reader_close(&r);
	cop_report_cluster_free(twice);
	return 0;
}
