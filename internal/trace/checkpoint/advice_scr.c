/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about when and where SCR writes checkpoints. Parameters and defaults are from the user's
 * guide of SCR 3, section "SCR parameters": SCR_FLUSH_ASYNC 0, SCR_FLUSH_TYPE SYNC, SCR_FLUSH 10
 * (checkpoints between flushes), SCR_CACHE_BYPASS 1, SCR_CACHE_SIZE 1, SCR_SET_SIZE 8,
 * SCR_SET_FAILURES 2, SCR_FETCH_BYPASS 0, SCR_CHECKPOINT_SECONDS and SCR_CHECKPOINT_OVERHEAD 0 (no
 * limit). */
#include <math.h>

#include "trace/checkpoint/checkpoint_priv.h"

/* The slower tier that receives the most bytes; 0 if none does. */
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

/* Writing to the cache does not pay off if the target is as fast. */
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

/* The run with the shortest checkpoints among those that write to the first tier. */
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

/* XOR with sets of N writes an extra 1/(N - 1). */
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

/* The flush time per checkpoint. */
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

/* Without a failure rate, only the share of time can be judged. */
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

/* Files that are fetched into the cache and then read from it. */
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

void cop_ckpt_advise_scr(struct cop_ckpt_report *r, const struct run *run)
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
