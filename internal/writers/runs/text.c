/* SPDX-License-Identifier: BSD-3-Clause */
/* Records as text: one line of tab-separated fields per item. The last line has the number of
 * lines, so that readers detect truncation. */
#include "writers/runs/line_priv.h"

#include <math.h>

#define HEAD "copper-run "
#define FORM 1
/* No working clock is this far from 1970. */
#define TIME_MAX 1e12

static const char *const fields[] = {"name", "group", "version", "exit_reason"};

_Static_assert(COP_ARRAY_SIZE(fields) == COP_RUNREC_FIELDS, "each field has a name");

/* ---- writing ---- */

static void put_text(struct cop_buf *out, const char *text)
{
	static const char plain[] = "\\\t\n\r", coded[] = "\\tnr";

	cop_buf_add(out, "\t", 1);
	for (const char *c = text; *c; c++) {
		const char *at = strchr(plain, *c);
		char two[2] = {'\\', at ? coded[at - plain] : '\0'};

		if (at)
			cop_buf_add(out, two, 2);
		else
			cop_buf_add(out, c, 1);
	}
}

static size_t write_head(const struct cop_runrec *r, struct cop_buf *out)
{
	cop_buf_printf(out, HEAD "%d\n", FORM);
	cop_buf_printf(out, "id\t%s\n", r->id);
	cop_buf_printf(out, "status\t%s\n", cop_runrec_status_name(r->status));
	cop_buf_printf(out, "start\t%.6f\n", r->start_s);
	cop_buf_printf(out, "end\t%.6f\n", r->end_s);
	cop_buf_printf(out, "seen\t%.6f\n", r->seen_s);
	cop_buf_printf(out, "beat\t%.6f\n", r->beat_s);
	cop_buf_printf(out, "nodes\t%" PRIu32 "\n", r->nodes);
	cop_buf_printf(out, "stride\t%" PRIu64 "\n", r->stride ? r->stride : 1);
	return 9;
}

static size_t write_texts(const struct cop_runrec *r, struct cop_buf *out)
{
	size_t lines = 0;

	for (unsigned f = 0; f < COP_RUNREC_FIELDS; f++, lines++) {
		cop_buf_str(out, fields[f]);
		put_text(out, cop_runrec_get(r, f));
		cop_buf_str(out, "\n");
	}
	for (unsigned l = 0; l < COP_RUNREC_LISTS; l++)
		for (size_t i = 0; i < r->list[l].n; i++, lines++) {
			cop_buf_str(out, cop_runrec_list_name(l));
			put_text(out, r->list[l].at[i].key);
			put_text(out, r->list[l].at[i].value);
			cop_buf_str(out, "\n");
		}
	return lines;
}

void cop_runrec_write(const struct cop_runrec *r, struct cop_buf *out)
{
	size_t lines = write_head(r, out) + write_texts(r, out);

	for (size_t i = 0; i < r->series_n; i++)
		for (size_t k = 0; k < r->series[i].n; k++, lines++) {
			const struct cop_runrec_point *p = &r->series[i].point[k];

			cop_buf_str(out, "metric");
			put_text(out, r->series[i].key);
			cop_buf_printf(
				out, "\t%" PRIu64 "\t%.6f\t%.17g\n", p->step, p->time_s, p->value);
		}
	cop_buf_printf(out, "lines\t%zu\n", lines);
}

/* ---- reading ---- */

/* Unescapes in place. */
static int unescape_text(char *text)
{
	static const char coded[] = "\\tnr", plain[] = "\\\t\n\r";
	char *to = text;

	for (const char *c = text; *c; c++) {
		const char *at;

		if (*c != '\\') {
			*to++ = *c;
			continue;
		}
		c++;
		at = *c ? strchr(coded, *c) : NULL;
		if (!at)
			return -EBADMSG;
		*to++ = plain[at - coded];
	}
	*to = '\0';
	return 0;
}

int cop_line_split(char *text, struct line *l)
{
	char *rest = text;

	l->n = 0;
	while (rest) {
		char *part = strsep(&rest, "\t");

		if (l->n == LINE_PARTS || unescape_text(part))
			return -EBADMSG;
		l->part[l->n++] = part;
	}
	return 0;
}

static int parse_number(const char *text, double least, double most, double *out)
{
	char *end;
	double v;

	/* Reject blanks, hexadecimal, and words such as "nan". */
	if (!*text || text[strspn(text, "0123456789+-.e")])
		return -EBADMSG;
	v = strtod(text, &end);
	if (*end || !isfinite(v) || v < least || v > most)
		return -EBADMSG;
	*out = v;
	return 0;
}

int cop_line_time(const char *text, double *out)
{
	return parse_number(text, 0, TIME_MAX, out);
}

int cop_line_value(const char *text, double *out)
{
	const char *word = text + (*text == '-');

	if (strcmp(word, "inf") != 0 && strcmp(word, "nan") != 0)
		return parse_number(text, -HUGE_VAL, HUGE_VAL, out);
	*out = *word == 'n' ? NAN : *text == '-' ? -HUGE_VAL : HUGE_VAL;
	return 0;
}

int cop_line_whole(const char *text, uint64_t most, uint64_t *out)
{
	return cop_parse_u64(text, out) || *out > most ? -EBADMSG : 0;
}

bool cop_line_is_id(const char *text)
{
	return strlen(text) == COP_RUNREC_ID_LEN && !text[strspn(text, "0123456789abcdef")];
}

static int read_id(struct cop_runrec *r, const char *text)
{
	if (!cop_line_is_id(text))
		return -EBADMSG;
	strcpy(r->id, text);
	return 0;
}

static int read_status(struct cop_runrec *r, const char *text)
{
	return cop_runrec_status_of(text, &r->status) || r->status == COP_RUNREC_LOST ? -EBADMSG
										      : 0;
}

static int read_number(struct cop_runrec *r, const char *key, const char *text)
{
	double *times[] = {&r->start_s, &r->end_s, &r->seen_s, &r->beat_s};
	static const char *const names[] = {"start", "end", "seen", "beat"};
	uint64_t n;
	int rc;

	for (unsigned i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (strcmp(key, names[i]) == 0)
			return cop_line_time(text, times[i]);
	if (strcmp(key, "stride") == 0)
		return cop_line_whole(text, UINT64_MAX / 2, &r->stride) || !r->stride ? -EBADMSG
										      : 0;
	if (strcmp(key, "nodes") != 0)
		return -EBADMSG;
	rc = cop_line_whole(text, UINT32_MAX, &n);
	if (!rc)
		r->nodes = (uint32_t)n;
	return rc;
}

static int read_two(struct cop_runrec *r, const struct line *l)
{
	if (strcmp(l->part[0], "id") == 0)
		return read_id(r, l->part[1]);
	if (strcmp(l->part[0], "status") == 0)
		return read_status(r, l->part[1]);
	for (unsigned f = 0; f < COP_RUNREC_FIELDS; f++)
		if (strcmp(l->part[0], fields[f]) == 0) {
			cop_runrec_put(r, f, l->part[1]);
			return 0;
		}
	return read_number(r, l->part[0], l->part[1]);
}

static int read_pair(struct cop_runrec *r, const struct line *l)
{
	for (unsigned k = 0; k < COP_RUNREC_LISTS; k++)
		if (strcmp(l->part[0], cop_runrec_list_name(k)) == 0) {
			cop_runrec_pair(r, k, l->part[1], l->part[2]);
			return 0;
		}
	return -EBADMSG;
}

static int read_point(struct cop_runrec *r, const struct line *l)
{
	double time_s, value;
	uint64_t step;

	if (strcmp(l->part[0], "metric") != 0 ||
		cop_line_whole(l->part[2], UINT64_MAX / 2, &step) ||
		cop_line_time(l->part[3], &time_s) || cop_line_value(l->part[4], &value) ||
		isnan(value))
		return -EBADMSG;
	r->step = step;
	cop_runrec_point(r, l->part[1], time_s, value);
	return 0;
}

static int read_line(struct cop_runrec *r, char *text)
{
	struct line l;

	if (cop_line_split(text, &l))
		return -EBADMSG;
	if (l.n == 2)
		return read_two(r, &l);
	if (l.n == 3)
		return read_pair(r, &l);
	return l.n == 5 ? read_point(r, &l) : -EBADMSG;
}

static int read_head(const char *line, const char *name, struct cop_err *err)
{
	uint64_t form;

	if (strncmp(line, HEAD, strlen(HEAD)) || cop_parse_u64(line + strlen(HEAD), &form))
		return cop_err_set(err, EBADMSG, "%s: is not a run record of Copper", name);
	if (form != FORM)
		return cop_err_set(err, EPROTO,
			"%s: is a run record of format %" PRIu64
			", and this version knows format %d: use a newer copper",
			name, form, FORM);
	return 0;
}

static int bad_line(const char *name, uint64_t lines, struct cop_err *err)
{
	return cop_err_set(err, EBADMSG, "%s: line %" PRIu64 " is damaged", name, lines);
}

/* Modifies text. */
static int parse_record(char *text, const char *name, struct cop_runrec *r, struct cop_err *err)
{
	char *rest = text, *line = strsep(&rest, "\n");
	uint64_t lines = 1, said;
	int rc = read_head(line, name, err);

	for (; !rc && rest; lines++) {
		line = strsep(&rest, "\n");
		if (strncmp(line, "lines\t", 6) == 0) {
			if (cop_line_whole(line + 6, UINT64_MAX, &said) || said != lines || !rest ||
				*rest)
				return bad_line(name, lines + 1, err);
			if (!r->id[0])
				return cop_err_set(err, EBADMSG, "%s: has no identifier", name);
			return r->failed ? cop_err_set(err, ENOMEM, "%s: no memory for it", name)
					 : 0;
		}
		if (rest && read_line(r, line))
			return bad_line(name, lines + 1, err);
	}
	return rc ? rc : cop_err_set(err, EBADMSG, "%s: its end is missing", name);
}

int cop_runrec_parse(
	const char *text, size_t len, const char *name, struct cop_runrec *r, struct cop_err *err)
{
	char *own;
	int rc;

	if (memchr(text, '\0', len))
		return cop_err_set(err, EBADMSG, "%s: is not a run record of Copper", name);
	own = strndup(text, len);
	if (!own)
		return cop_err_set(err, ENOMEM, "%s: no memory for it", name);
	rc = parse_record(own, name, r, err);
	free(own);
	return rc;
}
