# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of copper run --source under an mpiexec on the four virtual nodes of the Slurm
# tests. The hosts are those of a PBS job, or they are named.
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"

start_hosts() {
	small_tree "$T/src"
	SRC=$T/src
	export COPPER SRC T
	start_slurm 4
	hosts_for_mpi
}

on_first() { # NODEFILE COMMAND…: on the first node, as the job script does
	local nodefile=$1
	shift
	on_node 1 env ${nodefile:+"PBS_NODEFILE=$nodefile"} \
		${nodefile:+PBS_JOBID="$((300 + COP_LANE)).server"} \
		timeout "${seconds:-$(patient 40)}" "$@" </dev/null >"$T/out" 2>&1
}

left() {
	echo "$(slurm_mounts) $(nodes_running) $(for i in 1 2 3 4; do on_node "$i" find \
			"$NODE_LOCAL/run/copper" -mindepth 1 2>/dev/null; done | tr '\n' ' ')"
}

# each NODEFILE COMMAND…, of the test, runs the command twice on each host; RANK names its variable
# with the rank.
run_everywhere() {
	local status
	each "$T/nodefile" "$COPPER" run -d "$T/job" -P --source "$SRC" -- \
		sh -c "cat \"\$SRC/hello\"; [ \"\$$RANK\" != 5 ] || exit 3; sleep 1"
	is 'eight tasks on four hosts of a PBS job read the tree, and one of them fails' \
		"$? $(grep -cx hello "$T/out")" '3 8' || note "$(cat "$T/out")"
	is 'each host has one node' "$(find "$T/job/logs" -name '*-output.log' | wc -l)" 4
	is 'their counts are summed up' \
		"$(sed -n 2p "$T/job/profiling/cluster/cluster-profiling_aggregate.csv")" \
		ranks_with_aggregate_files,4
	is 'nothing is left' "$(left)" '0 0 '

	each '' "$COPPER" run -d "$T/job.named" --hosts "$T/nodefile.once" --source "$SRC" -- true
	# A launcher may end the other tasks as soon as one has reported that.
	matches 'a file of hosts that is missing is named' \
		"$? $(grep -c -- '--hosts .*nodefile.once: cannot read\|cannot read .*nodefile.once' "$T/out")" '^125 [1-9]' ||
		note "$(cat "$T/out")"
	uniq "$T/nodefile" >"$T/nodefile.once"
	each '' "$COPPER" run -d "$T/job.named" --hosts "$T/nodefile.once" --source "$SRC" -- \
		sh -c "sleep 0.\$$RANK; tail -n 1 \"\$SRC/dir/numbers\""
	is 'the same without a job of PBS, with the hosts by name' \
		"$? $(grep -cx 20000 "$T/out")" '0 8' || note "$(cat "$T/out")"
	is 'nothing is left of it' "$(left)" '0 0 '

	# mpiexec ends the others when one is killed.
	seconds=$(patient 30) each "$T/nodefile" "$COPPER" run -d "$T/job.killed" \
		--source "$SRC" -- \
		sh -c "[ \"\$$RANK\" != 0 ] || kill -KILL \$\$; exec sleep 600"
	status=$?
	ok 'mpiexec learns at once of a killed task, and ends the others' [ "$status" != 124 ]
	wait_for 15 eval '[ "$(slurm_mounts) $(nodes_running)" = "0 0" ]'
	is 'no node is left of them' "$(slurm_mounts) $(nodes_running)" '0 0'
}
