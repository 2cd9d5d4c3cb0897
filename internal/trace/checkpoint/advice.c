/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the figures into advice. Parameters and defaults are from the user's guide of SCR (Scalable
 * Checkpoint/Restart), section "SCR parameters": SCR_FILE_BUF_SIZE, the copy buffer between cache
 * and parallel file system, 1 MiB; SCR_MPI_BUF_SIZE, the send buffer of redundancy data, 128 KiB;
 * SCR_FLUSH_WIDTH, the number of processes that write to the parallel file system at a time, 256;
 * SCR_COPY_TYPE, the redundancy scheme; SINGLE has no redundancy. */
#include <math.h>

#include "base/base/grow.h"
#include "trace/checkpoint/checkpoint_priv.h"

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
	cop_ckpt_put_str(s, ""); /* replaced by the complete text */
	return &r->advice[r->advices++];
}

/* ---- sizes with the most bytes ---- */

struct carrier {
	double size, count, share; /* share: of all bytes written to the tier */
};

enum by { BY_BYTES, BY_COUNT, BY_SIZE };

/* The size of writes to a tier with the most bytes, with the most calls, or the largest. */
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

/* The other run with the least time per byte written to this tier. */
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
		cop_ckpt_advise_scr(r, &r->run[i]);
	}
	for (size_t i = 0; i < r->advices && !s->failed; i++) {
		const struct cop_buf *text = &r->advice[i];

		s->failed |= text->failed;
		s->cell[i * s->cols + 2] = (struct cop_grid_cell){text->data, text->len, NAN};
	}
}
