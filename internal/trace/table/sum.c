/* SPDX-License-Identifier: BSD-3-Clause */
/* Distinct items are counted with tables, too: such a table gets events that have only the key.
 * Processes and threads are identified as in merge. */
#include "trace/table/sum_priv.h"

#include <math.h>

struct devices {
	struct device *first;
};

/* Devices in a torch trace run kernels, communication kernels and copies. torch.profiler writes one
 * file per rank, in which a device is a process whose pid is the device number. Kernels and copies
 * differ by category (kernel, gpu_memcpy, gpu_memset); kernels of collective libraries have nccl,
 * rccl or the like in their names. */

enum { KIND_KERNEL, KIND_COMM, KIND_COPY, KINDS };

struct device {
	struct device *next;
	size_t source;
	struct cop_union of[KINDS];
	int64_t first, last;
	uint64_t kernels;
	size_t rank_len, pid_len;
	char text[]; /* rank, pid */
};

static bool is_word(struct cop_trace_str s, const char *word)
{
	return s.len == strlen(word) && !strncasecmp(s.at, word, s.len);
}

static bool has_word(struct cop_trace_str s, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= s.len; i++)
		if (!strncasecmp(s.at + i, word, len))
			return true;
	return false;
}

/* Returns KINDS for an event that is not a device's. */
static unsigned kind_of(const struct cop_trace_event *e)
{
	if (!e->cat.len || !strchr("kKgGmM", e->cat.at[0]))
		return KINDS;
	if (is_word(e->cat, "kernel"))
		return has_word(e->name, "nccl") || has_word(e->name, "rccl") ||
				       has_word(e->name, "oneccl")
			       ? KIND_COMM
			       : KIND_KERNEL;
	if (is_word(e->cat, "gpu_memcpy") || is_word(e->cat, "gpu_memset") ||
		is_word(e->cat, "memcpy") || is_word(e->cat, "memset"))
		return KIND_COPY;
	return KINDS;
}

static bool devices_is_kernel(const struct cop_trace_event *e)
{
	return kind_of(e) <= KIND_COMM;
}

static bool is_of(const struct device *d, const struct cop_trace_event *e)
{
	return d->source == e->source && d->pid_len == e->pid.len &&
	       !memcmp(d->text + d->rank_len, e->pid.at, e->pid.len);
}

/* Moves the device to the front of the list, so the one used last is found first. */
static struct device *find_device(struct devices *all, const struct cop_trace_event *e)
{
	struct device **at = &all->first, *d;

	while (*at && !is_of(*at, e))
		at = &(*at)->next;
	d = *at;
	if (d) {
		*at = d->next;
	} else {
		d = calloc(1, sizeof(*d) + e->rank.len + e->pid.len);
		if (!d)
			return NULL;
		*d = (struct device){.source = e->source,
			.first = INT64_MAX,
			.last = INT64_MIN,
			.rank_len = e->rank.len,
			.pid_len = e->pid.len};
		memcpy(d->text, e->rank.at, e->rank.len);
		memcpy(d->text + d->rank_len, e->pid.at, e->pid.len);
	}
	d->next = all->first;
	all->first = d;
	return d;
}

/* Adds an event of a device; ignores all others. -ENOMEM. */
static int devices_add(struct devices *all, const struct cop_trace_event *e)
{
	unsigned kind = e->kind == COP_TRACE_SPAN ? kind_of(e) : KINDS;
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;
	struct device *d;

	if (kind == KINDS)
		return 0;
	d = find_device(all, e);
	if (!d)
		return -ENOMEM;
	d->first = COP_MIN(d->first, e->ts_ns);
	d->last = COP_MAX(d->last, end);
	d->kernels += kind <= KIND_COMM;
	return cop_union_add(&d->of[kind], e->ts_ns, end);
}

static void device_free(struct device *d)
{
	for (unsigned k = 0; k < KINDS; k++)
		cop_union_free(&d->of[k]);
	free(d);
}

static void devices_free(struct devices *all)
{
	while (all->first) {
		struct device *next = all->first->next;

		device_free(all->first);
		all->first = next;
	}
}

static int merge_device(struct devices *to, struct device *d)
{
	const struct cop_trace_event like = {.source = d->source,
		.rank = {d->text, d->rank_len},
		.pid = {d->text + d->rank_len, d->pid_len}};
	struct device *same = find_device(to, &like);
	int rc = same ? 0 : -ENOMEM;

	if (!same)
		return rc;
	same->first = COP_MIN(same->first, d->first);
	same->last = COP_MAX(same->last, d->last);
	same->kernels += d->kernels;
	for (unsigned k = 0; k < KINDS && !rc; k++)
		rc = cop_union_merge(&same->of[k], &d->of[k]);
	return rc;
}

static int devices_merge(struct devices *to, struct devices *from)
{
	int rc = 0;

	for (struct device *d = from->first; d && !rc; d = d->next)
		rc = merge_device(to, d);
	return rc;
}

/* ---- output ---- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static struct cop_trace_str keep(const char *at, size_t len)
{
	char *copy = len ? strndup(at, len) : NULL;

	return (struct cop_trace_str){copy ? copy : "", copy ? len : 0};
}

static int describe(struct device *d, struct cop_sum_device *out)
{
	struct cop_union busy = {0};
	uint64_t comm = cop_union_length(&d->of[KIND_COMM]);
	int rc = 0;

	for (unsigned k = 0; k < KINDS && !rc; k++)
		rc = cop_union_merge(&busy, &d->of[k]);
	*out = (struct cop_sum_device){.rank = keep(d->text, d->rank_len),
		.device = keep(d->text + d->rank_len, d->pid_len),
		.source = d->source,
		.total_s = seconds((uint64_t)(d->last - d->first)),
		.kernels_s = seconds(cop_union_length(&d->of[KIND_KERNEL])),
		.communication_s = seconds(comm),
		.copies_s = seconds(cop_union_length(&d->of[KIND_COPY])),
		.overlap_s =
			seconds(comm - cop_union_alone(&d->of[KIND_COMM], &d->of[KIND_KERNEL])),
		.kernels = d->kernels};
	out->idle_s = out->total_s - seconds(cop_union_length(&busy));
	cop_union_free(&busy);
	return rc;
}

static int by_rank(const void *p, const void *q)
{
	const struct cop_sum_device *a = p, *b = q;
	struct cop_row x = {.key = {a->rank, a->device}}, y = {.key = {b->rank, b->device}};
	int c = cop_row_compare(&x, &y, 1);

	c = c ? c : (a->source > b->source) - (a->source < b->source);
	return c ? c : cop_row_compare(&x, &y, 2);
}

static int devices_finish(struct devices *all, struct cop_sum_result *out)
{
	size_t n = 0;
	int rc = 0;

	for (struct device *d = all->first; d; d = d->next)
		n++;
	out->device = calloc(n + 1, sizeof(*out->device));
	if (!out->device)
		return -ENOMEM;
	for (struct device *d = all->first; d && !rc; d = d->next)
		rc = describe(d, &out->device[out->devices++]);
	qsort(out->device, out->devices, sizeof(*out->device), by_rank);
	return rc;
}

enum { TAB_FUNCTIONS, TAB_INTERVALS, TAB_FILES, TAB_HOSTS, TAB_OPEN, TAB_KERNELS, TABS };

struct tally { /* one per thread */
	uint64_t spans, instants, counters, flows, unfinished;
	int64_t first, last;
	struct cop_union of[COP_CLASSES_MAX];
	struct devices devices;
};
struct cop_sum {
	struct cop_sum_conf conf;
	struct cop_tab *tab[TABS];
	struct seen *seen; /* one per thread */
	struct tally tally[];
};

static const struct {
	const char *keys, *cols;
} tables[TABS] = {
	[TAB_FUNCTIONS] = {"name",
		"count,dur,size,size:min,size:25%,size:mean,size:50%,size:75%,size:max"},
	[TAB_INTERVALS] = {"interval", "count,dur,size,size:mean,bandwidth"},
	[TAB_FILES] = {"file", "count"},
	[TAB_HOSTS] = {"host", "count"},
	[TAB_OPEN] = {"name,cat,process,thread", "unfinished,first"},
	[TAB_KERNELS] = {"name", "count,dur,dur:mean,dur:max"},
};

static int make_tables(struct cop_sum *s)
{
	for (unsigned i = 0; i < TABS; i++) {
		struct cop_tab_conf conf = {
			.interval_ns = s->conf.interval_ns, .files = s->conf.files};

		cop_tab_keys(tables[i].keys, false, &conf, NULL);
		cop_tab_cols(tables[i].cols, &conf, NULL);
		s->tab[i] = cop_tab_new(&conf, s->conf.threads, s->conf.first_ns);
		if (!s->tab[i])
			return -ENOMEM;
	}
	return 0;
}

struct cop_sum *cop_sum_new(const struct cop_sum_conf *conf)
{
	struct cop_sum *s = calloc(1, sizeof(*s) + conf->threads * sizeof(s->tally[0]));

	if (!s)
		return NULL;
	s->conf = *conf;
	for (unsigned i = 0; i < conf->threads; i++) {
		s->tally[i].first = INT64_MAX;
		s->tally[i].last = INT64_MIN;
	}
	s->seen = calloc(conf->threads, sizeof(*s->seen));
	if (!s->seen || make_tables(s)) {
		cop_sum_free(s);
		return NULL;
	}
	return s;
}

void cop_sum_free(struct cop_sum *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < TABS; i++)
		cop_tab_free(s->tab[i]);
	for (unsigned i = 0; i < s->conf.threads; i++) {
		for (unsigned k = 0; k < COP_CLASSES_MAX; k++)
			cop_union_free(&s->tally[i].of[k]);
		devices_free(&s->tally[i].devices);
		if (s->seen)
			cop_seen_free(&s->seen[i]);
	}
	free(s->seen);
	free(s);
}

/* ---- events ---- */

/* Adds an event that has only a key. */
static int count(struct cop_sum *s, unsigned tab, unsigned worker, struct cop_trace_str file,
	struct cop_trace_str host)
{
	const struct cop_trace_str none = {"", 0};
	struct cop_trace_event e = {.kind = COP_TRACE_SPAN,
		.name = none,
		.cat = none,
		.pid = none,
		.tid = none,
		.file = file,
		.host = host,
		.count = 1};

	return file.len + host.len ? cop_tab_add(s->tab[tab], worker, &e) : 0;
}

static int add_classes(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct tally *t = &s->tally[worker];
	int64_t end = e->ts_ns + (int64_t)e->dur_ns;
	int rc = 0;

	t->first = COP_MIN(t->first, e->ts_ns);
	t->last = COP_MAX(t->last, end);
	for (unsigned i = 0; i < cop_classes_count(s->conf.classes) && !rc; i++)
		if (e->kind == COP_TRACE_SPAN && cop_classes_test(s->conf.classes, i, worker, e))
			rc = cop_union_add(&t->of[i], e->ts_ns, end);
	return rc;
}

/* Counts the file and host of an event; without a pass for names, only if the event names them
 * directly. */
static int add_places(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};
	int rc = 0;

	if (s->conf.names || !e->host_is_hash)
		rc = count(s, TAB_HOSTS, worker, none, e->host);
	if (!rc && (s->conf.names || !e->file_is_hash))
		rc = count(s, TAB_FILES, worker, e->file, none);
	return rc;
}

static int add_span(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct tally *t = &s->tally[worker];
	int rc = cop_tab_add(s->tab[TAB_FUNCTIONS], worker, e);

	t->spans += e->count;
	t->flows += e->flow_in || e->flow_out;
	if (!rc)
		rc = add_classes(s, worker, e);
	if (!rc && cop_sum_is_posix(e))
		rc = cop_tab_add(s->tab[TAB_INTERVALS], worker, e);
	if (!rc)
		rc = devices_add(&t->devices, e);
	if (!rc && devices_is_kernel(e))
		rc = cop_tab_add(s->tab[TAB_KERNELS], worker, e);
	return rc ? rc : add_places(s, worker, e);
}

/* Adds a begin event with no end. It may name a file, but its duration is not known. */
static int add_open(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	int rc = cop_tab_add(s->tab[TAB_OPEN], worker, e);

	s->tally[worker].unfinished++;
	return rc ? rc : add_places(s, worker, e);
}

/* Without a pass for names, counts the names that the traces define. */
static int add_defined(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	const struct cop_trace_str none = {"", 0};

	if (e->name.len != 2 || e->name.at[1] != 'H')
		return 0;
	if (e->name.at[0] == 'F')
		return count(s, TAB_FILES, worker, e->of, none);
	return e->name.at[0] == 'H' ? count(s, TAB_HOSTS, worker, none, e->of) : 0;
}

int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e)
{
	struct tally *t = &s->tally[worker];
	int rc = cop_seen_take(&s->seen[worker], e);

	if (rc)
		return rc;
	switch (e->kind) {
	case COP_TRACE_SPAN:
	case COP_TRACE_AGGREGATE:
		return e->unfinished ? add_open(s, worker, e) : add_span(s, worker, e);
	case COP_TRACE_META:
		rc = cop_tab_see(s->tab[TAB_OPEN], worker, e);
		return rc || s->conf.names ? rc : add_defined(s, worker, e);
	case COP_TRACE_INSTANT:
		t->instants++;
		break;
	case COP_TRACE_COUNTER:
		t->counters++;
		break;
	default:
		t->flows++;
		break;
	}
	return add_places(s, worker, e);
}

/* ---- output ---- */

static int take_rows(struct cop_sum *s, unsigned tab, const char *sort, struct cop_rows *out,
	struct cop_err *err)
{
	struct cop_tab *t = s->tab[tab];
	int rc;

	s->tab[tab] = NULL;
	rc = cop_tab_rows(t, out, err);
	if (!rc)
		cop_rows_sort(out, sort);
	return rc;
}

static int take_count(struct cop_sum *s, unsigned tab, uint64_t *out, struct cop_err *err)
{
	struct cop_rows rows = {0};
	int rc = take_rows(s, tab, NULL, &rows, err);

	*out = rows.n;
	cop_rows_free(&rows);
	return rc;
}

static int count_processes(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err)
{
	struct crew crew;

	if (cop_crew_new(s->seen, s->conf.threads, &crew))
		return cop_err_set(err, ENOMEM, "no memory for the summary");
	out->processes = crew.processes;
	out->threads = crew.threads;
	cop_crew_free(&crew);
	return 0;
}

static int take_tables(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err)
{
	int rc = take_rows(s, TAB_FUNCTIONS, "dur", &out->functions, err);

	if (!rc)
		rc = take_rows(s, TAB_INTERVALS, "interval", &out->intervals, err);
	if (!rc)
		rc = take_rows(s, TAB_OPEN, "unfinished", &out->open, err);
	if (!rc)
		rc = take_rows(s, TAB_KERNELS, "dur", &out->kernels, err);
	if (!rc)
		rc = count_processes(s, out, err);
	if (!rc)
		rc = take_count(s, TAB_FILES, &out->files, err);
	return rc ? rc : take_count(s, TAB_HOSTS, &out->hosts, err);
}

static double in_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void fill_classes(struct cop_sum *s, struct cop_sum_result *out)
{
	struct cop_union *of = s->tally[0].of;
	unsigned n = cop_classes_count(s->conf.classes);
	uint64_t closed = 0;

	for (unsigned i = 0; i < n; i++) {
		out->class_s[i] = in_seconds(cop_union_length(&of[i]));
		closed += of[i].closed_ns;
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			out->both_s[i][k] = in_seconds(
				cop_union_length(&of[i]) - cop_union_alone(&of[i], &of[k]));
	out->classes = s->conf.classes;
	out->about_s = in_seconds(closed);
	for (unsigned k = 0; k < COP_SUM_PARTS; k++)
		out->part_s[k] = out->class_s[k];
	out->app_alone_s = in_seconds(cop_union_alone(&of[COP_SUM_APP], &of[COP_SUM_COMPUTE]));
	out->compute_not_app_s =
		in_seconds(cop_union_alone(&of[COP_SUM_COMPUTE], &of[COP_SUM_APP]));
	out->posix_alone_s = in_seconds(cop_union_alone(&of[COP_SUM_POSIX], &of[COP_SUM_COMPUTE]));
	out->compute_not_posix_s =
		in_seconds(cop_union_alone(&of[COP_SUM_COMPUTE], &of[COP_SUM_POSIX]));
}

static int split_time(struct cop_sum *s, struct cop_sum_result *out)
{
	struct tally *to = &s->tally[0];
	int rc = 0;

	for (unsigned i = 1; i < s->conf.threads && !rc; i++) {
		struct tally *from = &s->tally[i];

		to->first = COP_MIN(to->first, from->first);
		to->last = COP_MAX(to->last, from->last);
		for (unsigned k = 0; k < COP_CLASSES_MAX && !rc; k++)
			rc = cop_union_merge(&to->of[k], &from->of[k]);
		if (!rc)
			rc = devices_merge(&to->devices, &from->devices);
	}
	out->total_s =
		to->last > to->first ? in_seconds((uint64_t)to->last - (uint64_t)to->first) : 0;
	fill_classes(s, out);
	return rc ? rc : devices_finish(&to->devices, out);
}

int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err)
{
	*out = (struct cop_sum_result){0};
	for (unsigned i = 0; i < s->conf.threads; i++) {
		out->spans += s->tally[i].spans;
		out->instants += s->tally[i].instants;
		out->counters += s->tally[i].counters;
		out->flows += s->tally[i].flows;
		out->unfinished += s->tally[i].unfinished;
	}
	if (split_time(s, out))
		return cop_err_set(err, ENOMEM, "no memory for the summary");
	return take_tables(s, out, err);
}

void cop_sum_result_free(struct cop_sum_result *r)
{
	cop_rows_free(&r->functions);
	cop_rows_free(&r->intervals);
	cop_rows_free(&r->open);
	cop_rows_free(&r->kernels);
	for (size_t i = 0; i < r->devices; i++) {
		if (r->device[i].rank.len)
			free((char *)r->device[i].rank.at);
		if (r->device[i].device.len)
			free((char *)r->device[i].device.at);
	}
	free(r->device);
	r->device = NULL;
	r->devices = 0;
}
