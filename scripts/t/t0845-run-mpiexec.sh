#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source under MPICH's mpiexec, on the four virtual nodes that the tests of Slurm have: the hosts are those of a PBS job, or
# they are named.
# modes: release
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
command -v mpiexec.hydra >/dev/null || skip_all 'no mpiexec.hydra; scripts/install-deps.sh installs mpich'
plan 9

small_tree "$T/src"
SRC=$T/src
export COPPER SRC T
start_slurm 4
# What mpiexec starts on another node in place of ssh: HOST COMMAND…
{
	echo '#!/bin/bash'
	echo 'while [ "$1" != "${1#-}" ]; do shift; done'
	for i in 1 2 3 4; do
		echo "[ \$1 != n$i ] || pid=${slurm_nodes[$i]}"
	done
	echo 'shift'
	echo 'exec nsenter --target "$pid" --mount --uts bash -c "$*"'
} >"$T/enter"
chmod +x "$T/enter"
printf 'n%d\n' 1 2 3 4 >"$T/hosts"
# PBS names a host once for each of its slots. The virtual nodes are one machine, so each needs a port of its own.
for i in 1 2 3 4; do
	port=$(free_port)
	printf 'n%d:%d\nn%d:%d\n' "$i" "$port" "$i" "$port"
done >"$T/nodefile"
each() { # NODEFILE COMMAND…: twice on each host
	local nodefile=$1
	shift
	on_node 1 env ${nodefile:+"PBS_NODEFILE=$nodefile"} ${nodefile:+PBS_JOBID="$((300 + COP_LANE)).server"} HYDRA_RMK=user HYDRA_HOST_FILE="$T/hosts" \
		HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$T/enter" timeout "${seconds:-$(patient 40)}" mpiexec.hydra -ppn 2 -n 8 "$@" </dev/null >"$T/out" 2>&1
}
left() {
	echo "$(slurm_mounts) $(nodes_running) $(for i in 1 2 3 4; do on_node "$i" find "$NODE_LOCAL/run/copper" -mindepth 1 2>/dev/null; done | tr '\n' ' ')"
}

each "$T/nodefile" "$COPPER" run -d "$T/job" -P --source "$SRC" -- sh -c 'cat "$SRC/hello"; [ "$PMI_RANK" != 5 ] || exit 3; sleep 1'
is 'eight tasks on four hosts of a PBS job read the tree, and one of them fails' "$? $(grep -cx hello "$T/out")" '3 8' || note "$(cat "$T/out")"
is 'each host has one node' "$(find "$T/job/logs" -name '*-output.log' | wc -l)" 4
is 'what they counted is summed up' "$(sed -n 2p "$T/job/profiling/cluster/cluster-profiling_aggregate.csv")" ranks_with_aggregate_files,4
is 'nothing is left' "$(left)" '0 0 '

each '' "$COPPER" run -d "$T/job.named" --hosts "$T/nodefile.once" --source "$SRC" -- true
is 'a file of hosts that is missing is named' "$? $(grep -c -- '--hosts .*nodefile.once: cannot read\|cannot read .*nodefile.once' "$T/out")" '125 4' || note "$(cat "$T/out")"
uniq "$T/nodefile" >"$T/nodefile.once"
each '' "$COPPER" run -d "$T/job.named" --hosts "$T/nodefile.once" --source "$SRC" -- sh -c 'sleep 0.$PMI_RANK; tail -n 1 "$SRC/dir/numbers"'
is 'the same without a job of PBS, with the hosts by name' "$? $(grep -cx 20000 "$T/out")" '0 8' || note "$(cat "$T/out")"
is 'nothing is left of it' "$(left)" '0 0 '

# mpiexec ends the others when one is killed.
seconds=30 each "$T/nodefile" "$COPPER" run -d "$T/job.killed" --source "$SRC" -- sh -c '[ "$PMI_RANK" != 0 ] || kill -KILL $$; exec sleep 600'
status=$?
ok 'mpiexec hears at once of a task that was killed, and ends the others' [ "$status" != 124 ]
wait_for 15 eval '[ "$(slurm_mounts) $(nodes_running)" = "0 0" ]'
is 'no node is left of them' "$(slurm_mounts) $(nodes_running)" '0 0'
stop_slurm
