#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A real Slurm that tracks processes by control groups, as most sites do: when a step ends, every
# process that it started is killed. The jobs are an ordinary user's.
# covers: scheduler launch
# modes: release
# limit: 400
# takes: 40
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
need_groups
plan 29

small_tree "$T/src"
SRC=$T/src
MNT=$NODE_LOCAL/mnt
become_user
export COPPER SRC W MNT
COP_TRACKS=cgroup

# What a run that was killed leaves in the groups of its lane.
leave_frozen() {
	local group=$slurm_groups/slurm_n1/uid_0/job_1/step_0
	mkdir -p "$group"
	sleep 98764 &
	left=$!
	echo "$left" >"$group/cgroup.procs"
	case $COP_CGROUPS in
	v1) echo FROZEN >"$group/freezer.state" ;;
	*) echo 1 >"$group/cgroup.freeze" ;;
	esac
}
need_slurm
leave_frozen
start_slurm 4
is 'a frozen process of an earlier run is gone' "$(cat "/proc/$left/comm" 2>&1 | grep -c sleep)" 0

nodes_gone() {
	[ "$(slurm_mounts) $(nodes_running)" = '0 0' ]
}
said() { # NAME
	cat "$W/out.$1"
}

id=$(submit plain 4 <<'EOS'
srun --ntasks-per-node=1 sh -c 'setsid sleep 98765 >/dev/null 2>&1 </dev/null & sleep 0.2'
for try in 1 2 3 4 5 6 7 8 9 10; do
	pgrep -u "$(id -u)" -f '^sleep 98765' >/dev/null || break
	sleep 0.5
done
pgrep -u "$(id -u)" -f '^sleep 98765' | wc -l
"$COPPER" mount -d "$W/job.plain" --source "$SRC" "$MNT"
echo "mount ends with $?"
srun --ntasks-per-node=1 cat "$MNT/hello"
"$COPPER" stop "$MNT"
EOS
)
wait_for 40 job_is_over "$id"
is 'Slurm does kill what a step leaves behind' "$(said plain | sed -n 1p)" 0
matches 'mount returns 0 in a batch script' "$(said plain)" '^mount ends with 0$'
is 'steps that end later leave the nodes alone' "$(said plain | grep -c '^hello$')" 4
matches 'stop finds all nodes that live on' "$(said plain)" '^stopped 4/4 nodes$'
wait_for 5 nodes_gone
is 'no mount and no node remains' "$(slurm_mounts) $(nodes_running)" '0 0'

# ---- in a step that ends: refused, except for a shell there, whose nodes get a step of their own

start_shell() {
	id=$(submit shell 4 <<'EOS'
srun --ntasks-per-node=1 "$COPPER" mount -d "$W/job.refused" --source "$SRC" "$MNT"
echo "mount ends with $?"
srun --nodes=1 --ntasks=1 sh -c '"$COPPER" mount -d "$W/job.shell" --source "$SRC" "$MNT"; echo "in a shell $?"'
squeue -h -s -o 'step %j %N'
sleep 3
srun --ntasks-per-node=1 cat "$MNT/hello"
"$COPPER" cache-stats --all --json "$MNT" >"$W/stats.shell"
"$COPPER" stop "$MNT"
script -qec "srun --ntasks-per-node=1 --pty sh -c '\"\$COPPER\" mount -d \"\$W/job.again\" --source \"\$SRC\" \"\$MNT\"; echo \"at a terminal \$?\"'" /dev/null </dev/null
srun --ntasks-per-node=1 cat "$MNT/hello"
touch "$W/again.ready"
sleep 300
EOS
	)
	wait_for 60 test -e "$W/again.ready"
}
# Slurm 22.05 may remove the group of a job when one of its steps ends while another begins, which
# it then cannot start: "unable to add pids to", and "launch failed". Such a job says nothing about
# Copper.
start_shell
for again in 1 2 3; do
	grep -qs ' launch failed: ' "$W/out.shell" "$W"/job.*/logs/srun.log || break
	note "Slurm has not started all tasks of a step; once more ($again)"
	scancel "$id"
	wait_for 40 job_is_over "$id"
	rm -rf "$W/again.ready" "$W/job.shell" "$W/job.again" "$W/out.shell"
	start_shell
done
matches 'srun without --foreground is refused' "$(said shell)" '^mount ends with 1$'
is 'by each task with a sentence' \
	"$(said shell | grep -c '^copper mount: a task of srun cannot leave a node behind: ')" 4
ok 'a refused task has begun nothing' test ! -e "$W/job.refused"
matches 'a shell in a step starts nodes' "$(said shell)" '^in a shell 0$'
matches 'in a step of their own' "$(said shell)" '^step copper n\[1-4\]$'
is 'ranks are in the order of the node list' \
	"$("$PYTHON" -c 'import json, sys; print(sorted((n["rank"], n["host"]) for n in json.load(open(sys.argv[1]))["nodes"]))' "$W/stats.shell")" \
	"[(0, 'n1'), (1, 'n2'), (2, 'n3'), (3, 'n4')]"
matches 'they live on behind the step that started them, until they are stopped' \
	"$(said shell)" '^stopped 4/4 nodes$'
is 'a shell at a terminal leaves its nodes alone' \
	"$(said shell | tr -d '\r' | grep -ac 'at a terminal 0$')" 1
is 'four programs read, and four later' "$(said shell | grep -c '^hello$')" 8
is 'the mount is on each node' "$(slurm_mounts)" 4
# The kernel admits a process that has the mount's user and group, and the group depends on Slurm's
# version.
group=$(on_node 3 sed -n "s#.* $MNT .* fuse\\.copper .*[ ,]group_id=\([0-9]*\).*#\1#p" /proc/self/mountinfo)
as_the_job=(setpriv --reuid "$cop_user" --regid "${group:-none}" --clear-groups)
pid=$(on_node 3 "${as_the_job[@]}" "$COPPER" cache-stats --json \
		--runtime-dir "$NODE_LOCAL/run/copper" "$MNT" | json_value pid)
is_ours "$pid" && kill -KILL "$pid"
wait_for 5 is_gone "$pid"
sleep 3
matches 'a node that is killed leaves its mount to the job' \
	"$(slurm_mounts) $(on_node 3 "${as_the_job[@]}" stat "$MNT/none" 2>&1)" \
	'^4 .*Transport endpoint is not connected'
scancel "$id"
wait_for 25 nodes_gone
is 'nodes that outlived their srun end with the job' "$(slurm_mounts) $(nodes_running)" '0 0'
wait_for 40 job_is_over "$id"

# ---- what goes wrong

hosts=n1:$(free_port),n2:$(free_port),n3:$(free_port),n4:$(free_port)
export hosts
# Slurm ends the first node as soon as its command has returned, and the command returns when the
# others have heard that all are ready.
id=$(submit hosts 4 <<'EOS'
srun --ntasks-per-node=1 sh -c '"$COPPER" mount --hosts "$hosts" --ready-timeout 60 -d "$W/job.hosts" --source "$SRC" "$MNT"; exit $?'
echo "mount ends with $?"
until srun --ntasks-per-node=1 sh -c '! cat "$MNT/hello"' >/dev/null 2>&1; do sleep 0.2; done
srun --ntasks-per-node=1 "$COPPER" stop "$MNT"
EOS
)
wait_for 40 job_is_over "$id"
matches 'each node of a step that ends has heard that all are ready' \
	"$(said hosts)" '^mount ends with 0$'
is 'a node that the step will take along says so' \
	"$(said hosts | grep -c '^copper: note: Slurm ends these nodes with the job step')" 1
wait_for 5 nodes_gone
is 'stop takes away what is left of them' "$(slurm_mounts) $(nodes_running)" '0 0'

on_node 3 rmdir "$MNT"
on_node 3 touch "$MNT"
id=$(submit no-dir 4 <<'EOS'
srun --nodes=1 --ntasks=1 sh -c '"$COPPER" mount --ready-timeout 60 -d "$W/job.no-dir" --source "$SRC" "$MNT"; exit $?'
echo "mount ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
matches 'a node that cannot mount is named' \
	"$(said no-dir)" "^copper mount: n3: $MNT: is not a directory"
matches 'srun fails when a node cannot mount' "$(said no-dir)" '^mount ends with 1$'
is 'the failed mount is told in one line' "$(said no-dir | grep -c '^copper mount: ')" 1

# Slurm cannot execute the command on one machine, so nobody there can report it.
on_node 2 mount --bind /dev/null "$COPPER"
id=$(submit no-exec 4 <<'EOS'
"$COPPER" mount --ready-timeout 300 -d "$W/job.no-exec" --source "$SRC" "$MNT.none"
echo "mount ends with $? after $SECONDS s"
EOS
)
wait_for 60 job_is_over "$id"
on_node 2 umount "$COPPER"
matches "what srun says of a node that cannot is the command's sentence" "$(said no-exec)" \
	'^copper mount: a node was not started, or ended at once: n2: task 1: Exited with exit code [0-9]+$'
matches 'with all that it says' "$(said no-exec)" 'Permission denied'
matches 'long before the others have waited in vain' \
	"$(said no-exec)" '^mount ends with 1 after [0-9]{1,2} s$'
wait_for 5 nodes_gone
is 'no mount and no node of any job remains' "$(slurm_mounts) $(nodes_running)" '0 0'
stop_slurm
ok 'no control group of Slurm remains' test ! -e "$slurm_groups"
