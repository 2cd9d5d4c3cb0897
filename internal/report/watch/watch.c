/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/watch/watch_priv.h"

#include <math.h>

/* When sorting by wait, unresponsive nodes come first. */
static double weight_of(const struct cop_board *b, const struct row *r)
{
	static const enum rate of[] = {[SORT_WAIT] = RATE_WAIT,
		[SORT_REQUESTS] = RATE_REQUESTS,
		[SORT_BYTES] = RATE_BYTES,
		[SORT_STORAGE] = RATE_STORAGE};

	if (!r->known || r->state != COP_NODELINE_OK)
		return b->sort == SORT_WAIT ? INFINITY : -1;
	return r->rate[of[b->sort]];
}

static int by_weight(const struct cop_board *b, const struct row *x, const struct row *y)
{
	double wx = weight_of(b, x), wy = weight_of(b, y);
	uint64_t nx = x->value[COP_NODELINE_WAITING], ny = y->value[COP_NODELINE_WAITING];

	if (wx != wy)
		return wx < wy ? 1 : -1;
	return b->sort == SORT_WAIT ? (nx < ny) - (nx > ny) : 0;
}

static int compare_nodes(const void *p, const void *q, void *board)
{
	const struct cop_board *b = board;
	uint32_t i = *(const uint32_t *)p, k = *(const uint32_t *)q;
	const struct row *x = &b->row[i], *y = &b->row[k];
	int order = 0;

	if (b->sort == SORT_NAME)
		order = strcmp(x->host ? x->host : "", y->host ? y->host : "");
	else if (b->sort != SORT_RANK)
		order = by_weight(b, x, y);
	if (b->reversed)
		order = -order;
	return order ? order : (i > k) - (i < k);
}

static void sort_nodes(struct cop_board *b)
{
	for (uint32_t i = 0; i < b->nodes; i++)
		b->order[i] = i;
	if (b->nodes)
		qsort_r(b->order, b->nodes, sizeof(*b->order), compare_nodes, b);
}

/* The intervals selected by + and -. */
static const uint32_t intervals[] = {
	1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600, 86400};

struct cop_board *cop_board_new(uint32_t interval_s)
{
	struct cop_board *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->interval_s = interval_s;
	b->page = 1;
	return b;
}

static void forget_rows(struct cop_board *b, uint32_t from)
{
	for (uint32_t i = from; i < b->nodes; i++) {
		free(b->row[i].host);
		free(b->row[i].reason);
	}
}

void cop_board_free(struct cop_board *b)
{
	if (!b)
		return;
	forget_rows(b, 0);
	free(b->row);
	free(b->order);
	free(b);
}

/* ---- an answer ---- */

/* The size of a tree is constant, but another tree may now use the socket. */
static int set_nodes(struct cop_board *b, uint32_t nodes)
{
	struct row *row;
	uint32_t *order;

	if (nodes == b->nodes)
		return 0;
	row = calloc(nodes, sizeof(*row));
	order = calloc(nodes, sizeof(*order));
	if (!row || !order) {
		free(row);
		free(order);
		return -ENOMEM;
	}
	forget_rows(b, 0);
	free(b->row);
	free(b->order);
	b->row = row;
	b->order = order;
	b->nodes = nodes;
	b->top = 0;
	return 0;
}

static int set_text(char **kept, const char *text)
{
	struct cop_buf shown = {0};

	cop_buf_str(&shown, "");
	cop_screen_show(text, false, COP_SCREEN_COLUMNS_MAX, &shown);
	if (shown.failed)
		return -ENOMEM;
	if (*kept && shown.data && strcmp(*kept, shown.data) == 0) {
		cop_buf_free(&shown);
		return 0;
	}
	free(*kept);
	*kept = shown.data;
	return 0;
}

static void set_rates(struct row *r, const struct cop_nodeline *n)
{
	static const struct {
		enum rate rate;
		enum cop_nodeline_value value;
		double factor;
	} of[] = {{RATE_WAIT, COP_NODELINE_WAIT_US, 1e-6},
		{RATE_REQUESTS, COP_NODELINE_REQUESTS, 1}, {RATE_BYTES, COP_NODELINE_BYTES, 1},
		{RATE_STORAGE, COP_NODELINE_ORIGIN_OPERATIONS, 1},
		{RATE_STORAGE_BYTES, COP_NODELINE_ORIGIN_BYTES, 1},
		{RATE_SERVED, COP_NODELINE_SERVED, 1}};
	uint64_t elapsed_ms = n->value[COP_NODELINE_UPTIME_MS] - r->value[COP_NODELINE_UPTIME_MS];

	for (size_t i = 0; i < COP_ARRAY_SIZE(of); i++) {
		uint64_t now = n->value[of[i].value], before = r->value[of[i].value];

		/* The counter was reset. */
		if (now < before)
			before = now;
		r->rate[of[i].rate] =
			(double)(now - before) * 1000 / (double)elapsed_ms * of[i].factor;
	}
}

/* A restarted node counts from zero again, and its clock starts over. */
static int take_line(struct cop_board *b, const struct cop_nodeline *n)
{
	struct row *r = &b->row[n->rank];
	bool again = r->known && r->state == COP_NODELINE_OK && n->state == COP_NODELINE_OK;
	uint64_t now_ms = n->value[COP_NODELINE_UPTIME_MS],
		 before_ms = r->value[COP_NODELINE_UPTIME_MS];

	r->rated = again && now_ms > before_ms;
	memset(r->rate, 0, sizeof(r->rate));
	if (r->rated)
		set_rates(r, n);
	r->state = n->state;
	r->below = n->below;
	r->known = true;
	memcpy(r->value, n->value, sizeof(r->value));
	r->requests[b->answers % ROW_HISTORY] = (float)r->rate[RATE_REQUESTS];
	return set_text(&r->host, n->host) || set_text(&r->reason, n->reason) ? -ENOMEM : 0;
}

static void add_row(struct sums *s, const struct row *r)
{
	if (!r->known) {
		s->silent++;
		return;
	}
	s->count[r->state]++;
	if (r->state != COP_NODELINE_OK)
		return;
	s->rated += r->rated;
	s->waiting += r->value[COP_NODELINE_WAITING];
	s->waiting_nodes += r->value[COP_NODELINE_WAITING] > 0;
	s->used += r->value[COP_NODELINE_USED_BYTES];
	s->limit += r->value[COP_NODELINE_LIMIT_BYTES];
	for (unsigned i = 0; i < RATES; i++)
		s->rate[i] += r->rate[i];
}

static void sum_nodes(struct cop_board *b)
{
	b->sums = (struct sums){0};
	for (uint32_t i = 0; i < b->nodes; i++)
		add_row(&b->sums, &b->row[i]);
	b->sums.answered = b->sums.count[COP_NODELINE_OK];
	/* While a tree stops, it may send one more reply without data from its nodes. */
	if (b->sums.answered || !b->last.answered)
		b->last = b->sums;
	for (unsigned i = 0; i < RATES; i++)
		b->history[i][b->answers % SUM_HISTORY] = b->sums.rate[i];
}

static void forget_nodes(struct cop_board *b)
{
	for (uint32_t i = 0; i < b->nodes; i++)
		b->row[i].requests[b->answers % ROW_HISTORY] = 0;
}

/* Nodes missing from the reply keep their last values and are marked unknown. */
static int take_lines(struct cop_board *b, char *text)
{
	bool *seen = calloc(b->nodes, sizeof(*seen));
	char *save = NULL;
	int rc = seen ? 0 : -ENOMEM;

	for (char *l = rc ? NULL : strtok_r(text, "\n", &save); l && !rc;
		l = strtok_r(NULL, "\n", &save)) {
		struct cop_nodeline n;

		if (cop_nodeline_read(l, &n) || n.rank >= b->nodes || seen[n.rank])
			continue;
		seen[n.rank] = true;
		rc = take_line(b, &n);
	}
	for (uint32_t i = 0; seen && i < b->nodes; i++)
		b->row[i].known = seen[i];
	free(seen);
	return rc;
}

int cop_board_update(struct cop_board *b, char *answer)
{
	char *end = strchr(answer, '\n');
	uint64_t nodes;
	int rc;

	if (!end || strncmp(answer, "nodes ", 6) != 0)
		return -EBADMSG;
	*end = '\0';
	if (cop_parse_u64(answer + 6, &nodes) || nodes == 0 || nodes > COP_BOARD_NODES_MAX)
		return -EBADMSG;
	rc = set_nodes(b, (uint32_t)nodes);
	if (rc)
		return rc;
	b->answers++;
	forget_nodes(b);
	rc = take_lines(b, end + 1);
	sum_nodes(b);
	sort_nodes(b);
	return rc;
}

/* ---- keys ---- */

static void scroll_to(struct cop_board *b, int64_t top)
{
	int64_t last = (int64_t)b->nodes - b->page;

	b->top = (uint32_t)COP_MAX(COP_MIN(top, last), 0);
}

static bool scroll(struct cop_board *b, int key)
{
	int64_t top = b->top, page = b->page;

	switch (key) {
	case COP_SCREEN_KEY_UP:
		scroll_to(b, top - 1);
		break;
	case COP_SCREEN_KEY_DOWN:
		scroll_to(b, top + 1);
		break;
	case COP_SCREEN_KEY_PAGE_UP:
		scroll_to(b, top - page);
		break;
	case COP_SCREEN_KEY_PAGE_DOWN:
		scroll_to(b, top + page);
		break;
	case COP_SCREEN_KEY_HOME:
		scroll_to(b, 0);
		break;
	case COP_SCREEN_KEY_END:
		scroll_to(b, b->nodes);
		break;
	default:
		return false;
	}
	return true;
}

/* Pressing the same key again reverses the order; pressing n again sorts by the other of its two
 * columns. */
static bool sort_by(struct cop_board *b, int key)
{
	static const char keys[] = "wrbo";
	const char *at = key < 128 ? strchr(keys, key) : NULL;
	enum sort sort = at ? (enum sort)(at - keys) : b->sort == SORT_RANK ? SORT_NAME : SORT_RANK;

	if (!at && key != 'n')
		return false;
	b->reversed = at && sort == b->sort && !b->reversed;
	b->sort = sort;
	b->top = 0;
	sort_nodes(b);
	return true;
}

static bool set_interval(struct cop_board *b, bool longer)
{
	uint32_t next = b->interval_s;

	for (size_t i = 0; i < COP_ARRAY_SIZE(intervals); i++) {
		if (!longer && intervals[i] < b->interval_s)
			next = intervals[i];
		if (longer && intervals[i] > b->interval_s) {
			next = intervals[i];
			break;
		}
	}
	b->interval_s = next;
	return true;
}

enum cop_board_act cop_board_key(struct cop_board *b, int key)
{
	bool helped = b->help;

	b->help = false;
	switch (key) {
	case 'q':
		return COP_BOARD_LEAVE;
	case '?':
	case 'h':
		b->help = !helped;
		return COP_BOARD_DRAW;
	case 'p':
	case ' ':
		b->paused = !b->paused;
		return COP_BOARD_ASK;
	case '+':
	case '-':
		return set_interval(b, key == '+') ? COP_BOARD_ASK : COP_BOARD_NOTHING;
	default:
		return (key != COP_SCREEN_KEY_NONE && sort_by(b, key)) || scroll(b, key) ||
				       helped || key == COP_SCREEN_KEY_REDRAW
			       ? COP_BOARD_DRAW
			       : COP_BOARD_NOTHING;
	}
}

uint32_t cop_board_interval_s(const struct cop_board *b)
{
	return b->interval_s;
}

bool cop_board_is_paused(const struct cop_board *b)
{
	return b->paused;
}
