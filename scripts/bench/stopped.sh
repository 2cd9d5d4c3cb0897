#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sixteen nodes read a file of 16 MiB and 20 small ones each time, while nothing is stopped, and
# then while each node but the first is stopped in turn: the longest pause of any reader in a read,
# and what reaches the storage. At last, a hundred busy loops without a stopped node: how many
# requests are asked twice.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

nodes=16
SRC=$T/src
for ((part = 0; part < 17; part++)); do
	mkdir -p "$SRC/$part"
	head -c 16M /dev/urandom >"$SRC/$part/large"
	for ((i = 0; i < 20; i++)); do
		head -c 20000 /dev/urandom >"$SRC/$part/small$i"
	done
done

read_part() { # MOUNT PART: prints the longest pause in seconds
	"$PYTHON" -c '
import os, sys, time
longest = 0
for name in ["small%d" % i for i in range(20)] + ["large"]:
    before = time.monotonic()
    with open(os.path.join(sys.argv[1], name), "rb", buffering=0) as f:
        while f.read(1 << 17):
            now = time.monotonic()
            longest = max(longest, now - before)
            before = now
print("%.3f" % longest)' "$1/$2"
}

all_but() { # RANK PART SIDE
	local rank
	for ((rank = 0; rank < nodes; rank++)); do
		[ "$rank" -eq "$1" ] || read_part "$W/mnt/$rank" "$2" >"$T/pause.$rank" &
	done
	wait
	rm -f "$T/pause.$1"
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
add hedges "$(tree_sum fabric.hedges)"
report 'longest pause, each of 15 nodes stopped in turn' s at_most 1 stopped
report 'the same without a stopped node' s none - running
report 'storage operations, one node stopped / none' operations at_most 1.05 \
	operations-stopped operations
report 'requests asked twice in all of that' requests none - hedges
without_tree || bail 'the tree does not stop'

with_tree $nodes --fanout 2 --trees 1 --cache-size 512M
begin_load 100
all_but 16 1 loaded
all_but 16 2 loaded
end_load
add asked-twice "$(($(tree_sum fabric.hedges) * 100))"
add requests "$(tree_sum fabric.requests_sent)"
report 'a hundred busy loops: percent of requests asked twice' '%' at_most 1 asked-twice requests
add lags "$(tree_sum fabric.lags)"
report 'nodes left for that' times none - lags
without_tree || bail 'the tree does not stop'
