#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node without requests uses no processor.
# covers: loop endpoint
# modes: release shared
# alone: it measures
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 4

with_tree 3
for rank in 0 1 2; do
	cat "$W/mnt/$rank/dir/deeper/random" >/dev/null
done
ticks() { # PID: user and system time, in hundredths of a second
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}
pids=()
for rank in 0 1 2; do
	pids+=("$(node_stat "$rank" pid)")
done
most() { # what the node used that used most
	local before=() rank most=0
	for rank in 0 1 2; do
		before+=("$(ticks "${pids[rank]}")")
	done
	sleep 5
	for rank in 0 1 2; do
		used[rank]=$(($(ticks "${pids[rank]}") - before[rank]))
		[ "${used[rank]}" -le "$most" ] || most=${used[rank]}
	done
	MOST=$most
}
sleep 1
# On a virtual machine the same work may cost more for a while.
for _ in 1 2 3 4; do
	most
	[ "$MOST" -gt 5 ] || break
	note "used in 5 s: ${used[*]}"
done
for rank in 0 1 2; do
	is_at_most "node $rank: less than 1 % of a core over 5 s" "${used[rank]}" 5
done
ok 'the tree stops' without_tree
