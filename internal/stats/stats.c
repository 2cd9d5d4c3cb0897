/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const struct row {
	const char *group, *name, *unit, *meaning;
} rows[COP_COUNTERS] = {
#define COP_COUNTER(id, group, name, unit, meaning) {group, name, unit, meaning},
#include "stats/counters.def"
#undef COP_COUNTER
};

static enum cop_counter kind_of(int rc)
{
	switch (rc) {
	case -ETIMEDOUT:
		return COP_FABRIC_REJECTED_SILENT;
	case -EBADMSG:
		return COP_FABRIC_REJECTED_FORM;
	case -EACCES:
		return COP_FABRIC_REJECTED_SECRET;
	case -EALREADY:
		return COP_FABRIC_REJECTED_REPLAY;
	case -EHOSTUNREACH:
		return COP_FABRIC_REJECTED_HOST;
	default:
		return COP_FABRIC_REJECTED_OTHER;
	}
}

void cop_stats_rejected(struct cop_stats *s, int rc, uint64_t n)
{
	cop_stats_add(s, COP_FABRIC_REJECTED, n);
	cop_stats_add(s, kind_of(rc), n);
}

void cop_stats_json(const struct cop_stats *s, struct cop_buf *out)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		bool first = c == 0 || strcmp(rows[c].group, rows[c - 1].group) != 0;

		if (first)
			cop_buf_printf(out, "%s\"%s\":{", c ? "}," : "", rows[c].group);
		cop_buf_printf(out, "%s\"%s\":%" PRIu64, first ? "" : ",", rows[c].name,
			cop_stats_get(s, c));
	}
	cop_buf_str(out, "}");
}

void cop_stats_sum(struct cop_stats *into, const struct cop_stats *from)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(into, c, cop_stats_get(from, c));
}

void cop_stats_take(struct cop_stats *from, struct cop_stats *into)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(into, c,
			atomic_exchange_explicit(&from->value[c], 0, memory_order_relaxed));
}

const char *cop_counter_group(enum cop_counter c)
{
	return rows[c].group;
}

const char *cop_counter_name(enum cop_counter c)
{
	return rows[c].name;
}

const char *cop_counter_unit(enum cop_counter c)
{
	return rows[c].unit;
}

const char *cop_counter_meaning(enum cop_counter c)
{
	return rows[c].meaning;
}
