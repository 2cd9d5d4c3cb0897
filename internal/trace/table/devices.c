/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices in a torch trace: kernels, communication kernels, copies. torch.profiler writes one file
 * per rank, in which a device is a process with the device number as pid, and marks the three by
 * category (kernel, gpu_memcpy, gpu_memset); kernels of collective libraries have nccl, rccl or the
 * like in their names. */
#include <math.h>

#include "trace/table/sum_priv.h"

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

/* KINDS: not a device event. */
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

bool cop_devices_is_kernel(const struct cop_trace_event *e)
{
	return kind_of(e) <= KIND_COMM;
}

static bool is_of(const struct device *d, const struct cop_trace_event *e)
{
	return d->source == e->source && d->pid_len == e->pid.len &&
	       !memcmp(d->text + d->rank_len, e->pid.at, e->pid.len);
}

/* Move-to-front list: the last used device first. */
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

int cop_devices_add(struct devices *all, const struct cop_trace_event *e)
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

void cop_devices_free(struct devices *all)
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

int cop_devices_merge(struct devices *to, struct devices *from)
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

int cop_devices_finish(struct devices *all, struct cop_sum_result *out)
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
