/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds causes by comparison: a process, or a location of files, that is slower than the others. */
#include <ctype.h>
#include <math.h>

#include "trace/diagnose/diagnose_priv.h"

#define SLOWER 1.5      /* a slow process takes this many times the median */
#define SLOWER_FILE 3.0 /* a slow file takes this many times the median */

static int by_value(const void *p, const void *q)
{
	const double *a = p, *b = q;

	return (*a > *b) - (*a < *b);
}

/* Sorts v. */
static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- a slow process ---- */

static double sum_of(const struct part *p)
{
	return (double)p->calls.ns / 1e9;
}

static double mean_of(const struct part *p)
{
	return p->calls.n ? sum_of(p) / (double)p->calls.n : 0;
}

static int by_name(const void *p, const void *q)
{
	const struct part *a = *(const struct part *const *)p;
	const struct part *b = *(const struct part *const *)q;
	int c = memcmp(a->name.at, b->name.at, COP_MIN(a->name.len, b->name.len));

	return c ? c : (a->name.len > b->name.len) - (a->name.len < b->name.len);
}

static double size_of(const struct part *p)
{
	return p->calls.n ? (double)p->calls.bytes / (double)p->calls.n : 0;
}

struct laggard {
	const struct part *part;
	double typical, excess;
	size_t of;
};

/* Whether a function waits for other processes. If so, the process that takes longest is the
 * fastest. */
static bool waits(struct cop_trace_str name)
{
	static const char *const words[] = {
		"barrier", "wait", "recv", "poll", "sleep", "synchronize", "nccl"};
	char low[64];
	size_t n = COP_MIN(name.len, sizeof(low));

	for (size_t i = 0; i < n; i++)
		low[i] = (char)tolower((unsigned char)name.at[i]);
	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++)
		if (memmem(low, n, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Compares the processes that run the same function. */
static void find_laggard(const struct part **part, size_t n, double *room, struct laggard *worst)
{
	const struct part *slow = part[0];
	double typical, size;

	if (n < 3 || waits(slow->name))
		return;
	for (size_t i = 0; i < n; i++) {
		room[i] = mean_of(part[i]);
		if (mean_of(part[i]) > mean_of(slow))
			slow = part[i];
	}
	typical = median(room, n);
	for (size_t i = 0; i < n; i++)
		room[i] = size_of(part[i]);
	size = median(room, n);
	/* Larger transfers may legitimately take longer. */
	if (slow->calls.n < 3 || size_of(slow) > SLOWER * size ||
		mean_of(slow) < SLOWER * typical ||
		(mean_of(slow) - typical) * (double)slow->calls.n <= worst->excess)
		return;
	*worst = (struct laggard){
		slow, typical, (mean_of(slow) - typical) * (double)slow->calls.n, n};
}

void cop_diagnose_slow_process(struct cop_diagnose *d)
{
	size_t n = d->part.table.count, k = 0;
	const struct part **part = calloc(n + 1, sizeof(const struct part *));
	double *room = calloc(n + 1, sizeof(*room));
	struct laggard worst = {0};
	struct cause *cause = NULL;

	for (struct thing *t = cop_diagnose_next(&d->part, NULL); t && part;
		t = cop_diagnose_next(&d->part, t))
		part[k++] = COP_CONTAINER_OF(t, struct part, thing);
	if (part && room) {
		qsort(part, k, sizeof(const struct part *), by_name);
		for (size_t i = 0, end; i < k; i = end) {
			for (end = i + 1; end < k && !by_name(&part[i], &part[end]);)
				end++;
			find_laggard(part + i, end - i, room, &worst);
		}
	}
	free(part);
	free(room);
	if (!worst.part || worst.excess < 0.05 * cop_diagnose_total(d))
		return;
	cause = cop_diagnose_cause(d, "one slow process", worst.excess, worst.excess);
	cop_diagnose_who(d, &worst.part->process->any, &cause->evidence);
	cop_buf_printf(&cause->evidence,
		" takes %.6f s for each of %llu %.*s, %.1f times the median of %zu processes, %.6f s",
		mean_of(worst.part), (unsigned long long)worst.part->calls.n,
		(int)worst.part->name.len, worst.part->name.at,
		worst.typical > 0 ? mean_of(worst.part) / worst.typical : 0, worst.of,
		worst.typical);
	cop_diagnose_command(d, cause,
		"table --by name,process --show count,dur,dur:mean --sort dur:mean --limit 20");
	cop_buf_printf(&cause->help,
		"look at its node (cores, memory, network) and at its share of the work; at the speed of the others it takes %.3f s less",
		worst.excess);
}

/* ---- slow files ---- */

static double per_byte(const struct file *f)
{
	return f->moved.bytes ? (double)f->moved.ns / 1e9 / (double)f->moved.bytes : 0;
}

/* Returns the length of the common prefix of two slow files' names. */
static size_t common(const struct file *a, const struct file *b, size_t len)
{
	size_t n = 0;

	while (n < len && n < b->thing.len && a->thing.key[n] == b->thing.key[n])
		n++;
	return n;
}

struct slow {
	size_t n, of, common;
	const struct file *any;
	const struct actor *process;
	bool several; /* several processes used these files */
	double excess, typical, speed;
};

static void add_slow(struct slow *s, const struct file *f)
{
	double excess = (per_byte(f) - s->typical) * (double)f->moved.bytes;

	s->common = s->n ? common(s->any, f, s->common) : f->thing.len;
	s->any = s->n ? s->any : f;
	s->several |= f->shared || (s->n && s->process != f->first);
	s->process = f->first;
	s->excess += excess;
	s->speed = COP_MAX(s->speed, per_byte(f));
	s->n++;
}

/* Every call has a fixed cost, so only files with similar transfer sizes are compared: those whose
 * sizes round down to the same power of two. */
static unsigned piece_of(const struct file *f)
{
	unsigned n = 0;

	if (f->moved.n < 4 || f->moved.bytes < 4 * (uint64_t)SMALL_BYTES)
		return 0;
	for (uint64_t size = f->moved.bytes / f->moved.n; size > 1; size /= 2)
		n++;
	return n;
}

static void find_slow(struct cop_diagnose *d, unsigned piece, double *room, struct slow *s)
{
	for (struct thing *t = cop_diagnose_next(&d->file, NULL); t;
		t = cop_diagnose_next(&d->file, t))
		if (piece_of(COP_CONTAINER_OF(t, struct file, thing)) == piece)
			room[s->of++] = per_byte(COP_CONTAINER_OF(t, struct file, thing));
	if (s->of < 4)
		return;
	s->typical = median(room, s->of);
	for (struct thing *t = cop_diagnose_next(&d->file, NULL); t;
		t = cop_diagnose_next(&d->file, t)) {
		const struct file *f = COP_CONTAINER_OF(t, struct file, thing);

		if (piece_of(f) == piece && per_byte(f) > SLOWER_FILE * s->typical)
			add_slow(s, f);
	}
	/* If only one process used the files, the process is slow, not the files. */
	if (3 * s->n > s->of || !s->several)
		s->excess = 0;
}

void cop_diagnose_slow_files(struct cop_diagnose *d)
{
	double *room = calloc(d->file.table.count + 1, sizeof(*room)), cost;
	struct slow s = {0}, one;
	struct cause *cause;

	for (unsigned piece = 1; piece < 64 && room; piece++) {
		one = (struct slow){0};
		find_slow(d, piece, room, &one);
		if (one.excess > s.excess)
			s = one;
	}
	free(room);
	cost = cop_diagnose_passed(d, s.excess);
	if (!s.n || cost < 0.05 * cop_diagnose_total(d))
		return;
	cause = cop_diagnose_cause(d, "slow file server", cost, cost);
	cop_buf_printf(&cause->evidence,
		"%zu of %zu files take up to %.1f times as long for each byte as the median, for several processes: %.*s%s",
		s.n, s.of, s.speed / s.typical, (int)s.common, s.any->thing.key,
		s.n > 1 ? "..." : "");
	cop_diagnose_command(d, cause,
		"table --cat POSIX --name \"read|write\" --by file --show dur,size,bandwidth --limit 20");
	cop_buf_printf(&cause->help,
		"see which server has these files (lfs getstripe) and spread them over others (lfs setstripe): at the speed of the others they take %.3f s less of all threads",
		s.excess);
}

/* ---- one process moves all bytes ---- */

void cop_diagnose_one_writer(struct cop_diagnose *d)
{
	const struct actor *most = NULL;
	uint64_t bytes = 0;
	size_t n = d->process.table.count;
	struct cause *cause;
	double s;

	for (struct thing *t = cop_diagnose_next(&d->process, NULL); t;
		t = cop_diagnose_next(&d->process, t)) {
		const struct actor *p = COP_CONTAINER_OF(t, struct actor, thing);

		bytes += p->moved.bytes;
		most = !most || p->moved.bytes > most->moved.bytes ? p : most;
	}
	s = most ? (double)most->moved.ns / 1e9 : 0;
	if (n < 4 || s <= 0 || 10 * most->moved.bytes < 8 * bytes ||
		s < 0.1 * cop_diagnose_total(d))
		return;
	cause = cop_diagnose_cause(
		d, "one process moves the data of all", s, s * (1 - 1 / (double)n));
	cop_diagnose_who(d, &most->any, &cause->evidence);
	cop_buf_printf(&cause->evidence, " moves %llu of %llu bytes, while there are %zu processes",
		(unsigned long long)most->moved.bytes, (unsigned long long)bytes, n);
	cop_diagnose_command(d, cause,
		"table --cat POSIX --by process --show size,dur,count --sort size --limit 20");
	cop_buf_printf(&cause->help,
		"have every process, or one on each node, read and write its own part");
}
