/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads cluster_nodes.csv: one row per node, or only rows for outliers and statistics. */
#include <math.h>

#include "report/jobdata/jobdata_priv.h"

#define PHASE_PREFIX "phase_"

/* The columns after the first four are numbers, stored directly in the node. */
static const char *const columns[] = {"rank", "host", "parent", "job_start_unix_s", "start_s",
	"ready_s", "stopped_s", "requests", "read_bytes", "wait_parent_ms", "wait_origin_ms",
	"parent_bytes", "origin_operations", "origin_bytes", "sent_bytes", "failovers", "evictions",
	"cpu_ms", "cache_peak_bytes", "cache_limit_bytes", "resident_peak_bytes", "ahead_bytes",
	"from_own_bytes", "from_nodes_bytes", "from_passed_bytes", "from_disk_bytes",
	"from_pack_bytes", "from_storage_bytes", NULL};
#define AT(field) offsetof(struct cop_jobdata_node, field)
static const size_t offsets[] = {AT(start_s), AT(ready_s), AT(stopped_s), AT(requests),
	AT(read_bytes), AT(wait_parent_ms), AT(wait_origin_ms), AT(parent_bytes),
	AT(origin_operations), AT(origin_bytes), AT(sent_bytes), AT(failovers), AT(evictions),
	AT(cpu_ms), AT(cache_peak_bytes), AT(cache_limit_bytes), AT(resident_peak_bytes),
	AT(ahead_bytes), AT(from_own_bytes), AT(from_nodes_bytes), AT(from_passed_bytes),
	AT(from_disk_bytes), AT(from_pack_bytes), AT(from_storage_bytes)};
#undef AT

struct nodes {
	struct cop_jobdata *job;
	unsigned field[COP_JOBDATA_PHASES_MAX]; /* of the phases */
};

static int read_head(void *arg, const struct cop_csv_record *r)
{
	static const char end[] = "_s";
	struct nodes *n = arg;
	struct cop_jobdata *j = n->job;

	for (unsigned f = 0; f < r->n && j->phases < COP_JOBDATA_PHASES_MAX; f++) {
		const char *name = r->field[f].text;
		size_t from = strlen(PHASE_PREFIX), len = strlen(name);

		if (strncmp(name, PHASE_PREFIX, from) != 0 || len <= from + strlen(end) ||
			strcmp(name + len - strlen(end), end) != 0)
			continue;
		n->field[j->phases] = f;
		j->phase[j->phases] = cop_jobdata_copy(name + from, len - from - strlen(end));
		if (!j->phase[j->phases])
			return -ENOMEM;
		j->phases++;
	}
	return 0;
}

static double number_of(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return *text && !*end && isfinite(v) ? v : NAN;
}

static void take_numbers(struct cop_jobdata_node *node, const struct nodes *n,
	const struct sheet *s, const struct cop_csv_record *r)
{
	double parent = cop_jobdata_number(s, r, 2);

	node->parent = parent >= -1 && parent < INT32_MAX ? (int32_t)parent : -2;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(offsets); i++)
		*(double *)(void *)((char *)node + offsets[i]) = cop_jobdata_number(s, r, 4 + i);
	for (unsigned i = 0; i < COP_JOBDATA_PHASES_MAX; i++)
		node->phase_s[i] = i < n->job->phases && n->field[i] < r->n
					   ? number_of(r->field[n->field[i]].text)
					   : NAN;
}

static int read_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct nodes *n = arg;
	struct cop_jobdata *j = n->job;
	struct cop_jobdata_node *node;
	const char *host;
	int32_t rank;
	double began;
	size_t len;

	if (cop_jobdata_rank(s, r, 0, &rank) || j->node_n >= COP_JOBDATA_NODES_MAX)
		return 0;
	node = cop_jobdata_more(&j->node, &j->node_n, sizeof(*node), COP_JOBDATA_NODES_MAX);
	if (!node)
		return -ENOMEM;
	node->rank = rank;
	host = cop_jobdata_text(s, r, 1, &len);
	node->host = cop_jobdata_copy(host, len);
	take_numbers(node, n, s, r);
	began = cop_jobdata_number(s, r, 3);
	if (began > 0)
		j->began_unix_s = began;
	return node->host ? 0 : -ENOMEM;
}

/* Statistics first: min, median, max. */
static int in_order(const void *a, const void *b)
{
	int32_t x = ((const struct cop_jobdata_node *)a)->rank;
	int32_t y = ((const struct cop_jobdata_node *)b)->rank;

	if ((x < 0) != (y < 0))
		return x < 0 ? -1 : 1;
	return x < 0 ? (x < y) - (x > y) : (x > y) - (x < y);
}

int cop_jobdata_nodes_from(struct cop_jobdata *j, cop_csv_read *read, void *arg)
{
	struct nodes n = {.job = j};
	struct sheet s = {.column = columns, .head = read_head, .row = read_row, .arg = &n};
	int rc = cop_jobdata_sheet_from(&s, read, arg);

	if (j->node_n)
		qsort(j->node, j->node_n, sizeof(*j->node), in_order);
	return rc == -ENOMEM ? rc : 0;
}
