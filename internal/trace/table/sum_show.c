/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/json.h"
#include "trace/table/sum_priv.h"

/* Maximum number of rows on a terminal. */
#define KERNELS 10u
#define OPEN 20u

struct count {
	const char *key, *text;
	uint64_t value;
};
struct seconds {
	const char *key, *text;
	double value;
};
struct showing {
	const struct cop_sum_result *r;
	const struct cop_trace_files *files;
	const struct count *count;
	size_t counts;
	const struct seconds *seconds;
	size_t times;
	bool classes;
};

/* ---- tables other than groups ---- */

static struct cop_grid_cell text_cell(struct cop_trace_str s)
{
	return (struct cop_grid_cell){s.at, s.len, NAN};
}

static struct cop_grid_cell device_cell(const void *arg, size_t row, unsigned col)
{
	const struct showing *s = arg;
	const struct cop_sum_device *d = &s->r->device[row];
	const double values[] = {d->total_s, d->kernels_s, d->communication_s, d->copies_s,
		d->idle_s, d->overlap_s, (double)d->kernels};
	const char *trace = cop_trace_files_name(s->files, d->source);

	if (col == 0)
		return text_cell(d->rank);
	if (col == 1)
		return text_cell(d->device);
	if (col < 2 + COP_ARRAY_SIZE(values))
		return (struct cop_grid_cell){NULL, 0, values[col - 2]};
	return (struct cop_grid_cell){trace, strlen(trace), NAN};
}

static void show_devices(const struct showing *s, enum cop_grid_form form, struct cop_buf *out)
{
	static const struct cop_grid_col cols[] = {{"rank", COP_GRID_NUMBER},
		{"device", COP_GRID_LABEL}, {"total", COP_GRID_SECONDS},
		{"kernels", COP_GRID_SECONDS}, {"communication", COP_GRID_SECONDS},
		{"copies", COP_GRID_SECONDS}, {"idle", COP_GRID_SECONDS},
		{"overlap", COP_GRID_SECONDS}, {"count", COP_GRID_WHOLE}, {"trace", COP_GRID_TEXT}};
	struct cop_grid g = {cols, COP_ARRAY_SIZE(cols), s->r->devices, device_cell, s};

	cop_grid_show(&g, form, out);
}

static struct cop_grid_cell class_cell(const void *arg, size_t row, unsigned col)
{
	const struct showing *s = arg;
	const char *name = cop_classes_name(s->r->classes, (unsigned)row);

	if (col == 0)
		return (struct cop_grid_cell){name, strlen(name), NAN};
	return (struct cop_grid_cell){
		NULL, 0, col == 1 ? s->r->class_s[row] : s->r->both_s[row][col - 2]};
}

/* Prints the overlap of each pair of classes. */
static void show_classes(const struct showing *s, enum cop_grid_form form, struct cop_buf *out)
{
	unsigned n = cop_classes_count(s->r->classes);
	struct cop_grid_col cols[2 + COP_CLASSES_MAX] = {
		{"class", COP_GRID_TEXT}, {"dur", COP_GRID_SECONDS}};
	struct cop_buf name[COP_CLASSES_MAX] = {0};
	struct cop_grid g = {cols, 2 + n, n, class_cell, s};

	for (unsigned i = 0; i < n; i++) {
		cop_buf_printf(&name[i], "with:%s", cop_classes_name(s->r->classes, i));
		out->failed |= name[i].failed;
		cols[2 + i] =
			(struct cop_grid_col){name[i].data ? name[i].data : "", COP_GRID_SECONDS};
	}
	cop_grid_show(&g, form, out);
	for (unsigned i = 0; i < n; i++)
		cop_buf_free(&name[i]);
}

/* ---- a terminal ---- */

static void show_text(const struct showing *s, struct cop_buf *out)
{
	const struct cop_sum_result *r = s->r;

	for (size_t i = 0; i < s->counts; i++)
		cop_buf_printf(out, "%-12s%llu\n", s->count[i].text,
			(unsigned long long)s->count[i].value);
	cop_buf_str(out, "\n");
	for (size_t i = 0; i < s->times; i++)
		cop_buf_printf(out, "%14.6f s  %s\n", s->seconds[i].value, s->seconds[i].text);
	if (s->classes) {
		cop_buf_str(out,
			"\nclasses: seconds in which one is active, alone or together with another\n");
		show_classes(s, COP_GRID_PLAIN, out);
	}
	if (r->open.n) {
		cop_buf_str(out, "\nevents that never ended, and when the first of each began\n");
		cop_rows_show(&r->open, COP_GRID_PLAIN, OPEN, out);
	}
	if (r->devices) {
		cop_buf_str(out,
			"\ndevices: seconds from the first to the last work, in kernels that compute, in communication, in copies, idle; communication beside kernels; how many kernels\n");
		show_devices(s, COP_GRID_PLAIN, out);
		cop_buf_str(out, "\nthe ten kernels that take the most time\n");
		cop_rows_show(&r->kernels, COP_GRID_PLAIN, KERNELS, out);
	}
	cop_buf_str(out, "\nfunctions, by time in seconds; sizes in bytes\n");
	cop_rows_show(&r->functions, COP_GRID_PLAIN, 0, out);
	cop_buf_str(out, "\nPOSIX over the run, from this many seconds on\n");
	cop_rows_show(&r->intervals, COP_GRID_PLAIN, 0, out);
}

/* ---- JSON and CSV ---- */

static void show_json(const struct showing *s, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	for (size_t i = 0; i < s->counts; i++)
		cop_json_u64(&j, s->count[i].key, s->count[i].value);
	cop_json_object(&j, "seconds");
	for (size_t i = 0; i < s->times; i++)
		cop_json_double(&j, s->seconds[i].key, s->seconds[i].value, 9);
	cop_json_end(&j);
	cop_json_value(&j, "functions");
	cop_rows_show(&s->r->functions, COP_GRID_JSON, 0, out);
	cop_json_value(&j, "intervals");
	cop_rows_show(&s->r->intervals, COP_GRID_JSON, 0, out);
	cop_json_value(&j, "never_ended");
	cop_rows_show(&s->r->open, COP_GRID_JSON, 0, out);
	cop_json_value(&j, "classes");
	show_classes(s, COP_GRID_JSON, out);
	cop_json_value(&j, "devices");
	show_devices(s, COP_GRID_JSON, out);
	cop_json_value(&j, "kernels");
	cop_rows_show(&s->r->kernels, COP_GRID_JSON, 0, out);
	cop_trace_files_put_lost(s->files, &j, "lost");
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

/* Prints all tables, separated by blank lines. */
static void show_csv(const struct showing *s, struct cop_buf *out)
{
	const struct cop_rows *rows[] = {
		&s->r->functions, &s->r->intervals, &s->r->open, &s->r->kernels};

	cop_buf_str(out, "what,value\n");
	for (size_t i = 0; i < s->counts; i++)
		cop_buf_printf(
			out, "%s,%llu\n", s->count[i].key, (unsigned long long)s->count[i].value);
	for (size_t i = 0; i < s->times; i++)
		cop_buf_printf(out, "seconds.%s,%.9f\n", s->seconds[i].key, s->seconds[i].value);
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++) {
		cop_buf_str(out, "\n");
		cop_rows_show(rows[i], COP_GRID_CSV, 0, out);
	}
	cop_buf_str(out, "\n");
	show_classes(s, COP_GRID_CSV, out);
	cop_buf_str(out, "\n");
	show_devices(s, COP_GRID_CSV, out);
}

void cop_sum_show(const struct cop_sum_result *r, const struct cop_trace_files *files, bool classes,
	enum cop_grid_form form, struct cop_buf *out)
{
	const struct count counts[] = {
		{"spans", "spans", r->spans},
		{"unfinished", "unfinished", r->unfinished},
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
	struct showing s = {.r = r,
		.files = files,
		.count = counts,
		.counts = COP_ARRAY_SIZE(counts),
		.seconds = times,
		.times = COP_ARRAY_SIZE(times),
		.classes = classes};

	if (form == COP_GRID_JSON) {
		show_json(&s, out);
	} else if (form == COP_GRID_CSV) {
		show_csv(&s, out);
	} else {
		s.times -= !(r->about_s > 0);
		show_text(&s, out);
	}
}
