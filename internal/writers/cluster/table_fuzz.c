/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "writers/cluster/observed_testing.h"
#include "base/walk/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t left, step;
};

/* Returns the input in pieces, so that lines are split anywhere. */
static ssize_t read_input(void *arg, void *to, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->left), in->step);

	memcpy(to, in->data, n);
	in->data += n;
	in->left -= n;
	return (ssize_t)n;
}

static int check_row(void *arg, const char *path, size_t len, const struct cop_path_counts *c)
{
	struct cop_pathset *s = arg;

	if (!len || len > COP_PATHSET_LEN_MAX || !cop_walk_path_is_normal(path, len))
		abort();
	if (cop_observed_pathset_add(s, path, len, cop_observed_pathset_hash(s, path, len), c))
		return 0;
	if (!find_in_set(s, path, len))
		abort();
	return 0;
}

static void read_in_steps(const uint8_t *data, size_t size, size_t step,
	enum cop_observed_kind kind, struct cop_pathset *s, struct cop_table_result *r)
{
	struct input in = {data, size, step};

	if (cop_observed_table_read(read_input, &in, kind, check_row, s, r))
		abort();
}

/* For any input, paths must be normalized and unique, and must not depend on how the bytes
 * arrive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_pathset one = {.seed = 1}, two = {.seed = 2};
	struct cop_table_result a, b;
	enum cop_observed_kind kind;

	if (!size)
		return 0;
	kind = data[0] % 3;
	read_in_steps(data + 1, size - 1, SIZE_MAX, kind, &one, &a);
	read_in_steps(data + 1, size - 1, 1 + data[0] / 3, kind, &two, &b);
	if (one.table.count != two.table.count || a.paths != b.paths || a.odd != b.odd ||
		a.verdict != b.verdict || one.table.count > a.paths)
		abort();
	for (const struct cop_observed_path *p = NULL; (p = cop_observed_pathset_next(&one, p));) {
		const struct cop_observed_path *q = find_in_set(&two, p->text, p->len);

		if (!q || p->events != q->events || p->absent != q->absent || p->ttl != q->ttl)
			abort();
	}
	cop_observed_pathset_free(&one);
	cop_observed_pathset_free(&two);
	return 0;
}
