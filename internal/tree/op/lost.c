/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about nodes without an answer. */
#include "base/base/json.h"
#include "tree/op/op.h"
#include "tree/op/op_priv.h"

static const char *const words[] = {
	[LOST_DEAD] = "dead", [LOST_REFUSED] = "refused", [LOST_FAILED] = "failed"};

static void lost_json(const struct lost *l, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_u64(&j, "rank", l->rank);
	cop_json_str(&j, "host", l->host);
	cop_json_bool(&j, words[l->kind], true);
	if (l->kind != LOST_DEAD) {
		cop_json_str(&j, "reason", l->reason);
		cop_json_u64(&j, "below", l->below);
	}
	cop_json_end(&j);
}

static void lost_sentence(const struct lost *l, struct cop_buf *out)
{
	cop_buf_printf(
		out, "%s (rank %" PRIu32 ") %s: %s", l->host, l->rank, words[l->kind], l->reason);
	if (l->below)
		cop_buf_printf(
			out, "; the %" PRIu32 " nodes below it are not counted either", l->below);
}

static void lost_line(const struct lost *l, struct cop_buf *out)
{
	static const enum cop_nodeline_state states[] = {[LOST_DEAD] = COP_NODELINE_DEAD,
		[LOST_REFUSED] = COP_NODELINE_REFUSED,
		[LOST_FAILED] = COP_NODELINE_FAILED};
	struct cop_nodeline n = {.rank = l->rank,
		.state = states[l->kind],
		.host = l->host,
		.reason = l->kind == LOST_DEAD ? "" : l->reason,
		.below = l->below};

	cop_nodeline_write(&n, out);
}

void cop_op_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out)
{
	if (op == COP_OP_STATS)
		lost_json(l, out);
	else if (op == COP_OP_TABLE)
		lost_line(l, out);
	else if (l->kind != LOST_DEAD)
		lost_sentence(l, out);
}

void cop_op_say_silent(const struct cop_op *t, const struct cop_op_sum *sum, struct cop_buf *out)
{
	for (uint32_t i = 0; i < cop_op_sum_silents(sum); i++) {
		uint32_t rank = cop_op_sum_silent(sum, i);

		if (rank < t->conf.topo.nodes)
			cop_buf_printf(out, "%s (rank %" PRIu32 ") did not answer\n",
				host_of(t, rank), rank);
	}
}
