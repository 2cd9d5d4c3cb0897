/* SPDX-License-Identifier: BSD-3-Clause */
/* Layout: title, totals, a line per node, keys. A short terminal omits the totals; a narrow one
 * omits columns. */
#include "report/watch/watch_priv.h"

#define HOST_MOST 24
#define CELL 32

/* ---- numbers ---- */

/* Takes at most 6 characters if the value is below 10^15. */
static const char *amount_text(double v, char out[CELL])
{
	static const char units[] = " kMGTPE";
	unsigned u = 0;

	for (; v >= 999.5 && u + 2 < sizeof(units); v /= 1000)
		u++;
	if (u == 0 && v < 0.005)
		snprintf(out, CELL, "0");
	else
		snprintf(out, CELL, "%.*f%.*s",
			v < 9.995   ? 2
			: v < 99.95 ? 1
				    : 0,
			v, u > 0, units + u);
	return out;
}

static const char *size_of(double bytes, char out[CELL])
{
	char text[16];

	snprintf(out, CELL, "%s", cop_format_size((uint64_t)bytes, text));
	return out;
}

/* ---- charts ---- */

/* A bar character for a value relative to the maximum; any value above zero is visible. */
static const char *bar_text(double value, double most, bool utf8)
{
	static const char *const blocks[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588"};
	static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
	unsigned level = 0;

	if (value > 0 && most > 0)
		level = COP_MIN(1 + (unsigned)(value / most * 7.999), 8);
	return utf8 ? blocks[level] : ascii[level];
}

/* The last `width` samples; blank before the second sample. */
static void sum_chart(
	const struct cop_board *b, enum rate rate, unsigned width, bool utf8, struct cop_buf *out)
{
	unsigned kept = (unsigned)COP_MIN(b->answers, (uint64_t)SUM_HISTORY);
	unsigned shown = COP_MIN(width, kept);
	const double *history = b->history[rate];
	double most = 0;

	for (unsigned i = 0; i < shown; i++)
		most = COP_MAX(most, history[(b->answers - i) % SUM_HISTORY]);
	cop_buf_printf(out, "%*s", (int)(width - shown), "");
	for (unsigned i = shown; i-- > 0;)
		cop_buf_str(out, bar_text(history[(b->answers - i) % SUM_HISTORY], most, utf8));
}

static void row_chart(
	const struct cop_board *b, const struct row *r, bool utf8, struct cop_buf *out)
{
	double most = 0;

	for (unsigned i = 0; i < ROW_HISTORY; i++)
		most = COP_MAX(most, (double)r->requests[i]);
	for (unsigned i = ROW_HISTORY; i-- > 0;)
		cop_buf_str(out,
			bar_text((double)r->requests[(b->answers - i) % ROW_HISTORY], most, utf8));
}

/* ---- the sums ---- */

static const char *const sort_words[] = {[SORT_WAIT] = "wait",
	[SORT_REQUESTS] = "requests",
	[SORT_BYTES] = "bytes",
	[SORT_STORAGE] = "storage",
	[SORT_RANK] = "rank",
	[SORT_NAME] = "host"};

static void count_lost(const struct sums *sums, struct cop_buf *out)
{
	for (unsigned s = COP_NODELINE_DEAD; s < COP_NODELINE_STATES; s++)
		if (sums->count[s])
			cop_buf_printf(out, ", %" PRIu32 " %s", sums->count[s],
				cop_nodeline_word((enum cop_nodeline_state)s));
	if (sums->silent)
		cop_buf_printf(out, ", %" PRIu32 " unknown", sums->silent);
}

/* Puts unusual facts first, because the end may be truncated. */
static void state_of(const struct cop_board *b, uint64_t late_ms, struct cop_buf *out)
{
	if (late_ms)
		cop_buf_printf(out, "LATE %" PRIu64 " s, ", late_ms / 1000);
	if (b->paused)
		cop_buf_str(out, "PAUSED, ");
	cop_buf_printf(out, "by %s%s, every %" PRIu32 " s", sort_words[b->sort],
		b->reversed ? " (least)" : "", b->interval_s);
}

static void draw_title(const struct cop_board *b, uint64_t late_ms, struct cop_screen_frame *f)
{
	struct cop_buf left = {0}, right = {0};
	int gap;

	cop_buf_printf(&left, "%s%" PRIu32 " nodes", f->columns < 60 ? "" : "copper  ", b->nodes);
	count_lost(&b->sums, &left);
	if (!b->answers)
		cop_buf_str(&left, ", asking them");
	state_of(b, late_ms, &right);
	gap = (int)f->columns - (int)right.len;
	if (left.failed || right.failed)
		f->out.failed = true;
	else if (gap < 10)
		cop_screen_frame_line(f, COP_SCREEN_REVERSE, "%s", right.data);
	else
		cop_screen_frame_line(f, COP_SCREEN_REVERSE, "%-*.*s %s", gap - 1, gap - 1,
			left.data, right.data);
	cop_buf_free(&left);
	cop_buf_free(&right);
}

static void sum_with_chart(const struct cop_board *b, const char *name, enum rate rate,
	const char *(*text)(double v, char out[CELL]), struct cop_screen_frame *f)
{
	struct cop_buf chart = {0};
	char cell[CELL];
	unsigned used = 22;

	if (f->columns > used)
		sum_chart(b, rate, COP_MIN(f->columns - used, SUM_HISTORY), f->utf8, &chart);
	cop_screen_frame_line(f, COP_SCREEN_PLAIN, "%-9s %9s/s %s", name,
		text(b->sums.rate[rate], cell), chart.data ? chart.data : "");
	cop_buf_free(&chart);
}

static void sum_lines(const struct cop_board *b, struct cop_screen_frame *f)
{
	const struct sums *s = &b->sums;
	char a[CELL], c[CELL];

	cop_screen_frame_line(f, COP_SCREEN_PLAIN,
		"%-9s %9s%s, %" PRIu64 " now on %" PRIu32 " nodes", "wait",
		amount_text(s->rate[RATE_WAIT], a), f->columns < 60 ? "" : " requests on average",
		s->waiting, s->waiting_nodes);
	sum_with_chart(b, "requests", RATE_REQUESTS, amount_text, f);
	sum_with_chart(b, "bytes", RATE_BYTES, size_of, f);
	if (f->rows < 14)
		return;
	cop_screen_frame_line(f, COP_SCREEN_PLAIN, "%-9s %9s/s %9s/s read from it", "storage",
		amount_text(s->rate[RATE_STORAGE], a), size_of(s->rate[RATE_STORAGE_BYTES], c));
	cop_screen_frame_line(f, COP_SCREEN_PLAIN, "%-9s %11s of %s, %" PRIu64 "%%", "cached",
		size_of((double)s->used, a), size_of((double)s->limit, c),
		s->limit ? s->used * 100 / s->limit : 0);
}

/* ---- the nodes ---- */

enum column { WAIT, REQUESTS, BYTES, STORAGE, NOW, CACHED, FULL, SERVED, CHART, COLUMNS };

/* By importance: a narrow terminal drops columns from the end. */
static const struct {
	const char *head;
	int width;
} columns[COLUMNS] = {[WAIT] = {"wait", 6},
	[REQUESTS] = {"req/s", 6},
	[BYTES] = {"bytes/s", 9},
	[STORAGE] = {"stor/s", 6},
	[NOW] = {"now", 5},
	[CACHED] = {"cached", 9},
	[FULL] = {"full", 5},
	[SERVED] = {"served/s", 8},
	[CHART] = {"requests", ROW_HISTORY}};

struct layout {
	int rank, host; /* widths */
	unsigned n;     /* of the columns */
};

static struct layout lay_out(const struct cop_board *b, unsigned width)
{
	struct layout l = {.rank = snprintf(NULL, 0, "%" PRIu32, b->nodes), .host = 4};
	int used;

	l.rank = COP_MAX(l.rank, 4);
	for (uint32_t i = 0; i < b->nodes; i++)
		if (b->row[i].host)
			l.host = COP_MAX(l.host, (int)strnlen(b->row[i].host, HOST_MOST));
	if (width < 60)
		l.host = COP_MIN(l.host, 10);
	for (used = l.rank + 1 + l.host; l.n < COLUMNS; l.n++) {
		used += 1 + columns[l.n].width;
		if (used > (int)width)
			break;
	}
	return l;
}

static void head_line(const struct layout *l, struct cop_screen_frame *f)
{
	struct cop_buf out = {0};

	cop_buf_printf(&out, "%*s %-*s", l->rank, "rank", l->host, "host");
	for (unsigned c = 0; c < l->n; c++)
		cop_buf_printf(&out, " %*s", columns[c].width, columns[c].head);
	cop_screen_frame_line(f, COP_SCREEN_BOLD, "%s", out.data ? out.data : "");
	cop_buf_free(&out);
}

static const char *cell_text(const struct row *r, enum column c, char out[CELL])
{
	static const enum rate of[] = {[WAIT] = RATE_WAIT,
		[REQUESTS] = RATE_REQUESTS,
		[STORAGE] = RATE_STORAGE,
		[SERVED] = RATE_SERVED};
	uint64_t limit = r->value[COP_NODELINE_LIMIT_BYTES],
		 used = r->value[COP_NODELINE_USED_BYTES];

	switch (c) {
	case NOW:
		snprintf(out, CELL, "%" PRIu64, r->value[COP_NODELINE_WAITING]);
		return out;
	case CACHED:
		return size_of((double)used, out);
	case FULL:
		snprintf(out, CELL, "%" PRIu64 "%%", limit ? used * 100 / limit : 0);
		return out;
	case BYTES:
		return r->rated ? size_of(r->rate[RATE_BYTES], out) : "-";
	default:
		return r->rated ? amount_text(r->rate[of[c]], out) : "-";
	}
}

static void answered_cells(const struct cop_board *b, const struct row *r, const struct layout *l,
	bool utf8, struct cop_buf *out)
{
	char text[CELL];

	for (unsigned c = 0; c < l->n; c++) {
		cop_buf_str(out, " ");
		if (c == CHART)
			row_chart(b, r, utf8, out);
		else
			cop_buf_printf(
				out, "%*s", columns[c].width, cell_text(r, (enum column)c, text));
	}
}

static void node_line(const struct cop_board *b, uint32_t rank, const struct layout *l,
	struct cop_screen_frame *f)
{
	const struct row *r = &b->row[rank];
	bool answers = r->known && r->state == COP_NODELINE_OK;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "%*" PRIu32 " %-*.*s", l->rank, rank, l->host, l->host,
		r->host ? r->host : "?");
	if (answers) {
		answered_cells(b, r, l, f->utf8, &out);
	} else if (!r->known) {
		cop_buf_str(&out, " unknown: a node above it did not answer");
	} else {
		cop_buf_printf(&out, " %s%s%s", cop_nodeline_word(r->state), *r->reason ? ": " : "",
			r->reason);
		if (r->below)
			cop_buf_printf(&out, ", with the %" PRIu32 " nodes below it", r->below);
	}
	if (out.failed)
		f->out.failed = true;
	cop_screen_frame_line(
		f, answers ? COP_SCREEN_PLAIN : COP_SCREEN_BOLD, "%s", out.data ? out.data : "");
	cop_buf_free(&out);
}

static void node_lines(struct cop_board *b, unsigned rows, struct cop_screen_frame *f)
{
	struct layout l = lay_out(b, f->columns);

	head_line(&l, f);
	b->page = COP_MAX(rows, 1);
	if (b->top + b->page > b->nodes)
		b->top = b->nodes > b->page ? b->nodes - b->page : 0;
	for (unsigned i = 0; i < rows; i++)
		if (b->top + i < b->nodes)
			node_line(b, b->order[b->top + i], &l, f);
		else
			cop_screen_frame_line(f, COP_SCREEN_PLAIN, "%s", "");
}

static void draw_foot(const struct cop_board *b, unsigned rows, struct cop_screen_frame *f)
{
	uint32_t last = COP_MIN(b->top + rows, b->nodes);
	char where[48];
	int len = snprintf(where, sizeof(where), "%" PRIu32 "-%" PRIu32 " of %" PRIu32,
		b->nodes ? b->top + 1 : 0, last, b->nodes);
	int gap = (int)f->columns - len - 1;
	const char *keys =
		gap >= 62 ? "? help  q leave  w r b o n sort  p pause  + - interval  arrows"
			  : "? help  q leave";

	cop_screen_frame_line(
		f, COP_SCREEN_REVERSE, "%-*.*s %s", COP_MAX(gap, 0), COP_MAX(gap, 0), keys, where);
}

/* ---- help ---- */

static const char *const help[] = {"w wait  r requests  b bytes  o storage",
	"n rank, then host   again: turned round", "arrows, page up/down, home, end: scroll",
	"p, space: pause    + -: interval", "? h: this help     q, Ctrl-C: leave", "",
	"wait      requests of programs that waited for what their node did not have,",
	"          on average at a time since the answer before; now: at this moment",
	"req/s     requests of programs to the node (what its kernel could not answer)",
	"bytes/s   what they read", "stor/s    operations at the storage",
	"cached    what the node holds; full: of its budget",
	"served/s  requests of other nodes that it answered",
	"LATE      an answer is overdue; nothing more is asked until it has come",
	"dead      the node did not answer; the others go on without it"};

static void help_lines(unsigned rows, struct cop_screen_frame *f)
{
	for (unsigned i = 0; i < rows; i++)
		cop_screen_frame_line(
			f, COP_SCREEN_PLAIN, "%s", i < COP_ARRAY_SIZE(help) ? help[i] : "");
}

/* ---- the page ---- */

void cop_board_draw(struct cop_board *b, uint64_t late_ms, struct cop_screen_frame *f)
{
	unsigned rows;

	draw_title(b, late_ms, f);
	if (f->rows >= 9 && !b->help)
		sum_lines(b, f);
	/* Remaining lines, without the table header and the keys. */
	rows = f->rows - f->lines;
	if (b->help) {
		rows -= COP_MIN(rows, 1);
		help_lines(rows, f);
		rows = b->page;
	} else {
		rows -= COP_MIN(rows, 2);
		node_lines(b, rows, f);
	}
	draw_foot(b, rows, f);
	cop_screen_frame_end(f);
}

void cop_board_last(const struct cop_board *b, struct cop_buf *out)
{
	char requests[CELL], bytes[CELL];

	if (!b->answers) {
		cop_buf_str(out, "nothing");
		return;
	}
	cop_buf_printf(out, "%" PRIu32 " nodes", b->nodes);
	count_lost(&b->last, out);
	cop_buf_printf(out, ", %s requests per s, %s per s",
		amount_text(b->last.rate[RATE_REQUESTS], requests),
		size_of(b->last.rate[RATE_BYTES], bytes));
}
