#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Batch scripts under a real Slurm of four virtual nodes: no host file, no address book, no waiting;
# jobs that are cancelled, that lack a node, that share their nodes.
# covers: scheduler conf
# modes: release
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
plan 36

small_tree "$T/src"
mkdir "$T/src/package"
echo 'from package.part import where' >"$T/src/package/__init__.py"
echo 'where = __file__' >"$T/src/package/part.py"
SRC=$T/src
MNT=$NODE_LOCAL/mnt
OTHER=$NODE_LOCAL/other
cat >"$T/import" <<'EOS'
#!/bin/sh
cd / && PYTHONPATH=$MNT exec python3 -c 'import socket, package; print("import %s %s" % (socket.gethostname(), package.where))'
EOS
chmod +x "$T/import"
export COPPER SRC T MNT OTHER
start_slurm 4

nodes_gone() {
	[ "$(slurm_mounts) $(nodes_running)" = '0 0' ]
}
imports() { # NAME: which nodes imported the package from the mount
	grep "^import n[0-9] $MNT/package/part.py$" "$T/out.$1" | cut -d ' ' -f 2 | sort |
		tr '\n' ' '
}
said() { # NAME
	cat "$T/out.$1"
}

# ---- in the batch script itself: the nodes get a step of their own

# What a job requests for its own tasks, for example GPUs, is not for the nodes.
id=$(submit plain 4 <<'EOS'
SLURM_NTASKS_PER_GPU=1 SLURM_GPUS=4 "$COPPER" mount -d "$T/job.plain" --source "$SRC" "$MNT"
echo "mount ends with $?"
srun --ntasks-per-node=1 "$T/import"
squeue -h -s -o 'step %i %j'
"$COPPER" cache-stats --all --json "$MNT" >"$T/stats.plain"
"$COPPER" stop "$MNT"
EOS
)
wait_for 40 job_is_over "$id"
matches 'mount returns 0 in a batch script' "$(said plain)" '^mount ends with 0$'
is 'all four nodes import a package from the mount' "$(imports plain)" 'n1 n2 n3 n4 '
matches 'the nodes have a step of their own' "$(said plain)" "^step $id\\.[0-9]+ copper$"
matches 'the nodes with a step of their own stop' "$(said plain)" '^stopped 4/4 nodes$'
is 'ranks are in the order of the node list' \
	"$("$PYTHON" -c 'import json, sys; print(sorted((n["rank"], n["host"]) for n in json.load(open(sys.argv[1]))["nodes"]))' "$T/stats.plain")" \
	"[(0, 'n1'), (1, 'n2'), (2, 'n3'), (3, 'n4')]"
is 'the storage is asked by one of them' \
	"$("$PYTHON" -c 'import json, sys; print([n["rank"] for n in json.load(open(sys.argv[1]))["nodes"] if n["origin"]["operations"]])' "$T/stats.plain")" \
	'[0]'
is 'the job has one secret, readable by its owner only' "$(stat -c '%a' "$T"/job.plain/secret*)" 600
matches 'the secret is made for this job' \
	"$(cat "$T/job.plain/secret")" '^made by copper for job [0-9]+$'
is 'each node has a log' \
	"$(cd "$T/job.plain/logs" && echo n*-output.log | tr -d '0-9' | tr ' ' '\n' | sort -u)" \
	'n--output.log'
wait_for 5 nodes_gone
is 'no mount and no node remains' "$(slurm_mounts) $(nodes_running)" '0 0'

# ---- by srun, which leaves nothing behind: refused, in a shell of each task, too, and on one node

id=$(submit by-srun 4 <<'EOS'
srun -J asked --ntasks-per-node=1 "$COPPER" mount -d "$T/job.by-srun" --source "$SRC" "$MNT"
echo "mount ends with $?"
srun -J asked --ntasks-per-node=1 sh -c '"$COPPER" mount -d "$T/job.by-srun" --source "$SRC" "$MNT"; exit $?'
echo "shells end with $?"
srun -J asked --nodes=1 --ntasks=1 "$COPPER" serve -d "$T/job.by-srun" --source "$SRC" --hosts n1
echo "serve ends with $?"
srun -J asked --nodes=1 --ntasks=1 "$COPPER" mount --check -d "$T/job.by-srun" --source "$SRC" "$MNT" >/dev/null
echo "check ends with $?"
squeue -h -s -o 'step %i %j'
EOS
)
wait_for 40 job_is_over "$id"
is 'srun without --foreground is refused' \
	"$(said by-srun | grep -E ' ends? with ' | head -n 3 | tr '\n' ' ')" \
	'mount ends with 1 shells end with 1 serve ends with 1 '
is 'by each task with the ways that work' \
	"$(said by-srun | sed -n 's/^\(copper [a-z]*: a task of srun cannot leave a node behind: \)give \("[^"]*"\) once in the job script, without srun, .* with \("srun[^"]*"\), .*$/\1\2 \3/p' | sort | uniq -c | tr -s ' ')" \
	' 8 copper mount: a task of srun cannot leave a node behind: "copper mount ..." "srun copper run --source DIR -- COMMAND"
 1 copper serve: a task of srun cannot leave a node behind: "copper serve ..." "srun copper run --source DIR -- COMMAND"'
matches 'a check is not' "$(said by-srun)" '^check ends with 0$'
is 'the refused tasks have begun nothing' \
	"$(said by-srun | grep -c '^step .* copper$') $(ls -d "$T/job.by-srun" \
		2>/dev/null) $(slurm_mounts) $(nodes_running)" '0  0 0'

# ---- as a step that the script keeps

id=$(submit kept 4 <<'EOS'
srun --overlap --ntasks-per-node=1 "$COPPER" mount -f -d "$T/job.kept" --source "$SRC" "$MNT" &
until "$COPPER" cache-stats --json "$MNT" 2>/dev/null | grep -q '"ready":true'; do sleep 0.1; done
srun --overlap --ntasks-per-node=1 "$T/import"
"$COPPER" stop "$MNT"
wait
EOS
)
wait_for 40 job_is_over "$id"
is 'a step in the foreground works as well' "$(imports kept)" 'n1 n2 n3 n4 '

# ---- two jobs on the same nodes, which are then cancelled

one=$(submit one 4 <<'EOS'
"$COPPER" mount -d "$T/job.one" --source "$SRC" "$MNT" && srun --ntasks-per-node=1 "$T/import" && touch "$T/one.ready"
sleep 300
EOS
)
two=$(submit two 4 <<'EOS'
MNT=$OTHER
"$COPPER" mount -d "$T/job.two" --source "$SRC" "$MNT" && cat "$MNT/hello" && touch "$T/two.ready"
sleep 300
EOS
)
wait_for 30 test -e "$T/one.ready" -a -e "$T/two.ready"
ok 'two jobs share their nodes' test -e "$T/one.ready" -a -e "$T/two.ready"
is 'with a mount each on each node' "$(slurm_mounts)" 8
is 'two jobs on the same nodes run at the same time' "$(squeue -h -o %T | sort | uniq -c | tr -s ' ')" ' 2 RUNNING'

# A node that is killed ends no other one, and its mount reports that it is dead.
pid=$(on_node 3 "$COPPER" cache-stats --json "$MNT" | json_value pid)
is_ours "$pid" || bail "pid $pid is not of this test"
kill -KILL "$pid"
wait_for 5 is_gone "$pid"
sleep 2
matches 'the mount of a killed node is not an empty directory' \
	"$(slurm_mounts) $(on_node 3 stat "$MNT/none" 2>&1)" \
	'^8 .*Transport endpoint is not connected'
is 'the other nodes go on when one is killed' "$(on_node 4 cat "$MNT/hello")" hello
is 'the job too' "$(squeue -h -j "$one" -o %T)" RUNNING

scancel "$one"
wait_for 10 eval '[ "$(slurm_mounts)" -eq 4 ]'
is 'a job that is cancelled leaves no mount' "$(slurm_mounts)" 4
is 'the other job keeps its tree when one is cancelled' "$(on_node 2 cat "$OTHER/hello")" hello
scancel "$two"
wait_for 25 nodes_gone
is 'the other job ends without a rest' "$(slurm_mounts) $(nodes_running)" '0 0'

# ---- what goes wrong

on_node 3 rmdir "$OTHER"
on_node 3 touch "$OTHER"
id=$(submit no-dir 4 <<'EOS'
SECONDS=0
"$COPPER" mount -d "$T/job.no-dir" --source "$SRC" "$OTHER"
echo "mount ends with $?"
[ "$SECONDS" -lt 100 ] && echo 'before --ready-timeout'
EOS
)
wait_for 60 job_is_over "$id"
matches 'a node that cannot mount is named' \
	"$(said no-dir)" "copper mount: n3: $OTHER: is not a directory"
matches 'the command fails when a node cannot mount' "$(said no-dir)" '^mount ends with 1$'
matches 'without waiting for the others' "$(said no-dir)" '^before --ready-timeout$'
is 'the failed start is told in one line by each node' "$(grep -c . "$T/out.no-dir")" 4
wait_for 5 nodes_gone
is 'without a mount on the others' "$(slurm_mounts) $(nodes_running)" '0 0'

id=$(submit missing 4 <<'EOS'
srun --nodes=3 --ntasks=3 --ntasks-per-node=1 "$COPPER" mount -f --ready-timeout 2 -d "$T/job.missing" --source "$SRC" "$MNT"
echo "mount ends with $?"
EOS
)
wait_for 40 job_is_over "$id"
matches 'a node that does not start is named' \
	"$(said missing)" 'the tree is not ready: 1 of 4 nodes not ready after 2 s: n4'
matches 'srun fails when a node does not start' "$(said missing)" '^mount ends with 1$'

id=$(submit crowd 4 <<'EOS'
srun --ntasks-per-node=2 --ntasks=8 --overcommit "$COPPER" mount -f --ready-timeout 20 -d "$T/job.crowd" --source "$SRC" "$MNT" &
until "$COPPER" cache-stats --json "$MNT" 2>/dev/null | grep -q '"ready":true'; do sleep 0.1; done
"$COPPER" stop "$MNT"
wait
EOS
)
wait_for 60 job_is_over "$id"
matches 'two tasks on a node are one too many' \
	"$(said crowd)" 'one copper on each host|mounted there already'
wait_for 5 nodes_gone

id=$(submit unknown 1 <<'EOS'
PATH=/nowhere "$COPPER" mount -d "$T/job.unknown" --source "$SRC" "$MNT"
echo "mount ends with $?"
EOS
)
wait_for 40 job_is_over "$id"
matches 'without srun it says so' "$(said unknown)" 'cannot run srun: No such file or directory'
matches 'without srun the command fails' "$(said unknown)" '^mount ends with 1$'

wait_for 5 nodes_gone
is 'no mount and no node of any job remains' "$(slurm_mounts) $(nodes_running)" '0 0'
stop_slurm
wait_for 5 eval '! ss -Hltn "sport = :$(sed -n "s/^SlurmctldPort=//p" "$SLURM_CONF")" | grep -q .'
is 'Slurm is gone' "$(ss -Hltn "sport = :$(sed -n 's/^SlurmctldPort=//p' "$SLURM_CONF")" | wc -l)" 0
