/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the parts of files that could not be read. */
#include "trace/read/index_priv.h"

#define NAMED_MAX 20u

void cop_trace_omit(struct cop_trace_result *r, char phase)
{
	unsigned bit = phase > ' ' && phase < 127 ? (unsigned)phase : 0;

	r->omitted++;
	r->omitted_phase[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void tell_halves(struct cop_buf *out, uint64_t n, const char *one, const char *many)
{
	if (n)
		cop_buf_printf(out, "%llu %s\n", (unsigned long long)n, n == 1 ? one : many);
}

static bool is_named(const struct cop_trace_result *r, size_t source)
{
	for (unsigned i = 0; i < r->faults; i++)
		if (r->fault[i].source == source)
			return true;
	return false;
}

static void tell_omitted(const struct cop_trace_result *r, struct cop_buf *out)
{
	const uint64_t *phase = r->omitted_phase;
	const char *before = "";

	if (!r->omitted)
		return;
	cop_buf_printf(out, "%llu %s, since copper trace does not read %s (ph): ",
		(unsigned long long)r->omitted,
		r->omitted == 1 ? "event is omitted" : "events are omitted",
		r->omitted == 1 ? "its phase" : "their phases");
	for (unsigned bit = 1; bit < 128; bit++)
		if (phase[bit / 64] >> bit % 64 & 1) {
			cop_buf_printf(out, "%s%c", before, (int)bit);
			before = ", ";
		}
	if (phase[0] & 1)
		cop_buf_printf(out, "%slonger ones", *before ? " and " : "");
	cop_buf_str(out, "\n");
}

/* Lists the files with unreadable parts, except those already named. */
static void tell_files(
	const struct cop_trace_files *f, const struct cop_trace_result *r, struct cop_buf *out)
{
	size_t told = 0;

	for (size_t i = 0; i < f->n && r->broken > r->faults; i++) {
		if (!f->file[i].broken || is_named(r, i) || told++ >= NAMED_MAX)
			continue;
		cop_buf_printf(out, "%s: %llu of them\n", f->file[i].name,
			(unsigned long long)f->file[i].broken);
	}
	if (told > NAMED_MAX)
		cop_buf_printf(out, "and %zu more files\n", told - NAMED_MAX);
}

void cop_trace_faults(
	const struct cop_trace_files *f, const struct cop_trace_result *result, struct cop_buf *out)
{
	for (unsigned i = 0; i < result->faults; i++)
		cop_buf_printf(out, "%s:%llu: %s\n", f->file[result->fault[i].source].name,
			(unsigned long long)result->fault[i].line, result->fault[i].why);
	if (result->broken > result->faults)
		cop_buf_printf(out, "%llu lines or events could not be read; these are the first\n",
			(unsigned long long)result->broken);
	tell_files(f, result, out);
	tell_omitted(result, out);
	tell_halves(out, result->unfinished, "begin of a span has no end",
		"begins of spans have no end");
	cop_trace_clocks_tell(f->clocks, out);
	tell_halves(out, result->unmatched, "end of a span has no begin",
		"ends of spans have no begin");
	if (result->names_lost)
		cop_buf_printf(out, "%llu names are beyond the %zu that a file may define\n",
			(unsigned long long)result->names_lost, COP_TRACE_NAMES_MAX);
}
