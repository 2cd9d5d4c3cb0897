#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source: what is left when the keeper, the node, or all processes of a start are
# killed at once, as when a step of Slurm is cancelled, and who removes it.
# covers: launch mountguard
# modes: release asan
# limit: 180
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_left.sh
. "$(dirname "$0")/run_left.sh"
plan 32

SRC=$T/src
small_tree "$SRC"
export SRC COPPER
mounts() {
	grep -c " $run/.* - fuse.copper " /proc/self/mountinfo
}
here() { # OPTIONS… -- COMMAND…
	"${cop_as[@]}" timeout "$(patient 60)" "$@" </dev/null
}
start() { # in the background: $! is the process
	rm -f "$W/up" "$W/go"
	"${cop_as[@]}" "$COPPER" run --source "$SRC" -- \
		sh -c 'touch "$1/up"; until [ -e "$1/go" ]; do sleep 0.05; done' - "$W" </dev/null \
		>/dev/null 2>&1 &
	pid=$!
}
start_and_wait() {
	start
	wait_for 20 test -e "$W/up" || bail 'the command does not start'
	node=$(here "$COPPER" cache-stats --json | json_value pid)
	keeper=$(ps -o ppid= "$node" | tr -d ' ')
	is_ours "$node" && is_ours "$keeper" || bail "pids $node and $keeper are not of this test"
}
has_ended() { # PID; with all of its threads, so that it has no lock any more
	! grep -qs '^State:.[^ZX]' "/proc/$1"/task/*/status
}
# Kills every process of this test that runs copper, and what it may have started meanwhile: none of
# them can clean up.
kill_all() {
	local all each
	while mapfile -t all < <(processes_of "$COPPER") && [ "${#all[@]}" -gt 0 ]; do
		{ kill -STOP "${all[@]}" && kill -KILL "${all[@]}"; } 2>/dev/null
		for each in "${all[@]}"; do
			wait_for 10 has_ended "$each"
		done
	done
	wait "$pid" 2>/dev/null
	wait_for 10 eval '[ "$(nodes_running)" = 0 ]'
}
# The guard is killed when the mount and its place are gone, and the files beside the control socket
# are still there.
kill_guard_at_work() {
	local both place
	mapfile -t both < <(processes_of "$COPPER" | grep -vxF -e "$keeper" -e "$pid")
	[ "${#both[@]}" -eq 2 ] || bail "not a node and its guard: ${both[*]}"
	place=$(awk -v dir="$run/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo)
	kill -STOP "${both[@]}"
	kill -KILL "${both[@]}"
	wait_for 10 is_gone "${both[0]}" && wait_for 10 is_gone "${both[1]}"
	umount -l "$place"
	rmdir "$place" "${place%/*}"
}
# The places of nodes that were killed just now count as being made.
make_old() {
	find "$run/copper" -mindepth 1 -maxdepth 1 -name 'mnt-*' -exec touch -d '1 minute ago' {} +
}

ways() { # WHO
	local who=$1 i
	start_and_wait
	kill -KILL "$keeper"
	wait_for 20 is_gone "$node"
	touch "$W/go"
	wait "$pid"
	is "$who: the keeper is killed: the command ends as it likes" "$?" 0
	ok "$who: nothing is left after the keeper was killed" wait_for 20 none_left

	start_and_wait
	kill -KILL "$node"
	touch "$W/go"
	wait "$pid"
	is "$who: the node is killed: the command ends as it likes" "$?" 0
	ok "$who: nothing is left after the node was killed" wait_for 20 none_left

	start_and_wait
	kill -KILL "$keeper" "$node"
	touch "$W/go"
	wait "$pid"
	ok "$who: both are killed: nothing is left" wait_for 20 none_left

	start_and_wait
	kill_guard_at_work
	touch "$W/go"
	wait "$pid"
	is "$who: the node is killed, and its guard when it has removed the mount: nothing is left" "$(left)" '0 0'

	start_and_wait
	kill_all
	is "$who: all are killed at once: the mount is left" "$(mounts)" 1
	is "$who: the next start reads its own" \
		"$(here "$COPPER" run --source "$SRC" -- cat "$SRC/hello")" hello
	is "$who: the next start has removed what was left" "$(left)" '0 0'

	start_and_wait
	kill_all
	here "$COPPER" stop >/dev/null 2>&1
	is "$who: stop removes it" "$(left)" '0 0'

	start_and_wait
	kill_all
	as_user mkdir -p "$W/mnt/0"
	here "$COPPER" mount --source "$SRC" "$W/mnt/0"
	is "$who: the next mount removes it" \
		"$(mounts) $(find "$run/copper" -name 'run-*' -o -name 'mnt-*')" '0 '
	here "$COPPER" stop "$W/mnt/0" >/dev/null

	# ---- at any moment of the start
	for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
		start
		sleep "0.0$i"
		kill_all
	done
	make_old
	here "$COPPER" run --source "$SRC" -- true
	is "$who: what was killed while it started is removed" "$(left)" '0 0'
	for i in 0 2 4 6 8 10; do
		start
		sleep "0.0$i"
		kill "$pid"
		touch "$W/go"
		wait "$pid" 2>/dev/null
	done
	ok "$who: of those that a signal ended nothing is left" wait_for 20 none_left

	# ---- who lives is left alone
	start_and_wait
	here "$COPPER" run --source "$SRC" -- true
	is "$who: a start that lives keeps its node" \
		"$(here "$COPPER" cache-stats --json | json_value pid)" "$node"
	touch "$W/go"
	wait "$pid"
	is "$who: a start that kept its node ends well" "$?" 0
	ok "$who: the start leaves no trace" wait_for 10 none_left
}

run=$XDG_RUNTIME_DIR
ways root
become_user
run=$W/run
ways user
