#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts and stops in any order: whatever a node receives while it starts or ends, it neither
# crashes nor leaves anybody without an answer.
# covers: start op startnote
# modes: release asan tsan
# limit: 180
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

tree_loop() { # COMMAND…: again and again until $T/enough is there
	while [ ! -e "$T/enough" ]; do
		timeout "$(patient 60)" "$@" >/dev/null 2>&1
	done
}

# ---- rank 0 ends while the storage hangs, a child is silent, and everyone is asked for statistics

with_slowfs --meta-us 100
with_tree 3 --fanout 2 --peer-timeout 20
first=$(node_stat 0 pid)
silent=$(node_stat 2 pid)
slow_fault hang=dir/numbers
cat "$W/mnt/1/dir/numbers" >"$T/read" 2>"$T/read.err" &
reader=$!
ok 'a read hangs at the storage' \
	wait_for 20 eval '[ "$(node_stat 0 waiting.origin_running)" -ge 1 ]'
kill -STOP "$silent"
"$COPPER" cache-stats --all --json "$W/mnt/0" >"$T/stats.0" 2>&1 &
stats0=$!
"$COPPER" cache-stats --all --json "$W/mnt/1" >"$T/stats.1" 2>&1 &
stats1=$!
ok 'the silent child is asked' \
	wait_for 20 eval 'node_stat 0 waiting.peers | grep -q "\"rank\": 2.*\"calls\": [1-9]"'
kill -TERM "$first"
ok 'requests to the ending node are answered' wait_for 30 eval '! kill -0 "$stats0"'
wait "$stats0"
is 'the ending node answers with a table' "$?" 0
matches 'the table of a starting tree has the node itself' \
	"$(cat "$T/stats.0")" '"rank":0,"nodes":3,'
slow_fault clear
ok 'the node that the others wait for ends' wait_for 30 is_gone "$first"
cop_killed[0]=$first
kill -CONT "$silent"
wait "$stats1"
matches 'a requester at another node is answered, too' \
	"$(json_value total.nodes <"$T/stats.1" 2>/dev/null || cat "$T/stats.1")" '^[123]$'
wait "$reader"
is 'the read that hung ends well' "$?" 0
ok 'the read that hung has the right bytes' cmp "$T/read" "$ORIGIN/dir/numbers"
"$COPPER" stop "$W/mnt/1" >"$T/.out" 2>&1
is 'no mount remains' "$(grep -c " $W/mnt/" /proc/self/mountinfo)" 0
cop_tree=0
without_slowfs

# ---- nodes start and end in a live tree that is asked for everything at once

with_tree 3 --fanout 1 --peer-timeout 2
socket=$(grep -lxF "$W/mnt/1" "${XDG_RUNTIME_DIR:-/tmp/copper-$(id -u)}"/*.key \
		"${XDG_RUNTIME_DIR:-/nowhere}"/copper/*.key 2>/dev/null | head -n 1)
socket=${socket%.key}.sock
rm -f "$T/enough"
tree_loop "$COPPER" cache-stats --all "$W/mnt/0" &
loops=($!)
tree_loop "$COPPER" cache-stats --invalidate "$W/mnt/0" &
loops+=($!)
tree_loop "$COPPER" cache-stats --all --json "$W/mnt/2" &
loops+=($!)
tree_loop cat "$W/mnt/2/dir/numbers" &
loops+=($!)
lost=0
for round in 1 2 3 4; do
	pid=$(node_stat 1 pid) || lost=$round
	if [ $((round % 2)) -eq 0 ]; then
		"$COPPER" stop --local "$W/mnt/1" >/dev/null 2>&1
	else
		kill -TERM "$pid"
	fi
	wait_for 30 is_gone "$pid" || lost=$round
	start_node 1 --fanout 1 --peer-timeout 2 || lost=$round
done
: >"$T/enough"
wait "${loops[@]}"
is 'a node that is asked all the while ends and starts again' "$lost" 0
nodes_are() { # NUMBER: so many answer
	[ "$("$COPPER" cache-stats --all --json "$W/mnt/0" | json_value total.nodes)" = "$1" ]
}
ok 'a node that was asked all the while is one of the tree' wait_for 30 nodes_are 3
echo changed >"$SRC/hello"
ok 'all are told of an invalidation' wait_for 30 "$COPPER" cache-stats --invalidate "$W/mnt/0"
is 'a node that has just started, too' "$(cat "$W/mnt/1/hello")" changed
ok 'the tree stops' without_tree

# ---- a start fails after others have asked the node

prepare_tree 3
cop_tree=3
# Another process listens at its control socket, for which the node waits a while: long enough for
# the node below to find it.
[ -S "$socket" ] && rm -f "$socket"
"$PYTHON" - "$socket" <<'PY' &
import os, socket, sys, time
os.makedirs(os.path.dirname(sys.argv[1]), 0o700, exist_ok=True)
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(16)
time.sleep(600)
PY
holder=$!
ok 'a control socket is taken' wait_for 10 test -S "$socket"
pids=()
for i in 0 1 2; do
	start_node "$i" --fanout 1 --ready-timeout 60 &
	pids+=($!)
done
status=
for i in 0 1 2; do
	wait "${pids[i]}"
	status+="$? "
done
is 'the tree does not start without that node' "$status" '1 1 1 '
matches 'the tree that does not start says why' \
	"$(cat "$W/out.2")" 'rank 1\) did not start|control socket|listens'
kill "$holder"
wait "$holder" 2>/dev/null
rm -f "$socket"
cop_tree=0

# ---- a signal to a node that does not know its secret yet

prepare_tree 2
"$COPPER" mount --foreground --hosts "$HOSTS" --rank 1 --job-dir "$JOB" --source "$SRC" \
	--ready-timeout 600 "$W/mnt/1" >"$T/.out" 2>&1 &
waiting=$!
ok 'a node waits for the secret' wait_for 20 eval 'ls "$JOB"/logs/*-output.log'
sleep 0.5
kill -TERM "$waiting"
ok 'a node that waits for the secret ends when it is told to' \
	wait_for 30 eval '! kill -0 "$waiting"'
kill -KILL "$waiting" 2>/dev/null
wait "$waiting" 2>/dev/null || :
