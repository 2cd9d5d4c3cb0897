#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A killed node leaves a mount that reports the death, never an empty directory, as long as a
# program of the job may look at it; after that it leaves no mount.
# covers: mountguard mountdir
# modes: release asan
# limit: 180
# takes: 50
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 58

SRC=$T/src
small_tree "$SRC"
dead='Transport endpoint is not connected'
mnt=$W/mnt/0
looks_dead() { # DESCRIPTION: of what the kernel was not told before
	is "$1: a file" "$(as_user cat "$mnt/dir/numbers" 2>&1 >/dev/null | sed 's/.*: //')" "$dead"
	is "$1: a name that does not exist" \
		"$(as_user stat "$mnt/none" 2>&1 >/dev/null | sed 's/.*: //')" "$dead"
	is "$1: find does not end well" "$(as_user find "$mnt" >/dev/null 2>&1; echo $?)" 1
}
mounts() {
	awk -v dir="$W/" 'index($5, dir) == 1' /proc/self/mountinfo | wc -l
}
gone() {
	[ "$(nodes_running) $(mounts)" = '0 0' ]
}

# ---- killed: the mount stays as long as the command's shell exists, or until it is removed

killed() { # WHO
	with_tree 1
	kill_node 0
	looks_dead "$1"
	sleep 2
	is "$1: the dead mount stays dead" \
		"$(as_user stat -f "$mnt" 2>&1 >/dev/null | sed 's/.*: //') $(nodes_running)" \
		"$dead 1"
	matches "$1: stop takes it away" "$(as_user "$COPPER" stop "$mnt" 2>&1)" \
		'the node there was dead; its mount was removed'
	is "$1: the mount is gone at once" "$(mounts)" 0
	ok "$1: its guard goes, too" wait_for 5 gone
	cop_tree=0
	with_tree 1
	kill_node 0
	matches "$1: the next mount takes it away" \
		"$(start_node 0; cat "$W/out.0")" 'removed the dead mount of an earlier node'
	cop_killed=()
	is "$1: the next mount shows what is there" \
		"$(as_user cat "$mnt/hello") $(mounts)" 'hello 1'
	ok "$1: the next mount stops" without_tree
	is "$1: with nothing left when stop returns" "$(nodes_running) $(mounts)" '0 0'
}
killed root

with_tree 3 --peer-timeout 1
kill_node 2
matches 'one of three: stop of another takes it away' \
	"$("$COPPER" stop "$W/mnt/0" 2>&1 | tr '\n' ' ')" \
	"$W/mnt/2: the node there was dead; its mount was removed.*stopped 2/3 nodes"
is 'stop removes the mount of a killed node with those of the others' "$(mounts)" 0
ok 'the guard of that node has ended' wait_for 5 gone
is 'the control socket of that node is gone' "$(find "$XDG_RUNTIME_DIR" -name '*.*' | wc -l)" 0
cop_tree=0

# ---- as long as its own session, in which a script may run

# BEFORE AFTER: in a shell of a session of its own, which ends with them; between them the node is
# killed.
in_session() {
	prepare_tree 1
	cop_tree=1
	as_user setsid --wait bash -c '"$1" mount --source "$2" "$3" >/dev/null 2>&1 </dev/null
		eval "$4"
		kill -KILL "$("$1" cache-stats --json "$3" | sed "s/.*\"pid\":\([0-9]*\).*/\1/")"
		until cat "$3/dir/deeper/random" 2>&1 >/dev/null | grep -q "endpoint is not connected"; do sleep 0.1; done
		eval "$5"' - "$COPPER" "$SRC" "$mnt" "$1" "$2"
	cop_tree=0
}
# A program outside the session opens its file and then reports that.
holder='env -u PBS_JOBID setsid bash -c "exec 8<$mnt/hello; echo \$\$ >$W/holder; exec sleep 600" >/dev/null 2>&1 &
	until [ -s "$W/holder" ]; do sleep 0.1; done'
sessions() { # WHO
	export W mnt
	in_session : "sleep 3; cat $mnt/dir/numbers" >"$T/.out" 2>&1
	matches "$1: while the session goes on its programs are told" "$(cat "$T/.out")" "$dead"
	ok "$1: when it is over the mount goes" wait_for 15 gone

	in_session "$holder" "sleep 3"
	sleep 3
	is "$1: not while somebody has a file of it open" "$(mounts)" 1
	kill "$(cat "$W/holder")"
	rm "$W/holder"
	ok "$1: the mount goes when the file is closed" wait_for 15 gone

	export PBS_JOBID=4711.test
	in_session "$holder; setsid sleep 600 >/dev/null 2>&1 & echo \$! >$W/program" :
	unset PBS_JOBID
	sleep 3
	is "$1: the mount stays while a scheduler's job has a program" \
		"$(mounts) $(as_user cat "$mnt/dir/numbers" 2>&1 >/dev/null | sed 's/.*: //')" \
		"1 $dead"
	kill "$(cat "$W/program")"
	sleep 3
	is "$1: the mount stays for a while, since the next program may come" "$(mounts)" 1
	while read -r pid; do
		! is_ours "$pid" || kill "$pid"
	done < <(pgrep --exact cop-guard)
	ok "$1: a signal ends the guard and the mount at once, whoever uses it" wait_for 10 gone
	kill "$(cat "$W/holder")"
	rm "$W/holder"
}
sessions root

# ---- the connection is cut

control=/sys/fs/fuse/connections
[ -n "$(ls "$control" 2>/dev/null)" ] || {
	control=$T/control
	mkdir "$control"
}
with_tree 1
[ -n "$(ls "$control")" ] || mount -t fusectl none "$control" 2>/dev/null
number=$(mountpoint -d "$mnt" | cut -d : -f 2)
{ echo 1 >"$control/$number/abort"; } 2>/dev/null && cut=yes || cut=
[ "$control" != "$T/control" ] || umount "$control" 2>/dev/null
if [ -n "$cut" ]; then
	wait_for 10 eval '[ "$(nodes_running)" -eq 1 ]'
	is 'a node whose connection was cut ends, its guard does not' "$(nodes_running)" 1
	looks_dead 'cut'
	matches 'cut: stop takes it away' \
		"$("$COPPER" stop "$mnt" 2>&1)" 'the node there was dead; its mount was removed'
	ok 'cut: and the guard' wait_for 5 gone
	matches 'the log tells' \
		"$(cat "$JOB"/logs/*-output.log)" 'ending reason="the FUSE connection was aborted"'
	cop_tree=0
else
	for point in 1 2 3 4 5 6 7; do
		pass "a connection that is cut # SKIP no fusectl here ($point)"
	done
	without_tree
fi

# ---- the kernel is short of memory

group=/sys/fs/cgroup/memory/copper-test-$$
if mkdir "$group" 2>/dev/null; then
	trap 'status=$?; rmdir "$group" 2>/dev/null; (exit "$status"); finish' EXIT
	head -c 120000000 /dev/urandom >"$SRC/large"
	prepare_tree 1
	cop_tree=1
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$COPPER" mount --source "$SRC" \
		--cache-size 256M --compress off "$mnt" >"$W/out.0" 2>&1 </dev/null
	pid=$(node_stat 0 pid)
	echo 48M >"$group/memory.limit_in_bytes"
	cat "$mnt/large" >/dev/null 2>&1
	ok 'a node that needs more than the job may use is killed' wait_for 20 is_gone "$pid"
	looks_dead 'out of memory'
	matches 'out of memory: stop takes it away' \
		"$("$COPPER" stop "$mnt" 2>&1)" 'the node there was dead'
	ok 'out of memory: and the guard' wait_for 5 gone
	cop_tree=0
	rm "$SRC/large"
	wait_for 5 rmdir "$group"
else
	for point in 1 2 3 4 5 6; do
		pass "out of memory # SKIP no control groups here ($point)"
	done
fi

# ---- in a step of Slurm the guard is the parent of the node

in_step() {
	prepare_tree 1
	COPPER_STEP=1 "$COPPER" mount --foreground --source "$SRC" "$mnt" >"$T/out.step" \
		2>&1 </dev/null &
	above=$!
	wait_for 10 node_json 0 || bail "$(cat "$T/out.step")"
	node=$(node_stat 0 pid)
}
in_step
isnt=$([ "$node" = "$above" ] && echo the same || echo another)
is 'the process that srun started is not the node' "$isnt" another
kill "$above"
wait "$above"
is 'the process that srun started ends as the node does' "$? $(nodes_running) $(mounts)" '0 0 0'
in_step
kill -KILL "$node"
wait_for 5 eval '! stat -f "$mnt" 2>/dev/null'
sleep 2
is 'when the node is killed it does not end' \
	"$(is_ours "$above" && stat -f "$mnt" 2>&1 | sed 's/.*: //')" "$dead"
kill "$above"
wait "$above"
is 'the process ends when Slurm ends the step' "$? $(mounts)" '137 0'
in_step
disown "$above"
kill -KILL "$above"
ok 'the node without the process unmounts' wait_for 10 gone

# ---- the same with fusermount3

become_user
mnt=$W/mnt/0
killed user
sessions user
