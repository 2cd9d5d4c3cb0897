/* SPDX-License-Identifier: BSD-3-Clause */
/* One node: the phases of its startup, its counter samples, and its events. */
#include "prof/telemetry/telemetry_priv.h"

#include <stdarg.h>
#include <sys/resource.h>

/* Limit for other kinds of events, to keep room for the ones that every node has. */
#define OTHERS (COP_TELEMETRY_EVENTS - 4)
#define PAUSE_MAX_MS 16000u

/* The totals that come from counters. */
#define SUMS (COP_TELEMETRY_ALL_FROM_STORAGE_BYTES + 1u)

struct event {
	uint64_t at_ns;
	enum cop_telemetry_kind kind;
	char text[COP_TELEMETRY_DETAIL];
};

struct cop_telemetry {
	pthread_mutex_t lock;
	uint64_t started_ns, marked_ns, ready_ns;
	int64_t began_ns, unix_ns;
	uint64_t phase_us[COP_TELEMETRY_PHASES];
	uint64_t last[SUMS], total[COP_TELEMETRY_TOTALS]; /* at the last sample; since the start */
	uint64_t cache_waits;
	bool waited; /* fetches were waiting at the last sample */
	struct series series;
	struct event event[COP_TELEMETRY_EVENTS];
	unsigned events;
	_Atomic unsigned kept[COP_TELEMETRY_KINDS];
	_Atomic uint64_t dropped;
};

const char *cop_telemetry_phase_name(enum cop_telemetry_phase phase)
{
	static const char *const names[COP_TELEMETRY_PHASES] = {[COP_TELEMETRY_PREPARE] = "prepare",
		[COP_TELEMETRY_SECRET] = "secret",
		[COP_TELEMETRY_CACHE] = "cache",
		[COP_TELEMETRY_STORAGE] = "storage",
		[COP_TELEMETRY_FABRIC] = "fabric",
		[COP_TELEMETRY_MOUNT] = "mount",
		[COP_TELEMETRY_BARRIER] = "barrier",
		[COP_TELEMETRY_TELL] = "tell"};

	return names[phase];
}

const char *cop_telemetry_kind_name(enum cop_telemetry_kind kind)
{
	static const char *const names[COP_TELEMETRY_KINDS] = {
		[COP_TELEMETRY_FAILOVER] = "failover",
		[COP_TELEMETRY_PEER_DEAD] = "peer_dead",
		[COP_TELEMETRY_PEER_LAGS] = "peer_lags",
		[COP_TELEMETRY_PEER_BACK] = "peer_back",
		[COP_TELEMETRY_BUDGET_FULL] = "budget_full",
		[COP_TELEMETRY_FILE_CHANGED] = "file_changed",
		[COP_TELEMETRY_STORAGE_ERROR] = "storage_error",
		[COP_TELEMETRY_PREFETCH_BEGIN] = "prefetch_begin",
		[COP_TELEMETRY_PREFETCH_END] = "prefetch_end",
		[COP_TELEMETRY_READY] = "ready",
		[COP_TELEMETRY_STOP] = "stop"};

	return names[kind];
}

struct cop_telemetry *cop_telemetry_new(uint64_t started_ns)
{
	struct cop_telemetry *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	t->started_ns = t->marked_ns = started_ns;
	t->began_ns = (int64_t)started_ns;
	t->unix_ns = cop_wall_ns() - (int64_t)(cop_now_ns() - started_ns);
	cop_telemetry_series_init(&t->series);
	return t;
}

void cop_telemetry_free(struct cop_telemetry *t)
{
	if (t)
		pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- the start ---- */

void cop_telemetry_phase(struct cop_telemetry *t, enum cop_telemetry_phase phase)
{
	uint64_t now_ns = cop_now_ns();

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	/* Round the times, not the durations, so that the phases add up. */
	t->phase_us[phase] +=
		(now_ns - t->started_ns) / 1000 - (t->marked_ns - t->started_ns) / 1000;
	t->marked_ns = now_ns;
	pthread_mutex_unlock(&t->lock);
}

void cop_telemetry_began(struct cop_telemetry *t, int64_t mono_ns, int64_t unix_ns)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->began_ns = mono_ns;
	t->unix_ns = unix_ns;
	pthread_mutex_unlock(&t->lock);
}

/* ---- events ---- */

static bool is_of_every_node(enum cop_telemetry_kind kind)
{
	return kind == COP_TELEMETRY_READY || kind == COP_TELEMETRY_STOP;
}

static struct event *last_of(struct cop_telemetry *t, enum cop_telemetry_kind kind)
{
	for (unsigned i = t->events; i > 0; i--)
		if (t->event[i - 1].kind == kind)
			return &t->event[i - 1];
	return NULL;
}

/* Returns false if the event does not fit. Called with the lock held. */
static bool keep_event(struct cop_telemetry *t, const struct event *e)
{
	const struct event *before = last_of(t, e->kind);

	if (before && !strcmp(before->text, e->text))
		return true;
	if (t->kept[e->kind] >= COP_TELEMETRY_EVENTS_KIND ||
		t->events >= (is_of_every_node(e->kind) ? COP_TELEMETRY_EVENTS : OTHERS))
		return false;
	if (e->kind == COP_TELEMETRY_READY)
		t->ready_ns = t->marked_ns;
	t->event[t->events++] = *e;
	atomic_fetch_add(&t->kept[e->kind], 1);
	return true;
}

static void make_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void cop_telemetry_event(
	struct cop_telemetry *t, enum cop_telemetry_kind kind, const char *fmt, ...)
{
	struct event e = {.at_ns = cop_now_ns(), .kind = kind};
	bool kept = false;
	va_list args;

	if (!t)
		return;
	if (atomic_load(&t->kept[kind]) < COP_TELEMETRY_EVENTS_KIND) {
		va_start(args, fmt);
		vsnprintf(e.text, sizeof(e.text), fmt, args);
		va_end(args);
		make_one_line(e.text);
		pthread_mutex_lock(&t->lock);
		kept = keep_event(t, &e);
		pthread_mutex_unlock(&t->lock);
	}
	if (!kept)
		atomic_fetch_add(&t->dropped, 1);
}

/* ---- sampling the counters ---- */

static void add_counters(struct cop_telemetry *t, const uint64_t now[SUMS])
{
	for (unsigned i = 0; i < SUMS; i++) {
		t->total[i] = cop_add_saturating(
			t->total[i], now[i] < t->last[i] ? now[i] : now[i] - t->last[i]);
		t->last[i] = now[i];
	}
}

static void read_counters(const struct cop_stats *stats, uint64_t out[SUMS])
{
	static const enum cop_counter of[SUMS] = {
		[COP_TELEMETRY_ALL_READ_BYTES] = COP_FUSE_READ_BYTES,
		[COP_TELEMETRY_ALL_WAIT_PARENT_US] = COP_FABRIC_WAIT_US,
		[COP_TELEMETRY_ALL_WAIT_ORIGIN_US] = COP_ORIGIN_WAIT_US,
		[COP_TELEMETRY_ALL_PARENT_BYTES] = COP_FABRIC_BYTES_IN,
		[COP_TELEMETRY_ALL_ORIGIN_OPERATIONS] = COP_ORIGIN_OPERATIONS,
		[COP_TELEMETRY_ALL_ORIGIN_BYTES] = COP_ORIGIN_BYTES,
		[COP_TELEMETRY_ALL_SENT_BYTES] = COP_FABRIC_BYTES_OUT,
		[COP_TELEMETRY_ALL_FAILOVERS] = COP_FABRIC_FAILOVERS,
		[COP_TELEMETRY_ALL_EVICTIONS] = COP_CACHE_EVICTIONS,
		[COP_TELEMETRY_ALL_AHEAD_BYTES] = COP_FUSE_AHEAD_BYTES,
		[COP_TELEMETRY_ALL_FROM_OWN_BYTES] = COP_FROM_OWN_BYTES,
		[COP_TELEMETRY_ALL_FROM_NODES_BYTES] = COP_FROM_NODES_BYTES,
		[COP_TELEMETRY_ALL_FROM_PASSED_BYTES] = COP_FROM_PASSED_BYTES,
		[COP_TELEMETRY_ALL_FROM_DISK_BYTES] = COP_FROM_DISK_BYTES,
		[COP_TELEMETRY_ALL_FROM_PACK_BYTES] = COP_FROM_PACK_BYTES,
		[COP_TELEMETRY_ALL_FROM_STORAGE_BYTES] = COP_FROM_STORAGE_BYTES};

	for (unsigned i = 0; i < SUMS; i++)
		out[i] = cop_stats_get(stats, of[i]);
	out[COP_TELEMETRY_ALL_REQUESTS] = cop_stats_requests(stats);
}

/* Called with the lock held. */
static void add_point(struct cop_telemetry *t, uint64_t now_ns, uint64_t used, uint64_t resident)
{
	const uint64_t *all = t->total;
	struct point p = {.at_us = (now_ns - t->started_ns) / 1000,
		.value = {[COP_TELEMETRY_REQUESTS] = all[COP_TELEMETRY_ALL_REQUESTS],
			[COP_TELEMETRY_READ_BYTES] = all[COP_TELEMETRY_ALL_READ_BYTES],
			[COP_TELEMETRY_WAIT_US] =
				cop_add_saturating(all[COP_TELEMETRY_ALL_WAIT_PARENT_US],
					all[COP_TELEMETRY_ALL_WAIT_ORIGIN_US]),
			[COP_TELEMETRY_PARENT_BYTES] = all[COP_TELEMETRY_ALL_PARENT_BYTES],
			[COP_TELEMETRY_ORIGIN_OPERATIONS] =
				all[COP_TELEMETRY_ALL_ORIGIN_OPERATIONS],
			[COP_TELEMETRY_ORIGIN_BYTES] = all[COP_TELEMETRY_ALL_ORIGIN_BYTES],
			[COP_TELEMETRY_SENT_BYTES] = all[COP_TELEMETRY_ALL_SENT_BYTES],
			[COP_TELEMETRY_CPU_US] = all[COP_TELEMETRY_ALL_CPU_US],
			[COP_TELEMETRY_CACHE_BYTES] = used,
			[COP_TELEMETRY_RESIDENT_BYTES] = resident}};

	cop_telemetry_series_add(&t->series, &p);
}

/* Whether fetches have just begun to wait for the cache budget. Sets *waits to the number that
 * waited since the last sample. Called with the lock held. */
static bool is_full_now(struct cop_telemetry *t, uint64_t waited, uint64_t *waits)
{
	bool before = t->waited;

	*waits = waited < t->cache_waits ? waited : waited - t->cache_waits;
	t->cache_waits = waited;
	t->waited = *waits > 0;
	return t->waited && !before;
}

void cop_telemetry_look(struct cop_telemetry *t, const struct cop_stats *stats, uint64_t used_bytes,
	uint64_t limit_bytes)
{
	uint64_t now[SUMS], resident, cpu_us, waits;
	bool full;

	if (!t)
		return;
	cop_process_usage(&cpu_us, &resident);
	read_counters(stats, now);
	pthread_mutex_lock(&t->lock);
	add_counters(t, now);
	t->total[COP_TELEMETRY_ALL_CPU_US] = COP_MAX(t->total[COP_TELEMETRY_ALL_CPU_US], cpu_us);
	t->total[COP_TELEMETRY_CACHE_LIMIT_BYTES] = limit_bytes;
	t->total[COP_TELEMETRY_CACHE_PEAK_BYTES] =
		COP_MAX(t->total[COP_TELEMETRY_CACHE_PEAK_BYTES], used_bytes);
	t->total[COP_TELEMETRY_RESIDENT_PEAK_BYTES] =
		COP_MAX(t->total[COP_TELEMETRY_RESIDENT_PEAK_BYTES], resident);
	add_point(t, cop_now_ns(), used_bytes, resident);
	full = is_full_now(t, cop_stats_get(stats, COP_CACHE_WAITS), &waits);
	pthread_mutex_unlock(&t->lock);
	if (full)
		cop_telemetry_event(t, COP_TELEMETRY_BUDGET_FULL,
			"%llu fetches had to wait for room in %llu bytes",
			(unsigned long long)waits, (unsigned long long)limit_bytes);
}

unsigned cop_telemetry_pause_ms(struct cop_telemetry *t)
{
	uint64_t ms;

	pthread_mutex_lock(&t->lock);
	ms = t->series.step_us / 1000;
	pthread_mutex_unlock(&t->lock);
	return (unsigned)COP_MIN(ms, (uint64_t)PAUSE_MAX_MS);
}

/* ---- the end ---- */

static int64_t since_began_us(const struct cop_telemetry *t, uint64_t ns)
{
	return ((int64_t)ns - t->began_ns) / 1000;
}

static void own_events(struct cop_telemetry *t, struct own *out)
{
	out->events = t->events;
	for (unsigned i = 0; i < t->events; i++) {
		memcpy(out->text[i], t->event[i].text, sizeof(out->text[i]));
		out->event[i] =
			(struct cop_telemetry_event){.at_us = since_began_us(t, t->event[i].at_ns),
				.kind = t->event[i].kind,
				.detail = out->text[i]};
	}
	out->dropped = atomic_load(&t->dropped);
}

void cop_telemetry_own(struct cop_telemetry *t, struct own *out)
{
	struct cop_telemetry_node *n = &out->node;
	uint64_t now_ns = cop_now_ns(), peak;
	struct rusage used = {0};

	getrusage(RUSAGE_SELF, &used);
	peak = (uint64_t)used.ru_maxrss * 1024;
	pthread_mutex_lock(&t->lock);
	n->start_us = since_began_us(t, t->started_ns);
	n->ready_us = since_began_us(t, t->ready_ns ? t->ready_ns : t->marked_ns);
	n->stopped_us = since_began_us(t, now_ns);
	memcpy(n->phase_us, t->phase_us, sizeof(n->phase_us));
	memcpy(n->total, t->total, sizeof(n->total));
	n->total[COP_TELEMETRY_RESIDENT_PEAK_BYTES] =
		COP_MAX(n->total[COP_TELEMETRY_RESIDENT_PEAK_BYTES], peak);
	out->level = cop_telemetry_level(n->stopped_us);
	out->unix_ns = t->unix_ns;
	n->intervals = cop_telemetry_series_rows(
		&t->series, (t->began_ns - (int64_t)t->started_ns) / 1000, out->level, n->series);
	own_events(t, out);
	pthread_mutex_unlock(&t->lock);
}
