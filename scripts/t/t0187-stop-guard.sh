#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# When stop returns, the guard of the node has ended, too.
# covers: mountguard
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 1

late=0
for round in 1 2 3 4 5 6 7 8 9 10; do
	with_tree 1
	guard=$(pgrep --parent "$(node_stat 0 pid)" --exact cop-guard) || bail 'there is no guard'
	"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
	[ ! -d "/proc/$guard" ] || late=$((late + 1))
	cop_tree=0
done
is "of $round guards all are gone" "$late" 0
