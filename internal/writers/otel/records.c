/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/otel/otel_priv.h"

void cop_otel_start_record(
	const struct cop_otel *o, const struct cop_otlp_source *from, struct cop_buf *out)
{
	const struct cop_otlp_attribute nodes = {.key = "copper.nodes", .number = o->nodes};
	struct cop_otlp_record r = {.time_ns = (uint64_t)o->ready_ns,
		.observed_ns = (uint64_t)o->ready_ns,
		.severity = COP_OTLP_INFO,
		.event = "copper.job.ready",
		.body = "the tree is ready",
		.attributes = {&nodes, 1},
		.at = o->place.job};

	cop_otlp_logs(out, from, &r, 1);
}

/* ---- events of nodes ---- */

/* The number of records in one line, limited by what receivers accept. */
#define BATCH 64u

struct batch {
	struct cop_otlp_record record[BATCH];
	struct cop_otlp_attribute attribute[BATCH][3];
	char event[BATCH][48], body[BATCH][COP_TELEMETRY_DETAIL + 320];
	size_t n;
};

static enum cop_otlp_severity severity_of(enum cop_telemetry_kind kind)
{
	if (kind == COP_TELEMETRY_STORAGE_ERROR)
		return COP_OTLP_FAILURE;
	return cop_otel_is_trouble(kind) && kind != COP_TELEMETRY_PEER_BACK ? COP_OTLP_WARN
									    : COP_OTLP_INFO;
}

static void add_fact(
	struct batch *b, const struct cop_otel *o, const struct fact *f, int64_t now_ns)
{
	struct cop_otlp_attribute *a = b->attribute[b->n];
	const char *name = cop_telemetry_kind_name(f->kind);

	snprintf(b->event[b->n], sizeof(b->event[0]), "copper.%s", name);
	snprintf(b->body[b->n], sizeof(b->body[0]), "%s%s%s", name, *f->detail ? ": " : "",
		f->detail);
	a[0] = (struct cop_otlp_attribute){.key = "copper.rank", .number = f->rank};
	a[1] = (struct cop_otlp_attribute){.key = "host.name", .text = f->host};
	a[2] = (struct cop_otlp_attribute){.key = "copper.detail", .text = f->detail};
	b->record[b->n] = (struct cop_otlp_record){.time_ns = (uint64_t)f->wall_ns,
		.observed_ns = (uint64_t)now_ns,
		.severity = severity_of(f->kind),
		.event = b->event[b->n],
		.body = b->body[b->n],
		.attributes = {a, *f->detail ? 3 : 2},
		.at = o->place.job};
	b->n++;
}

static void add_facts(const struct cop_otel *o, const struct cop_otlp_source *from, int64_t now_ns,
	struct cop_buf *out)
{
	struct batch b = {0};

	for (size_t i = 0; i < o->facts.n; i++) {
		add_fact(&b, o, &o->facts.fact[i], now_ns);
		if (b.n < BATCH && i + 1 < o->facts.n)
			continue;
		cop_otlp_logs(out, from, b.record, b.n);
		b.n = 0;
	}
}

void cop_otel_end_records(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out)
{
	const struct cop_otlp_attribute attributes[] = {
		{.key = "copper.nodes.missing", .number = o->totals.numbers.missing},
		{.key = "copper.events.dropped", .number = (int64_t)o->facts.dropped}};
	struct cop_otlp_record r = {.time_ns = (uint64_t)now_ns,
		.observed_ns = (uint64_t)now_ns,
		.severity = o->failed ? COP_OTLP_FAILURE : COP_OTLP_INFO,
		.event = o->failed ? "copper.job.failed" : "copper.job.stopped",
		.body = o->reason ? o->reason : "",
		.attributes = {attributes, COP_ARRAY_SIZE(attributes)},
		.at = o->place.job};

	add_facts(o, from, now_ns, out);
	cop_otlp_logs(out, from, &r, 1);
}
