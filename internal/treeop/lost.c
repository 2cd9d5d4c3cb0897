/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a node that did not answer. */
#include "treeop/treeop_priv.h"

#include <string.h>

static void lost_json(const struct lost *l, struct cop_buf *out)
{
	cop_buf_printf(out, "{\"rank\":%" PRIu32 ",\"host\":", l->rank);
	cop_buf_json_str(out, l->host, strlen(l->host));
	if (l->kind == LOST_DEAD) {
		cop_buf_str(out, ",\"dead\":true}");
		return;
	}
	cop_buf_printf(
		out, ",\"%s\":true,\"reason\":", l->kind == LOST_REFUSED ? "refused" : "failed");
	cop_buf_json_str(out, l->reason, strlen(l->reason));
	cop_buf_printf(out, ",\"below\":%" PRIu32 "}", l->below);
}

static void lost_sentence(const struct lost *l, struct cop_buf *out)
{
	if (l->kind == LOST_DEAD)
		cop_buf_printf(out, COP_TREEOP_SILENT_LINE, l->host, l->rank);
	else
		cop_buf_printf(out, "%s (rank %" PRIu32 ") %s: %s", l->host, l->rank,
			l->kind == LOST_REFUSED ? "refused" : "failed", l->reason);
	if (l->below)
		cop_buf_printf(
			out, "; the %" PRIu32 " nodes below it are not counted either", l->below);
}

static void lost_row(const struct lost *l, struct cop_buf *out)
{
	static const char *const words[] = {
		[LOST_DEAD] = "dead", [LOST_REFUSED] = "refused", [LOST_FAILED] = "failed"};

	cop_buf_printf(out, "%7" PRIu32 "  %-24s %s", l->rank, l->host, words[l->kind]);
	if (l->kind != LOST_DEAD)
		cop_buf_printf(out, ": %s", l->reason);
	if (l->below)
		cop_buf_printf(out, ", with the %" PRIu32 " nodes below it", l->below);
}

void cop_treeop_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out)
{
	if (op == COP_TREEOP_STATS)
		lost_json(l, out);
	else if (op == COP_TREEOP_TABLE)
		lost_row(l, out);
	else
		lost_sentence(l, out);
}
