#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A slow node is not a dead node: its children read nothing from the storage. While it is stopped
# they ask the node above it as well; while it is only slow, they wait for it.
# covers: rpc fetch
# modes: release asan
# limit: 300
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 17

SRC=$T/src
numbered_files "$SRC" 40 20000
with_slowfs --direct-io
# Three times this value is longer than any silence that decides by itself.
with_tree 7 --fanout 2 --peer-timeout 1

# 0 has the children 1 and 2, 1 has 3 and 4.
slow=$(node_stat 1 pid)

read_some() { # RANK FROM TO: the files of these numbers are as they should be
	local i
	for ((i = $2; i <= $3; i++)); do
		cmp "$W/mnt/$1/$(printf 'file%05d' "$i")" "$ORIGIN/$(printf 'file%05d' "$i")" ||
			return 1
	done
}

leaf_origin() {
	local rank sum=0
	for rank in 3 4 5 6; do
		sum=$((sum + $(node_stat "$rank" origin.operations)))
	done
	echo "$sum"
}

left_by() { # RANK: the ranks that it does not ask now
	node_json "$1" | "$PYTHON" -c '
import json, sys
print(*(p["rank"] for p in json.load(sys.stdin)["waiting"]["peers"] if p["left"]))'
}

# ---- stopped for three seconds while it is asked

read_some 3 0 0 && read_some 4 1 1
kill -STOP "$slow"
read_some 3 2 9 &
first=$!
read_some 4 2 9 &
second=$!
sleep 3
wait "$first"
is 'requests made while a node is stopped are answered' $? 0
wait "$second"
is 'every child is answered' $? 0
kill -CONT "$slow"
is 'children asked the node above it as well' "$(($(tree_sum fabric.hedges) > 0))" 1
used_again() { [ "$(left_by 3)$(left_by 4)" = '' ]; }
ok 'they return to it' wait_for 40 used_again
is 'no leaf has asked the storage' "$(leaf_origin)" 0
matches 'nobody is called dead' \
	"$("$COPPER" cache-stats --all --json "$W/mnt/3" | json_value total.dead)" '^0$'

# ---- asked for its statistics while it is stopped

kill -STOP "$slow"
"$COPPER" cache-stats --all --json "$W/mnt/0" >"$T/all.json" &
asking=$!
sleep 2
kill -CONT "$slow"
wait "$asking"
is 'statistics of all wait for it, too' \
	"$(json_value total.nodes <"$T/all.json") $(json_value total.missing <"$T/all.json")" '7 0'

# ---- all on one processor, with a hundred other processes

for ((rank = 0; rank < 7; rank++)); do
	taskset -apc 0 "$(node_stat "$rank" pid)" >/dev/null
done
failovers=$(tree_sum fabric.failovers)
hedges=$(tree_sum fabric.hedges)
begin_load 100 0
readers=()
for rank in 3 4 5 6; do
	read_some "$rank" 10 19 &
	readers+=($!)
done
wrong=0
for pid in "${readers[@]}"; do
	wait "$pid" || wrong=$((wrong + 1))
done
end_load
is 'a hundred busy loops on the processor of all nodes: everything is read' "$wrong" 0
note "asked twice under load: $(($(tree_sum fabric.hedges) - hedges)) of $(tree_sum fabric.requests_sent)"
is 'no node is bypassed' "$(tree_sum fabric.failovers)" "$failovers"
is 'no leaf has asked the storage' "$(leaf_origin)" 0

# ---- dead is dead

kill_node 1
ok 'the children of a killed node continue' read_some 3 20 24
ok 'all children of a killed node read' read_some 4 25 29
is 'the child asks past the killed node' "$(($(node_stat 3 fabric.failovers) > 0))" 1
is 'the children of a killed node do not ask the storage' "$(leaf_origin)" 0
cp "$JOB/logs/copper_address_book.txt" "$T/book"
without_tree

# ---- with an address book, which says where the nodes are and not which are alive

prepare_tree 7
cop_tree=7
for ((rank = 0; rank < 7; rank++)); do
	start_node "$rank" --fanout 2 --peer-timeout 1 --address-book "$T/book" &
done
wait
read_some 3 30 30
slow=$(node_stat 1 pid)
kill -STOP "$slow"
read_some 3 31 34 &
first=$!
wait "$first"
is 'with an address book: what was asked of a node that is stopped is answered' $? 0
kill -CONT "$slow"
is 'with an address book others are asked as well' "$(($(tree_sum fabric.hedges) > 0))" 1
kill_node 1
ok 'with an address book a dead node is passed over' read_some 3 35 39
without_tree
without_slowfs
