/* SPDX-License-Identifier: BSD-3-Clause */
/* One function per kind checks the limits, computes the excess, and writes the sentence. */
#include "prof/advice/advice.h"

#include <stdarg.h>

#include "prof/advice/limits.h"
#include "base/table/table.h"

/* The verdict on one kind. times: the amount divided by its limit; 0: within the limit. */
struct finding {
	uint64_t times;
	const char *option;
	char *sentence;
};

struct size {
	char text[16];
};
#define SIZE(bytes) cop_format_size(bytes, (struct size){0}.text)

static void say_advice(struct finding *found, uint64_t times, const char *option, const char *fmt,
	...) COP_PRINTF(4, 5);

static void say_advice(
	struct finding *found, uint64_t times, const char *option, const char *fmt, ...)
{
	va_list args;

	found->times = COP_MAX(times, 1u);
	found->option = option;
	va_start(args, fmt);
	vsnprintf(found->sentence, COP_ADVICE_SENTENCE, fmt, args);
	va_end(args);
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Whether part is at least 1/share of the whole, and large enough to matter. */
static bool is_much(uint64_t part, uint64_t whole, unsigned share)
{
	return part >= LEAST_BYTES && part >= whole / share + (whole % share != 0);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	double share = whole ? (double)part / (double)whole : 0;

	return (unsigned)(100 * COP_MIN(share, 1.0) + 0.5);
}

/* ---- the kinds ---- */

static void judge_view(const struct cop_advice_facts *f, struct finding *found)
{
	if (f->view_fallbacks < VIEW_FALLBACKS_MIN)
		return;
	say_advice(found, f->view_fallbacks / VIEW_FALLBACKS_MIN, "copper run --check",
		"programs read %s of the source through Copper: %" PRIu64
		" command%s of copper run had only variables such as PATH that lead to the tree (%s), and absolute paths read the storage past it; remove the reason, which copper run --check shows, or give programs paths below the mount point and say --view env",
		SIZE(f->read_bytes), f->view_fallbacks, f->view_fallbacks == 1 ? "" : "s",
		f->no_view);
}

/* Compares file sizes with bytes read: a mapped file is not always read in full, but is often read
 * more than once. */
static void judge_past(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t nodes = COP_MAX(f->nodes, 1u),
		 times = COP_MAX(f->past_files / PAST_FILES_MIN, f->past_bytes / PAST_BYTES_MIN);

	if (times < nodes || f->past_bytes <= f->read_bytes / PAST_SHARE)
		return;
	say_advice(found, times / nodes, "copper run",
		"%" PRIu64 " program%s used %" PRIu64
		" files (%s) of the source at its own path, past the mount, where Copper cannot help%s%s; %sgive them paths below the mount point",
		f->past_programs, f->past_programs == 1 ? "" : "s", f->past_files,
		SIZE(f->past_bytes), *f->past ? ", the first " : "", f->past,
		f->view_fallbacks ? "" : "start them with copper run -- COMMAND, or ");
}

static void judge_changed(const struct cop_advice_facts *f, struct finding *found)
{
	if (f->changed < CHANGED_MIN)
		return;
	say_advice(found, f->changed / CHANGED_MIN, "copper cache-stats --invalidate",
		"files changed while the job used them: %" PRIu64
		" read%s found another version%s%s, and programs that had such a file open may have got ESTALE; leave the tree alone while a job runs, or tell the job of each change with copper cache-stats --invalidate",
		f->changed, f->changed == 1 ? "" : "s", *f->changed_file ? ", the first in " : "",
		f->changed_file);
}

static void judge_fallback(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t limit = FALLBACKS_MIN * COP_MAX(f->fell_back, 1u);

	if (f->fallbacks < limit)
		return;
	say_advice(found, f->fallbacks / limit, "--peer-timeout",
		"%" PRIu64 " of %" PRIu64 " nodes asked the storage themselves %" PRIu64
		" times because no node above them answered; the logs in JOBDIR/logs say which were passed over and why, and if those were only busy, a longer --peer-timeout waits for them",
		f->fell_back, f->nodes, f->fallbacks);
}

static void judge_bypass(const struct cop_advice_facts *f, struct finding *found)
{
	if (!is_much(f->bypass_bytes, f->read_bytes, BYPASS_SHARE))
		return;
	say_advice(found, f->bypass_bytes / LEAST_BYTES, "--max-cacheable-bytes",
		"programs read %s (%u %% of all) past the tree, each node from the storage by itself%s%s; these files are larger than --max-cacheable-bytes permits: a larger one, or none, brings them through the tree",
		SIZE(f->bypass_bytes), percent(f->bypass_bytes, f->read_bytes),
		*f->bypassed ? ", the first from " : "", f->bypassed);
}

/* A cache budget for this many bytes, leaving an eighth free for copies and objects in flight. In
 * MiB, rounded up to a multiple of 16. */
static uint64_t size_for(uint64_t bytes)
{
	return (bytes / 7 * 8 / LEAST_BYTES + 1) * LEAST_BYTES / COP_MIB;
}

/* If the combined memory of the nodes can hold the data, only the memory of one node is too
 * small. */
static void judge_cache(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t times = f->refetched_bytes / LEAST_BYTES, nodes = COP_MAX(f->nodes, 1u);

	if (!is_much(f->refetched_bytes, f->fetched_bytes, REFETCHED_SHARE))
		return;
	if (nodes > 1 && f->data > f->memory)
		say_advice(found, times, "--cache-size",
			"the data was %.1f times the memory of all nodes (%s, and their caches hold %s): %" PRIu64
			" objects (%s) were dropped and then fetched again; --cache-size %" PRIu64
			"M would have held all that any node needed, %" PRIu64
			"M all data once for the job, and --spill DIR keeps on a disk of each node what memory does not hold",
			(double)f->data / (double)COP_MAX(f->memory, 1u), SIZE(f->data),
			SIZE(f->memory), f->refetches, SIZE(f->refetched_bytes),
			size_for(f->cache_needed), size_for(f->data / nodes));
	else
		say_advice(found, times, "--cache-size",
			"the cache was too small: %" PRIu64
			" objects (%s) were dropped from it and then fetched again; --cache-size %" PRIu64
			"M would have held all that any node needed, and --spill DIR keeps it on a disk of each node",
			f->refetches, SIZE(f->refetched_bytes), size_for(f->cache_needed));
}

/* Whether the storage is much slower than another node. Also true if there is nothing to compare
 * with, as in a tree of one node. Describes the other node's latency in beside. */
static bool is_slower(const struct cop_advice_facts *f, uint64_t mean, char beside[64])
{
	uint64_t hop = f->held ? f->held_us / f->held : 0;

	beside[0] = '\0';
	if (f->held < HELD_SAMPLES)
		return true;
	snprintf(beside, 64, " where another node answers in %.1f ms,", (double)hop / 1e3);
	return mean / STORAGE_HOPS >= hop;
}

static void judge_storage(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t us = subtract(f->origin_us, f->origin_bytes / STORAGE_BYTES_PER_US), mean;
	bool prefetched = f->prefetched_bytes > 0;
	char beside[64];

	if (f->origin_operations < STORAGE_SAMPLES)
		return;
	mean = us / f->origin_operations;
	if (mean < STORAGE_US || !is_slower(f, mean, beside))
		return;
	say_advice(found, mean / STORAGE_US, prefetched ? "--origin-ops" : "--prefetch",
		"the storage is slow: %.1f ms for each of %" PRIu64
		" operations,%s %.1f s for a program that waits for one after another; %s",
		(double)mean / 1e3, f->origin_operations, beside, (double)us / 1e6,
		prefetched
			? "a larger --origin-ops has more of them under way at once"
			: "with --prefetch auto in this job and the next, the next one asks for many things at once, before programs need them");
}

/* Whether many fetched bytes were never used, not counting objects only fetched for other nodes. */
static bool is_unused(const struct cop_advice_facts *f, uint64_t *unused, uint64_t *whole)
{
	*unused = subtract(f->fetched_bytes, f->wanted_bytes);
	*whole = *unused + f->used_bytes;
	return is_much(*unused, *whole, UNUSED_SHARE);
}

/* Whether programs read none of the prefetched bytes. */
static bool is_for_nobody(const struct cop_advice_facts *f)
{
	return f->prefetched_bytes && !f->used_bytes && !f->read_bytes;
}

#define NEW_MANIFEST                                                                               \
	"the manifest is of another job: copper paths --manifest writes one from this job's profile, and --prefetch auto keeps one up to date by itself"

static void judge_manifest(const struct cop_advice_facts *f, struct finding *found)
{
	/* Refetched objects may have been prefetched and then evicted. */
	uint64_t unused, whole, later = subtract(f->later_bytes, f->refetched_bytes);

	if (!f->prefetched_bytes)
		return;
	/* If fewer than half of the unused bytes were prefetched, the prefetch is not the
	 * reason. */
	if (is_unused(f, &unused, &whole) && is_for_nobody(f))
		say_advice(found, unused / LEAST_BYTES, "copper run",
			"%s were prefetched but never used: no program read anything through the mount, so nothing was recorded for the next job, and the manifest is unchanged; start programs with copper run -- COMMAND",
			SIZE(unused));
	else if (is_unused(f, &unused, &whole) && f->prefetched_bytes >= unused / 2)
		say_advice(found, unused / LEAST_BYTES, "--prefetch",
			"%s (%u %%) of the bytes that were fetched were never used, most of them prefetched; " NEW_MANIFEST,
			SIZE(unused), percent(unused, whole));
	else if (is_much(later, f->used_bytes, LATER_SHARE))
		say_advice(found, later / LEAST_BYTES, "--prefetch",
			"%s that programs used were not prefetched, and were fetched when the prefetch was over; " NEW_MANIFEST,
			SIZE(later));
}

static void judge_unused(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t bytes, whole;

	if (!is_unused(f, &bytes, &whole) || is_for_nobody(f) ||
		(f->prefetched_bytes && f->prefetched_bytes >= bytes / 2))
		return;
	say_advice(found, bytes / LEAST_BYTES, "--chunk",
		"%s (%u %%) of the bytes that were fetched were read ahead and never used, because programs read their files in places; a smaller --chunk (256K) fetches less around each of them",
		SIZE(bytes), percent(bytes, whole));
}

static void judge_absences(const struct cop_advice_facts *f, struct finding *found)
{
	uint64_t limit = EXPIRES_MIN * COP_MAX(f->nodes, 1u);

	if (f->expires < limit || f->clears > f->expires / CLEARS_SHARE)
		return;
	say_advice(found, f->expires / limit, "--enoent-ttl-ms",
		"programs asked for absent names so often that %" PRIu64
		" were checked again, %" PRIu64
		" of them with a change; a longer --enoent-ttl-ms (-E 60000) saves that, and new names then take up to that long to appear",
		f->expires, f->clears);
}

static const struct kind {
	const char *code;
	unsigned weight;
	void (*judge)(const struct cop_advice_facts *f, struct finding *found);
} kinds[COP_ADVICE_KINDS] = {
	[COP_ADVICE_VIEW] = {"view", 110, judge_view},
	[COP_ADVICE_PAST] = {"past", 100, judge_past},
	[COP_ADVICE_CHANGED] = {"changed", 90, judge_changed},
	[COP_ADVICE_FALLBACK] = {"fallback", 80, judge_fallback},
	[COP_ADVICE_BYPASS] = {"bypass", 70, judge_bypass},
	[COP_ADVICE_CACHE] = {"cache", 60, judge_cache},
	[COP_ADVICE_STORAGE] = {"storage", 50, judge_storage},
	[COP_ADVICE_MANIFEST] = {"manifest", 40, judge_manifest},
	[COP_ADVICE_UNUSED] = {"unused", 30, judge_unused},
	[COP_ADVICE_ABSENCES] = {"absences", 20, judge_absences},
};

/* Adds one per doubling of the amount, at most nine, which keeps the order of the kinds. */
static unsigned weight_of(const struct kind *k, uint64_t times)
{
	unsigned doublings = 0;

	while (doublings < 9 && times >> (doublings + 1))
		doublings++;
	return k->weight + doublings;
}

void cop_advice_give(const struct cop_advice_facts *f, struct cop_advices *out)
{
	out->n = 0;
	for (unsigned i = 0; i < COP_ADVICE_KINDS; i++) {
		struct cop_advice *a = &out->at[out->n];
		struct finding found = {.sentence = a->sentence};

		kinds[i].judge(f, &found);
		if (!found.times)
			continue;
		a->code = kinds[i].code;
		a->weight = weight_of(&kinds[i], found.times);
		a->option = found.option;
		out->n++;
	}
}

/* ---- the facts ---- */

void cop_advice_count(struct cop_advice_facts *f, const struct cop_stats *stats)
{
	uint64_t ahead = cop_stats_get(stats, COP_FUSE_AHEAD_BYTES);

	f->changed = cop_stats_get(stats, COP_ORIGIN_CHANGED);
	f->fallbacks = cop_stats_get(stats, COP_ORIGIN_FALLBACKS);
	/* Programs may have read preloaded bytes from the kernel's cache, without a request to this
	 * node. */
	f->read_bytes = ahead + cop_stats_get(stats, COP_FUSE_READ_BYTES);
	f->bypass_bytes = cop_stats_get(stats, COP_FUSE_BYPASS_BYTES);
	f->refetches = cop_stats_get(stats, COP_CACHE_REFETCHES);
	f->refetched_bytes = cop_stats_get(stats, COP_CACHE_REFETCHED_BYTES);
	f->fetched_bytes = cop_stats_get(stats, COP_CACHE_FETCHED_BYTES);
	f->used_bytes = cop_stats_get(stats, COP_CACHE_USED_BYTES);
	f->wanted_bytes = ahead + cop_stats_get(stats, COP_CACHE_WANTED_BYTES);
	f->prefetched_bytes = cop_stats_get(stats, COP_PREFETCH_FILE_BYTES);
	f->later_bytes = cop_stats_get(stats, COP_PREFETCH_LATER_BYTES);
	f->origin_operations = cop_stats_get(stats, COP_ORIGIN_OPERATIONS);
	f->origin_bytes = cop_stats_get(stats, COP_ORIGIN_BYTES);
	f->origin_us = cop_stats_get(stats, COP_ORIGIN_TIME_US);
	f->held = cop_stats_get(stats, COP_FABRIC_HELD);
	f->held_us = cop_stats_get(stats, COP_FABRIC_HELD_US);
	f->expires =
		cop_stats_get(stats, COP_ENOENT_EXPIRES) + cop_stats_get(stats, COP_ENOENT_AHEAD);
	f->clears = cop_stats_get(stats, COP_ENOENT_CLEARS);
	f->past_files = cop_stats_get(stats, COP_PAST_FILES);
	f->past_bytes = cop_stats_get(stats, COP_PAST_BYTES);
	f->past_programs = cop_stats_get(stats, COP_PAST_PROGRAMS);
	f->view_fallbacks = cop_stats_get(stats, COP_VIEW_FALLBACKS);
	f->no_view = cop_stats_first(stats, COP_EXAMPLE_FALLBACK);
	f->past = cop_stats_first(stats, COP_EXAMPLE_PAST);
	f->bypassed = cop_stats_first(stats, COP_EXAMPLE_BYPASSED);
	f->changed_file = cop_stats_first(stats, COP_EXAMPLE_CHANGED);
}

/* ---- as text ---- */

void cop_advice_notes(const struct cop_advices *a, unsigned max, struct cop_buf *out)
{
	for (unsigned i = 0; i < a->n && i < max; i++)
		cop_buf_printf(out, "%scopper: note: %s", out->len ? "\n" : "", a->at[i].sentence);
}

void cop_advice_markdown(const struct cop_advices *a, struct cop_buf *out)
{
	if (!a->n)
		return;
	cop_buf_str(out, "\n## Warnings\n\n");
	for (unsigned i = 0; i < a->n; i++)
		cop_buf_printf(out, "- %s\n", a->at[i].sentence);
}

void cop_advice_csv(const struct cop_advices *a, struct cop_buf *out)
{
	cop_buf_str(out, "code,weight,sentence,option\n");
	for (unsigned i = 0; i < a->n; i++) {
		const struct cop_advice *w = &a->at[i];

		cop_buf_printf(out, "%s,%u,", w->code, w->weight);
		cop_csv_quoted(out, w->sentence, strlen(w->sentence));
		cop_buf_printf(out, ",%s\n", w->option);
	}
}
