/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads cluster_telemetry.csv: each node's activity per interval. All nodes have the same
 * intervals, beginning at 0, so a row's position follows from its start and the interval length. */
#include <math.h>

#include "report/jobdata/jobdata_priv.h"

/* The last ten are those of enum cop_jobdata_column. */
static const char *const columns[] = {"rank", "host", "start_s", "seconds", "requests",
	"read_bytes", "wait_ms", "parent_bytes", "origin_operations", "origin_bytes", "sent_bytes",
	"cache_bytes", "resident_bytes", "cpu_ms", NULL};

struct times {
	struct cop_jobdata *job;
	struct cop_jobdata_series *last; /* the rows of a node are consecutive */
};

static int find_series(struct times *t, int32_t rank, const struct sheet *s,
	const struct cop_csv_record *r, struct cop_jobdata_series **out)
{
	struct cop_jobdata *j = t->job;
	struct cop_jobdata_series *one = NULL, **slot;
	const char *host;
	size_t len;

	for (size_t i = j->series_n; i-- > 0 && !one;)
		if (j->series[i]->rank == rank)
			one = j->series[i];
	*out = one;
	if (one || j->series_n >= COP_JOBDATA_SERIES_MAX)
		return 0;
	slot = cop_jobdata_more(&j->series, &j->series_n, sizeof(struct cop_jobdata_series *),
		COP_JOBDATA_SERIES_MAX);
	if (!slot)
		return -ENOMEM;
	one = *slot = *out = calloc(1, sizeof(*one));
	if (!one) {
		j->series_n--;
		return -ENOMEM;
	}
	one->rank = rank;
	host = cop_jobdata_text(s, r, 1, &len);
	one->host = cop_jobdata_copy(host, len);
	for (unsigned c = 0; c < COP_JOBDATA_COLUMNS; c++)
		for (unsigned i = 0; i < COP_JOBDATA_STEPS_MAX; i++)
			one->value[c][i] = NAN;
	return one->host ? 0 : -ENOMEM;
}

static int read_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct times *t = arg;
	struct cop_jobdata *j = t->job;
	double start = cop_jobdata_number(s, r, 2), seconds = cop_jobdata_number(s, r, 3), at;
	int32_t rank;
	int rc = 0;

	if (cop_jobdata_rank(s, r, 0, &rank) || !(start >= 0) || !(seconds > 0))
		return 0;
	if (!(j->interval_s > 0))
		j->interval_s = seconds;
	at = floor(start / j->interval_s + 1e-3);
	if (at >= COP_JOBDATA_STEPS_MAX)
		return 0;
	if (!t->last || t->last->rank != rank)
		rc = find_series(t, rank, s, r, &t->last);
	if (rc || !t->last)
		return rc;
	j->steps = COP_MAX(j->steps, (unsigned)at + 1);
	for (unsigned c = 0; c < COP_JOBDATA_COLUMNS; c++)
		t->last->value[c][(unsigned)at] = (float)cop_jobdata_number(s, r, 4 + c);
	return 0;
}

static int in_order(const void *a, const void *b)
{
	int32_t x = (*(struct cop_jobdata_series *const *)a)->rank;
	int32_t y = (*(struct cop_jobdata_series *const *)b)->rank;

	if ((x < 0) != (y < 0))
		return x < 0 ? -1 : 1;
	return x < 0 ? (x < y) - (x > y) : (x > y) - (x < y);
}

int cop_jobdata_times_from(struct cop_jobdata *j, cop_csv_read *read, void *arg)
{
	struct times t = {.job = j};
	struct sheet s = {.column = columns, .row = read_row, .arg = &t};
	int rc = cop_jobdata_sheet_from(&s, read, arg);

	if (j->series_n)
		qsort(j->series, j->series_n, sizeof(*j->series), in_order);
	return rc == -ENOMEM ? rc : 0;
}
