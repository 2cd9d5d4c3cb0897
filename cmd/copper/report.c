/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/stat.h>
#include <dirent.h>

#include "cmd.h"
#include "report/jobdata/jobdata.h"
#include "base/opt/opt.h"
#include "report/html/html.h"
#include "writers/runs/runs.h"
#include "trace/read/read.h"

/* The spans of a job's programs, for its report. */

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

/* Names the process, for example "rank 3" or "n007 4711"; by default, after the file. */
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

	/* Always keep Copper's own spans, which are few. */
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

/* A program may have appended its spans to the file of an earlier job. */
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

/* Numbers the processes in the order of their first spans. */
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

/* Reads the spans in JOBDIR/otel and in the files *.json and *.jsonl in JOBDIR itself. Unreadable
 * files and files without spans count as empty. The caller frees out. Returns 0 or -ENOMEM. */
static int read_spans(const struct cop_jobdata *job, struct cop_page_spans *out)
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

static void free_spans(struct cop_page_spans *s)
{
	free(s->at);
	free(s->process);
}

#define COMPARED_MAX 5
#define RUNS_LOOKED_AT 200 /* most recent runs in the store */

struct args {
	const char *job_dir, *output, *store;
	bool force;
	struct cop_opt_list compare;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "output", struct args, output, "the page; - is stdout", .letter = 'o',
		.arg = "FILE", .shown = "JOBDIR/report.html"),
	COP_OPT(FLAG, "force", struct args, force, "replace FILE if it exists"),
	COP_OPT(STRING, "store", struct args, store, "compare with the previous run", .arg = "FILE",
		.shown = "$COPPER_STORE"),
	COP_OPT(LIST, "compare", struct args, compare,
		"plot the metrics of this run as well; repeatable", .arg = "ID"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, job_dir), .required = true}};

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;
	const char *store = a->store ? a->store : getenv("COPPER_STORE");

	if (a->compare.n > COMPARED_MAX)
		return cop_err_set(err, EINVAL, "--compare: at most %d runs can be drawn beside",
			COMPARED_MAX);
	return a->compare.n && (!store || !*store)
		       ? cop_err_set(err, EINVAL, "--compare needs --store FILE, or $COPPER_STORE")
		       : 0;
}

static const struct cop_opt_table table = {.command = "copper report",
	.check = check,
	.summary = "write an HTML report of a finished job",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

static int print_failure(const char *text)
{
	fprintf(stderr, "%s: %s\n", table.command, text);
	return 1;
}

/* ---- the run store ---- */

static bool is_param(const struct cop_runrec *r, const char *key, const char *value)
{
	const char *has = cop_runrec_value(r, COP_RUNREC_PARAM, key);

	return has && value && strcmp(has, value) == 0;
}

/* Whether this is the run's job directory, even if it is spelled differently. */
static bool is_of(const struct cop_runrec *r, const char *dir)
{
	const char *has = cop_runrec_value(r, COP_RUNREC_PARAM, "job-dir");
	char *real = has ? realpath(has, NULL) : NULL;
	bool same = has && (strcmp(has, dir) == 0 || (real && strcmp(real, dir) == 0));

	free(real);
	return same;
}

/* Walks the list, newest first, to find this job's run and then the next one with the same
 * source. */
static void find_runs(struct cop_store *s, const char *dir, struct cop_runrec *run,
	struct cop_runrec *before, struct cop_err *err)
{
	struct cop_store_filter all = {0};
	struct cop_store_runs runs = {0};
	int rc = cop_store_runs(s, &all, &runs, err);

	for (size_t i = 0; !rc && i < runs.n && i < RUNS_LOOKED_AT && !*before->id; i++) {
		struct cop_runrec one = {0};

		rc = cop_store_load(s, runs.at[i].id, &one, err);
		if (!rc && !*run->id && is_of(&one, dir))
			*run = one;
		else if (!rc && *run->id &&
			 is_param(
				 &one, "source", cop_runrec_value(run, COP_RUNREC_PARAM, "source")))
			*before = one;
		else
			cop_runrec_free(&one);
	}
	cop_store_runs_free(&runs);
}

/* Loads the runs to compare with. */
static int load_compared(
	struct cop_store *s, const struct args *a, struct cop_runrec *out, struct cop_err *err)
{
	char id[COP_RUNREC_ID_LEN + 1];
	int rc = 0;

	for (unsigned i = 0; i < a->compare.n && !rc; i++) {
		rc = cop_store_find(s, a->compare.at[i], id, err);
		rc = rc ? rc : cop_store_load(s, id, &out[i], err);
	}
	return rc;
}

/* An unreadable store is reported in a section of the page and is not an error. */
static int look_into_store(const struct args *a, struct cop_page *page, struct cop_runrec *run,
	struct cop_runrec *before, struct cop_runrec *compared)
{
	struct cop_store *s = NULL;
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = 0;

	if (!cop_store_open(page->store, &s, &notes, &err)) {
		find_runs(s, page->job->dir, run, before, &err);
		rc = load_compared(s, a, compared, &err);
	}
	if (notes.data)
		fputs(notes.data, stderr);
	if (err.code)
		print_failure(err.text);
	cop_buf_free(&notes);
	cop_store_close(s);
	page->run = *run->id ? run : NULL;
	page->before = *before->id ? before : NULL;
	page->compared = compared;
	page->compared_n = a->compare.n;
	return rc;
}

/* ---- the file ---- */

static int check_output(const char *file, bool force)
{
	struct stat st;

	if (lstat(file, &st))
		return errno == ENOENT ? 0
				       : (fprintf(stderr, "%s: %s: %s\n", table.command, file,
						  strerror(errno)),
						 1);
	if (S_ISDIR(st.st_mode)) {
		fprintf(stderr, "%s: %s is a directory: name a file with -o\n", table.command,
			file);
		return 1;
	}
	if (force)
		return 0;
	fprintf(stderr, "%s: %s exists: --force replaces it, -o FILE names another\n",
		table.command, file);
	return 1;
}

static int write_page(const char *file, const struct cop_buf *text)
{
	int rc;

	if (strcmp(file, "-") == 0)
		return cop_cmd_print(table.command, text, NULL);
	rc = cop_write_file(file, text->data, text->len, 0644);
	if (rc) {
		fprintf(stderr, "%s: cannot write %s: %s; -o FILE names another place\n",
			table.command, file, strerror(-rc));
		return 1;
	}
	printf("%s\n", file);
	return fflush(stdout) ? 1 : 0;
}

static int make_page(const struct args *a, const struct cop_jobdata *job, struct cop_buf *out)
{
	struct cop_page_spans spans = {0};
	struct cop_page page = {.job = job, .store = a->store, .spans = &spans};
	struct cop_runrec run = {0}, before = {0}, compared[COMPARED_MAX] = {0};
	int rc = 0;

	if (!page.store)
		page.store = getenv("COPPER_STORE");
	if (page.store && !*page.store)
		page.store = NULL;
	if (page.store)
		rc = look_into_store(a, &page, &run, &before, compared);
	if (!rc && (read_spans(job, &spans) || cop_page_write(&page, out)))
		rc = print_failure("out of memory");
	free_spans(&spans);
	cop_runrec_free(&run);
	cop_runrec_free(&before);
	for (unsigned i = 0; i < COMPARED_MAX; i++)
		cop_runrec_free(&compared[i]);
	return rc ? 1 : 0;
}

int cop_cmd_report(int argc, char **argv)
{
	struct cop_jobdata job = {0};
	struct cop_buf text = {0};
	struct cop_err err = {0};
	struct args a = {0};
	char *file = NULL;
	int code;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	if (asprintf(&file, a.output ? "%s" : "%s/report.html", a.output ? a.output : a.job_dir) <
		0)
		return print_failure("out of memory");
	code = cop_jobdata_read(a.job_dir, &job, &err) ? print_failure(err.text) : 0;
	if (!code && strcmp(file, "-") != 0)
		code = check_output(file, a.force);
	code = code ? code : make_page(&a, &job, &text);
	code = code ? code : write_page(file, &text);
	cop_buf_free(&text);
	cop_jobdata_free(&job);
	free(file);
	return code;
}
