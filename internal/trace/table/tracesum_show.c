/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "base/base/json.h"
#include "trace/table/table.h"

struct count {
	const char *key, *text;
	uint64_t value;
};
struct seconds {
	const char *key, *text;
	double value;
};

static void show_text(const struct cop_sum_result *r, const struct count *c, size_t counts,
	const struct seconds *s, size_t times, struct cop_buf *out)
{
	for (size_t i = 0; i < counts; i++)
		cop_buf_printf(out, "%-12s%llu\n", c[i].text, (unsigned long long)c[i].value);
	cop_buf_str(out, "\n");
	for (size_t i = 0; i < times; i++)
		cop_buf_printf(out, "%14.6f s  %s\n", s[i].value, s[i].text);
	cop_buf_str(out, "\nfunctions, by time in seconds; sizes in bytes\n");
	cop_rows_show(&r->functions, COP_GRID_PLAIN, 0, out);
	cop_buf_str(out, "\nPOSIX over the run, from so many seconds on\n");
	cop_rows_show(&r->intervals, COP_GRID_PLAIN, 0, out);
}

static void show_json(const struct cop_sum_result *r, const struct count *c, size_t counts,
	const struct seconds *s, size_t times, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	for (size_t i = 0; i < counts; i++)
		cop_json_u64(&j, c[i].key, c[i].value);
	cop_json_object(&j, "seconds");
	for (size_t i = 0; i < times; i++)
		cop_json_double(&j, s[i].key, s[i].value, 9);
	cop_json_end(&j);
	cop_json_value(&j, "functions");
	cop_rows_show(&r->functions, COP_GRID_JSON, 0, out);
	cop_json_value(&j, "intervals");
	cop_rows_show(&r->intervals, COP_GRID_JSON, 0, out);
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

/* Shows three tables with an empty line between them. */
static void show_csv(const struct cop_sum_result *r, const struct count *c, size_t counts,
	const struct seconds *s, size_t times, struct cop_buf *out)
{
	cop_buf_str(out, "what,value\n");
	for (size_t i = 0; i < counts; i++)
		cop_buf_printf(out, "%s,%llu\n", c[i].key, (unsigned long long)c[i].value);
	for (size_t i = 0; i < times; i++)
		cop_buf_printf(out, "seconds.%s,%.9f\n", s[i].key, s[i].value);
	cop_buf_str(out, "\n");
	cop_rows_show(&r->functions, COP_GRID_CSV, 0, out);
	cop_buf_str(out, "\n");
	cop_rows_show(&r->intervals, COP_GRID_CSV, 0, out);
}

void cop_sum_show(const struct cop_sum_result *r, enum cop_grid_form form, struct cop_buf *out)
{
	const struct count counts[] = {
		{"spans", "spans", r->spans},
		{"instants", "instants", r->instants},
		{"counters", "counters", r->counters},
		{"flows", "flows", r->flows},
		{"processes", "processes", r->processes},
		{"threads", "threads", r->threads},
		{"hosts", "hosts", r->hosts},
		{"files", "files", r->files},
	};
	const struct seconds times[] = {
		{"total", "from the first begin to the last end", r->total_s},
		{"app_io", "in the program's own I/O (cat holds reader or checkpoint)",
			r->part_s[COP_SUM_APP]},
		{"app_io_alone", "  of it without computing at the same time", r->app_alone_s},
		{"compute", "in computing (name holds compute)", r->part_s[COP_SUM_COMPUTE]},
		{"compute_without_app_io", "  of it without the program's own I/O",
			r->compute_not_app_s},
		{"compute_without_posix", "  of it without POSIX I/O", r->compute_not_posix_s},
		{"posix", "in POSIX I/O", r->part_s[COP_SUM_POSIX]},
		{"posix_alone", "  of it without computing at the same time", r->posix_alone_s},
		{"about", "by which these times may be off", r->about_s},
	};
	size_t n = COP_ARRAY_SIZE(counts), m = COP_ARRAY_SIZE(times);

	if (form == COP_GRID_JSON)
		show_json(r, counts, n, times, m, out);
	else if (form == COP_GRID_CSV)
		show_csv(r, counts, n, times, m, out);
	else
		show_text(r, counts, n, times, r->about_s > 0 ? m : m - 1, out);
}
