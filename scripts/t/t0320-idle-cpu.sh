#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node that nobody asks uses no processor.
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
before=()
for rank in 0 1 2; do
	pids+=("$(node_stat "$rank" pid)")
done
sleep 1
for rank in 0 1 2; do
	before+=("$(ticks "${pids[rank]}")")
done
sleep 5
for rank in 0 1 2; do
	used=$(($(ticks "${pids[rank]}") - before[rank]))
	is_at_most "node $rank: less than 1 % of a core over 5 s" "$used" 5
done
ok 'the tree stops' without_tree
