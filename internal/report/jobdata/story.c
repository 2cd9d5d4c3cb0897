/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads cluster_events.csv and cluster_warnings.csv. */
#include <math.h>

#include "report/jobdata/jobdata_priv.h"

static int event_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct cop_jobdata *j = arg;
	struct cop_jobdata_event *e;
	double rank = cop_jobdata_number(s, r, 1);
	char **text[3];

	if (strcmp(cop_jobdata_text(s, r, 0, NULL), "dropped") == 0) {
		uint64_t n = 0;

		if (r->n > 1 && !cop_parse_u64(r->field[1].text, &n))
			j->events_dropped = n;
		return 0;
	}
	if (isnan(cop_jobdata_number(s, r, 0)) || j->events >= COP_JOBDATA_EVENTS_MAX)
		return 0;
	e = cop_jobdata_more(&j->event, &j->events, sizeof(*e), COP_JOBDATA_EVENTS_MAX);
	if (!e)
		return -ENOMEM;
	e->time_s = cop_jobdata_number(s, r, 0);
	e->rank = rank >= 0 && rank < INT32_MAX ? (int32_t)rank : -1;
	text[0] = &e->host;
	text[1] = &e->event;
	text[2] = &e->detail;
	for (unsigned i = 0; i < 3; i++) {
		size_t len;
		const char *t = cop_jobdata_text(s, r, 2 + i, &len);

		*text[i] = cop_jobdata_copy(t, COP_MIN(len, (size_t)4096));
		if (!*text[i])
			return -ENOMEM;
	}
	return 0;
}

int cop_jobdata_events_from(struct cop_jobdata *j, cop_csv_read *read, void *arg)
{
	static const char *const columns[] = {"time_s", "rank", "host", "event", "detail", NULL};
	struct sheet s = {.column = columns, .row = event_row, .arg = j};
	int rc = cop_jobdata_sheet_from(&s, read, arg);

	return rc == -ENOMEM ? rc : 0;
}

static int warning_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct cop_jobdata *j = arg;
	struct cop_jobdata_warning *w;
	const char *text;
	size_t len;

	if (j->warnings >= COP_JOBDATA_WARNINGS_MAX || !*cop_jobdata_text(s, r, 0, NULL))
		return 0;
	w = cop_jobdata_more(&j->warning, &j->warnings, sizeof(*w), COP_JOBDATA_WARNINGS_MAX);
	if (!w)
		return -ENOMEM;
	text = cop_jobdata_text(s, r, 0, &len);
	w->sentence = cop_jobdata_copy(text, COP_MIN(len, (size_t)4096));
	text = cop_jobdata_text(s, r, 1, &len);
	w->option = cop_jobdata_copy(text, COP_MIN(len, (size_t)256));
	return w->sentence && w->option ? 0 : -ENOMEM;
}

int cop_jobdata_warnings_from(struct cop_jobdata *j, cop_csv_read *read, void *arg)
{
	static const char *const columns[] = {"sentence", "option", NULL};
	struct sheet s = {.column = columns, .row = warning_row, .arg = j};
	int rc = cop_jobdata_sheet_from(&s, read, arg);

	j->has_warnings = rc == 0;
	return rc == -ENOMEM ? rc : 0;
}
