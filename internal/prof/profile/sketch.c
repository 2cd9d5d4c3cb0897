/* SPDX-License-Identifier: BSD-3-Clause */
/* The most used paths of a category over many nodes, in bounded memory: Misra-Gries summaries,
 * merged as in Agarwal, Cormode, Huang, Phillips, Wei and Yi, Mergeable Summaries, PODS 2012. To
 * convert a node's Space-Saving summary, its smallest counter is subtracted from all counters
 * (section 3 of that paper). The table of a full profile is a summary without error.
 *
 * Merging adds the weights of equal paths. If there are too many rows, the k heaviest are kept; the
 * weight of the next one is subtracted from theirs and added to the error. Each such step subtracts
 * this weight from k + 1 rows. So for any merge order,
 *
 *     error * m <= events - sum of weights     (m: the fewest rows that any summary was cut to)
 *
 * and every path with more than events / m events is listed. Besides its weight, a row has the
 * number of events observed while its path was listed. This is at least the weight, never too high,
 * and too low by at most the error.
 *
 * Rows are sorted by name, so that equal summaries have equal bytes, and merging is a single pass
 * over both. */
#include "prof/profile/profile_priv.h"

void cop_prof_sketch_free(struct sketch *s)
{
	free(s->row);
	free(s->text);
	*s = (struct sketch){0};
}

/* Allocates room for this many rows and bytes of names. */
static int reserve_rows(struct sketch *s, size_t rows, size_t bytes)
{
	s->row = calloc(rows ? rows : 1, sizeof(*s->row));
	s->text = malloc(bytes ? bytes : 1);
	if (s->row && s->text)
		return 0;
	cop_prof_sketch_free(s);
	return -ENOMEM;
}

static void append_row(struct sketch *s, const struct sketch_row *row, const char *path)
{
	struct sketch_row *to = &s->row[s->n++];

	*to = *row;
	to->at = (uint32_t)s->text_len;
	memcpy(s->text + s->text_len, path, row->len);
	s->text_len += row->len;
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, COP_MIN(a_len, b_len));

	return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

/* ---- too many rows ---- */

struct candidate {
	const struct sketch *s;
	uint32_t row;
};

static int heaviest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	uint64_t wx = x->s->row[x->row].weight, wy = y->s->row[y->row].weight;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row; /* rows are sorted by name */
}

static int by_row(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->row < y->row ? -1 : x->row > y->row;
}

/* Counts how many of the heaviest rows fit, and their bytes. */
static size_t count_fitting(const struct sketch *s, const struct candidate *c, size_t *bytes)
{
	size_t n = 0;

	for (*bytes = 0; n < s->n && n < SKETCH_ROWS; n++) {
		size_t len = s->row[c[n].row].len;

		if (*bytes + len > SKETCH_BYTES)
			break;
		*bytes += len;
	}
	return n;
}

/* Cuts the sketch down to the limits. -ENOMEM: it is unchanged. */
static int cut_sketch(struct sketch *s)
{
	struct candidate *c;
	struct sketch out = {0};
	size_t n, bytes;
	uint64_t off;
	int rc = -ENOMEM;

	if (s->n <= SKETCH_ROWS && s->text_len <= SKETCH_BYTES)
		return 0;
	c = calloc(s->n, sizeof(*c));
	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		c[i] = (struct candidate){.s = s, .row = (uint32_t)i};
	qsort(c, s->n, sizeof(*c), heaviest_first);
	n = count_fitting(s, c, &bytes);
	if (reserve_rows(&out, n, bytes))
		goto out;
	off = s->row[c[n].row].weight;
	qsort(c, n, sizeof(*c), by_row);
	for (size_t i = 0; i < n; i++) {
		struct sketch_row row = s->row[c[i].row];

		row.weight -= off;
		append_row(&out, &row, s->text + row.at);
	}
	out.error = cop_add_saturating(s->error, off);
	cop_prof_sketch_free(s);
	*s = out;
	rc = 0;
out:
	free(c);
	return rc;
}

/* ---- merging ---- */

int cop_prof_sketch_merge(const struct sketch *a, const struct sketch *b, struct sketch *out)
{
	size_t i = 0, k = 0;
	int rc;

	*out = (struct sketch){0};
	rc = reserve_rows(out, a->n + b->n, a->text_len + b->text_len);
	if (rc)
		return rc;
	while (i < a->n || k < b->n) {
		const struct sketch_row *x = i < a->n ? &a->row[i] : NULL,
					*y = k < b->n ? &b->row[k] : NULL;
		int order = !x   ? 1
			    : !y ? -1
				 : compare_bytes(a->text + x->at, x->len, b->text + y->at, y->len);

		append_row(out, order <= 0 ? x : y, order <= 0 ? a->text + x->at : b->text + y->at);
		i += order <= 0;
		k += order >= 0;
		if (order == 0) {
			struct sketch_row *both = &out->row[out->n - 1];

			both->weight = cop_add_saturating(both->weight, y->weight);
			for (unsigned slot = 0; slot < SLOTS; slot++)
				both->count[slot] =
					cop_add_saturating(both->count[slot], y->count[slot]);
		}
	}
	out->error = cop_add_saturating(a->error, b->error);
	rc = cut_sketch(out);
	if (rc)
		cop_prof_sketch_free(out);
	return rc;
}

/* ---- conversion of one node's counts ---- */

static int by_path(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_bytes(x->path, x->len, y->path, y->len);
}

int cop_prof_sketch_of(struct rows *rows, uint64_t error, struct sketch *out)
{
	size_t bytes = 0;
	int rc;

	*out = (struct sketch){.error = error};
	for (size_t i = 0; i < rows->n; i++)
		bytes += rows->row[i].len;
	if (bytes > UINT32_MAX)
		return -E2BIG;
	rc = reserve_rows(out, rows->n, bytes);
	if (rc)
		return rc;
	if (rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), by_path);
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *from = &rows->row[i];
		struct sketch_row row = {.len = from->len, .weight = from->weight};

		if (!from->events)
			continue;
		memcpy(row.count, from->count, sizeof(row.count));
		append_row(out, &row, from->path);
	}
	rc = cut_sketch(out);
	if (rc)
		cop_prof_sketch_free(out);
	return rc;
}

/* ---- access for the writers ---- */

int cop_prof_sketch_rows(const struct sketch *s, struct rows *out)
{
	int rc = 0;

	for (size_t i = 0; i < s->n && !rc; i++) {
		const struct sketch_row *from = &s->row[i];
		struct row row = {
			.path = s->text + from->at, .len = from->len, .weight = from->weight};

		for (unsigned slot = 0; slot < SLOTS; slot++) {
			row.count[slot] = from->count[slot];
			row.events = cop_add_saturating(row.events, from->count[slot]);
		}
		rc = cop_prof_rows_push(out, &row);
	}
	return rc;
}
