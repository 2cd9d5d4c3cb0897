/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the figures into advice. Parameters and defaults are from the user guide of SCR (Scalable
 * Checkpoint/Restart), section "SCR parameters": SCR_FILE_BUF_SIZE, the buffer for copies between
 * cache and parallel file system, 1 MiB; SCR_MPI_BUF_SIZE, the send buffer for redundancy data, 128
 * KiB; SCR_FLUSH_WIDTH, the number of processes that write to the parallel file system at a time,
 * 256; SCR_COPY_TYPE, the redundancy scheme, where SINGLE has no redundancy. */
#include <math.h>

#include "base/base/grow.h"
#include "trace/checkpoint/checkpoint_priv.h"

/* Advice on when and where SCR writes checkpoints. Parameters and defaults are from the user guide
 * of SCR 3, section "SCR parameters": SCR_FLUSH_ASYNC 0, SCR_FLUSH_TYPE SYNC, SCR_FLUSH 10
 * (checkpoints between flushes), SCR_CACHE_BYPASS 1, SCR_CACHE_SIZE 1, SCR_SET_SIZE 8,
 * SCR_SET_FAILURES 2, SCR_FETCH_BYPASS 0, SCR_CHECKPOINT_SECONDS and SCR_CHECKPOINT_OVERHEAD 0 (no
 * limit). */

/* Returns the slower tier to which the run writes the most bytes; 0 if it writes to none. */
static unsigned target_of(const struct cop_ckpt_report *r, const struct run *run)
{
	unsigned best = 0;

	for (unsigned t = 1; t < r->conf->tiers; t++)
		if (run->tier[t].written > (best ? run->tier[best].written : 0))
			best = t;
	return best;
}

static bool uses_cache(const struct cop_ckpt_report *r, const struct run *run)
{
	return run->tier[0].written > 0 && target_of(r, run);
}

static void advise_async(struct cop_ckpt_report *r, const struct run *run)
{
	const struct flush *f = &run->flush;
	struct cop_buf *text;

	if (!uses_cache(r, run) || !(f->inside > 0.1 * run->dur))
		return;
	text = cop_ckpt_about(r, run, "async");
	if (text)
		cop_buf_printf(text,
			"%.3f s of the %.3f s of checkpoints of a thread are writes to %s: SCR_FLUSH_ASYNC=1 (0 by default) with SCR_FLUSH_TYPE=PTHREAD (SYNC by default) moves them behind the program's computing, and about %.3f s remain",
			f->inside, run->dur, r->conf->tier[target_of(r, run)],
			COP_MAX(run->dur - f->inside, 0.0));
}

/* Advises against writing to the cache if the target is as fast. */
static void advise_bypass(struct cop_ckpt_report *r, const struct run *run)
{
	unsigned t = target_of(r, run);
	const struct tier *cache = &run->tier[0], *target = &run->tier[t];
	struct cop_buf *text;

	if (!uses_cache(r, run) || !(cache->dur > 0) || !(target->dur > 0) ||
		target->written / target->dur < cache->written / cache->dur)
		return;
	text = cop_ckpt_about(r, run, "bypass");
	if (text)
		cop_buf_printf(text,
			"%s takes %.0f bytes in a second of its slowest thread, %s only %.0f: SCR_CACHE_BYPASS=1 (the default) writes to %s alone and saves the %.3f s for %s",
			r->conf->tier[t], target->written / target->dur, r->conf->tier[0],
			cache->written / cache->dur, r->conf->tier[t], cache->dur,
			r->conf->tier[0]);
}

/* Returns the run with the shortest checkpoints among those that write to the first tier. */
static const struct run *best_cached(const struct cop_ckpt_report *r)
{
	const struct run *best = NULL;

	for (size_t i = 0; i < r->runs; i++)
		if (r->run[i].tier[0].written > 0 && r->run[i].pace.n > 0 &&
			(!best || r->run[i].pace.cost < best->pace.cost))
			best = &r->run[i];
	return best;
}

static void advise_cache(struct cop_ckpt_report *r, const struct run *run)
{
	const struct run *best = best_cached(r);
	struct cop_buf *text;

	if (!best || run->tier[0].written > 0 || !(run->pace.cost > 1.2 * best->pace.cost))
		return;
	text = cop_ckpt_about(r, run, "cache");
	if (text)
		cop_buf_printf(text,
			"a checkpoint takes %.3f s, in %s, which writes to %s, %.3f s: SCR_CACHE_BYPASS=0 (1 by default) with SCR_CACHE_BASE on %s saves %.3f s of each",
			run->pace.cost, best->name, r->conf->tier[0], best->pace.cost,
			r->conf->tier[0], run->pace.cost - best->pace.cost);
}

/* XOR with sets of N writes an extra 1/(N - 1) of the data. */
static void advise_set(struct cop_ckpt_report *r, const struct run *run)
{
	double more = run->tier[0].ratio - 1, n = 1 + 1 / more;
	struct cop_buf *text;

	if (!(more >= 0.02 && more <= 0.6))
		return;
	text = cop_ckpt_about(r, run, "set");
	if (text)
		cop_buf_printf(text,
			"%s gets %.1f %% more than was produced, as XOR with sets of %.0f does: SCR_SET_SIZE=%.0f (8 by default) makes that %.1f %%, but takes longer to rebuild; with RS, more than SCR_SET_FAILURES=1 (2 by default) costs more",
			r->conf->tier[0], 100 * more, n, 2 * round(n), 100 / (2 * round(n) - 1));
}

/* Returns the flush time per checkpoint. */
static double flush_of_each(const struct run *run)
{
	return run->pace.n > 0 ? run->flush.covered / run->pace.n : 0;
}

static void advise_often(struct cop_ckpt_report *r, const struct run *run)
{
	double each = flush_of_each(run), period = run->pace.cost + run->pace.interval, every;
	struct cop_buf *text;

	if (!(run->flush.dur > 0) || !(each > 0.8 * period))
		return;
	every = ceil(each / (0.8 * period));
	text = cop_ckpt_about(r, run, "often");
	if (text)
		cop_buf_printf(text,
			"the flush of a checkpoint takes %.3f s, and the next one comes after %.3f s: SCR_FLUSH=%.0f flushes every so many checkpoints (10 by default), and SCR_CACHE_SIZE=%.0f (1 by default) keeps those that wait",
			each, period, COP_MAX(every, 2.0), COP_MAX(every, 2.0));
}

static void advise_beside(struct cop_ckpt_report *r, const struct run *run)
{
	const struct flush *f = &run->flush;
	struct cop_buf *text;

	if (!(f->dur > 0) || !(f->overlap >= 0.2 * f->covered))
		return;
	text = cop_ckpt_about(r, run, "beside");
	if (text)
		cop_buf_printf(text,
			"%.3f of %.3f s in which something is flushed are beside checkpoints, which then share the storage: a smaller SCR_FLUSH_WIDTH (256 by default) or fewer flushes (SCR_FLUSH, 10 by default) keep them apart",
			f->overlap, f->covered);
}

static void advise_interval(struct cop_ckpt_report *r, const struct run *run)
{
	const struct pace *p = &run->pace;
	double mtbf = r->conf->mtbf_s, best;
	struct cop_buf *text;

	if (!(mtbf > 0) || !(p->interval > 0) || !(p->cost > 0))
		return;
	best = cop_ckpt_daly(p->cost, mtbf);
	if (p->interval > 0.8 * best && p->interval < 1.25 * best)
		return;
	text = cop_ckpt_about(r, run, "interval");
	if (text)
		cop_buf_printf(text,
			"%.3f s are between checkpoints of %.3f s; with a failure every %.0f s, %.0f s are best: SCR_CHECKPOINT_SECONDS=%.0f (SCR_CHECKPOINT_INTERVAL counts calls instead), and %.2f %% of the time is lost, not %.2f %%",
			p->interval, p->cost, mtbf, best, best,
			100 * cop_ckpt_lost(p->cost, best, mtbf),
			100 * cop_ckpt_lost(p->cost, p->interval, mtbf));
}

/* Judges the share of time spent on checkpoints; more is not possible without a failure rate. */
static void advise_overhead(struct cop_ckpt_report *r, const struct run *run)
{
	const struct pace *p = &run->pace;
	double share = p->cost / (p->cost + p->interval);
	struct cop_buf *text;

	if (r->conf->mtbf_s > 0 || !(share >= 0.1))
		return;
	text = cop_ckpt_about(r, run, "overhead");
	if (text)
		cop_buf_printf(text,
			"checkpoints take %.1f %% of the time: SCR_CHECKPOINT_OVERHEAD=5 (percent; no limit by default) has one every %.0f s instead of every %.0f s; --mtbf tells what is best",
			100 * share, 20 * p->cost, p->cost + p->interval);
}

/* Advises on files that are fetched into the cache and then read from there. */
static void advise_fetch(struct cop_ckpt_report *r, const struct run *run)
{
	unsigned t = target_of(r, run);
	double fetched = t ? run->tier[t].read : 0;
	struct cop_buf *text;

	if (!(fetched > 0) || !(fetched >= 0.5 * run->produced) ||
		run->tier[0].read < 0.9 * fetched)
		return;
	text = cop_ckpt_about(r, run, "fetch");
	if (text)
		cop_buf_printf(text,
			"%s are read from %s and %s from %s: if the first are copied for a restart, SCR_FETCH_BYPASS=1 (0 by default) has the program read them where they are",
			cop_ckpt_bytes(fetched).text, r->conf->tier[t],
			cop_ckpt_bytes(run->tier[0].read).text, r->conf->tier[0]);
}

static void advise_scr(struct cop_ckpt_report *r, const struct run *run)
{
	advise_async(r, run);
	advise_bypass(r, run);
	advise_cache(r, run);
	advise_set(r, run);
	advise_often(r, run);
	advise_beside(r, run);
	advise_interval(r, run);
	advise_overhead(r, run);
	advise_fetch(r, run);
}

struct words cop_ckpt_bytes(double value)
{
	struct words w;
	char size[16];

	snprintf(w.text, sizeof(w.text), "%.0f bytes (%s)", value,
		cop_format_size((uint64_t)value, size));
	return w;
}

struct cop_buf *cop_ckpt_about(struct cop_ckpt_report *r, const struct run *run, const char *what)
{
	struct sheet *s = &r->sheet[SHEET_ADVICE];

	if (!COP_GROW_PLAIN(r->advice, r->advices)) {
		s->failed = true;
		return NULL;
	}
	r->advice[r->advices] = (struct cop_buf){0};
	cop_ckpt_put_str(s, run->name);
	cop_ckpt_put_str(s, what);
	cop_ckpt_put_str(s, ""); /* replaced once the text is complete */
	return &r->advice[r->advices++];
}

/* ---- sizes with the most bytes ---- */

struct carrier {
	double size, count, share; /* share of all bytes written to the tier */
};

enum by { BY_BYTES, BY_COUNT, BY_SIZE };

/* Finds the write size to a tier that accounts for the most bytes or calls, or the largest size. */
static struct carrier find_carrier(const struct tier *t, enum by by)
{
	const struct cop_rows *rows = &t->rows[TAB_SIZES];
	struct carrier best = {0};
	double most = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct cop_row *row = &rows->row[i];
		double size = cop_ckpt_size_of(row), count = row->value[0];
		double weight = by == BY_COUNT ? count : by == BY_SIZE ? size : count * size;

		if (!cop_ckpt_holds(row->key[0], "write") || weight < most ||
			(weight == most && size <= best.size))
			continue;
		most = weight;
		best = (struct carrier){size, count, count * size / t->written};
	}
	return best;
}

static void advise_buffer(struct cop_ckpt_report *r, const struct run *run, unsigned slow)
{
	struct carrier copy = find_carrier(&run->tier[slow], BY_BYTES);
	struct carrier own = find_carrier(&run->tier[0], BY_SIZE);
	struct cop_buf *text;

	if (!(run->flush.dur > 0) || !copy.count || copy.size >= own.size)
		return;
	text = cop_ckpt_about(r, run, "buffer");
	if (!text)
		return;
	cop_buf_printf(text,
		"%.1f %% of the bytes written to %s go in %.0f calls of %s, while writes to %s have up to %s: a larger SCR_FILE_BUF_SIZE (copies between cache and parallel file system, 1048576 by default) makes fewer and larger writes",
		100 * copy.share, r->conf->tier[slow], copy.count, cop_ckpt_bytes(copy.size).text,
		r->conf->tier[0], cop_ckpt_bytes(own.size).text);
}

static void advise_redundancy(struct cop_ckpt_report *r, const struct run *run, unsigned tier)
{
	const struct tier *t = &run->tier[tier];
	struct carrier often = find_carrier(t, BY_COUNT);
	struct cop_buf *text;

	if (!(t->ratio >= 1.1))
		return;
	text = cop_ckpt_about(r, run, "redundancy");
	if (!text)
		return;
	cop_buf_printf(text, "%s gets %s, %.2f times the ", r->conf->tier[tier],
		cop_ckpt_bytes(t->written).text, t->ratio);
	cop_buf_printf(text,
		"%s that the program produced: if that is the redundancy scheme (SCR_COPY_TYPE), XOR and RS write less than PARTNER, SINGLE writes nothing more but survives no failed node; writes of %s come most often (%.0f calls, %.1f %% of the bytes), and if those are redundancy data, a larger SCR_MPI_BUF_SIZE (131072 by default) makes them fewer",
		cop_ckpt_bytes(run->produced).text, cop_ckpt_bytes(often.size).text, often.count,
		100 * often.share);
}

/* ---- the flush ---- */

/* Finds the other run with the least time per byte written to this tier. */
static const struct run *find_faster(
	const struct cop_ckpt_report *r, const struct run *run, unsigned tier)
{
	const struct run *best = NULL;
	double least = 0;

	for (size_t i = 0; i < r->runs; i++) {
		const struct tier *t = &r->run[i].tier[tier];
		double each = t->dur / t->written;

		if (&r->run[i] == run || !(t->written > 0) || (best && each >= least))
			continue;
		best = &r->run[i];
		least = each;
	}
	return best;
}

static void advise_flush(struct cop_ckpt_report *r, const struct run *run, unsigned tier)
{
	const struct run *other = find_faster(r, run, tier);
	const struct tier *mine = &run->tier[tier], *its = other ? &other->tier[tier] : NULL;
	struct cop_buf *text;

	if (!other || !(run->flush.dur > 0) || !(mine->written > 0) ||
		run->flush.dur / mine->written < 1.2 * its->dur / its->written)
		return;
	text = cop_ckpt_about(r, run, "flush");
	if (!text)
		return;
	cop_buf_printf(text, "the flush of %s to %s takes %.3f s, ",
		cop_ckpt_bytes(mine->written).text, r->conf->tier[tier], run->flush.dur);
	cop_buf_printf(text,
		"while %s spends %.3f s on %s there: give the flush more threads, and cores that the program does not use (%llu threads flush; at most SCR_FLUSH_WIDTH processes, 256 by default, write at a time)",
		other->name, its->dur, cop_ckpt_bytes(its->written).text,
		(unsigned long long)run->flush.threads);
}

void cop_ckpt_advise(struct cop_ckpt_report *r)
{
	struct sheet *s = &r->sheet[SHEET_ADVICE];

	for (size_t i = 0; i < r->runs; i++) {
		for (unsigned t = 1; t < r->conf->tiers; t++)
			advise_buffer(r, &r->run[i], t);
		for (unsigned t = 0; t < r->conf->tiers; t++)
			advise_redundancy(r, &r->run[i], t);
		for (unsigned t = 1; t < r->conf->tiers; t++)
			advise_flush(r, &r->run[i], t);
		advise_scr(r, &r->run[i]);
	}
	for (size_t i = 0; i < r->advices && !s->failed; i++) {
		const struct cop_buf *text = &r->advice[i];

		s->failed |= text->failed;
		s->cell[i * s->cols + 2] = (struct cop_grid_cell){text->data, text->len, NAN};
	}
}
