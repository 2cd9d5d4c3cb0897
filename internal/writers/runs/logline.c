/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses one line of a program log, as written by include/copper/run.h and python/copper_run.py.
 * Rejects truncated lines, because a truncated value looks like a different value. */
#include "writers/runs/line_priv.h"

#include <math.h>

#define HEAD "copper-log"

static int read_head(const struct line *l, struct logline *out)
{
	out->kind = LOGLINE_HEAD;
	if (cop_line_whole(l->part[1], UINT32_MAX, &out->form))
		return -EBADMSG;
	if (out->form != LOG_FORM)
		return 0; /* unknown trailing fields */
	if (l->n != 5 || (!cop_line_is_id(l->part[2]) && strcmp(l->part[2], "-") != 0))
		return -EBADMSG;
	out->key = l->part[2];
	out->value = l->part[4];
	return cop_line_time(l->part[3], &out->time_s);
}

static int read_pair(const struct line *l, struct logline *out)
{
	out->kind = LOGLINE_PAIR;
	out->key = l->part[1];
	out->value = l->part[2];
	for (unsigned i = 0; i < COP_RUNREC_LISTS; i++)
		if (strcmp(l->part[0], cop_runrec_list_name(i)) == 0) {
			out->list = i;
			return *out->key && strlen(out->key) <= COP_RUNREC_KEY_MAX &&
					       strlen(out->value) <= COP_RUNREC_VALUE_MAX
				       ? 0
				       : -EBADMSG;
		}
	return -EBADMSG;
}

static int read_point(const struct line *l, struct logline *out)
{
	out->kind = LOGLINE_POINT;
	out->key = l->part[1];
	if (!*out->key || strlen(out->key) > COP_RUNREC_KEY_MAX ||
		cop_line_whole(l->part[2], INT64_MAX, &out->step) ||
		cop_line_time(l->part[3], &out->time_s))
		return -EBADMSG;
	return cop_line_value(l->part[4], &out->number);
}

static int read_status(const struct line *l, struct logline *out)
{
	out->kind = LOGLINE_STATUS;
	out->value = l->part[3];
	return cop_line_time(l->part[2], &out->time_s) ||
			       cop_runrec_status_of(l->part[1], &out->status) ||
			       out->status == COP_RUNREC_LOST
		       ? -EBADMSG
		       : 0;
}

int cop_logline_parse(char *text, size_t len, struct logline *out)
{
	struct line l;

	*out = (struct logline){0};
	if (memchr(text, '\0', len) || cop_line_split(text, &l))
		return -EBADMSG;
	if (l.n >= 3 && strcmp(l.part[0], HEAD) == 0)
		return read_head(&l, out);
	if (l.n == 2 && strcmp(l.part[0], "name") == 0) {
		out->kind = LOGLINE_NAME;
		out->value = l.part[1];
		return 0;
	}
	if (l.n == 3)
		return read_pair(&l, out);
	if (l.n == 4 && strcmp(l.part[0], "status") == 0)
		return read_status(&l, out);
	return l.n == 5 && strcmp(l.part[0], "metric") == 0 ? read_point(&l, out) : -EBADMSG;
}
