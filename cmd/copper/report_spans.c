/* SPDX-License-Identifier: BSD-3-Clause */
/* The spans of a job's programs, for its report. */
#include "report_spans.h"

#include <dirent.h>
#include <sys/stat.h>

#include "trace/read/read.h"

#define KEPT 4000u       /* the longest spans are kept */
#define HELD (4u * KEPT) /* while files are read */
#define FILES_MAX 10000u

struct span {
	struct cop_page_span page;
	uint64_t process; /* a hash; 0: Copper */
	char called[COP_PAGE_SPAN_NAME];
	int64_t from_ns;
	uint64_t for_ns;
	int64_t first_ns; /* of its process */
};

struct reading {
	struct cop_trace_files *files;
	const char *own; /* Copper's own file */
	struct span *span;
	size_t n;
	uint64_t shorter, elsewhen;
	int64_t job_from_ns, job_to_ns; /* of Copper's span of the job; 0: unknown */
};

/* ---- which files ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), of = strlen(end);

	return len > of && strcmp(name + len - of, end) == 0;
}

static void add_path(char **path, size_t *n, const char *dir, const char *name)
{
	struct stat st;

	if (*n == FILES_MAX || asprintf(&path[*n], "%s/%s", dir, name) < 0)
		return;
	/* Opening a pipe would block. */
	if (stat(path[*n], &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		free(path[*n]);
	else
		++*n;
}

static size_t find_paths(const char *dir, char **path)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	add_path(path, &n, dir, "otel");
	while (d && (e = readdir(d)))
		if (ends_in(e->d_name, ".jsonl") || ends_in(e->d_name, ".json"))
			add_path(path, &n, dir, e->d_name);
	if (d)
		closedir(d);
	return n;
}

/* ---- their content ---- */

static void copy(char to[COP_PAGE_SPAN_NAME], struct cop_trace_str from)
{
	size_t n = COP_MIN(from.len, COP_PAGE_SPAN_NAME - 1u);

	while (n && n < from.len && ((unsigned char)from.at[n] & 0xc0) == 0x80)
		n--;
	memcpy(to, from.at, n);
	to[n] = '\0';
}

/* "rank 3", "n007 4711", or by default the name of the file. */
static void name_process(const struct reading *r, const struct cop_trace_event *e, struct span *s)
{
	const char *file = cop_trace_files_name(r->files, e->source), *slash = strrchr(file, '/');
	size_t owner = cop_trace_owner(e);

	s->process = cop_hash64(e->host.at, e->host.len, owner);
	s->process = cop_hash64(e->pid.at, e->pid.len, s->process) | 1;
	if (e->rank.len)
		snprintf(s->called, sizeof(s->called), "rank %.*s", (int)COP_MIN(e->rank.len, 20u),
			e->rank.at);
	else if (e->host.len)
		snprintf(s->called, sizeof(s->called), "%.*s %.*s", (int)COP_MIN(e->host.len, 60u),
			e->host.at, (int)COP_MIN(e->pid.len, 20u), e->pid.at);
	else
		snprintf(s->called, sizeof(s->called), "%.90s", slash ? slash + 1 : file);
}

static int longest_first(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	/* Keeps Copper's own spans, which are few. */
	if (!x->process != !y->process)
		return x->process ? 1 : -1;
	return (x->for_ns < y->for_ns) - (x->for_ns > y->for_ns);
}

static void drop_shortest(struct reading *r)
{
	if (r->n <= KEPT)
		return;
	qsort(r->span, r->n, sizeof(*r->span), longest_first);
	r->shorter += r->n - KEPT;
	r->n = KEPT;
}

static void add_span(struct reading *r, const struct cop_trace_event *e)
{
	bool own = r->own && strcmp(cop_trace_files_name(r->files, e->source), r->own) == 0;
	struct span *s;

	if (e->kind != COP_TRACE_SPAN)
		return;
	if (own && cop_trace_str_is(e->name, "copper.job")) {
		r->job_from_ns = e->ts_ns;
		r->job_to_ns = e->ts_ns + (int64_t)e->dur_ns;
		return;
	}
	if (r->n == HELD)
		drop_shortest(r);
	s = &r->span[r->n++];
	*s = (struct span){.from_ns = e->ts_ns, .for_ns = e->dur_ns};
	copy(s->page.name, e->name);
	if (!own)
		name_process(r, e, s);
}

static int add_batch(void *arg, unsigned worker, const struct cop_trace_event *event, size_t n)
{
	(void)worker;
	for (size_t i = 0; i < n; i++)
		add_span(arg, &event[i]);
	return 0;
}

static void read_files(struct reading *r, char **path, size_t n)
{
	struct cop_trace_conf conf = {.threads = 1, .args = true, .batch = add_batch, .arg = r};
	struct cop_trace_result result;
	struct cop_buf notes = {0};
	struct cop_err err;

	if (cop_trace_files_new(path, n, &r->files, &notes, &err) == 0)
		(void)cop_trace_read(r->files, &conf, &result, &notes, &err);
	cop_buf_free(&notes);
}

/* ---- sorting ---- */

/* A program may have appended to a file of an earlier job. */
static void drop_elsewhen(struct reading *r, int64_t from_ns)
{
	size_t to = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct span *s = &r->span[i];
		int64_t end_ns = s->from_ns + (int64_t)s->for_ns;

		if (end_ns < from_ns || (r->job_to_ns && s->from_ns > r->job_to_ns))
			r->elsewhen++;
		else
			r->span[to++] = *s;
	}
	r->n = to;
}

static int by_process(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int by_first(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (!x->process != !y->process)
		return x->process ? 1 : -1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return longest_first(a, b);
}

/* Processes in the order of their first spans. */
static void sort_spans(struct reading *r)
{
	qsort(r->span, r->n, sizeof(*r->span), by_process);
	for (size_t i = 0; i < r->n; i++)
		r->span[i].first_ns = i && r->span[i].process == r->span[i - 1].process
					      ? r->span[i - 1].first_ns
					      : r->span[i].from_ns;
	qsort(r->span, r->n, sizeof(*r->span), by_first);
}

static int64_t begin_of(const struct reading *r, const struct cop_jobdata *job)
{
	if (r->job_from_ns)
		return r->job_from_ns;
	return job->began_unix_s > 0 ? (int64_t)(job->began_unix_s * 1e9) : INT64_MIN;
}

static int fill_page(struct reading *r, const struct cop_jobdata *job, int64_t from_ns,
	struct cop_page_spans *out)
{
	out->at = calloc(r->n + 1, sizeof(*out->at));
	out->process = calloc(r->n + 1, sizeof(*out->process));
	if (!out->at || !out->process)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		from_ns = COP_MIN(from_ns, r->span[i].from_ns);
	out->processes = 1;
	out->seconds = r->job_to_ns ? (double)(r->job_to_ns - from_ns) / 1e9 : 1e-3;
	for (size_t i = 0; i < r->n; i++) {
		const struct span *s = &r->span[i];
		struct cop_page_span *to = &out->at[out->n++];

		*to = s->page;
		to->from_s = (double)(s->from_ns - from_ns) / 1e9;
		to->for_s = (double)s->for_ns / 1e9;
		out->seconds = COP_MAX(out->seconds, to->from_s + to->for_s);
		if (!s->process)
			continue;
		if (!i || s->process != r->span[i - 1].process)
			memcpy(out->process[out->processes++], s->called, sizeof(s->called));
		to->process = out->processes - 1;
	}
	out->shorter = r->shorter;
	out->elsewhen = r->elsewhen;
	out->job_s = job->began_unix_s - (double)from_ns / 1e9;
	return 0;
}

int cop_cmd_report_spans(const struct cop_jobdata *job, struct cop_page_spans *out)
{
	struct reading r = {0};
	char **path = calloc(FILES_MAX, sizeof(*path)), *own = NULL;
	size_t n = path ? find_paths(job->dir, path) : 0;
	int64_t from_ns;
	int rc = 0;

	*out = (struct cop_page_spans){0};
	r.span = calloc(HELD, sizeof(*r.span));
	if (!path || !r.span || asprintf(&own, "%s/otel/traces.jsonl", job->dir) < 0)
		rc = -ENOMEM;
	r.own = own;
	if (!rc && n) {
		read_files(&r, path, n);
		from_ns = begin_of(&r, job);
		drop_elsewhen(&r, from_ns);
		drop_shortest(&r);
		sort_spans(&r);
		rc = fill_page(&r, job, from_ns == INT64_MIN ? INT64_MAX : from_ns, out);
	}
	cop_trace_files_free(r.files);
	free(r.span);
	free(own);
	for (size_t i = 0; i < n; i++)
		free(path[i]);
	free(path);
	return rc;
}

void cop_cmd_report_spans_free(struct cop_page_spans *s)
{
	free(s->at);
	free(s->process);
}
