/* SPDX-License-Identifier: BSD-3-Clause */
/* The criteria of each cause. Limits are shares of the total time, so that problems that cost
 * little are not reported. The criteria are those that I/O advisers commonly use: transfers far
 * below 1 MiB, offsets not aligned to pages, more metadata than data. */
#include <math.h>

#include "trace/diagnose/diagnose_priv.h"

#define SHARE_MIN 0.05 /* of the total time */
#define GAP_MIN 0.001  /* seconds; shorter gaps are not reported */
#define GOOD_BYTES 1048576.0

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double each(const struct calls *c)
{
	return c->n ? seconds(c->ns) / (double)c->n : 0;
}

/* The sum over threads exceeds wall-clock time, so it is scaled to the time during which at least
 * one call is running. */
double cop_diagnose_passed(struct cop_diagnose *d, double s)
{
	double io = seconds(cop_union_length(&d->io)), all = seconds(d->posix.ns);

	return all > 0 ? s * COP_MIN(io / all, 1.0) : 0;
}

static double passed(struct cop_diagnose *d, const struct calls *c)
{
	return cop_diagnose_passed(d, seconds(c->ns));
}

static bool matters(struct cop_diagnose *d, double s)
{
	return s > 0 && s >= SHARE_MIN * cop_diagnose_total(d);
}

/* ---- transfers ---- */

static void small(struct cop_diagnose *d)
{
	const struct calls *c = &d->moved[SMALL], *large = &d->moved[LARGE];
	double s = passed(d, c), calls, saves, mean;
	struct cause *cause;

	if (c->n < 100 || c->n < large->n || !matters(d, s))
		return;
	mean = (double)c->bytes / (double)c->n;
	calls = ceil((double)c->bytes / GOOD_BYTES);
	saves = s * (1 - COP_MIN(calls / (double)c->n, 1.0));
	cause = cop_diagnose_cause(d, "small transfers", s, saves);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu reads and writes move less than 64 KiB, %.0f bytes each on average, and take %.3f s of all threads",
		(unsigned long long)c->n, (unsigned long long)(c->n + large->n), mean,
		seconds(c->ns));
	cop_diagnose_command(
		d, cause, "table --cat POSIX --by size --show count,dur --sort count --limit 10");
	cop_buf_printf(&cause->help,
		"read and write through a buffer of 1 MiB: %.0f calls instead of %llu", calls,
		(unsigned long long)c->n);
}

static void random_access(struct cop_diagnose *d)
{
	const struct calls *c = &d->random;
	double s = passed(d, c);
	struct cause *cause;

	if (c->n < 50 || 2 * c->n < d->random_of || !matters(d, s))
		return;
	cause = cop_diagnose_cause(d, "random access", s, s / 2);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu reads and writes do not begin where the one before in their file ended, at changing distances",
		(unsigned long long)c->n, (unsigned long long)d->random_of);
	cop_diagnose_command(d, cause, "events --json --cat POSIX --name read --limit 50");
	cop_buf_printf(&cause->help,
		"sort the accesses by offset, or read the file once as a whole and pick from memory: if the half of the time of these calls goes to seeking and to lost read-ahead, %.3f s",
		s / 2);
}

static void unaligned(struct cop_diagnose *d)
{
	const struct calls *c = &d->unaligned;
	double s = passed(d, c);
	struct cause *cause;

	if (c->n < 50 || 4 * c->n < d->unaligned_of || !matters(d, s))
		return;
	cause = cop_diagnose_cause(d, "unaligned transfers", s, s / 4);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu reads and writes of files that processes share, or that are not read in order, begin or end off a page of 4096 bytes",
		(unsigned long long)c->n, (unsigned long long)d->unaligned_of);
	cop_diagnose_command(d, cause,
		"table --cat POSIX --by file,size --show count,dur --sort count --limit 10");
	cop_buf_printf(&cause->help,
		"pad records to 4096 bytes, or to the stripe of the file system, so that no two processes write one page: a quarter of the time of these calls is %.3f s",
		s / 4);
}

/* ---- metadata ---- */

/* Leaves out failed calls and repeated opens, which are causes of their own. */
static void metadata(struct cop_diagnose *d, const struct calls *again)
{
	const struct calls *c = &d->meta;
	uint64_t moved = d->moved[SMALL].n + d->moved[LARGE].n;
	uint64_t other = d->failed.n + 2 * again->n;
	double s = passed(d, c), files = (double)d->file.table.count;
	struct cause *cause;

	if (c->n < 500 + other || c->n - other < 4 * moved || !matters(d, s))
		return;
	cause = cop_diagnose_cause(
		d, "metadata storm", s, s * (1 - COP_MIN(files / (double)c->n, 1.0)));
	cop_buf_printf(&cause->evidence,
		"%llu calls open, close, stat or list, %.1f for each read or write, on %.0f files; %.6f s each",
		(unsigned long long)c->n, (double)c->n / (double)COP_MAX(moved, (uint64_t)1), files,
		each(c));
	cop_diagnose_command(d, cause,
		"table --cat POSIX --by dir,name --show count,dur --sort count --limit 10");
	cop_buf_printf(&cause->help,
		"pack small files into few large ones, or keep a list of what is there: one call for each file leaves %.0f of %llu",
		files, (unsigned long long)c->n);
}

static void failing(struct cop_diagnose *d)
{
	const struct calls *c = &d->failed;
	double s = passed(d, c);
	struct cause *cause;

	if (c->n < 100 || 3 * c->n < d->meta.n || !matters(d, s))
		return;
	cause = cop_diagnose_cause(d, "failing lookups", s, s);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu opens and stats fail, %.6f s each: something is searched for in many places",
		(unsigned long long)c->n, (unsigned long long)d->meta.n, each(c));
	cop_diagnose_command(d, cause,
		"table --cat POSIX --name \"open|stat|access\" --by arg:ret,dir --show count,dur --limit 10");
	cop_buf_printf(&cause->help,
		"shorten the search path (PYTHONPATH, LD_LIBRARY_PATH), or put first what is found");
}

static struct calls reopened(struct cop_diagnose *d)
{
	struct calls all = {0}, again = {0};
	const struct use *worst = NULL;
	struct cause *cause;
	double s;

	for (struct thing *t = cop_diagnose_next(&d->use, NULL); t;
		t = cop_diagnose_next(&d->use, t)) {
		const struct use *u = COP_CONTAINER_OF(t, struct use, thing);

		all.n += u->opens.n;
		if (u->opens.n < 10)
			continue;
		again.n += u->opens.n - 1;
		again.ns += u->opens.ns / u->opens.n * (u->opens.n - 1);
		worst = !worst || u->opens.n > worst->opens.n ? u : worst;
	}
	s = passed(d, &again);
	if (again.n < 100 || 2 * again.n < all.n || !matters(d, s))
		return (struct calls){0};
	cause = cop_diagnose_cause(d, "repeated opens", s, s);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu opens are of a file that the process opened before; one opens %.*s %llu times",
		(unsigned long long)again.n, (unsigned long long)all.n, (int)worst->file->thing.len,
		worst->file->thing.key, (unsigned long long)worst->opens.n);
	cop_diagnose_command(d, cause,
		"table --cat POSIX --name open --by file,pid --show count,dur --sort count --limit 10");
	cop_buf_printf(&cause->help, "open each file once and keep it open: %llu opens fewer",
		(unsigned long long)again.n);
	return again;
}

static void syncing(struct cop_diagnose *d)
{
	const struct calls *c = &d->sync;
	double s = passed(d, c);
	struct cause *cause;

	if (c->n < 50 || 2 * c->n < d->write.n || !matters(d, s))
		return;
	cause = cop_diagnose_cause(d, "sync after each write", s, s * 0.9);
	cop_buf_printf(&cause->evidence,
		"%llu calls of fsync and the like for %llu writes, %.6f s each",
		(unsigned long long)c->n, (unsigned long long)d->write.n, each(c));
	cop_diagnose_command(
		d, cause, "table --cat POSIX --name sync --by file --show count,dur --limit 10");
	cop_buf_printf(&cause->help, "sync once, when a file is complete");
}

static void reread(struct cop_diagnose *d)
{
	uint64_t read = 0, again = 0;
	const struct use *worst = NULL;
	struct calls c = {0};
	struct cause *cause;
	double s;

	for (struct thing *t = cop_diagnose_next(&d->use, NULL); t;
		t = cop_diagnose_next(&d->use, t)) {
		const struct use *u = COP_CONTAINER_OF(t, struct use, thing);

		read += u->read;
		if (!u->read || u->read < 3 * u->extent)
			continue;
		again += u->read - u->extent;
		c.ns += (uint64_t)((double)u->moved.ns * (1 - (double)u->extent / (double)u->read));
		worst = !worst || u->read > worst->read ? u : worst;
	}
	s = passed(d, &c);
	if (!worst || 2 * again < read || !matters(d, s))
		return;
	cause = cop_diagnose_cause(d, "data read again", s, s);
	cop_buf_printf(&cause->evidence,
		"%llu of %llu bytes were read before by the same process; %.*s, of at least %llu bytes, is read %.1f times",
		(unsigned long long)again, (unsigned long long)read, (int)worst->file->thing.len,
		worst->file->thing.key, (unsigned long long)worst->extent,
		(double)worst->read / (double)worst->extent);
	cop_diagnose_command(d, cause,
		"table --cat POSIX --name read --by file,pid --show size,count,dur --sort size --limit 10");
	cop_buf_printf(&cause->help, "keep in memory what is read: %llu bytes fewer",
		(unsigned long long)again);
}

/* ---- total time ---- */

/* Leaves out time that other causes explain. */
static void unoverlapped(struct cop_diagnose *d)
{
	double explained = 0;
	double io = seconds(cop_union_length(&d->io));
	double compute = seconds(cop_union_length(&d->compute));
	double alone = seconds(cop_union_alone(&d->io, &d->compute)), saves;
	struct cause *cause;

	for (size_t i = 0; i < d->causes; i++)
		explained += d->cause[i].seconds;
	if (compute < 0.1 * cop_diagnose_total(d) || alone < 0.5 * io || !matters(d, alone) ||
		alone - explained < 0.15 * cop_diagnose_total(d))
		return;
	saves = COP_MIN(alone, seconds(cop_union_alone(&d->compute, &d->io)));
	cause = cop_diagnose_cause(d, "input and output beside no computing", alone, saves);
	cop_buf_printf(&cause->evidence,
		"of %.3f s with input or output, nothing computes in %.3f s; %.3f s are spent computing",
		io, alone, compute);
	cop_diagnose_command(d, cause, "summary");
	cop_buf_printf(&cause->help,
		"read the next batch, or write the last checkpoint, in another thread while computing");
}

/* Whether a file has events both before and after the gap. */
static bool is_spanned(const struct cop_diagnose *d, const struct gap *g)
{
	for (size_t i = 0; i < cop_trace_files_count(d->files); i++)
		if (d->spanned[i].from < g->from && d->spanned[i].to > g->to)
			return true;
	return false;
}

/* Does not count a gap of more than half of the total time that no trace file spans: it lies
 * between runs, or comes from different clocks. */
static void idle(struct cop_diagnose *d)
{
	double total = cop_diagnose_total(d), s = 0;
	const struct gap *longest = NULL;
	struct cause *cause;
	size_t n = 0;

	for (size_t i = 0; i < d->gaps; i++) {
		const struct gap *g = &d->gap[i];
		double len = seconds((uint64_t)(g->to - g->from));

		if (len < 0.03 * total || len < GAP_MIN)
			continue;
		if (len > 0.5 * total && !is_spanned(d, g))
			continue;
		n++;
		s += len;
		if (!longest || g->to - g->from > longest->to - longest->from)
			longest = g;
	}
	if (!n || s < 2 * SHARE_MIN * total)
		return;
	cause = cop_diagnose_cause(d, "idle gaps", s, s);
	cop_buf_printf(&cause->evidence,
		"no process does anything in %zu gap%s; the longest is from %.3f s to %.3f s", n,
		n == 1 ? "" : "s", seconds((uint64_t)(longest->from - d->first)),
		seconds((uint64_t)(longest->to - d->first)));
	cop_buf_printf(&cause->command, "copper trace events --from %.3f --limit 10 %s",
		COP_MAX(seconds((uint64_t)(longest->from - d->first)) - 0.001 * total, 0.0),
		d->paths);
	cop_buf_printf(&cause->help,
		"see what ran last before the gap and first after it: a barrier, a restart, or a part of the program that writes no trace");
}

static void unfinished(struct cop_diagnose *d)
{
	const struct open *oldest = NULL;
	struct cause *cause;
	uint64_t n = 0;
	double s;

	for (struct thing *t = cop_diagnose_next(&d->open, NULL); t;
		t = cop_diagnose_next(&d->open, t)) {
		const struct open *o = COP_CONTAINER_OF(t, struct open, thing);

		n += o->n;
		if (!oldest || o->since < oldest->since)
			oldest = o;
	}
	if (!oldest)
		return;
	s = seconds((uint64_t)(COP_MAX(d->last, oldest->since) - oldest->since));
	cause = cop_diagnose_cause(d, "a begin that never ended", s, NAN);
	cop_buf_printf(&cause->evidence, "%llu span%s never ended; the first is %.*s of ",
		(unsigned long long)n, n == 1 ? "" : "s", (int)oldest->any.name.len,
		oldest->any.name.at);
	cop_diagnose_who(d, &oldest->any, &cause->evidence);
	cop_buf_printf(&cause->evidence, ", which began at %.3f s, %.3f s before the end",
		seconds((uint64_t)(oldest->since - d->first)), s);
	cop_diagnose_command(d, cause,
		"table --by name,process,thread --show unfinished,first --sort unfinished --limit 10");
	cop_buf_printf(&cause->help,
		"look there first after a hang: the %.3f s until the end of the trace may be waiting for it",
		s);
}

static void clock_step(struct cop_diagnose *d)
{
	struct cause *cause;
	struct step step;
	double s;

	if (!cop_diagnose_clock_step(d->clock, d->threads, &step))
		return;
	s = seconds(step.back_ns);
	cause = cop_diagnose_cause(d, "clock step", s, NAN);
	cop_buf_printf(&cause->evidence, "in %s the time goes back by %.6f s at line %llu",
		cop_trace_files_name(d->files, step.source), s, (unsigned long long)step.line);
	cop_buf_str(&cause->command, "copper trace events --csv");
	cop_diagnose_quote(cop_trace_files_name(d->files, step.source), &cause->command);
	cop_buf_printf(&cause->help,
		"times before and after it cannot be compared, by up to %.6f s: have the clock slewed (chrony), not stepped, while programs run",
		s);
}

void cop_diagnose_causes(struct cop_diagnose *d)
{
	struct calls again = reopened(d);

	small(d);
	random_access(d);
	unaligned(d);
	metadata(d, &again);
	failing(d);
	syncing(d);
	reread(d);
	cop_diagnose_slow_files(d);
	cop_diagnose_one_writer(d);
	unoverlapped(d);
	cop_diagnose_slow_process(d);
	idle(d);
	unfinished(d);
	clock_step(d);
}
