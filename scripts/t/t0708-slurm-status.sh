#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How runs end under Slurm, by what the run store says: cancelled, requeued, at the time limit; and
# for want of memory.
# covers: runs scheduler
# modes: release
# limit: 300
# takes: 130
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
# shellcheck source=runs.sh
. "$cop_t/runs.sh"
plan 9

small_tree "$T/src"
SRC=$T/src
MNT=$NODE_LOCAL/mnt
OTHER=$NODE_LOCAL/other
export COPPER SRC T MNT OTHER STORE
ended() { # NAME
	judge "SELECT status, exit_reason FROM run WHERE name = '$1' ORDER BY start DESC LIMIT 1"
}
has() { # NAME STATUS RUNS
	[ "$(judge "SELECT count(*) FROM run WHERE name = '$1' AND status = '$2'" 2>/dev/null)" = "$3" ]
}

# ---- for want of memory: no Slurm is needed

group=
for at in /sys/fs/cgroup/memory/copper-oom-$$ /sys/fs/cgroup/copper-oom-$$; do
	mkdir "$at" 2>/dev/null || continue
	for file in memory.limit_in_bytes memory.max; do
		[ ! -w "$at/$file" ] || group=$at limit=$file
	done
	[ -n "$group" ] && break
	rmdir "$at"
done
if [ -n "$group" ]; then
	trap 'status=$?; rmdir "$group" 2>/dev/null; (exit "$status"); finish' EXIT
	echo 400M >"$group/$limit"
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		"$COPPER" run --store "$STORE" --tag name=oom --cache-size 64M --source "$SRC" \
		"$PYTHON" -c 'b = bytearray(b"x") * (1 << 30)' 2>/dev/null
	is 'the command was killed' "$?" 137
	is 'a run that is short of memory says so' "$(ended oom)" 'FAILED|signal 9 (out of memory) on rank 0'
	wait_for 10 rmdir "$group"
else
	pass 'the command was killed # SKIP no control groups for memory'
	pass 'a run that is short of memory says so # SKIP no control groups for memory'
fi

start_slurm 2
job() { # NAME [OPTION…]: two nodes with a command each that does not end
	submit "$1" 2 "${@:2}" <<'EOS'
export JOB_NAME=$SLURM_JOB_NAME
[ "$SLURM_JOB_NAME" != late ] || MNT=$OTHER
"$COPPER" mount --store "$STORE" --tag "name=$SLURM_JOB_NAME" -d "$T/job.$SLURM_JOB_NAME" --source "$SRC" "$MNT" || exit
if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
	srun --ntasks-per-node=1 --overlap "$COPPER" run --mount "$MNT" -- \
		sh -c 'touch "$T/runs.$JOB_NAME.$SLURM_PROCID" && exec sleep 98765'
fi
"$COPPER" stop "$MNT"
EOS
}
late=$(job late --time=1)
cancelled=$(job cancelled)
wait_for 60 test -e "$T/runs.cancelled.0" -a -e "$T/runs.cancelled.1" || bail "no run: $(cat "$W/out.cancelled")"
scancel "$cancelled"
wait_for 60 job_is_over "$cancelled"
wait_for 30 has cancelled FAILED 1
matches 'a job that was cancelled' "$(ended cancelled)" '^FAILED\|cancelled(;.*)?$'

again=$(job again --requeue)
wait_for 60 test -e "$T/runs.again.0" -a -e "$T/runs.again.1" || bail "no run: $(cat "$W/out.again")"
scontrol requeue "$again"
wait_for 120 has again FINISHED 1
matches 'a job that was requeued' \
	"$(judge "SELECT status, exit_reason FROM run WHERE name = 'again' ORDER BY start LIMIT 1")" '^FAILED\|requeued(;.*)?$'
matches 'what is started again is a run of its own' "$(ended again)" '^FINISHED\|stopped'
is 'and names the one before' "$(judge "SELECT t.value = (SELECT id FROM run WHERE name = 'again' ORDER BY start LIMIT 1)
	FROM run JOIN tag AS t ON t.run = id AND t.key = 'restart_of' WHERE status = 'FINISHED'")" 1
is 'by how often' "$(runs list --where 'tag.slurm.restart_count = 1' --json | json_of 'len(j)')" 1

wait_for 150 job_is_over "$late"
wait_for 30 has late FAILED 1
matches 'a job at its time limit' "$(ended late)" '^FAILED\|time limit(;.*)?$'
is 'no run is left open' "$(judge "SELECT count(*) FROM run WHERE status = 'RUNNING'")" 0
stop_slurm
