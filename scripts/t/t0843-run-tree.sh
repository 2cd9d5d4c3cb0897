#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source in steps of a real Slurm on several nodes: sixteen tasks on four nodes, two
# steps at once, tasks that end early or fail, nodes that are killed, steps that are cancelled.
# Slurm tracks processes by control groups, or as COP_TRACKS says.
# covers: launch scheduler
# modes: release
# limit: 200
# takes: 150
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_step.sh
. "$(dirname "$0")/run_step.sh"
plan 29

small_tree "$T/src"
SRC=$T/src
become_user
export COPPER SRC W HOME=$W
start_slurm 4
is 'Slurm tracks processes as the name of this test says' "$(tracks)" "$wanted_tracks"
gone() { # WHAT
	wait_for 15 none_left
	is "$1" "$(left)" '0 0 '
}

id=$(submit steps 4 <<'EOS'
srun --overcommit --ntasks=16 --ntasks-per-node=4 "$COPPER" run -d "$W/job.many" -P --source "$SRC" -- sh -c 'cat "$SRC/hello"; [ "$SLURM_PROCID" != 5 ] || exit 3; sleep 1'
echo "many end with $?"
srun --ntasks=1 "$COPPER" run --source "$SRC" -- cat "$SRC/hello"
echo "one ends with $?"
for step in '' "-d $W/job.two"; do
	srun --overlap --overcommit --ntasks=8 --ntasks-per-node=2 "$COPPER" run $step --source "$SRC" -- sh -c 'sleep 1; tail -n 1 "$SRC/dir/numbers"' &
done
wait
EOS
)
wait_for 90 job_is_over "$id"
is 'sixteen tasks on four nodes, one, and two steps at once read the tree' \
	"$(said steps | grep -cx hello) $(said steps | grep -cx 20000)" '17 16' ||
	note "$(said steps)"
matches "a task's exit status is its command's" "$(said steps)" '^many end with 3$'
matches 'one task is a step as well' "$(said steps)" '^one ends with 0$'
is 'each machine has one node' "$(find "$W/job.many/logs" -name '*-output.log' | wc -l)" 4
is 'the counts of all nodes are summed up' \
	"$(sed -n 2p "$W/job.many/profiling/cluster/cluster-profiling_aggregate.csv")" \
	ranks_with_aggregate_files,4
gone 'nothing is left of the steps'
is 'a secret without a job directory leaves nothing' \
	"$(find "$W" -maxdepth 1 -name '.copper*')" ''

# ---- tasks that end early: the nodes of their machines stay for the others

id=$(submit early 4 <<'EOS'
srun --overcommit --ntasks=8 --ntasks-per-node=2 "$COPPER" run -d "$W/job.early" --source "$SRC" -- sh -c '
	[ "$SLURM_NODEID" = 3 ] || exit 0
	sleep 4
	"$COPPER" cache-stats --all --json >"$W/stats.$SLURM_LOCALID"
	tail -n 1 "$SRC/dir/numbers"'
echo "srun ends with $?"
EOS
)
wait_for 90 job_is_over "$id"
is 'two tasks of the last node read when all others have ended' \
	"$(said early | grep -cx 20000)" 2 || note "$(said early)"
matches 'srun says so' "$(said early)" '^srun ends with 0$'
is 'all nodes are there when the step begins' "$("$PYTHON" -c 'import json, sys
print(sorted(n["rank"] for n in json.load(open(sys.argv[1]))["nodes"] if "pid" in n))' \
		"$W/stats.0")" '[0, 1, 2, 3]'
gone 'and end with the last'

# ---- tasks that fail: the others go on, or Slurm ends them if it is asked to

id=$(submit fails 4 <<'EOS'
srun --kill-on-bad-exit=0 --ntasks=4 "$COPPER" run -d "$W/job.fails" --source "$SRC" -- sh -c '
	[ "$SLURM_NODEID" != 1 ] || exit 9
	sleep 2
	tail -n 1 "$SRC/dir/numbers"'
echo "srun ends with $?"
srun --kill-on-bad-exit=1 --ntasks=4 "$COPPER" run -d "$W/job.ends" --source "$SRC" -- sh -c '
	[ "$SLURM_NODEID" != 0 ] || exit 8
	exec sleep 600'
echo "srun ends then with $?"
srun --ntasks=4 sh -c 'sleep 6; "$COPPER" stop' >/dev/null 2>&1
EOS
)
wait_for 90 job_is_over "$id"
is 'a task that fails alone on its machine does not end the others' \
	"$(said fails | grep -cx 20000)" 3 || note "$(said fails)"
matches 'its status is its own' "$(said fails)" '^srun ends with 9$'
matches 'Slurm learns of a failure while the others wait' \
	"$(said fails)" '^srun ends then with (8|137|143)$'
gone 'no node is left of them, and no mount, after a stop for those that Slurm killed at once'

# ---- one machine cannot start a node, and there is no job directory: the others need not wait
# until the time is up

export wrong
for wrong in 0 2; do
	id=$(submit "wrong.$wrong" 4 <<'EOS'
srun --kill-on-bad-exit=0 --ntasks=4 sh -c '
	[ "$SLURM_PROCID" != "$wrong" ] || SRC=$W/none
	exec "$COPPER" run --ready-timeout 300 --source "$SRC" -- cat "$SRC/hello"'
EOS
	)
	wait_for 90 job_is_over "$id"
	is "rank $wrong cannot start: all say why" \
		"$(said "wrong.$wrong" |
			grep -c -- "^copper run: .*--source $W/none: No such file")" 4 ||
		note "$(said "wrong.$wrong")"
	gone 'nothing is left of them'
	is 'the messages between tasks leave nothing' \
		"$(find "$W" -maxdepth 1 -name '.copper*')" ''
done

# ---- a node is killed, which is the root, or two at a time: to find that out takes the node above
# them longer than an answer to whether the tree is still needed is valid

export lost
for lost in 1 34; do
	id=$(submit "lost.$lost" 4 --export=ALL <<'EOS'
srun --kill-on-bad-exit=0 --ntasks=4 "$COPPER" run -d "$W/job.lost.$lost" --fanout 1 --source "$SRC" -- sh -c '
	case $lost in
	*"${SLURMD_NODENAME#n}"*)
		kill -KILL $("$COPPER" cache-stats --json | sed "s/.*\"pid\":\([0-9]*\).*/\1/")
		sleep 1
		exit 0
		;;
	esac
	sleep 1
	tail -n 1 "$SRC/dir/numbers"'
echo "srun ends with $?"
EOS
	)
	wait_for 90 job_is_over "$id"
	is "of n1 to n4 the nodes $lost are killed: the others read, and all end" \
		"$(said "lost.$lost" | grep -cx 20000) $(said "lost.$lost" |
			grep -x 'srun ends with .*')" \
		"$((4 - ${#lost})) srun ends with 0" || note "$(said "lost.$lost")"
	gone 'nothing is left of it'
done

# ---- a job that is cancelled

id=$(submit cancelled 4 <<'EOS'
srun --overcommit --ntasks=8 --ntasks-per-node=2 "$COPPER" run -d "$W/job.cancelled" --source "$SRC" -- sh -c 'touch "$W/up.$SLURM_PROCID"; exec sleep 600'
EOS
)
wait_for 60 eval '[ "$(ls "$W"/up.* 2>/dev/null | wc -l)" = 8 ]'
is 'eight tasks run on four nodes' "$(slurm_mounts)" 4
scancel "$id"
wait_for 60 job_is_over "$id"
gone 'a job that is cancelled leaves nothing'
stop_slurm
is 'no node runs any more' "$(nodes_running)" 0
