/* SPDX-License-Identifier: BSD-3-Clause */
/* The first byte limits the size of a read. The result must not depend on the read size, and
 * records written as CSV again must read back the same. */
#include <stdlib.h>
#include <string.h>

#include "base/table/table.h"

struct input {
	const char *text;
	size_t len, at, step;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->step), in->len - in->at);

	memcpy(data, in->text + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

static int read_all(const char *text, size_t len, size_t step, struct cop_buf *out)
{
	struct input in = {.text = text, .len = len, .step = step};
	struct cop_csv c = {0};
	struct cop_csv_record r;
	int rc;

	if (cop_csv_open(&c, read_input, &in))
		abort();
	while ((rc = cop_csv_next(&c, &r)) > 0)
		for (unsigned i = 0; i < r.n; i++) {
			if (strlen(r.field[i].text) != r.field[i].len)
				abort();
			cop_csv_quoted(out, r.field[i].text, r.field[i].len);
			cop_buf_str(out, i + 1 < r.n ? "," : "\n");
		}
	cop_csv_free(&c);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_buf whole = {0}, parts = {0}, again = {0};

	if (!size)
		return 0;
	int rc = read_all((const char *)data + 1, size - 1, SIZE_MAX, &whole);
	int rc_parts = read_all((const char *)data + 1, size - 1, data[0] + 1u, &parts);

	/* A fault further on may be found before the records that precede it are returned. */
	if (rc != rc_parts ||
		(!rc && (whole.len != parts.len ||
				(whole.len && memcmp(whole.data, parts.data, whole.len)))))
		abort();
	if (!rc && whole.len &&
		(read_all(whole.data, whole.len, SIZE_MAX, &again) || again.len != whole.len ||
			memcmp(again.data, whole.data, whole.len)))
		abort();
	cop_buf_free(&whole);
	cop_buf_free(&parts);
	cop_buf_free(&again);
	return 0;
}
