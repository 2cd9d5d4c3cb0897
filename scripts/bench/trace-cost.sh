#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a node's own trace (--trace) adds to a first import, in CPU time of the program, the node and
# the writing of the trace together; on one node, and on a leaf below a root, with the CPU time of
# both nodes; and how much of the first the writing thread takes. The thread writes at least once a
# second, so everything is written when the times are taken.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
import_wall /usr >/dev/null
cold() { # SIDE NODES OPTION…
	local side=$1 nodes=$2 rank
	shift 2
	with_tree "$nodes" --cache-size 1G --trees 1 -d "$T/job" "$@"
	import_wall "$W/mnt/$((nodes - 1))" >/dev/null
	# A trace is written once a second.
	sleep 1.5
	[ "$side" != traced ] ||
		add writer "$(cat "/proc/$(pid_of 0)/task"/*/comm | grep -nx trace | cut -d : -f 1 |
		xargs -I N sed -n Np <(cat "/proc/$(pid_of 0)/task"/*/schedstat) |
			awk '{ printf "%.6f", $1 / 1e9 }')"
	add "$side" "$({
		awk '{ print $2 }' "$T/together"
		for ((rank = 0; rank < nodes; rank++)); do
			"$BENCH/cputime" "$(pid_of "$rank")"
		done
	} | awk '{ sum += $1 } END { printf "%.6f", sum }')"
	without_tree
}
traced() {
	cold traced 1 --trace
}
plain() {
	cold plain 1
}
traced2() {
	cold traced2 2 --trace
}
plain2() {
	cold plain2 2
}
in_turn "${BENCH_PAIRS:-12}" traced plain
in_turn "${BENCH_PAIRS:-12}" traced2 plain2
report "cold import $module, CPU time, --trace / without" s at_most 1.03 traced plain
report "cold import $module through a root, CPU time of all, --trace / without" \
	s at_most 1.03 traced2 plain2
report "of it the thread that writes the trace, of all with --trace" s none - writer traced
