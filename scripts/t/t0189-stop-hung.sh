#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The storage hangs while a node is stopped: a read of a program, or of another node, or the look
# for programs beside the mount, waits for it. The node ends all the same, in a few seconds, with
# status 0, and leaves nothing behind.
# modes: release asan
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 15

SRC=$T/src
small_tree "$SRC"
with_slowfs --cache-s 0
export XDG_RUNTIME_DIR=$T/sockets
mkdir -m 700 "$XDG_RUNTIME_DIR"
sockets() {
	find "$XDG_RUNTIME_DIR" -mindepth 2 | wc -l
}
# A node in the foreground, since its exit status is what is looked at.
begin() { # RANK [OPTION…]
	local rank=$1
	shift
	start_node "$rank" -f "$@" &
	pid[rank]=$!
}
is_up() { # RANK
	"$COPPER" cache-stats --json "$W/mnt/$1" 2>/dev/null | grep -q '"ready":true'
}
hangs() { # RANK: a worker waits for the storage
	[ "$(node_stat "$1" waiting.origin_running)" -ge 1 ]
}
look_hangs() { # the thread waits in a request to slowfs
	local task
	for task in /proc/"$(node_stat 0 pid)"/task/*; do
		[ "$(cat "$task/comm")" != cop-bypass ] || grep -q request_wait "$task/wchan"
	done
}
stops() { # WHAT RANK COMMAND…
	local what=$1 rank=$2 began=$SECONDS
	shift 2
	"$@" >"$T/.out" 2>&1
	is "$what: the stop succeeds" "$? $(grep -c ' did not ' "$T/.out")" '0 0'
	wait "${pid[rank]}"
	is "$what: the exit status of the node" "$?" 0
	is_at_most "$what: seconds" "$((SECONDS - began))" "$(patient 8)"
}

# ---- a read of a program

prepare_tree 1
begin 0
wait_for 20 is_up 0 || bail "$(cat "$W/out.0")"
slow_fault hang=dir/numbers
cat "$W/mnt/0/dir/numbers" >/dev/null 2>&1 &
ok 'a read hangs' wait_for 20 hangs 0
stops 'a read' 0 "$COPPER" stop "$W/mnt/0"
is 'a read: what is left of the control socket' "$(sockets)" 0
slow_fault clear
wait $!

# ---- a look for programs beside the mount

prepare_tree 1
begin 0
wait_for 20 is_up 0 || bail "$(cat "$W/out.0")"
"$PYTHON" -c 'import sys, time; f = open(sys.argv[1]); print("open", flush=True); time.sleep(600)' \
	"$SRC/dir/numbers" >"$T/open" &
program=$!
wait_for 20 test -s "$T/open"
slow_fault hang=dir/numbers
COP_POLL_S=0.2 ok 'a look hangs' wait_for 40 look_hangs
stops 'a look' 0 "$COPPER" stop "$W/mnt/0"
is 'a look: what is left of the control socket' "$(sockets)" 0
slow_fault clear
kill "$program"
wait "$program" 2>/dev/null

# ---- a read for another node

prepare_tree 2
begin 0
begin 1
for rank in 0 1; do
	wait_for 20 is_up "$rank" || bail "$(cat "$W/out.$rank")"
done
slow_fault hang=dir/numbers
cat "$W/mnt/1/dir/numbers" >/dev/null 2>&1 &
ok 'a read for another node hangs' wait_for 20 hangs 0
stops 'a read for another' 0 "$COPPER" stop "$W/mnt/1"
wait "${pid[1]}"
is 'a read for another: the exit status of the other' "$?" 0
slow_fault clear
wait
