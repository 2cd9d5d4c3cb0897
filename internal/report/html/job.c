/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections on the job and its machine. */
#include <math.h>
#include <time.h>

#include "report/html/html_priv.h"

/* ---- key figures of the job ---- */

struct sums {
	double requests, read_bytes, storage_operations, storage_bytes, between_bytes;
	double hits, misses, latency_s, seconds, memory;
};

static double either(double a, double b)
{
	return isnan(a) ? b : a;
}

/* Time of the last report of any node. */
static double seconds_of(const struct cop_jobdata *j)
{
	double s = NAN;

	for (size_t i = 0; i < j->node_n; i++)
		s = fmax(s, j->node[i].stopped_s);
	return s;
}

static double most_memory(const struct cop_jobdata *j)
{
	double most = NAN;

	for (size_t i = 0; i < j->node_n; i++)
		most = fmax(most, j->node[i].resident_peak_bytes);
	return most;
}

static struct sums sum_nodes(const struct cop_jobdata *j)
{
	struct sums s = {.requests = PAGE_SUM(j, requests),
		.read_bytes = PAGE_SUM(j, read_bytes),
		.storage_operations = PAGE_SUM(j, origin_operations),
		.storage_bytes = PAGE_SUM(j, origin_bytes),
		.between_bytes = PAGE_SUM(j, parent_bytes),
		.hits = cop_jobdata_value(&j->metrics, "total_cache_hits"),
		.misses = cop_jobdata_value(&j->metrics, "total_cache_misses"),
		.latency_s = cop_jobdata_value(&j->metrics, "total_measured_latency_seconds"),
		.seconds = seconds_of(j),
		.memory = most_memory(j)};

	s.requests =
		either(cop_jobdata_value(&j->metrics, "total_counted_fuse_operations"), s.requests);
	s.storage_operations =
		either(cop_jobdata_value(&j->metrics, "storage_operations"), s.storage_operations);
	s.storage_bytes = either(cop_jobdata_value(&j->metrics, "storage_bytes"), s.storage_bytes);
	s.between_bytes = either(cop_jobdata_value(&j->fabric, "fabric_bytes_in"), s.between_bytes);
	return s;
}

static void lead(struct cop_buf *out, const struct cop_page *p, const struct sums *s)
{
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER], c[COP_HTML_NUMBER];
	uint64_t nodes = p->job->nodes ? p->job->nodes : p->job->ranks;

	if (isnan(s->requests))
		return;
	cop_buf_str(out, "<p class=\"good\">");
	cop_html_printf(out, "The programs%s made %s requests%s%s",
		nodes > 1 ? " of all nodes" : "", cop_html_count(s->requests, a),
		isnan(s->read_bytes) ? "" : " and read ",
		isnan(s->read_bytes) ? "" : cop_html_size(s->read_bytes, b));
	if (!isnan(s->storage_operations))
		cop_html_printf(out, "; the storage saw %s operations and gave %s",
			cop_html_count(s->storage_operations, a),
			cop_html_size(s->storage_bytes, c));
	if (nodes > 1 && s->between_bytes > 0)
		cop_html_printf(out, ", and the nodes gave each other %s",
			cop_html_size(s->between_bytes, a));
	cop_buf_str(out, ".</p>\n");
}

static void card(struct cop_buf *out, const char *name, const char *value, const char *besides)
{
	if (strcmp(value, "-") == 0)
		return;
	cop_buf_printf(out, "<div><dt>%s</dt><dd>", name);
	cop_html_text(out, value);
	if (*besides) {
		cop_buf_str(out, " <small>");
		cop_html_text(out, besides);
		cop_buf_str(out, "</small>");
	}
	cop_buf_str(out, "</dd></div>\n");
}

static void cards(struct cop_buf *out, const struct cop_jobdata *j, const struct sums *s)
{
	char a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];

	cop_buf_str(out, "<dl class=\"cards\">\n");
	if (j->nodes || j->ranks)
		card(out, "nodes", cop_html_count(j->nodes ? j->nodes : j->ranks, a), "");
	card(out, "time", cop_html_time(s->seconds, a), "");
	card(out, "requests of programs", cop_html_count(s->requests, a), "");
	card(out, "answered from memory", cop_html_share(s->hits, s->hits + s->misses, a),
		"of what a cache can answer");
	card(out, "time in requests", cop_html_time(s->latency_s, a), "all of them added up");
	card(out, "asked of the storage", cop_html_count(s->storage_operations, a),
		isnan(s->storage_bytes) ? "" : cop_html_size(s->storage_bytes, b));
	if (s->between_bytes > 0)
		card(out, "from node to node", cop_html_size(s->between_bytes, a), "");
	card(out, "memory of a node", cop_html_size(s->memory, a), "the most of any node");
	cop_buf_str(out, "</dl>\n");
}

/* ---- facts ---- */

static void fact(struct cop_buf *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	cop_buf_str(out, "<dt>");
	cop_html_text(out, name);
	cop_buf_str(out, "</dt><dd>");
	cop_html_text(out, value);
	cop_buf_str(out, "</dd>\n");
}

static void profile_fact(struct cop_buf *out, const struct cop_jobdata *j)
{
	char text[64];

	if (!j->has_profile_lines)
		return;
	snprintf(text, sizeof(text), "%s%s",
		!j->profile     ? "none"
		: j->paths_full ? "every path (-A)"
				: "counts (-P)",
		j->top_n ? ", top paths (-N)" : "");
	fact(out, "profile", text);
}

static void tree_fact(struct cop_buf *out, const struct cop_jobdata *j)
{
	char text[64];

	if (j->nodes < 2 || !j->fanout)
		return;
	snprintf(text, sizeof(text), "%u tree%s, at most %u children each", j->trees,
		j->trees == 1 ? "" : "s", j->fanout);
	fact(out, "shape", text);
}

static void version_fact(struct cop_buf *out, const struct cop_jobdata *j)
{
	char text[256];

	if (!j->version)
		return;
	snprintf(text, sizeof(text), "%.100s%s%.100s%s", j->version, j->build ? " (" : "",
		j->build ? j->build : "", j->build ? ")" : "");
	fact(out, "Copper", text);
}

static void facts(struct cop_buf *out, const struct cop_page *p)
{
	const struct cop_jobdata *j = p->job;

	cop_buf_str(out, "<dl class=\"facts\">\n");
	fact(out, "source", j->source);
	fact(out, "job directory", j->dir);
	fact(out, "first host", j->first_host);
	fact(out, "state", j->state);
	tree_fact(out, j);
	fact(out, "network", j->provider ? j->provider : j->net_type);
	profile_fact(out, j);
	version_fact(out, j);
	for (size_t i = 0; p->run && i < p->run->list[COP_RUNREC_RESOURCE].n; i++) {
		const struct cop_runrec_pair *pair = &p->run->list[COP_RUNREC_RESOURCE].at[i];

		if (strncmp(pair->key, "service.", 8) != 0 &&
			strncmp(pair->key, "process.", 8) != 0)
			fact(out, pair->key, pair->value);
	}
	cop_buf_str(out, "</dl>\n");
}

/* Says which files the numbers come from. */
static void origin(struct cop_buf *out, const struct cop_jobdata *j)
{
	char n[COP_HTML_NUMBER], when[64] = "";
	time_t t = (time_t)j->folder_unix_s;
	struct tm tm;

	if (j->from == COP_JOBDATA_NOTHING)
		return;
	if (localtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	if (j->from == COP_JOBDATA_SNAPSHOT)
		cop_page_missing(out,
			"These are counts of a snapshot of %s, in %s: the job had not ended, or did not write its sums",
			when, j->folder);
	else if (j->from == COP_JOBDATA_RANKS)
		cop_page_missing(out,
			"The job wrote no sums: the files of %s ranks in %s are added up here",
			cop_html_count((double)j->ranks, n), j->folder);
	if (j->nodes && j->ranks && j->ranks < j->nodes)
		cop_page_missing(out, "Only %s of the %u nodes are in the sums",
			cop_html_count((double)j->ranks, n), j->nodes);
	if (j->faults)
		cop_page_missing(out, "%s files could not be used: copper aggregate names them",
			cop_html_count((double)j->faults, n));
}

void cop_page_job(const struct cop_page *p, struct cop_buf *out)
{
	struct sums s = sum_nodes(p->job);

	lead(out, p, &s);
	cards(out, p->job, &s);
	origin(out, p->job);
	facts(out, p);
}
