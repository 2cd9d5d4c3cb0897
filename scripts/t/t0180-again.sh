#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes that are restarted while others read, and nodes that are started with options other than
# those of the rest: no error, no waiting, and never wrong bytes.
# covers: start fetch rpc
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 47

SRC=$T/src
numbered_files "$SRC" 60 50000
checksums "$SRC" >"$T/want"
mkdir "$T/elsewhere"

# ---- restarted under load

with_tree 6 --trees 2 --fanout 2 --peer-timeout 1
reads_on() { # RANK: again and again, with nothing kept, until told to end; what was wrong
	until [ -e "$T/enough" ]; do
		checksums "$W/mnt/$1" | cmp - "$T/want" || return
		"$COPPER" cache-stats --invalidate "$W/mnt/$1" >/dev/null 2>&1
	done
}
for rank in 3 5; do
	reads_on "$rank" >"$T/wrong.$rank" 2>&1 &
	readers[rank]=$!
done
again() { # RANK…
	local rank pids=()
	for rank in "$@"; do
		"$COPPER" stop --local "$W/mnt/$rank" >/dev/null 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	pids=()
	for rank in "$@"; do
		start_node "$rank" --trees 2 --fanout 2 --peer-timeout 1 \
			--ready-timeout "$(patient 20)" &
		pids+=($!)
	done
	for rank in "$@"; do
		wait "${pids[0]}"
		is "node $rank of $* is ready again" "$? $(cat "$W/out.$rank")" '0 '
		pids=("${pids[@]:1}")
	done
}
again 1
again 0
again 2 4
again 0 1
again 0 1 2
touch "$T/enough"
for rank in 3 5; do
	wait "${readers[rank]}"
	is "node $rank read everything right meanwhile" "$(cat "$T/wrong.$rank")" ''
done
ok 'all nodes stop' without_tree
matches 'all six nodes stop' "$(cat "$W/out.stop")" '^stopped 6/6 nodes$'

# ---- those above and below as well: only the last of the chain knows that the tree was ready

with_tree 3 --trees 1 --fanout 1
for rank in 0 1; do
	"$COPPER" stop --local "$W/mnt/$rank" >/dev/null
	start_node "$rank" --trees 1 --fanout 1 --ready-timeout "$(patient 20)" &
	pids[rank]=$!
done
for rank in 0 1; do
	wait "${pids[rank]}"
	is "node $rank of a chain is ready again" "$? $(cat "$W/out.$rank")" '0 '
done
ok 'the chain stops' without_tree

# ---- with other options

other='was started with other options: --source, .* the host list or its order'
with_tree 3 --trees 1 --peer-timeout 1
"$COPPER" stop --local "$W/mnt/0" >/dev/null
fails_with 1 "127\.0\.0\.1[23] \(rank [12]\) $other" \
	"$COPPER" mount --hosts "$HOSTS" --rank 0 --secret-file "$SECRET" -d "$JOB" \
	--source "$T/elsewhere" "$W/mnt/0"
checksums "$W/mnt/1" >"$T/got"
ok 'a root that came back with another source was never asked' cmp "$T/got" "$T/want"
ok 'a node is accepted once its options are right' start_node 0 --trees 1
"$COPPER" stop --local "$W/mnt/2" >/dev/null
(cat "$HOSTS" && echo 127.0.0.14) >"$T/more"
fails_with 1 "127\.0\.0\.11 \(rank 0\) $other" "$COPPER" mount --hosts "$T/more" --rank 2 \
	--secret-file "$SECRET" -d "$JOB" --source "$SRC" --trees 1 "$W/mnt/2"
ok 'a longer host list does not get in' start_node 2 --trees 1
ok 'the nodes of the first list stop' without_tree

prepare_tree 3
sed '1!G;h;$!d' "$HOSTS" >"$T/reversed"
lists=("$HOSTS" "$T/reversed" "$HOSTS")
for rank in 0 1 2; do
	start_node "$rank" --hosts "${lists[rank]}" &
	pids[rank]=$!
done
for rank in 0 1 2; do
	wait "${pids[rank]}"
	is "node $rank: not with a host list in another order" $? 1
	matches 'the node says that the host lists differ' \
		"$(cat "$W/out.$rank")" "not ready: 127\.0\.0\.1[0-9] \(rank [0-9]\) $other"
done
is 'no mount is left' "$(mounts_left)" 0

# ---- one that does not start: the others say at once which one and why, though no node below it
# can reach the root

: >"$W/a-file"
chain() { # RANK-WITHOUT-MOUNT-POINT
	local rank mnt status
	for rank in 0 1 2 3; do
		[ "$rank" = "$1" ] && mnt=$W/a-file || mnt=$W/mnt/$rank
		timeout "$(patient 90)" "$COPPER" mount --hosts "$HOSTS" --rank "$rank" -d "$JOB" \
			--source "$SRC" --trees 1 --fanout 1 "$mnt" \
			</dev/null >"$W/out.$rank" 2>&1 &
		pids[rank]=$!
	done
	for rank in 0 1 2 3; do
		wait "${pids[rank]}"
		status=$?
		if [ "$1" = none ]; then
			is "node $rank starts" \
				"$status $(grep -v '^copper: note' "$W/out.$rank")" '0 '
		elif [ "$rank" != "$1" ]; then
			matches "node $1 does not start: node $rank says so" \
				"$status $(cat "$W/out.$rank")" \
				"^1 copper mount: .*127\.0\.0\.1$(($1 + 1)) \(rank $1\) did not start: $W/a-file: is not a directory"
		fi
	done
}
prepare_tree 4
chain 0
chain 1
chain 3

for rank in 0 1; do
	start_node "$rank" &
	pids[rank]=$!
done
wait_for 10 is_mounted "$W/mnt/0"
"$COPPER" stop --local "$W/mnt/0" >/dev/null 2>&1
wait "${pids[1]}"
matches 'nodes that were stopped before are reported, too' "$? $(cat "$W/out.1")" \
	'^1 copper mount: the tree is not ready: 127\.0\.0\.11 \(rank 0\) stopped before the tree was ready'
wait
chain none
ok 'the message of one is not kept' test ! -e "$JOB/logs/not_started.txt"
cop_tree=4
ok 'the four stop' without_tree

# ---- a place that is in use, or does not exist here

"$PYTHON" -c '
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", int(sys.argv[1])))
s.listen()
print(flush=True)
time.sleep(1000)' "$cop_port" >"$T/listens" &
holder=$!
wait_for 10 test -s "$T/listens"
fails_with 1 "cannot listen on 127\.0\.0\.12 port $cop_port .* taken by process $holder \(python3[0-9.]*\); choose another --port" \
	"$COPPER" mount --hosts "$HOSTS" --rank 1 --secret-file "$SECRET" -d "$JOB" \
	--source "$SRC" "$W/mnt/1"
kill "$holder"
fails_with 1 '192\.0\.2\.77 is not an address of this machine: check the host list .* --rank' \
	"$COPPER" mount --hosts 192.0.2.77,127.0.0.12 --rank 0 -d "$JOB" --source "$SRC" "$W/mnt/1"
