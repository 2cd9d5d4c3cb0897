#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node is killed while one of its threads notifies the kernel of a change, and the kernel waits
# for an answer of this node: the thread never ends by itself, nor does a program that looks at the
# mount.
# covers: mountguard fuse
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 7

SRC=$T/src
mkdir -p "$SRC/one"
echo now >"$SRC/one/now"
echo late >"$SRC/one/late"
with_slowfs --cache-s 0

asked_for() { # whether the node waits for the storage for this name
	"$COPPER" cache-stats --json "$W/mnt/0" | grep -q one/late
}
# One of its threads waits for a lock in the kernel.
is_stuck() { # PID
	cat /proc/"$1"/task/*/wchan 2>/dev/null | grep -q fuse_reverse_inval
}
is_over() { # PID
	! kill -0 "$1" 2>/dev/null || [ "$(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null)" = Z ]
}

with_tree 1
"$SLOWFS" --fault "$SLOW_STATE" hang=one/late
cat "$W/mnt/0/one/now" >/dev/null
pid=$(node_stat 0 pid)
cat "$W/mnt/0/one/late" >/dev/null 2>"$T/said" &
reader=$!
ok 'a program waits for the storage' wait_for 20 asked_for
timeout "$(patient 60)" "$COPPER" cache-stats --invalidate "$W/mnt/0" one/now >/dev/null 2>&1 &
teller=$!
ok 'the kernel waits for the program' wait_for 20 is_stuck "$pid"
kill -KILL "$pid"
cop_killed[0]=$pid
"$SLOWFS" --fault "$SLOW_STATE" clear
ok 'the program is reported' wait_for 60 is_over "$reader"
wait "$reader" "$teller"
matches 'the program gets an error' "$(cat "$T/said")" 'not connected|abort'
is 'all other waiting programs get an error' \
	"$(timeout "$(patient 20)" stat -f "$W/mnt/0" 2>&1 >/dev/null |
		sed 's/.*: //')" 'Transport endpoint is not connected'
ok 'the node is gone' wait_for 20 is_over "$pid"
ok 'the mount of the dead node can be taken away' timeout "$(patient 20)" "$COPPER" stop "$W/mnt/0"
cop_tree=0
without_slowfs
