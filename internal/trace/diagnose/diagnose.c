/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <math.h>

#include "trace/diagnose/diagnose_priv.h"

double cop_diagnose_total(const struct cop_diagnose *d)
{
	return d->last > d->first ? (double)(d->last - d->first) / 1e9 : 0;
}

struct cause *cop_diagnose_cause(
	struct cop_diagnose *d, const char *name, double seconds, double saves)
{
	assert(d->causes < CAUSES_MAX);
	d->cause[d->causes] = (struct cause){.name = name, .seconds = seconds, .saves = saves};
	return &d->cause[d->causes++];
}

void cop_diagnose_quote(const char *word, struct cop_buf *out)
{
	bool plain = !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_./-+,:@%=")];

	cop_buf_str(out, out->len ? " " : "");
	if (plain && *word) {
		cop_buf_str(out, word);
		return;
	}
	cop_buf_str(out, "'");
	for (; *word; word++)
		cop_buf_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
	cop_buf_str(out, "'");
}

void cop_diagnose_command(struct cop_diagnose *d, struct cause *c, const char *words)
{
	cop_buf_printf(&c->command, "copper trace %s %s", words, d->paths);
}

void cop_diagnose_who(struct cop_diagnose *d, const struct cop_trace_event *any, struct cop_buf *to)
{
	const struct actor *p = NULL;

	for (struct thing *t = cop_diagnose_next(&d->process, NULL); t;
		t = cop_diagnose_next(&d->process, t)) {
		const struct actor *q = COP_CONTAINER_OF(t, struct actor, thing);

		if (cop_trace_owner(&q->any) == cop_trace_owner(any) &&
			q->any.host.len == any->host.len && q->any.pid.len == any->pid.len &&
			!memcmp(q->any.host.at, any->host.at, any->host.len) &&
			!memcmp(q->any.pid.at, any->pid.at, any->pid.len))
			p = q;
	}
	if (p)
		cop_process_label(d->files, cop_crew_find(&d->seen[0], &p->any)->process, to);
	else
		cop_buf_printf(to, "pid %.*s", (int)any->pid.len, any->pid.at);
}

static int by_cost(const void *p, const void *q)
{
	const struct cause *a = p, *b = q;

	if (a->seconds != b->seconds)
		return a->seconds < b->seconds ? 1 : -1;
	return strcmp(a->name, b->name);
}

int cop_diagnose_finish(struct cop_diagnose *d)
{
	if (cop_crew_new(d->seen, d->threads, &d->crew))
		return -ENOMEM;
	cop_diagnose_causes(d);
	qsort(d->cause, d->causes, sizeof(*d->cause), by_cost);
	return d->room.failed ? -ENOMEM : 0;
}

/* ---- output ---- */

static struct cop_grid_cell text(const struct cop_buf *b)
{
	return (struct cop_grid_cell){b->data ? b->data : "", b->len, NAN};
}

static struct cop_grid_cell cell(const void *arg, size_t row, unsigned col)
{
	const struct cop_diagnose *d = arg;
	const struct cause *c = &d->cause[row];
	double total = cop_diagnose_total(d);

	switch (col) {
	case 0:
		return (struct cop_grid_cell){c->name, strlen(c->name), NAN};
	case 1:
		return (struct cop_grid_cell){NULL, 0, c->seconds};
	case 2:
		return (struct cop_grid_cell){NULL, 0, total > 0 ? c->seconds / total : NAN};
	case 3:
		return text(&c->evidence);
	case 4:
		return text(&c->command);
	case 5:
		return text(&c->help);
	default:
		return (struct cop_grid_cell){NULL, 0, c->saves};
	}
}

static void put_lines(struct cop_buf *out, const char *head, const struct cop_buf *b)
{
	cop_buf_str(out, head);
	for (size_t i = 0; i < b->len; i++) {
		char c = (unsigned char)b->data[i] < 32 || b->data[i] == 127 ? '?' : b->data[i];

		cop_buf_add(out, &c, 1);
	}
	cop_buf_str(out, "\n");
}

static void show_text(const struct cop_diagnose *d, struct cop_buf *out)
{
	double total = cop_diagnose_total(d);

	if (!d->causes)
		cop_buf_printf(out, "no cause found in %.6f s\n", total);
	for (size_t i = 0; i < d->causes; i++) {
		const struct cause *c = &d->cause[i];

		cop_buf_printf(out, "%s%zu. %s: %.6f s of %.6f s (%.0f %%)\n", i ? "\n" : "", i + 1,
			c->name, c->seconds, total, total > 0 ? 100 * c->seconds / total : 0);
		put_lines(out, "   ", &c->evidence);
		put_lines(out, "   see:   ", &c->command);
		put_lines(out, "   helps: ", &c->help);
		if (!isnan(c->saves))
			cop_buf_printf(out, "   saves: up to %.6f s\n", c->saves);
	}
}

void cop_diagnose_show(const struct cop_diagnose *d, enum cop_grid_form form, struct cop_buf *out)
{
	static const struct cop_grid_col cols[] = {{"cause", COP_GRID_TEXT},
		{"seconds", COP_GRID_SECONDS}, {"share", COP_GRID_RATIO},
		{"evidence", COP_GRID_TEXT}, {"command", COP_GRID_TEXT}, {"help", COP_GRID_TEXT},
		{"saves", COP_GRID_SECONDS}};
	struct cop_grid g = {cols, COP_ARRAY_SIZE(cols), d->causes, cell, d};

	for (size_t i = 0; i < d->causes; i++)
		out->failed |= d->cause[i].evidence.failed || d->cause[i].command.failed ||
			       d->cause[i].help.failed;
	if (form == COP_GRID_PLAIN)
		show_text(d, out);
	else
		cop_grid_show(&g, form, out);
}
