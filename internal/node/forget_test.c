/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/node_priv.h"

static struct gathered heard;
static unsigned times;

static void answered(void *arg, struct gathered *g)
{
	(void)arg;
	times++;
	heard.nodes = g->nodes;
}

static void an_invalidation_may_come_before_there_is_anything_to_forget(void **state)
{
	struct cop_node *n = calloc(1, sizeof(*n));

	(void)state;
	assert_non_null(n);
	n->topo = (struct cop_topo){.nodes = 1, .fanout = 2, .stripes = 1};
	cop_gate_init(&n->gate);
	n->cache = cop_cache_new(COP_MIB, &n->stats);
	assert_non_null(n->cache);
	assert_true(cop_gate_enter(&n->gate, COP_GATE_STARTING));
	cop_node_do(n, &(struct task){OP_INVALIDATE, "some/path"}, answered, NULL);
	cop_gate_leave(&n->gate);
	assert_int_equal(times, 1);
	assert_int_equal(heard.nodes, 1);
	/* The mount, which may be made at this moment, is told later. */
	assert_true(n->forgot_early);
	assert_int_equal(n->gate.inside, 0);
	cop_cache_free(n->cache);
	cop_gate_fini(&n->gate);
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_invalidation_may_come_before_there_is_anything_to_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
