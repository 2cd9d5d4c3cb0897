#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source: each of the real environments says in the tasks of a job what it says without
# Copper. In a step of Slurm on two machines, and under MPICH's and Open MPI's mpiexec on one.
# covers: launch view
# modes: release
# limit: 200
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=environments.sh
. "$(dirname "$0")/environments.sh"
# shellcheck source=run_step.sh
. "$(dirname "$0")/run_step.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec.hydra; scripts/install-deps.sh all installs mpich'
command -v mpirun.openmpi >/dev/null ||
	skip_all 'no mpirun.openmpi; scripts/install-deps.sh all installs openmpi-bin'
plan 10

make_environments "$T/soft"
# What a user calls; each line of the output ends with the exit status.
cat >"$T/all" <<EOS
#!/bin/bash
unset PYTHONHOME
one() { # NAME COMMAND…
	local name=\$1 text
	shift
	text=\$("\$@" 2>&1)
	echo "\$name: \$? \${text//[[:space:]]/ }"
}
one prefix $SOFT/envs/torch/bin/console
one venv $SOFT/venvs/train/bin/console
one path bash -c 'PATH=$SOFT/envs/torch/bin:\$PATH; python -c "import torchlike; print(torchlike.where)"'
one activated bash -c '. $SOFT/venvs/train/bin/activate && python -c "import worklike; print(worklike.where)"'
one perl $SOFT/perl/bin/tool
[ -z "$compiler" ] || one rpath $SOFT/app/bin/main
[ -z "$compiler" ] || one library sh -c "ldd $SOFT/app/bin/main | sed -n 's/.*libanswer.so => \\([^ ]*\\).*/\\1/p'"
[ ! -e $SOFT/js ] || one npm $SOFT/js/node_modules/.bin/tool
EOS
chmod 755 "$T/all"
"$T/all" >"$T/wanted"
is 'without Copper all of them work' "$(grep -c ': 0 .' "$T/wanted")" "$(wc -l <"$T/wanted")" ||
	note "$(cat "$T/wanted")"

of_tasks() { # FILE N: whether N tasks said what is wanted, whatever the order of their lines
	diff <(grep -E '^[a-z]+: [0-9]+ ' "$1" | LC_ALL=C sort) \
		<(for ((i = 0; i < $2; i++)); do cat "$T/wanted"; done | LC_ALL=C sort)
}
came_through() { # JOBDIR: how many nodes have served reads
	awk -F, '$1 == "read" && $2 > 0' "$1"/profiling/final/*profiling_operations.csv | wc -l
}

become_user
export COPPER SOFT W T
start_slurm 2
slurm() { # TASKS
	id=$(submit slurm 2 <<EOS
srun --overcommit --ntasks-per-node=$1 "$COPPER" run -d "$W/job.slurm" -P --source "$SOFT" -- "$T/all"
echo "srun ends with \$?"
EOS
	)
	wait_for 120 job_is_over "$id"
}
slurm 2
is 'Slurm: four tasks on two machines say the same' \
	"$(of_tasks "$W/out.slurm" 4) $(grep -x 'srun ends with .*' "$W/out.slurm")" \
	' srun ends with 0'
is 'Slurm: what they read came through both nodes' "$(came_through "$W/job.slurm")" 2
wait_for 5 none_left
is 'Slurm: nothing is left' "$(left)" '0 0 '
stop_slurm

mpi() { # NAME COMMAND…: two tasks on this machine
	as_user env XDG_RUNTIME_DIR="$NODE_LOCAL/run" timeout "$(patient 60)" "${@:2}" \
		"$COPPER" run -d "$W/job.$1" -P --source "$SOFT" -- "$T/all" \
		</dev/null >"$W/out.$1" 2>&1
	is "$1: two tasks say the same" "$? $(of_tasks "$W/out.$1" 2)" '0 '
	is "$1: what they read came through one node" "$(came_through "$W/job.$1")" 1
	wait_for 5 eval '[ "$(mine)" = "0 0 " ]'
	is "$1: nothing is left" "$(mine)" '0 0 '
}
mine() { # as left, on this machine
	echo "$(grep -c " $NODE_LOCAL/.* - fuse.copper " \
			/proc/self/mountinfo) $(nodes_running) $(find "$NODE_LOCAL/run/copper" \
			-mindepth 1 2>/dev/null | tr '\n' ' ')"
}
mkdir -p "$NODE_LOCAL/run"
chown "$cop_user" "$NODE_LOCAL/run"
chmod 700 "$NODE_LOCAL/run"
mpi MPICH mpiexec.hydra -n 2
mpi 'Open MPI' mpirun.openmpi --host localhost:2 -n 2
