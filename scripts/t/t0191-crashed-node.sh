#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node is killed, or crashes, while its own thread reads its mount and waits for the storage. The
# kernel waits for the thread, which waits for the node: the guard ends the connection.
# covers: mountguard kernelahead
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
signals=(KILL ABRT)
# Sanitizers report SIGSEGV themselves.
[ "$cop_mode" != release ] || signals+=(SEGV)
plan $((7 * ${#signals[@]}))

SRC=$T/src
numbered_files "$SRC/many" 20 9000
mkdir "$SRC/gate"
echo late >"$SRC/gate/late"
touch -d '1 hour ago' "$SRC"/*/* "$SRC"
with_slowfs --cache-s 0 --share "$T/gate"
ulimit -c 0

gate() { # hang=PATH | clear: besides the other faults
	"$SLOWFS" --fault "$T/gate" "$1"
}
asked_for() { # NAME: whether the node waits for the storage for it
	"$COPPER" cache-stats --json "$W/mnt/0" | grep -q "$1"
}
prefetched() {
	[ "$(node_stat 0 prefetching.state)" = "done" ]
}
waits_for_itself() { # PID: its thread that reads ahead is in a request to its own mount
	local task
	for task in /proc/"$1"/task/*; do
		[[ $(cat "$task/comm") == kernel-ahead ]] && grep -q request_wait "$task/wchan" && return
	done
}
is_over() { # PID
	! kill -0 "$1" 2>/dev/null || [ "$(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null)" = Z ]
}
nothing_left() {
	[ "$(nodes_running) $(grep -c " $W/mnt/" /proc/self/mountinfo)" = '0 0' ]
}

with_tree 1 --prefetch auto
cat "$W/mnt/0"/many/* >/dev/null
without_tree || bail "$(cat "$W/out.stop")"
mv "$T/.slow.copper-manifest" "$T/manifest"

dies() { # SIGNAL
	local pid reader guard
	# While a program waits, the thread does too: all that the node gets is still to be read.
	gate hang=gate
	slow_fault hang=many
	with_tree 1 --prefetch "$T/manifest" --kernel-ahead on
	pid=$(node_stat 0 pid)
	guard=$(pgrep --parent "$pid" --exact cop-guard) || bail 'there is no guard'
	cat "$W/mnt/0/gate/late" >/dev/null &
	reader=$!
	ok "$1: a program waits" wait_for 20 asked_for gate
	slow_fault clear
	wait_for 20 prefetched || bail 'the manifest is not prefetched'
	"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
	slow_fault hang=many
	gate clear
	wait "$reader"
	ok "$1: the node reads its own mount" wait_for 20 waits_for_itself "$pid"
	cat "$W/mnt/0/many/"* >/dev/null 2>"$T/said" &
	reader=$!
	kill "-$1" "$pid"
	cop_killed[0]=$pid
	ok "$1: the node is gone" wait_for 60 is_gone "$pid"
	ok "$1: a program that reads ends" wait_for 20 is_over "$reader"
	wait "$reader"
	matches "$1: with an error" "$(cat "$T/said")" 'not connected|abort'
	is "$1: so does one that comes later" "$(timeout "$(patient 20)" stat -f "$W/mnt/0" 2>&1 >/dev/null |
		sed 's/.*: //')" 'Transport endpoint is not connected'
	slow_fault clear
	kill -TERM "$guard"
	ok "$1: the guard leaves nothing" wait_for 20 nothing_left
	cop_tree=0
}
for signal in "${signals[@]}"; do
	dies "$signal"
done
without_slowfs
