/* SPDX-License-Identifier: BSD-3-Clause */
/* The combined answers of a subtree: sums, and their encoding for transport up the tree.
 *
 * The text contains a part from every node and grows with the job. It is sent compressed, in at
 * most COP_OP_TEXT_MAX bytes. Parts that do not fit are omitted and counted; the sums include their
 * nodes. */
#include "tree/op/op_priv.h"

#include <sys/wait.h>

#include "base/log/log.h"
#include "fabric/wire/wire.h"

void cop_op_sum_free(struct cop_op_sum *g)
{
	cop_buf_free(&g->text);
	cop_buf_free(&g->silent);
	cop_prof_sum_free(g->prof);
	cop_telemetry_sum_free(g->telemetry);
	*g = (struct cop_op_sum){0};
}

void cop_op_sum_unwritten(struct cop_op_sum *g, const char *host, const char *why)
{
	g->unwritten++;
	snprintf(g->why_unwritten, sizeof(g->why_unwritten), "%.100s: %s", host, why);
}

void cop_op_sum_say_unwritten(const struct cop_op_sum *g, struct cop_buf *out)
{
	if (!g->unwritten)
		return;
	cop_buf_printf(out, "%s\n", g->why_unwritten);
	if (g->unwritten > 1)
		cop_buf_printf(out,
			"%" PRIu32
			" nodes could not write all of their final files; their logs say which\n",
			g->unwritten);
}

static void add_text(struct cop_op_sum *into, const struct cop_op_sum *from, char separator)
{
	if (!from->text.len)
		return;
	if (into->text.len + from->text.len >= COP_OP_TEXT_MAX) {
		into->cut += from->nodes;
		return;
	}
	if (into->text.len)
		cop_buf_add(&into->text, &separator, 1);
	cop_buf_add(&into->text, from->text.data, from->text.len);
}

static void add_missing(struct cop_op_sum *into, const struct cop_op_sum *from)
{
	into->dead += from->dead;
	into->refused += from->refused;
	into->failed += from->failed;
	for (uint32_t i = 0;
		i < from->missing && i < COP_OP_NAMED && into->missing + i < COP_OP_NAMED; i++)
		into->lost[into->missing + i] = from->lost[i];
	into->missing += from->missing;
	for (uint32_t i = 0; i < cop_op_sum_silents(from); i++)
		cop_op_sum_add_silent(into, cop_op_sum_silent(from, i));
	into->cut += from->cut;
	into->mounted += from->mounted;
	if (from->unwritten && !into->unwritten)
		memcpy(into->why_unwritten, from->why_unwritten, sizeof(into->why_unwritten));
	into->unwritten += from->unwritten;
}

/* A signal ranks above any exit status, and a higher number above a lower one. */
static uint32_t severity(uint32_t status)
{
	return WIFSIGNALED(status) ? 256 + (uint32_t)WTERMSIG(status)
				   : (uint32_t)WEXITSTATUS(status);
}

void cop_op_exits_add(struct cop_op_exits *into, const struct cop_op_exits *from)
{
	uint32_t mine = severity(into->worst), theirs = severity(from->worst);

	if (from->failed &&
		(!into->failed || theirs > mine || (theirs == mine && from->rank < into->rank))) {
		into->worst = from->worst;
		into->rank = from->rank;
	}
	into->commands += from->commands;
	into->running += from->running;
	into->good += from->good;
	into->failed += from->failed;
}

void cop_op_exits_count(struct cop_op_exits *e, uint32_t rank, int status)
{
	if (status == 0)
		e->good++;
	else
		cop_op_exits_add(e, &(struct cop_op_exits){
					    .failed = 1, .worst = (uint32_t)status, .rank = rank});
}

static void add_machine(struct cop_op_machine *into, const struct cop_op_machine *from)
{
	into->cpu_us += from->cpu_us;
	into->cpu_us_most = COP_MAX(into->cpu_us_most, from->cpu_us_most);
	into->resident_bytes += from->resident_bytes;
	into->resident_bytes_most = COP_MAX(into->resident_bytes_most, from->resident_bytes_most);
}

void cop_op_sum_machine(struct cop_op_sum *s)
{
	struct cop_op_machine own;

	cop_process_usage(&own.cpu_us, &own.resident_bytes);
	own.cpu_us_most = own.cpu_us;
	own.resident_bytes_most = own.resident_bytes;
	add_machine(&s->machine, &own);
}

static void add_prof(struct cop_op_sum *into, const struct cop_op_sum *from)
{
	if (!from->prof)
		return;
	if (!into->prof)
		into->prof = cop_prof_sum_new();
	/* If this is dropped, the number of nodes in each sum still shows how many are missing. */
	if (!into->prof || cop_prof_merge(into->prof, from->prof))
		cop_log_error(
			"no memory for the sums of nodes=%" PRIu64, cop_prof_sum_nodes(from->prof));
}

static void add_telemetry(struct cop_op_sum *into, const struct cop_op_sum *from)
{
	int rc = -ENOMEM;

	if (!from->telemetry)
		return;
	if (!into->telemetry)
		into->telemetry = cop_telemetry_sum_like(from->telemetry);
	if (into->telemetry)
		rc = cop_telemetry_merge(into->telemetry, from->telemetry);
	if (rc)
		cop_log_error("telemetry is missing from nodes=%" PRIu32 " error=\"%s\"",
			cop_telemetry_sum_nodes(from->telemetry), strerror(-rc));
}

void cop_op_sum_add(struct cop_op_sum *into, const struct cop_op_sum *from, char separator)
{
	into->nodes += from->nodes;
	into->released += from->released;
	into->fell_back += from->fell_back;
	into->cache_needed = COP_MAX(into->cache_needed, from->cache_needed);
	into->data_bytes += from->data_bytes;
	into->memory_bytes += from->memory_bytes;
	add_missing(into, from);
	cop_stats_sum(&into->stats, &from->stats);
	for (unsigned t = 0; t < COP_TABLES; t++) {
		into->usage.table[t].bytes += from->usage.table[t].bytes;
		into->usage.table[t].entries += from->usage.table[t].entries;
	}
	into->usage.limit_bytes += from->usage.limit_bytes;
	into->usage.used_bytes += from->usage.used_bytes;
	into->usage.home_bytes += from->usage.home_bytes;
	into->usage.spill_bytes += from->usage.spill_bytes;
	into->usage.spill_limit_bytes += from->usage.spill_limit_bytes;
	cop_op_exits_add(&into->exits, &from->exits);
	add_machine(&into->machine, &from->machine);
	cop_machine_add(&into->hosts, &from->hosts);
	add_text(into, from, separator);
	add_prof(into, from);
	add_telemetry(into, from);
}

void cop_op_sum_move(struct cop_op_sum *into, struct cop_op_sum *from)
{
	*into = *from;
	from->text = from->silent = (struct cop_buf){0};
	from->prof = NULL;
	from->telemetry = NULL;
}

void cop_op_sum_lose(struct cop_op_sum *g, uint32_t rank)
{
	if (g->missing < COP_OP_NAMED)
		g->lost[g->missing] = rank;
	g->missing++;
}

/* ---- silent ranks ---- */

uint32_t cop_op_sum_silents(const struct cop_op_sum *g)
{
	return (uint32_t)(g->silent.len / sizeof(uint32_t));
}

uint32_t cop_op_sum_silent(const struct cop_op_sum *g, uint32_t i)
{
	uint32_t rank;

	memcpy(&rank, g->silent.data + i * sizeof(rank), sizeof(rank));
	return rank;
}

void cop_op_sum_add_silent(struct cop_op_sum *g, uint32_t rank)
{
	if (cop_op_sum_silents(g) < COP_OP_SILENT_MAX)
		cop_buf_add(&g->silent, &rank, sizeof(rank));
}

/* ---- the encoded form ----
 *
 * Fixed numbers, silent ranks, text, hosts, telemetry, profile. */

#define NUMBERS                                                                                    \
	(COP_OP_SENTENCE + COP_EXAMPLES * COP_EXAMPLE_SIZE + 4 * (21 + COP_OP_NAMED) +             \
		8 * (COP_COUNTERS + 2 * COP_TABLES + 12))
/* Shorter texts are not compressed. */
#define PACK_MIN 4096

/* Lengths of the sections after the numbers, before the profile. */
struct lengths {
	uint32_t silents; /* number of ranks */
	uint32_t text;
	uint32_t packed;           /* 0: the text is not compressed */
	uint32_t hosts, telemetry; /* in bytes */
};

static void put_examples(struct cop_wr *w, const struct cop_stats *stats)
{
	for (unsigned i = 0; i < COP_EXAMPLES; i++) {
		char path[COP_EXAMPLE_SIZE] = "";

		strcpy(path, cop_stats_first(stats, i));
		cop_wr_bytes(w, path, sizeof(path));
	}
}

static void put_numbers(const struct cop_op_sum *g, const struct lengths *len, uint8_t out[NUMBERS])
{
	struct cop_wr w = cop_wr_init(out, NUMBERS);

	cop_wr_u32(&w, g->nodes);
	cop_wr_u32(&w, g->dead);
	cop_wr_u32(&w, g->refused);
	cop_wr_u32(&w, g->failed);
	cop_wr_u32(&w, g->released);
	cop_wr_u32(&w, g->fell_back);
	cop_wr_u32(&w, g->cut);
	cop_wr_u32(&w, g->missing);
	cop_wr_u32(&w, g->mounted);
	cop_wr_u32(&w, g->unwritten);
	cop_wr_bytes(&w, g->why_unwritten, sizeof(g->why_unwritten));
	for (unsigned i = 0; i < COP_OP_NAMED; i++)
		cop_wr_u32(&w, g->lost[i]);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_wr_u64(&w, cop_stats_get(&g->stats, c));
	for (unsigned t = 0; t < COP_TABLES; t++) {
		cop_wr_u64(&w, g->usage.table[t].bytes);
		cop_wr_u64(&w, g->usage.table[t].entries);
	}
	cop_wr_u64(&w, g->usage.limit_bytes);
	cop_wr_u64(&w, g->usage.used_bytes);
	cop_wr_u64(&w, g->usage.home_bytes);
	cop_wr_u64(&w, g->usage.spill_bytes);
	cop_wr_u64(&w, g->usage.spill_limit_bytes);
	cop_wr_u32(&w, g->exits.commands);
	cop_wr_u32(&w, g->exits.running);
	cop_wr_u32(&w, g->exits.good);
	cop_wr_u32(&w, g->exits.failed);
	cop_wr_u32(&w, g->exits.worst);
	cop_wr_u32(&w, g->exits.rank);
	cop_wr_u64(&w, g->machine.cpu_us);
	cop_wr_u64(&w, g->machine.cpu_us_most);
	cop_wr_u64(&w, g->machine.resident_bytes);
	cop_wr_u64(&w, g->machine.resident_bytes_most);
	cop_wr_u64(&w, g->cache_needed);
	cop_wr_u64(&w, g->data_bytes);
	cop_wr_u64(&w, g->memory_bytes);
	put_examples(&w, &g->stats);
	cop_wr_u32(&w, cop_op_sum_silents(g));
	cop_wr_u32(&w, len->text);
	cop_wr_u32(&w, len->packed);
	cop_wr_u32(&w, len->hosts);
	cop_wr_u32(&w, len->telemetry);
}

static void put_silent(const struct cop_op_sum *g, struct cop_buf *out)
{
	for (uint32_t i = 0; i < cop_op_sum_silents(g); i++) {
		uint8_t rank[4];
		struct cop_wr w = cop_wr_init(rank, sizeof(rank));

		cop_wr_u32(&w, cop_op_sum_silent(g, i));
		cop_buf_add(out, rank, sizeof(rank));
	}
}

/* The text comes from another process, so this terminates it and removes line breaks. */
static void get_sentence(struct cop_rd *r, char out[COP_OP_SENTENCE])
{
	if ((size_t)(r->end - r->p) < COP_OP_SENTENCE) {
		r->bad = true;
		return;
	}
	memcpy(out, r->p, COP_OP_SENTENCE);
	r->p += COP_OP_SENTENCE;
	out[COP_OP_SENTENCE - 1] = '\0';
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
}

/* The same for examples; cop_stats_example removes their line breaks. */
static void get_examples(struct cop_rd *r, struct cop_stats *stats)
{
	for (unsigned i = 0; i < COP_EXAMPLES; i++) {
		char path[COP_EXAMPLE_SIZE];

		if ((size_t)(r->end - r->p) < sizeof(path)) {
			r->bad = true;
			return;
		}
		memcpy(path, r->p, sizeof(path));
		r->p += sizeof(path);
		path[sizeof(path) - 1] = '\0';
		cop_stats_example(stats, i, path);
	}
}

static void get_numbers(struct cop_rd *r, struct cop_op_sum *g, struct lengths *len)
{
	g->nodes = cop_rd_u32(r);
	g->dead = cop_rd_u32(r);
	g->refused = cop_rd_u32(r);
	g->failed = cop_rd_u32(r);
	g->released = cop_rd_u32(r);
	g->fell_back = cop_rd_u32(r);
	g->cut = cop_rd_u32(r);
	g->missing = cop_rd_u32(r);
	g->mounted = cop_rd_u32(r);
	g->unwritten = cop_rd_u32(r);
	get_sentence(r, g->why_unwritten);
	for (unsigned i = 0; i < COP_OP_NAMED; i++)
		g->lost[i] = cop_rd_u32(r);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(&g->stats, c, cop_rd_u64(r));
	for (unsigned t = 0; t < COP_TABLES; t++) {
		g->usage.table[t].bytes = cop_rd_u64(r);
		g->usage.table[t].entries = cop_rd_u64(r);
	}
	g->usage.limit_bytes = cop_rd_u64(r);
	g->usage.used_bytes = cop_rd_u64(r);
	g->usage.home_bytes = cop_rd_u64(r);
	g->usage.spill_bytes = cop_rd_u64(r);
	g->usage.spill_limit_bytes = cop_rd_u64(r);
	g->exits.commands = cop_rd_u32(r);
	g->exits.running = cop_rd_u32(r);
	g->exits.good = cop_rd_u32(r);
	g->exits.failed = cop_rd_u32(r);
	g->exits.worst = cop_rd_u32(r);
	g->exits.rank = cop_rd_u32(r);
	g->machine.cpu_us = cop_rd_u64(r);
	g->machine.cpu_us_most = cop_rd_u64(r);
	g->machine.resident_bytes = cop_rd_u64(r);
	g->machine.resident_bytes_most = cop_rd_u64(r);
	g->cache_needed = cop_rd_u64(r);
	g->data_bytes = cop_rd_u64(r);
	g->memory_bytes = cop_rd_u64(r);
	get_examples(r, &g->stats);
	len->silents = cop_rd_u32(r);
	len->text = cop_rd_u32(r);
	len->packed = cop_rd_u32(r);
	len->hosts = cop_rd_u32(r);
	len->telemetry = cop_rd_u32(r);
}

static void move_bytes(struct cop_buf *out, struct cop_buf *from)
{
	if (from->len)
		cop_buf_add(out, from->data, from->len);
	out->failed |= from->failed;
	cop_buf_free(from);
}

static int encode_sum(const struct cop_op_sum *g, bool with_text, struct cop_buf *out)
{
	size_t len = with_text ? g->text.len : 0, packed_len = 0;
	struct cop_buf hosts = {0}, telemetry = {0};
	uint8_t numbers[NUMBERS];
	void *packed = NULL;
	int rc = len >= PACK_MIN ? cop_pack(g->text.data, len, &packed, &packed_len) : -ENODATA;

	if (rc && rc != -ENODATA)
		return rc;
	cop_machine_encode(&g->hosts, &hosts);
	if (g->telemetry)
		cop_telemetry_encode(g->telemetry, &telemetry);
	put_numbers(g,
		&(struct lengths){.text = (uint32_t)len,
			.packed = (uint32_t)packed_len,
			.hosts = (uint32_t)hosts.len,
			.telemetry = (uint32_t)telemetry.len},
		numbers);
	cop_buf_add(out, numbers, NUMBERS);
	put_silent(g, out);
	if (packed)
		cop_buf_add(out, packed, packed_len);
	else if (len)
		cop_buf_add(out, g->text.data, len);
	free(packed);
	move_bytes(out, &hosts);
	move_bytes(out, &telemetry);
	if (g->prof)
		cop_prof_encode(g->prof, out);
	return out->failed || g->text.failed || g->silent.failed ? -ENOMEM : 0;
}

/* A sum that is too long for an answer is sent without its text. */
int cop_op_sum_encode(const struct cop_op_sum *g, struct cop_buf *out)
{
	struct cop_op_sum bare = *g;
	int rc = encode_sum(g, true, out);

	if (!rc && out->len > COP_RPC_BODY_MAX) {
		cop_buf_free(out);
		bare.cut = g->nodes;
		rc = encode_sum(&bare, false, out);
	}
	if (rc)
		cop_buf_free(out);
	return rc;
}

static void get_silent(struct cop_rd *r, uint32_t count, struct cop_op_sum *g)
{
	r->bad |= count > COP_OP_SILENT_MAX;
	for (uint32_t i = 0; i < count && !r->bad; i++) {
		uint32_t rank = cop_rd_u32(r);

		if (!r->bad)
			cop_op_sum_add_silent(g, rank);
	}
}

/* Ignores an invalid profile, because the rest of the answer is still valid. */
static void decode_prof(const void *data, size_t len, struct cop_op_sum *g)
{
	int rc = len ? cop_prof_decode(data, len, &g->prof) : 0;

	if (rc)
		cop_log_error("sums that came from below cannot be used bytes=%zu error=\"%s\"",
			len, strerror(-rc));
}

static void decode_hosts(const void *data, size_t len, struct cop_op_sum *g)
{
	int rc = cop_machine_decode(data, len, &g->hosts);

	if (rc)
		cop_log_error("how busy hosts are cannot be used bytes=%zu error=\"%s\"", len,
			strerror(-rc));
}

static void decode_telemetry(const void *data, size_t len, struct cop_op_sum *g)
{
	int rc = len ? cop_telemetry_decode(data, len, &g->telemetry) : 0;

	if (rc)
		cop_log_error(
			"telemetry that came from below cannot be used bytes=%zu error=\"%s\"", len,
			strerror(-rc));
}

static int unpack_text(const void *packed, size_t packed_len, size_t len, struct cop_buf *out)
{
	int rc = len > COP_OP_TEXT_MAX ? -EBADMSG : cop_pack_check(packed, packed_len, len);
	char *text;

	if (rc)
		return rc;
	text = malloc(len + 1);
	if (!text)
		return -ENOMEM;
	rc = cop_pack_read(packed, 0, len, text);
	if (!rc)
		cop_buf_add(out, text, len);
	free(text);
	return rc;
}

int cop_op_sum_decode(const void *body, size_t len, struct cop_op_sum *g)
{
	struct cop_rd r = cop_rd_init(body, len);
	struct lengths l;
	const char *rest;
	size_t used;
	int rc = 0;

	get_numbers(&r, g, &l);
	get_silent(&r, l.silents, g);
	rest = cop_rd_rest(&r, &len);
	used = l.packed ? l.packed : l.text;
	if (r.bad || used > len || l.hosts > len - used || l.telemetry > len - used - l.hosts)
		return -EBADMSG;
	if (l.packed)
		rc = unpack_text(rest, l.packed, l.text, &g->text);
	else
		cop_buf_add(&g->text, rest, l.text);
	if (rc || g->text.failed || g->silent.failed)
		return rc ? rc : -ENOMEM;
	decode_hosts(rest + used, l.hosts, g);
	used += l.hosts;
	decode_telemetry(rest + used, l.telemetry, g);
	used += l.telemetry;
	decode_prof(rest + used, len - used, g);
	return 0;
}
