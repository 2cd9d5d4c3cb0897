#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run says what will not work: a launcher inside of the view, MPI tasks of which some are
# outside, what a view of an ordinary user cannot do.
# covers: view
# modes: release asan
# limit: 60
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 12

SRC=$T/src
small_tree "$SRC"
become_user
export XDG_RUNTIME_DIR=$W/run
with_tree 1
mkdir "$T/bin.launchers"
for name in srun mpiexec flux; do
	printf '#!/bin/sh\nexit 4\n' >"$T/bin.launchers/$name"
	chmod 755 "$T/bin.launchers/$name"
done
chmod 755 "$T/bin.launchers"
says() { # VARIABLE=VALUE… COMMAND…, of copper run: its messages and its exit status
	local variables=()
	while [[ $1 == [A-Z]*=* ]]; do
		variables+=("$1")
		shift
	done
	"${cop_as[@]}" env PATH="$T/bin.launchers:$PATH" "${variables[@]}" "$COPPER" run "$@" 2>&1
	echo "$?"
}

matches 'srun inside of the view is warned of, and runs' "$(says srun true | tr '\n' ' ')" \
	"^copper run: warning: the programs that srun starts are outside of the view, .* 'srun \[options\] copper run \[options\] -- PROGRAM' 4 $"
matches 'also by its path' "$(says "$T/bin.launchers/srun" true)" 'warning: the programs that srun starts'
matches 'flux run, too' "$(says flux run true)" 'warning: the programs that flux run starts'
is 'but not every command of flux' "$(says flux resource list)" 4
is 'mpiexec on this machine runs its tasks in the view' "$(says mpiexec true)" 4
matches 'in a job it may start them elsewhere' "$(says SLURM_JOB_ID=5 --mount "$W/mnt/0" mpiexec true)" \
	'warning: the programs that mpiexec starts'
is 'one warning for all tasks is enough' "$(says SLURM_PROCID=3 srun true)" 4
is 'with --view env there is no view to be outside of' "$(says --view env srun true)" 4

if [ -n "$cop_user" ]; then
	matches 'at level info, a task of several hears of tasks outside of the view' \
		"$(says PMI_SIZE=4 -l 4 true)" 'tasks outside of it cannot reach them.*--view env'
	is 'one that is alone does not' "$(says PMI_SIZE=1 -l 4 true | grep -c 'tasks outside')" 0
	check=$(as_user "$COPPER" run --check)
	matches '--check says it' "$check" '^note +tasks .*--view env for mixed programs$'
	matches '--check says what happens to the owners of files' "$check" \
		'^note +owners .*nobody.*ssh'
else
	for why in several alone tasks owners; do
		pass "$why # SKIP needs root, to become an ordinary user"
	done
fi
without_tree
