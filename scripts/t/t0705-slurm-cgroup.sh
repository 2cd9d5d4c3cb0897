#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A real Slurm that tracks processes by control groups, as most sites do: when a step ends, every process that it started is killed. The
# jobs are an ordinary user's.
# modes: release
# limit: 150
# user: yes
# turn: slurm-groups
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
[ -w /sys/fs/cgroup/freezer ] || skip_all 'no freezer of cgroup v1 here, by which Slurm could track'
plan 31

small_tree "$T/src"
SRC=$T/src
MNT=$NODE_LOCAL/mnt
become_user
export COPPER SRC W MNT
SLURM_TRACKS=cgroup
start_slurm 4

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
matches 'and stop finds all of them' "$(said plain)" '^stopped 4/4 nodes$'
wait_for 5 nodes_gone
is 'nothing is left' "$(slurm_mounts) $(nodes_running)" '0 0'

# ---- by srun: the nodes get a step of their own, from inside of the one that ends

id=$(submit by-srun 4 <<'EOS'
srun --ntasks-per-node=1 "$COPPER" mount -d "$W/job.by-srun" --source "$SRC" "$MNT"
echo "mount ends with $?"
squeue -h -s -o 'step %j %N'
sleep 3
srun --ntasks-per-node=1 cat "$MNT/hello"
"$COPPER" cache-stats --all --json "$MNT" >"$W/stats.by-srun"
"$COPPER" stop "$MNT"
srun --ntasks-per-node=1 sh -c '"$COPPER" mount -d "$W/job.again" --source "$SRC" "$MNT"; echo "in a shell $?"'
srun --ntasks-per-node=1 cat "$MNT/hello"
touch "$W/again.ready"
sleep 300
EOS
)
wait_for 60 test -e "$W/again.ready"
matches 'srun returns 0 when the tree is ready' "$(said by-srun)" '^mount ends with 0$'
matches 'the nodes have a step of their own' "$(said by-srun)" '^step copper n\[1-4\]$'
is 'without a word too many' "$(said by-srun | sed -n 1p)" 'mount ends with 0'
is 'ranks are in the order of the node list' \
	"$("$PYTHON" -c 'import json, sys; print(sorted((n["rank"], n["host"]) for n in json.load(open(sys.argv[1]))["nodes"]))' "$W/stats.by-srun")" \
	"[(0, 'n1'), (1, 'n2'), (2, 'n3'), (3, 'n4')]"
matches 'the nodes live on behind the step that started them, until they are stopped' "$(said by-srun)" '^stopped 4/4 nodes$'
is 'a shell around the command makes no difference' "$(said by-srun | grep -c '^in a shell 0$')" 4
is 'twice four programs read' "$(said by-srun | grep -c '^hello$')" 8
is 'each node is mounted' "$(slurm_mounts)" 4
pid=$(on_node 3 "${cop_as[@]}" "$COPPER" cache-stats --json --runtime-dir "$NODE_LOCAL/run/copper" "$MNT" | json_value pid)
is_ours "$pid" && kill -KILL "$pid"
wait_for 5 is_gone "$pid"
sleep 3
matches 'a node that is killed leaves its mount to the job' "$(slurm_mounts) $(on_node 3 setpriv --reuid "$cop_user" --regid 0 --clear-groups stat "$MNT/none" 2>&1)" \
	'^4 .*Transport endpoint is not connected'
scancel "$id"
wait_for 25 nodes_gone
is 'nodes that outlived their srun end with the job' "$(slurm_mounts) $(nodes_running)" '0 0'
wait_for 40 job_is_over "$id"

# ---- what goes wrong

hosts=n1:$(free_port),n2:$(free_port),n3:$(free_port),n4:$(free_port)
export hosts
# Slurm ends the first node as soon as its command has returned, and that returns when the others have heard that all are ready.
id=$(submit hosts 4 <<'EOS'
srun --ntasks-per-node=1 "$COPPER" mount --hosts "$hosts" --ready-timeout 60 -d "$W/job.hosts" --source "$SRC" "$MNT"
echo "mount ends with $?"
until srun --ntasks-per-node=1 sh -c '! cat "$MNT/hello"' >/dev/null 2>&1; do sleep 0.2; done
srun --ntasks-per-node=1 "$COPPER" stop "$MNT"
EOS
)
wait_for 40 job_is_over "$id"
matches 'each node of a step that ends has heard that all are ready' "$(said hosts)" '^mount ends with 0$'
is 'one of the nodes that the step will take along says so' "$(said hosts | grep -c '^copper: note: Slurm ends these nodes with the job step')" 1
wait_for 5 nodes_gone
is 'stop takes away what is left of them' "$(slurm_mounts) $(nodes_running)" '0 0'

on_node 3 rmdir "$MNT"
on_node 3 touch "$MNT"
id=$(submit no-dir 4 <<'EOS'
srun --ntasks-per-node=1 "$COPPER" mount --ready-timeout 60 -d "$W/job.no-dir" --source "$SRC" "$MNT"
echo "mount ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
matches 'a node that cannot mount is named' "$(said no-dir)" "^copper mount: n3: $MNT: is not a directory"
matches 'on its own host, too' "$(said no-dir)" "^copper mount: $MNT: is not a directory"
is 'the others say what became of theirs' "$(said no-dir | grep -c '^copper mount: ')" 4
matches 'and srun fails' "$(said no-dir)" '^mount ends with 1$'
is 'none because its time was up' "$(said no-dir | grep -c 'no node was ready')" 0
wait_for 5 nodes_gone
is 'without a mount on the others' "$(slurm_mounts) $(nodes_running)" '0 0'
id=$(submit late 4 <<'EOS'
srun --label --ntasks-per-node=1 sh -c '[ "$SLURM_PROCID" != 3 ] || sleep 4; exec "$COPPER" mount --ready-timeout 60 -d "$W/job.late" --source "$SRC" "$MNT"'
echo "mount ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
is 'a task that comes too late to hear its node finds what task 0 said' "$(said late | grep -c "^[03]: copper mount: n3: $MNT: is not a directory")" 2
wait_for 5 nodes_gone
is 'without a mount on the others' "$(slurm_mounts) $(nodes_running)" '0 0'
on_node 3 rm "$MNT"
on_node 3 install -d -o "$cop_user" "$MNT"

# The others begin their second start at once, when the word of the first is still there; task 0 begins its own when they have had the time
# to read it again, which they do after five seconds.
id=$(submit again 4 <<'EOS'
cat >"$W/again" <<'SH'
word="$W/job.again/logs/not_started-$SLURM_JOB_ID.$SLURM_STEP_ID.txt"
"$COPPER" mount -d "$W/job.again" --source "$SRC/none" "$MNT"
if [ "$SLURM_PROCID" = 0 ]; then
	[ -e "$word" ] && echo word
	while [ ! -e "$W/failed.1" ] || [ ! -e "$W/failed.2" ] || [ ! -e "$W/failed.3" ]; do sleep 0.2; done
	sleep 8
else
	touch "$W/failed.$SLURM_PROCID"
fi
exec "$COPPER" mount -d "$W/job.again" --source "$SRC" "$MNT"
SH
srun --label --ntasks-per-node=1 sh "$W/again"
echo "mount ends with $?"
"$COPPER" stop "$MNT"
EOS
)
wait_for 60 job_is_over "$id"
is 'tasks that start again at once wait for the next start of task 0, and do not take its word of the last one for it' \
	"$(said again | grep -c '^[0-3]: copper mount: '), $(said again | grep -E '^(0: word|mount ends)' | tr '\n' ' ')" '4, 0: word mount ends with 0 '
wait_for 5 nodes_gone
is 'nothing is left then' "$(slurm_mounts) $(nodes_running)" '0 0'

id=$(submit no-task-0 4 <<'EOS'
srun --ntasks-per-node=1 sh -c 'sleep 1; [ "$SLURM_PROCID" = 0 ] || exec "$COPPER" mount --ready-timeout 1 -d "$W/job.no-task-0" --source "$SRC" "$MNT"' &
step=$!
sleep 5
scancel --name=no-task-0 "$SLURM_JOB_ID.0" || kill "$step"
wait "$step"
echo "srun ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
ok 'tasks that wait for a task 0 that does nothing can be cancelled' grep -q '^srun ends with [1-9]' "$W/out.no-task-0"
wait_for 5 nodes_gone
is 'nothing is left of any job' "$(slurm_mounts) $(nodes_running)" '0 0'
stop_slurm
ok 'nor of Slurm' eval '[ -z "$(echo /sys/fs/cgroup/freezer/slurm_n[1-4]/ | grep -v "\[")" ]'
