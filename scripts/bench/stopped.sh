#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sixteen nodes import a package of 20 modules and read a file of 8 MiB each time, while nothing is
# stopped, and then while each node but the first is stopped in turn: the longest pause of any
# program in an import or a read, and what reaches the storage. At last, no node is stopped and a
# hundred busy loops run: how many requests are asked twice.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

nodes=16
SRC=$T/src
for ((part = 0; part < 17; part++)); do
	mkdir -p "$SRC/$part/package"
	head -c 8M /dev/urandom >"$SRC/$part/large"
	: >"$SRC/$part/package/__init__.py"
	for ((i = 0; i < 20; i++)); do
		echo "data = '$(head -c 10000 /dev/urandom | od -An -v -tx1 | tr -d ' \n')'" \
			>"$SRC/$part/package/m$i.py"
	done
done

read_part() { # MOUNT PART: prints the longest pause in seconds
	"$PYTHON" -c '
import importlib, os, sys, time
longest, before = 0, time.monotonic()

def pause():
    global longest, before
    now = time.monotonic()
    longest, before = max(longest, now - before), now

sys.path.insert(0, sys.argv[1])
for i in range(20):
    importlib.import_module("package.m%d" % i)
    pause()
with open(os.path.join(sys.argv[1], "large"), "rb", buffering=0) as f:
    while f.read(1 << 17):
        pause()
print("%.3f" % longest)' "$1/$2"
}

all_but() { # RANK PART SIDE
	local rank readers=()
	for ((rank = 0; rank < nodes; rank++)); do
		rm -f "$T/pause.$rank"
		[ "$rank" -ne "$1" ] || continue
		read_part "$W/mnt/$rank" "$2" >"$T/pause.$rank" &
		readers+=($!)
	done
	# Not for all children: the busy loops are some, too.
	wait "${readers[@]}"
	add "$3" "$(sort -g "$T"/pause.* | tail -n 1)"
}

origin() {
	tree_sum origin.operations
}

with_tree $nodes --fanout 2 --trees 1 --cache-size 512M
all_but 16 0 running
before=$(origin)
all_but 16 16 running
add operations "$(($(origin) - before))"
for ((stopped = 1; stopped < nodes; stopped++)); do
	pid=$(pid_of "$stopped")
	before=$(origin)
	kill -STOP "$pid"
	all_but "$stopped" "$stopped" stopped
	kill -CONT "$pid"
	add operations-stopped "$(($(origin) - before))"
done
[ "$(tree_sum fabric.lags)" -gt 0 ] || bail 'no node noticed that another was stopped'
add hedges "$(tree_sum fabric.hedges)"
report 'longest pause, each of 15 nodes stopped in turn' s at_most 1 stopped -
report 'the same without a stopped node' s none - running -
report 'storage operations, one node stopped / none' operations at_most 1.05 \
	operations-stopped operations
report 'requests asked twice in all of that' requests none - hedges -
without_tree || bail 'the tree does not stop'

with_tree $nodes --fanout 2 --trees 1 --cache-size 512M
begin_load 100
all_but 16 1 loaded
all_but 16 2 loaded
end_load
add asked-twice "$(tree_sum fabric.hedges)"
add requests "$(tree_sum fabric.requests_sent)"
report 'a hundred busy loops: requests asked twice / all' requests at_most 0.01 asked-twice requests
add lags "$(tree_sum fabric.lags)"
report 'nodes left for that' times none - lags -
without_tree || bail 'the tree does not stop'
