/* SPDX-License-Identifier: BSD-3-Clause */
/* pathclass: classifies paths by name, and derives advice for a smaller environment. Pure: it looks
 * at no file, and proves nothing about what may be deleted. */
#ifndef COP_PATHCLASS_H
#define COP_PATHCLASS_H

#include "base/base/base.h"

enum cop_pathclass {
	COP_PATHCLASS_PYTHON_ZIP,
	COP_PATHCLASS_VIRTUAL_ENV,
	COP_PATHCLASS_HWCAPS,
	COP_PATHCLASS_MISSING_LIBRARY,
	COP_PATHCLASS_NEGATIVE,
	COP_PATHCLASS_TORCH_NATIVE,
	COP_PATHCLASS_TORCH_PYTHON,
	COP_PATHCLASS_SITE_PACKAGES,
	COP_PATHCLASS_STDLIB,
	COP_PATHCLASS_BIN,
	COP_PATHCLASS_SHARED_LIBRARY,
	COP_PATHCLASS_PREFIX,
	COP_PATHCLASSES
};

/* path is the whole path; absence: it was requested and does not exist (category metadata_ttl). */
enum cop_pathclass cop_pathclass_of(bool absence, const char *path, size_t len);
const char *cop_pathclass_name(enum cop_pathclass class);
/* Appends advice for the classes that were seen (bits), as a Markdown list. */
void cop_pathclass_advice(struct cop_buf *out, unsigned seen, bool absences_served);

/* ---- totals: rows of top paths by class ---- */

struct cop_pathclass_total {
	uint64_t entries, events; /* the number of rows, and the sum of their counts */
	uint64_t most;            /* events of the example */
	char *example; /* the row with the most events, the first by bytes among equals; NULL: no
			  row */
	size_t example_len;
};

/* All zeros is empty. Sums stop at 2^64-1, so that neither the order of adding nor that of merging
 * matters. */
struct cop_pathclass_totals {
	struct cop_pathclass_total of[COP_PATHCLASSES];
};

/* Adds one row; -ENOMEM: it was not added. */
int cop_pathclass_add(struct cop_pathclass_totals *t, bool absence, const char *path, size_t len,
	uint64_t events);
/* Adds a total of one class that was computed elsewhere. -ENOMEM. */
int cop_pathclass_add_total(struct cop_pathclass_totals *t, enum cop_pathclass class,
	const struct cop_pathclass_total *total);
int cop_pathclass_merge(struct cop_pathclass_totals *into, const struct cop_pathclass_totals *from);
/* Which classes have rows (bits). */
unsigned cop_pathclass_seen(const struct cop_pathclass_totals *t);
/* Appends a Markdown table, most events first. */
void cop_pathclass_table(struct cop_buf *out, const struct cop_pathclass_totals *t);
/* Empties it. */
void cop_pathclass_totals_free(struct cop_pathclass_totals *t);

#endif
