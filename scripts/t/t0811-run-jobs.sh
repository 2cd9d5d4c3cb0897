#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of one user that share a machine: inside of a job, copper run, stop and cache-stats use the
# nodes of this job, never those of another one.
# covers: dir mountdir
# modes: release asan
# limit: 120
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 35

SRC=$T/src
small_tree "$SRC"
become_user
export XDG_RUNTIME_DIR=$W/run

copper_in() { # VARIABLE=VALUE… -- COPPER'S ARGUMENT…
	local variables=()
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	"${cop_as[@]}" env "${variables[@]}" timeout "$(patient 30)" "$COPPER" "$@" </dev/null
}
mount_in() { # JOB-DIRECTORY VARIABLE=VALUE…
	copper_in "${@:2}" -- mount --hosts localhost -d "$W/$1" --source "$SRC" >/dev/null
}
place_of() { # VARIABLE=VALUE…: where the tree is mounted that a command in this job uses
	copper_in "$@" -- run -l 4 true 2>&1 | grep -o 'mountpoint=.*' | cut -d = -f 2
}
job_of() { # VARIABLE=VALUE…: the job directory of the node that cache-stats asks
	local pid
	pid=$(copper_in "$@" -- cache-stats --json | sed 's/.*"pid":\([0-9]*\).*/\1/')
	tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n "s|^$W/||p" | head -n 1
}

# ---- two jobs of each scheduler at the same time, among them two parts of a job array

schedulers() { # WHAT FIRST-JOB SECOND-JOB, each a list of VARIABLE=VALUE
	local what=$1 first second
	read -ra first <<<"$2"
	read -ra second <<<"$3"
	mount_in "$what.1" "${first[@]}"
	mount_in "$what.2" "${second[@]}"
	is "$what: cache-stats asks the node of its own job" \
		"$(job_of "${first[@]}") $(job_of "${second[@]}")" "$what.1 $what.2"
	is "$what: a command runs in the tree of its own job" \
		"$(copper_in "${first[@]}" -- run cat "$SRC/hello") $(
			[ "$(place_of "${first[@]}")" != "$(place_of "${second[@]}")" ]
			echo $?)" 'hello 0'
	is "$what: a stop ends the tree of its own job" \
		"$(copper_in "${second[@]}" -- stop) $(job_of "${first[@]}")" \
		"stopped 1/1 nodes $what.1"
	is "$what: a command of the second job has no tree then" \
		"$(copper_in "${second[@]}" -- run true 2>&1 |
			grep -c 'no copper node of this job (.*) runs here: .copper mount .*nodes of other jobs, which --mount can name, are: /')" 1
	copper_in "${first[@]}" -- stop >/dev/null
}
schedulers Slurm SLURM_JOB_ID=1 SLURM_JOB_ID=2
schedulers PBS 'PBS_JOBID=7[1].server' 'PBS_JOBID=7[2].server'
schedulers LSF 'LSB_JOBID=5 LSB_JOBINDEX=1' 'LSB_JOBID=5 LSB_JOBINDEX=2'
schedulers Flux FLUX_JOB_ID=11 FLUX_JOB_ID=12
schedulers SGE 'JOB_ID=3 SGE_TASK_ID=1' 'JOB_ID=3 SGE_TASK_ID=2'
schedulers OAR OAR_JOB_ID=8 OAR_JOB_ID=9
schedulers TCS 'PJM_JOBID=4 PJM_BULKNUM=0' 'PJM_JOBID=4 PJM_BULKNUM=1'

# ---- what flux run starts in an allocation has numbers of its own

mount_in allocation FLUX_ENCLOSING_ID=30 FLUX_JOB_ID=1
is 'two steps of an allocation of Flux are one job' \
	"$(job_of FLUX_ENCLOSING_ID=30 FLUX_JOB_ID=2)" allocation
copper_in FLUX_ENCLOSING_ID=30 -- stop >/dev/null

# ---- only another job's node is here, or one that belongs to no job

mount_in other SLURM_JOB_ID=1
other=$(place_of SLURM_JOB_ID=1)
fails_with 125 'no copper node of this job .SLURM_JOB_ID=2. runs here: ' \
	"${cop_as[@]}" env SLURM_JOB_ID=2 "$COPPER" run true
matches "a stop says that there is none, and stops no other job's tree" \
	"$(copper_in SLURM_JOB_ID=2 -- stop 2>&1) $(job_of SLURM_JOB_ID=1)" \
	"nothing to stop: no copper node of this job .*MOUNTPOINT can name, are: $other"

is "by name, another job's node is used" \
	"$(copper_in SLURM_JOB_ID=2 -- run --mount "$other" cat "$SRC/hello")" hello
is 'outside of jobs, any node is used' "$(copper_in A=b -- run cat "$SRC/hello")" hello
mount_in none A=b
is 'a node that was started outside of jobs serves all that have none' \
	"$(job_of SLURM_JOB_ID=1) $(job_of SLURM_JOB_ID=2)" 'other none'
copper_in SLURM_JOB_ID=2 -- stop >/dev/null
copper_in SLURM_JOB_ID=1 -- stop >/dev/null
is 'nothing is left' "$(nodes_running) $(mounts_left)" '0 0'
