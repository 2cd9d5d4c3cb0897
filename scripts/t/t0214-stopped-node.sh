#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node that is stopped holds nobody up: what its children need, they ask of the next node above,
# and the storage is not asked more often. The timeout of a dead peer is long here, so that none of
# this is a failover after it.
# covers: rpc fetch
# modes: release asan tsan
# limit: 300
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 28

SRC=$T/src
numbered_files "$SRC" 40 20000
head -c 6000000 /dev/urandom >"$SRC/large"
head -c 6000000 /dev/urandom >"$SRC/larger"
# As model weights are read: a header, then slices through a mapping in any order.
"$PYTHON" "$cop_t/largefile.py" make "$SRC/weights" 214 12 500000
weights=$(stat -c %s "$SRC/weights")
with_slowfs --direct-io

same() { # RANK NAME…
	local rank=$1 name
	shift
	for name in "$@"; do
		timeout "$(patient 60)" cmp "$W/mnt/$rank/$name" "$ORIGIN/$name" || return 1
	done
}

slices() { # RANK: whether all slices of the weights are right
	timeout "$(patient 60)" "$PYTHON" "$cop_t/largefile.py" slices "$W/mnt/$1/weights" "$1" >/dev/null
}

below_roots() { # what nodes but the first have asked of the storage
	echo "$(($(tree_sum origin.operations) - $(node_stat 0 origin.operations)))"
}

left_by() { # RANK: the ranks that it does not ask now
	node_json "$1" | "$PYTHON" -c '
import json, sys
print(*(p["rank"] for p in json.load(sys.stdin)["waiting"]["peers"] if p["left"]))'
}

# ---- a chain of three, whose middle node stops

with_tree 3 --fanout 1 --peer-timeout 10
middle=$(node_stat 1 pid)
same 2 file00000
kill -STOP "$middle"
ok 'the leaf reads a file that the middle node has not seen' same 2 large
ok 'small files, too' same 2 file0000{1..9}
is 'the leaf asked twice' "$(($(node_stat 2 fabric.hedges) > 0))" 1
lags=$(node_stat 2 fabric.lags)
is_at_most 'before the middle node was left' 1 "$lags"
is_at_most 'that is a change of parents' 1 "$(node_stat 2 fabric.failovers)"
is_at_most 'each change has such a reason' "$(node_stat 2 fabric.failovers)" "$(node_stat 2 fabric.lags)"
is 'the leaf says who it was' "$(left_by 2)" 1
is 'the leaf asked the storage nothing' "$(node_stat 2 origin.operations)" 0
reads=$(node_stat 0 origin.reads)
kill -CONT "$middle"
ok 'the middle node then reads what it missed' same 1 large file0000{1..9}
is 'and the storage is not read again' "$(node_stat 0 origin.reads)" "$reads"
"$COPPER" cache-stats --all --table "$W/mnt/0" >"$T/all"
matches 'the statistics of all nodes name the one that lags' "$(cat "$T/all")" \
	'rank 1 .*was silent.*rank 2'
served=$(node_stat 1 fabric.requests_served)
back() { [ -z "$(left_by 2)" ]; }
ok 'a node that answers for ten seconds is used again' wait_for 40 back
same 2 file0001{0..3}
is 'it serves requests' "$(($(node_stat 1 fabric.requests_served) > served))" 1

# Requests that the stopped node has already received, and answers late.
for name in larger file0002{0..9}; do
	same 2 "$name" &
done
kill -STOP "$middle"
sleep 1
kill -CONT "$middle"
wrong=0
for pid in $(jobs -p); do
	wait "$pid" || wrong=$((wrong + 1))
done
is 'answers that come late do no harm' "$wrong" 0
is 'no bytes were wrong' "$(tree_sum fabric.corrupt)" 0
ok 'the middle node has what it was asked for' same 1 larger file0002{0..9}

kill -STOP "$middle"
same 2 file0001{4..7}
kill -KILL "$middle"
cop_killed[1]=$middle
ok 'a stopped node that dies' same 2 file0001{8..9}
is 'its child asked the storage nothing' "$(node_stat 2 origin.operations)" 0
without_tree

# ---- a stopped root: everybody waits for it, as nobody is above

with_tree 3 --fanout 2 --peer-timeout 10
root=$(node_stat 0 pid)
kill -STOP "$root"
same 1 file00000 file00001 &
reader=$!
sleep 1
ok 'a reader below a stopped root waits' kill -0 "$reader"
kill -CONT "$root"
wait "$reader"
is 'and is answered once the root continues' $? 0
is 'nobody was asked twice' "$(tree_sum fabric.hedges)" 0
is 'the storage has one client' "$(below_roots)" 0
without_tree

# ---- each node in turn, while all others read

with_tree 7 --fanout 2 --peer-timeout 10
slow_reset
wrong=0
for ((stopped = 1; stopped < 7; stopped++)); do
	pid=$(node_stat "$stopped" pid)
	kill -STOP "$pid"
	readers=()
	for rank in 0 1 2 3 4 5 6; do
		[ "$rank" -ne "$stopped" ] || continue
		same "$rank" "$(printf 'file%05d' $((30 + stopped)))" &
		readers+=($!)
	done
	[ "$stopped" -ne 2 ] || { same 5 large & readers+=($!); }
	# Below node 1, beside it, and the root itself.
	[ "$stopped" -ne 1 ] || for rank in 0 2 3 4 5 6; do
		slices "$rank" &
		readers+=($!)
	done
	for reader in "${readers[@]}"; do
		wait "$reader" || wrong=$((wrong + 1))
	done
	kill -CONT "$pid"
done
is 'while each node is stopped in turn, all others read everything' "$wrong" 0
is 'only the root reads the storage' "$(below_roots)" 0
is 'each file is read once' "$(node_stat 0 origin.bytes)" $((6 * 20000 + 6000000 + weights))
is 'some requests were asked twice' "$(($(tree_sum fabric.hedges) > 0))" 1

# ---- the job ends while a node is stopped

kill -STOP "$pid"
(sleep 2 && kill -CONT "$pid") &
ok 'the tree stops when the node continues' timeout "$(patient 60)" "$COPPER" stop "$W/mnt/0"
wait $!
cop_tree=0
ok 'no process is left' wait_for 20 nodes_running 0
without_slowfs
