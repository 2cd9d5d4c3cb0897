/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html/html_priv.h"

#define LISTED 200
#define KINDS 16
#define LAGGING 8

/* Events that every node has are the least interesting. */
static bool is_usual(const char *event)
{
	return strcmp(event, "ready") == 0 || strcmp(event, "stop") == 0 ||
	       strncmp(event, "prefetch_", 9) == 0;
}

/* Translates an event's name; the table contains the names used in files and by other programs. */
static const char *in_words(const char *event)
{
	static const char *const words[][2] = {{"failover", "another node above was asked"},
		{"peer_dead", "another node did not answer"},
		{"peer_lags", "another node was silent and was left for a while"},
		{"peer_back", "another node answered again"},
		{"budget_full", "a fetch waited for room in the cache"},
		{"file_changed", "a file had changed"},
		{"storage_error", "the storage gave an error"}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++)
		if (strcmp(words[i][0], event) == 0)
			return words[i][1];
	return event;
}

static void say_kinds(const struct cop_jobdata *j, struct cop_buf *out)
{
	struct {
		const char *name;
		unsigned n;
	} kind[KINDS];
	unsigned kinds = 0, at;

	for (size_t i = 0; i < j->events; i++) {
		if (is_usual(j->event[i].event))
			continue;
		for (at = 0; at < kinds && strcmp(kind[at].name, j->event[i].event) != 0; at++)
			;
		if (at == KINDS)
			continue;
		if (at == kinds) {
			kind[kinds].name = j->event[i].event;
			kind[kinds++].n = 0;
		}
		kind[at].n++;
	}
	cop_buf_str(out, kinds ? "<p class=\"warning\">" : "<p class=\"good\">");
	if (!kinds)
		cop_buf_str(out,
			"Nothing went wrong: the nodes report only that they were ready, prefetched and ended.");
	for (at = 0; at < kinds; at++)
		cop_html_printf(out, "%s%s (%u)",
			at ? ", " : "What nodes noticed: ", in_words(kind[at].name), kind[at].n);
	cop_buf_str(out, kinds ? ".</p>\n" : "</p>\n");
}

struct lagging {
	const char *name; /* not NUL-terminated */
	int len;
	unsigned times;
};

/* Finds the lagging machines, whose names precede " was silent" in the details of events. */
static unsigned find_lagging(const struct cop_jobdata *j, struct lagging found[LAGGING])
{
	unsigned n = 0, at;

	for (size_t i = 0; i < j->events; i++) {
		const char *name = j->event[i].detail, *end = strstr(name, " was silent");

		if (strcmp(j->event[i].event, "peer_lags") != 0 || !end)
			continue;
		for (at = 0; at < n; at++)
			if (found[at].len == end - name &&
				memcmp(found[at].name, name, (size_t)(end - name)) == 0)
				break;
		if (at == LAGGING)
			continue;
		if (at == n)
			found[n++] = (struct lagging){name, (int)(end - name), 0};
		found[at].times++;
	}
	return n;
}

static void say_lagging(const struct cop_jobdata *j, struct cop_buf *out)
{
	struct lagging found[LAGGING];
	unsigned n = find_lagging(j, found);

	if (!n)
		return;
	cop_buf_str(out, "<p class=\"warning\">");
	for (unsigned i = 0; i < n; i++)
		cop_html_printf(out, "%s%.*s (%u)",
			i ? ", " : "Left because of silence: ", found[i].len, found[i].name,
			found[i].times);
	cop_buf_str(out, ".</p>\n");
}

/* Unusual events first; usual ones fill the remaining rows. */
static void rows(const struct cop_jobdata *j, bool usual, unsigned *left, struct cop_buf *out)
{
	for (size_t i = 0; i < j->events && *left; i++) {
		const struct cop_jobdata_event *e = &j->event[i];
		char text[PAGE_LABEL];

		if (is_usual(e->event) != usual)
			continue;
		(*left)--;
		cop_html_row(out);
		cop_html_cell_number(out, cop_html_time, e->time_s);
		if (e->rank >= 0)
			cop_page_label(e->rank, e->host, text);
		else
			*text = '\0';
		cop_html_cell(out, text);
		cop_html_cell(out, e->event);
		cop_html_cell_path(out, e->detail, strlen(e->detail));
		cop_html_row_end(out);
	}
}

void cop_page_events(const struct cop_page *p, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"time", true}, {"node", false}, {"event", false}, {"detail", false}};
	const struct cop_jobdata *j = p->job;
	unsigned left = LISTED;
	char a[COP_HTML_NUMBER];

	if (!j->events) {
		cop_page_no_telemetry(out, p, "What happened on the way");
		return;
	}
	say_kinds(j, out);
	say_lagging(j, out);
	cop_buf_str(out, "<details><summary>All of them</summary>\n");
	cop_html_table(out, "Events, failures first", col, COP_ARRAY_SIZE(col));
	rows(j, false, &left, out);
	rows(j, true, &left, out);
	cop_html_table_end(out);
	cop_buf_str(out, "</details>\n");
	if (j->events > LISTED || j->events_dropped)
		cop_page_say(out, "%s more events are not listed.",
			cop_html_count(
				(double)j->events_dropped +
					(j->events > LISTED ? (double)(j->events - LISTED) : 0),
				a));
}
