/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/json.h"
#include "trace/checkpoint/checkpoint_priv.h"

static const struct {
	const char *name, *title, *cols;
} sheets[SHEETS] = {
	[SHEET_CASES] = {"cases",
		"checkpoints, and POSIX time on each tier: seconds of the slowest thread",
		"case:t events:w checkpoint:s"},
	[SHEET_NESTED] = {"nested",
		"checkpoint events inside of others of their thread, which are not added",
		"case:t name:t count:w dur:s"},
	[SHEET_TIERS] = {"tiers", "tiers: seconds of the slowest thread, bytes, calls",
		"case:t tier:t dur:s size:w read:w written:w produced:w ratio:r files:w calls:w per_file:r"},
	[SHEET_CLASSES] = {"classes", "classes of files, of the process that has most",
		"case:t tier:t class:t dur:s size:w"},
	[SHEET_CALLS] = {"calls",
		"calls for each file, more than in the first case; time and bytes of the process that has most",
		"case:t tier:t name:t count:w per_file:r extra:r dur:s size:w"},
	[SHEET_FILES] = {"files", "the most expensive files",
		"case:t tier:t file:t dur:s size:w count:w"},
	[SHEET_SIZES] = {"sizes", "sizes",
		"case:t tier:t name:t count:w mean:w std:w min:w 25%:w 50%:w 75%:w max:w"},
	[SHEET_FREQUENT] = {"frequent", "the most frequent sizes",
		"case:t tier:t name:t size:n count:w"},
	[SHEET_FLUSH] = {"flush",
		"flush: seconds of the slowest thread, of any, and of those beside checkpoints",
		"case:t dur:s covered:s overlap:s about:s threads:w"},
	[SHEET_INTERVAL] = {"interval",
		"from the end of a checkpoint to the begin of the next: as it is, and the best by Young and by Daly; the share of time lost",
		"case:t checkpoints:w cost:s interval:s mtbf:s young:s daly:s lost:r best_lost:r"},
	[SHEET_MODEL] = {"model", "predicted seconds",
		"case:t what:t size:w dur:s nodes:w scheme:t factor:r"},
	[SHEET_ADVICE] = {"advice", "advice", "case:t about:t text:t"},
};

static void put_cases(struct cop_ckpt_report *r)
{
	struct sheet *s = &r->sheet[SHEET_CASES];

	for (size_t i = 0; i < r->runs; i++) {
		cop_ckpt_put_str(s, r->run[i].name);
		cop_ckpt_put(s, r->run[i].count);
		cop_ckpt_put(s, r->run[i].dur);
		for (unsigned t = 0; t < r->conf->tiers; t++)
			cop_ckpt_put(s, r->run[i].tier[t].dur);
	}
}

static void put_nested(struct cop_ckpt_report *r, const struct run *run)
{
	struct sheet *s = &r->sheet[SHEET_NESTED];

	for (size_t i = 0; i < run->nested.n; i++) {
		cop_ckpt_put_str(s, run->name);
		cop_ckpt_put_text(s, run->nested.row[i].key[0]);
		cop_ckpt_put(s, run->nested.row[i].value[0]);
		cop_ckpt_put(s, run->nested.row[i].value[1]);
	}
}

static void put_tier(struct cop_ckpt_report *r, const struct run *run, unsigned tier)
{
	const struct tier *t = &run->tier[tier];
	const double values[] = {t->dur, t->size, t->read, t->written, run->produced, t->ratio,
		(double)t->rows[TAB_FILES].n, t->calls, t->per_file};
	struct sheet *s = &r->sheet[SHEET_TIERS];

	cop_ckpt_put_str(s, run->name);
	cop_ckpt_put_str(s, r->conf->tier[tier]);
	for (size_t i = 0; i < COP_ARRAY_SIZE(values); i++)
		cop_ckpt_put(s, values[i]);
}

static void put_flush(struct cop_ckpt_report *r, const struct run *run)
{
	const struct flush *f = &run->flush;
	const double values[] = {f->dur, f->covered, f->overlap, f->about, (double)f->threads};
	struct sheet *s = &r->sheet[SHEET_FLUSH];

	cop_ckpt_put_str(s, run->name);
	for (size_t i = 0; i < COP_ARRAY_SIZE(values); i++)
		cop_ckpt_put(s, values[i]);
}

/* ---- the whole ---- */

static void make_sheets(struct cop_ckpt_report *r)
{
	char *name;

	for (unsigned i = 0; i < SHEETS; i++) {
		r->sheet[i].name = sheets[i].name;
		r->sheet[i].title = sheets[i].title;
		cop_ckpt_sheet_cols(&r->sheet[i], sheets[i].cols);
	}
	for (unsigned t = 0; t < r->conf->tiers; t++) {
		if (asprintf(&name, "%s:dur", r->conf->tier[t]) < 0) {
			r->sheet[SHEET_CASES].failed = true;
			return;
		}
		cop_ckpt_sheet_col(&r->sheet[SHEET_CASES], name, COP_GRID_SECONDS);
		free(name);
	}
}

static void fill_sheets(struct cop_ckpt_report *r)
{
	put_cases(r);
	for (size_t i = 0; i < r->runs; i++) {
		put_nested(r, &r->run[i]);
		for (unsigned t = 0; t < r->conf->tiers; t++) {
			put_tier(r, &r->run[i], t);
			cop_ckpt_list_classes(r, &r->run[i], t);
			cop_ckpt_list_calls(r, &r->run[i], t);
			cop_ckpt_list_files(r, &r->run[i], t);
			cop_ckpt_list_sizes(r, &r->run[i], t);
		}
		put_flush(r, &r->run[i]);
		cop_ckpt_put_interval(r, &r->run[i]);
		cop_ckpt_put_model(r, &r->run[i]);
	}
	cop_ckpt_advise(r);
}

int cop_ckpt_report_new(struct cop_ckpt *const *run, const char *const *name, size_t n,
	struct cop_ckpt_report **out, struct cop_err *err)
{
	struct cop_ckpt_report *r = calloc(1, sizeof(*r));
	bool failed = false;
	int rc = 0;

	if (r)
		r->run = calloc(n, sizeof(*r->run));
	if (!r || !r->run) {
		free(r);
		return cop_err_set(err, ENOMEM, "no memory for the report");
	}
	r->conf = cop_ckpt_conf_of(run[0]);
	r->runs = n;
	for (size_t i = 0; i < n && !rc; i++)
		rc = cop_ckpt_finish(run[i], name[i], &r->run[i], err);
	make_sheets(r);
	for (unsigned i = 0; i < SHEETS; i++)
		failed |= r->sheet[i].failed;
	if (!rc && failed)
		rc = cop_err_set(err, ENOMEM, "no memory for the report");
	if (!rc)
		fill_sheets(r);
	if (rc)
		cop_ckpt_report_free(r);
	else
		*out = r;
	return rc;
}

void cop_ckpt_report_free(struct cop_ckpt_report *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < SHEETS; i++)
		cop_ckpt_sheet_fini(&r->sheet[i]);
	for (size_t i = 0; i < r->runs; i++)
		cop_ckpt_run_fini(&r->run[i], r->conf->tiers);
	for (size_t i = 0; i < r->advices; i++)
		cop_buf_free(&r->advice[i]);
	free(r->advice);
	free(r->run);
	free(r);
}

static void show_advice(const struct sheet *s, struct cop_buf *out)
{
	for (size_t i = 0; i < s->n; i += s->cols)
		cop_buf_printf(out, "%s: %s\n", s->cell[i].text, s->cell[i + 2].text);
}

static void put_lost(const struct cop_ckpt_report *r, const struct cop_trace_files *const *files,
	struct cop_json *j)
{
	cop_json_object(j, "lost");
	for (size_t i = 0; i < r->runs && files; i++)
		cop_trace_files_put_lost(files[i], j, r->run[i].name);
	cop_json_end(j);
}

void cop_ckpt_report_show(const struct cop_ckpt_report *r,
	const struct cop_trace_files *const *files, enum cop_grid_form form, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	bool first = true;

	if (form == COP_GRID_JSON)
		cop_json_object(&j, NULL);
	for (unsigned i = 0; i < SHEETS; i++) {
		const struct sheet *s = &r->sheet[i];

		if (form == COP_GRID_PLAIN && !s->n)
			continue;
		if (form == COP_GRID_JSON)
			cop_json_value(&j, s->name);
		else
			cop_buf_str(out, first ? "" : "\n");
		if (form == COP_GRID_PLAIN)
			cop_buf_printf(out, "%s\n", s->title);
		if (form == COP_GRID_PLAIN && i == SHEET_ADVICE)
			show_advice(s, out);
		else
			cop_ckpt_sheet_show(s, form, out);
		first = false;
	}
	if (form == COP_GRID_JSON) {
		put_lost(r, files, &j);
		cop_json_end(&j);
		cop_buf_str(out, "\n");
	}
}
