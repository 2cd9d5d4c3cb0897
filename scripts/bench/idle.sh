#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# CPU of a root and of a leaf without requests, over 10 s, in percent of one processor.
# limit: 60
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

with_tree 2
cat "$W/mnt/1/dir/numbers" >/dev/null
pids=("$(pid_of 0)" "$(pid_of 1)")
sleep 2
mapfile -t before < <("$BENCH/cputime" "${pids[@]}")
sleep 10
mapfile -t after < <("$BENCH/cputime" "${pids[@]}")
for rank in 0 1; do
	add "idle-$rank" \
		"$(awk -v a="${before[rank]}" -v b="${after[rank]}" 'BEGIN { print (b - a) * 10 }')"
done
report 'CPU of an idle root, percent of a processor' % at_most 0.05 idle-0 -
report 'CPU of an idle leaf, percent of a processor' % at_most 0.05 idle-1 -
