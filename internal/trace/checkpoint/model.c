/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions. The optimum interval is from J. W. Young, "A first order approximation to the
 * optimum checkpoint interval", CACM 17(9), 1974, and J. T. Daly, "A higher order estimate of the
 * optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equation 37. */
#include <math.h>

#include "trace/checkpoint/checkpoint_priv.h"

double cop_ckpt_young(double cost, double mtbf)
{
	return sqrt(2 * cost * mtbf);
}

double cop_ckpt_daly(double cost, double mtbf)
{
	double x = cost / (2 * mtbf);

	return cost < 2 * mtbf ? sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost : mtbf;
}

/* Uses Daly's time to solution with exponentially distributed failures and no restart time: an
 * interval and its checkpoint take mtbf (e^((interval + cost) / mtbf) - 1). */
double cop_ckpt_lost(double cost, double interval, double mtbf)
{
	return 1 - interval / (mtbf * expm1((interval + cost) / mtbf));
}

void cop_ckpt_put_interval(struct cop_ckpt_report *r, const struct run *run)
{
	struct sheet *s = &r->sheet[SHEET_INTERVAL];
	const struct pace *p = &run->pace;
	double mtbf = r->conf->mtbf_s > 0 ? r->conf->mtbf_s : NAN, daly;

	if (!(p->n > 0))
		return;
	daly = cop_ckpt_daly(p->cost, mtbf);
	cop_ckpt_put_str(s, run->name);
	cop_ckpt_put(s, p->n);
	cop_ckpt_put(s, p->cost);
	cop_ckpt_put(s, p->interval);
	cop_ckpt_put(s, mtbf);
	cop_ckpt_put(s, isnan(mtbf) ? NAN : cop_ckpt_young(p->cost, mtbf));
	cop_ckpt_put(s, isnan(mtbf) ? NAN : daly);
	cop_ckpt_put(s, p->interval > 0 ? cop_ckpt_lost(p->cost, p->interval, mtbf) : NAN);
	cop_ckpt_put(s, isnan(mtbf) ? NAN : cop_ckpt_lost(p->cost, daly, mtbf));
}

/* ---- times ---- */

/* One prediction: for a number of nodes, each with the observed bytes per node, and a redundancy
 * scheme, or the observed redundancy if NULL. */
struct future {
	double nodes;
	const struct cop_ckpt_scheme *scheme;
};

/* Returns the bytes that a run writes to a tier, observed or predicted. A scheme affects only the
 * first tier. */
static double bytes_for(const struct run *run, unsigned tier, const struct future *f)
{
	double written = run->tier[tier].written, size = run->produced;

	if (!f->scheme || isnan(size))
		size = written > 0 ? written : run->produced;
	if (f->scheme && !tier)
		size *= f->scheme->factor;
	return size * f->nodes / run->nodes;
}

static double bandwidth(const struct cop_ckpt_conf *c, unsigned tier, const struct future *f)
{
	return c->bandwidth[tier] * (c->per_node[tier] ? f->nodes : 1);
}

static void put_row(struct cop_ckpt_report *r, const struct run *run, const struct future *f,
	const char *what, double size, double dur)
{
	struct sheet *s = &r->sheet[SHEET_MODEL];

	cop_ckpt_put_str(s, run->name);
	cop_ckpt_put_str(s, what);
	cop_ckpt_put(s, size);
	cop_ckpt_put(s, dur);
	cop_ckpt_put(s, f->nodes);
	cop_ckpt_put_str(s, f->scheme ? f->scheme->name : "");
	cop_ckpt_put(s, f->scheme ? f->scheme->factor : NAN);
}

static void put_future(struct cop_ckpt_report *r, const struct run *run, const struct future *f)
{
	const struct cop_ckpt_conf *c = r->conf;
	unsigned last = c->tiers - 1;
	double size;

	for (unsigned t = 0; t < c->tiers; t++)
		if (c->bandwidth[t] > 0)
			put_row(r, run, f, c->tier[t], bytes_for(run, t, f),
				bytes_for(run, t, f) / bandwidth(c, t, f));
	if (!last || !(c->bandwidth[0] > 0) || !(c->bandwidth[last] > 0))
		return;
	size = bytes_for(run, last, f);
	put_row(r, run, f, "async", size, size / bandwidth(c, 0, f) + size / bandwidth(c, last, f));
}

void cop_ckpt_put_model(struct cop_ckpt_report *r, const struct run *run)
{
	const struct cop_ckpt_conf *c = r->conf;

	for (unsigned n = 0; n < COP_MAX(c->nodes_n, 1u); n++)
		for (unsigned i = 0; i < COP_MAX(c->schemes, 1u); i++) {
			const struct future f = {c->nodes_n ? (double)c->nodes[n] : run->nodes,
				c->schemes ? &c->scheme[i] : NULL};

			put_future(r, run, &f);
		}
}
