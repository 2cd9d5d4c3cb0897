/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table/table.h"
#include "prof/profile/profile.h"

static bool is_better(
	const struct cop_pathclass_total *than, const char *path, size_t len, uint64_t events)
{
	int order;

	if (!than->example || events != than->most)
		return !than->example || events > than->most;
	order = memcmp(path, than->example, COP_MIN(len, than->example_len));
	return order < 0 || (!order && len < than->example_len);
}

static int set_example(struct cop_pathclass_total *t, const char *path, size_t len, uint64_t events)
{
	char *grown;

	if (!is_better(t, path, len, events))
		return 0;
	grown = realloc(t->example, len + 1);
	if (!grown)
		return -ENOMEM;
	memcpy(grown, path, len);
	grown[len] = '\0';
	t->example = grown;
	t->example_len = len;
	t->most = events;
	return 0;
}

int cop_pathclass_add_total(struct cop_pathclass_totals *t, enum cop_pathclass class,
	const struct cop_pathclass_total *total)
{
	struct cop_pathclass_total *one = &t->of[class];
	int rc = total->example ? set_example(one, total->example, total->example_len, total->most)
				: 0;

	if (rc)
		return rc;
	one->entries = cop_add_saturating(one->entries, total->entries);
	one->events = cop_add_saturating(one->events, total->events);
	return 0;
}

int cop_pathclass_add(
	struct cop_pathclass_totals *t, bool absence, const char *path, size_t len, uint64_t events)
{
	struct cop_pathclass_total *one = &t->of[cop_pathclass_of(absence, path, len)];
	int rc = set_example(one, path, len, events);

	if (rc)
		return rc;
	one->entries = cop_add_saturating(one->entries, 1);
	one->events = cop_add_saturating(one->events, events);
	return 0;
}

int cop_pathclass_merge(struct cop_pathclass_totals *into, const struct cop_pathclass_totals *from)
{
	int rc = 0;

	for (unsigned i = 0; i < COP_PATHCLASSES && !rc; i++)
		if (from->of[i].example)
			rc = cop_pathclass_add_total(into, i, &from->of[i]);
	return rc;
}

unsigned cop_pathclass_seen(const struct cop_pathclass_totals *t)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < COP_PATHCLASSES; i++)
		if (t->of[i].example)
			seen |= 1u << i;
	return seen;
}

static int busiest(const void *a, const void *b)
{
	const struct cop_pathclass_total *x = *(const struct cop_pathclass_total *const *)a,
					 *y = *(const struct cop_pathclass_total *const *)b;

	if (x->events != y->events)
		return x->events > y->events ? -1 : 1;
	return x < y ? -1 : x > y; /* both point into one array, in order of class */
}

void cop_pathclass_table(struct cop_buf *out, const struct cop_pathclass_totals *t)
{
	const struct cop_pathclass_total *row[COP_PATHCLASSES];
	size_t n = 0;

	for (unsigned i = 0; i < COP_PATHCLASSES; i++)
		if (t->of[i].example)
			row[n++] = &t->of[i];
	qsort(row, n, sizeof(row[0]), busiest);
	cop_buf_str(
		out, "| Path Class | Entries | Total Events | Example |\n|---|---:|---:|---|\n");
	for (size_t i = 0; i < n; i++) {
		cop_buf_printf(out, "| `%s` | %" PRIu64 " | %" PRIu64 " | ",
			cop_pathclass_name(row[i] - t->of), row[i]->entries, row[i]->events);
		cop_csv_markdown(out, row[i]->example, row[i]->example_len);
		cop_buf_str(out, " |\n");
	}
}

void cop_pathclass_totals_free(struct cop_pathclass_totals *t)
{
	for (unsigned i = 0; i < COP_PATHCLASSES; i++)
		free(t->of[i].example);
	*t = (struct cop_pathclass_totals){0};
}
