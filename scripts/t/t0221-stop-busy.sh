#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stopping on a busy machine: the sums of every node arrive, however long they are and however late
# their nodes get a processor.
# covers: op rank
# modes: shared
# limit: 300
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 13

SRC=$T/src
long_names "$SRC" 150

# ---- the node above is late: it reads the answer long after it was sent

# In a chain 3 has stopped, 2 waits for a program to close its file, and 1 is stopped meanwhile:
# nobody reads the answer of 2, for three times as long as a node may be silent.
with_tree 4 --peer-timeout 1 --fanout 1 -A -N 50
read_everything 0 1 2 3
late=$(node_stat 1 pid)
child=$(node_stat 2 pid)
exec 8<"$(find "$W/mnt/2" -name 'file-*' -print -quit)"
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1 &
stop=$!
ok 'the last node has unmounted' wait_for 30 eval '! is_mounted "$W/mnt/3"'
kill -STOP "$late"
ok 'the one above it, too' wait_for 30 eval '! is_mounted "$W/mnt/2"'
sleep 3
kill -CONT "$late"
wait "$stop"
is 'a stop past a node that was stopped for three seconds ends with 0' $? 0
matches 'a stop past a slow node has all nodes' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
is 'the sums have all of them' "$(cluster_value ranks_with_aggregate_files)" 4
ok 'the slow node ends' wait_for 30 is_gone "$child"
exec 8<&-
cop_tree=0

# ---- busy loops

# The load takes all processors while a tree stops, and no longer; scripts/soak-stop.sh has a
# hundred turns.
turns=4
[ "$cop_mode" = release ] || turns=1
for options in '-A -N 50' '-A -N 50 --rank-files root'; do
	wrong=0
	sums=
	for ((turn = 0; turn < turns; turn++)); do
		# shellcheck disable=SC2086
		with_tree 4 $options
		read_everything 0 1 2 3
		begin_load 20
		"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1 || wrong=$((wrong + 1))
		end_load
		grep -qx 'stopped 4/4 nodes' "$T/.out" || note "$(cat "$T/.out")"
		sums="$sums $(cluster_value ranks_with_aggregate_files)"
		cop_tree=0
	done
	is "twenty busy loops, $options: every stop ends with 0" "$wrong" 0
	is 'the sums have every node' "$sums" "$(printf ' 4%.0s' $(seq "$turns"))"
done

# ---- a node that is really missing

with_tree 4 --peer-timeout 1 -P
kill_node 2
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'a missing node is a failure' $? 1
matches 'the missing node is named' "$(cat "$T/.out")" '^127\.0\.0\.13 \(rank 2\) did not answer$'
summary=$JOB/profiling/cluster/cluster-profiling_summary.md
matches 'in the cluster summary, too' \
	"$(cat "$summary")" '^- Nodes that did not answer: `127\.0\.0\.13` \(rank 2\)$'
unmount_killed
cop_tree=0
