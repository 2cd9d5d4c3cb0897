#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source in steps of a real Slurm, on one node of it: sixteen tasks, one, two steps at
# once, and one that is cancelled. Slurm tracks processes by control groups, or as COP_TRACKS says.
# covers: launch scheduler
# modes: release
# limit: 150
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_step.sh
. "$(dirname "$0")/run_step.sh"
plan 17

small_tree "$T/src"
SRC=$T/src
become_user
export COPPER SRC W
start_slurm 2
is 'Slurm tracks processes as the name of this test says' "$(tracks)" "$wanted_tracks"

id=$(submit steps 1 <<'EOS'
srun --overcommit --ntasks=16 "$COPPER" run -d "$W/job.many" -P --source "$SRC" -- sh -c 'cat "$SRC/hello"; [ "$SLURM_PROCID" != 5 ] || exit 3'
echo "many end with $?"
srun --ntasks=1 "$COPPER" run --source "$SRC" -- cat "$SRC/hello"
echo "one ends with $?"
for step in 1 2; do
	srun --overlap --overcommit --ntasks=2 "$COPPER" run --source "$SRC" -- sh -c 'sleep 1; tail -n 1 "$SRC/dir/numbers"' &
done
wait
EOS
)
wait_for 60 job_is_over "$id"
is 'sixteen tasks, one, and two at once read the tree' \
	"$(said steps | grep -cx hello) $(said steps | grep -cx 20000)" '17 4'
matches "a task's exit status is its command's" "$(said steps)" '^many end with 3$'
matches 'one task is a step as well' "$(said steps)" '^one ends with 0$'
is 'sixteen tasks have one node' "$(find "$W/job.many/logs" -name '*-output.log' | wc -l)" 1
is 'the node reports when the last task has ended' \
	"$(find "$W/job.many/profiling/final" -name '*profiling_aggregate.csv' | wc -l)" 1
wait_for 5 none_left
is 'the steps leave nothing' "$(left)" '0 0 '

# ---- a task that is killed, a job that is cancelled, a step of which all is killed at once

id=$(submit killed 1 <<'EOS'
srun --overcommit --kill-on-bad-exit=0 --ntasks=3 "$COPPER" run --source "$SRC" -- sh -c '
	[ "$SLURM_PROCID" != 0 ] || kill -KILL $PPID
	sleep 2
	exec tail -n 1 "$SRC/dir/numbers"'
echo "srun ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
is 'the first task is killed: the others go on' "$(said killed | grep -cx 20000)" 2
matches 'srun says that the first task was killed' "$(said killed)" '^srun ends with 137$'
wait_for 10 none_left
is 'the step with a killed task leaves nothing' "$(left)" '0 0 '
id=$(submit cancelled 1 <<'EOS'
srun --overcommit --ntasks=4 "$COPPER" run --source "$SRC" -- sh -c 'touch "$W/up.$SLURM_PROCID"; exec sleep 600' &
until [ -e "$W/up.0" ] && [ -e "$W/up.1" ] && [ -e "$W/up.2" ] && [ -e "$W/up.3" ]; do sleep 0.1; done
touch "$W/all.up"
wait
EOS
)
wait_for 60 test -e "$W/all.up"
is 'four tasks run' "$(slurm_mounts)" 1
scancel "$id"
wait_for 60 job_is_over "$id"
wait_for 10 none_left
is 'a job that is cancelled leaves nothing' "$(left)" '0 0 '
rm "$W"/up.*
id=$(submit step 1 <<'EOS'
srun --overcommit --ntasks=2 "$COPPER" run --source "$SRC" -- sh -c 'touch "$W/up.$SLURM_PROCID"; exec sleep 600' &
until [ -e "$W/up.0" ] && [ -e "$W/up.1" ]; do sleep 0.1; done
scancel "$SLURM_JOB_ID.0"
wait $!
echo "srun ends with $?"
"$COPPER" stop
EOS
)
wait_for 60 job_is_over "$id"
matches 'a step that is cancelled ends' "$(said step)" '^srun ends with [1-9]'
wait_for 10 none_left
is 'if all of it was killed at once, stop takes away what it had' "$(left)" '0 0 '

# ---- several machines, without what they need

id=$(submit several 2 <<'EOS'
HOME=/proc srun --ntasks-per-node=1 "$COPPER" run --ready-timeout 2 --source "$SRC" -- cat "$SRC/hello"
echo "srun ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
is 'several machines need a directory for their secret' \
	"$(said several | grep -c 'give a job directory that all of them see') $(said several |
		tail -n 2 | head -n 1)" \
	'1 srun ends with 125'
is 'the steps and jobs that were killed leave nothing' "$(left)" '0 0 '
stop_slurm
is 'no node of the tasks is left' "$(nodes_running)" 0
