#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source: a node for one command, or for the tasks that a launcher starts of it on one
# machine; it starts with the first and ends with the last, however they end.
# covers: launch scheduler
# modes: release asan
# limit: 180
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_left.sh
. "$(dirname "$0")/run_left.sh"
plan 60

SRC=$T/src
small_tree "$SRC"
export SRC COPPER
runs() { # OPTIONS… -- COMMAND…
	"${cop_as[@]}" timeout "$(patient 60)" "$COPPER" run --source "$SRC" "$@" </dev/null
}
# One of COUNT tasks, as MPICH would start it: this shell plays the launcher. In the background:
# this is the process.
task() { # NUMBER COUNT COMMAND…
	local number=$1 count=$2
	shift 2
	exec "${cop_as[@]}" env MPI_LOCALRANKID="$number" MPI_LOCALNRANKS="$count" \
		PMI_SIZE="${cop_all:-$count}" \
		"$COPPER" run --source "$SRC" -- "$@" </dev/null
}

ways() { # WHO
	local who=$1 pid i meanwhile pids=()
	is "$who: a command reads the tree in the place of its source" \
		"$(runs -- sh -c 'cat "$SRC/hello"; touch "$SRC/new" 2>&1' | sed 's/.*: //' |
			tr '\n' ' ')" \
		'hello Read-only file system '
	is "$who: nothing is left of the command" "$(left)" '0 0'
	runs -- sh -c 'exit 7'
	is "$who: its exit status is the command's" "$?" 7
	# shellcheck disable=SC2016
	runs -- sh -c 'kill -USR1 $$' 2>/dev/null
	is "$who: it dies as the command died" "$?" 138
	fails_with 127 'copper run: no-such-command' \
		"${cop_as[@]}" "$COPPER" run --source "$SRC" -- no-such-command
	fails_with 125 "copper run: --source $T/none: No such file" \
		"${cop_as[@]}" "$COPPER" run --source "$T/none" -- true
	is "$who: nothing is left of those" "$(left)" '0 0'
	is "$who: two at once do not meet" \
		"$( (runs -- sh -c 'sleep 0.5; cat "$SRC/hello"' & runs -- cat "$SRC/hello"; wait) |
			tr '\n' ' ')" 'hello hello '

	# ---- signals
	rm -f "$W/up"
	"${cop_as[@]}" "$COPPER" run --source "$SRC" -- \
		sh -c 'trap "echo told; exit 3" TERM; touch '"$W"'/up; while :; do sleep 0.05; done' >"$W/out" </dev/null &
	pid=$!
	wait_for 20 test -e "$W/up"
	kill "$pid"
	wait "$pid"
	is "$who: a signal is passed on" "$? $(cat "$W/out")" '3 told'
	rm -f "$W/up"
	"${cop_as[@]}" "$COPPER" run --source "$SRC" -- \
		sh -c "echo \$\$ >$W/up.new; mv $W/up.new $W/up; exec sleep 600" </dev/null &
	pid=$!
	wait_for 20 test -e "$W/up"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	ok "$who: killed, it takes its command along" wait_for 10 is_gone "$(cat "$W/up")"
	ok "$who: the node ends with the killed command" wait_for 20 none_left

	# ---- the node is killed
	is "$who: a command whose node is killed sees it, and ends as it likes" "$(runs -- sh -c '
		kill -KILL $("$COPPER" cache-stats --json | sed "s/.*\"pid\":\([0-9]*\).*/\1/")
		until cat "$SRC/dir/numbers" 2>&1 >/dev/null | grep -o "endpoint is not connected"; do sleep 0.1; done
		exit 4'; echo $?)" $'endpoint is not connected\n4'
	ok "$who: nothing is left of it" wait_for 20 none_left

	# ---- reports
	runs -d "$W/job.$who" -A --trace -- cat "$SRC/dir/numbers" >/dev/null
	is "$who: there is a report when it has ended" \
		"$(find "$W/job.$who/profiling/final" -name '*profiling_aggregate.csv' | wc -l)" 1

	matches "$who: there is a trace of what the command read" \
		"$("$COPPER" trace events --name '^read$' --file numbers "$W/job.$who/trace" \
			2>&1)" 'dir/numbers'

	# ---- tasks
	for i in 0 1 2 3; do
		task "$i" 4 sh -c "sleep 0.\$MPI_LOCALRANKID; \"\$COPPER\" cache-stats --json | sed 's/.*\"pid\":\([0-9]*\).*/pid \1/'; cat \$SRC/hello; exit $i" >"$W/task.$i" 2>&1 &
		pids[i]=$!
	done
	for i in 0 1 2 3; do
		wait "${pids[i]}"
		is "$who: task $i of four ends as its command" \
			"$? $(tail -n 1 "$W/task.$i")" "$i hello"
	done
	is "$who: they have one node" \
		"$(grep -h '^pid' "$W"/task.* | sort | uniq -c | awk '{ print $1 }')" 4
	is "$who: the node ends with the last task" "$(left)" '0 0'

	# ---- the first task fails: whoever started it has to know, for the others may wait for it
	rm -f "$W/go"
	task 0 2 sh -c 'exit 9' >/dev/null 2>&1 &
	pids[0]=$!
	task 1 2 sh -c "until [ -e $W/go ]; do sleep 0.05; done; tail -n 1 \$SRC/dir/numbers" \
		>"$W/task.1" 2>&1 &
	pids[1]=$!
	wait_for 20 is_gone "${pids[0]}"
	meanwhile="$? $(cat "$W/task.1")"
	touch "$W/go"
	wait "${pids[0]}"
	is "$who: a first task that fails ends at once" "$? $meanwhile" '9 0 '
	wait "${pids[1]}"
	is "$who: the other has the node, and ends after it" \
		"$? $(cat "$W/task.1") $(left)" '0 20000 0 0'

	# ---- the first task is killed
	rm -f "$W/go" "$W/up"
	task 0 3 sh -c "touch $W/up; exec sleep 600" >/dev/null 2>&1 &
	pids[0]=$!
	for i in 1 2; do
		task "$i" 3 sh -c "until [ -e $W/go ]; do sleep 0.05; done; cat \$SRC/dir/numbers | tail -n 1" >"$W/task.$i" 2>&1 &
		pids[i]=$!
	done
	wait_for 20 test -e "$W/up"
	is_ours "${pids[0]}" || bail "pid ${pids[0]} is not of this test"
	kill -KILL "${pids[0]}"
	sleep 1
	touch "$W/go"
	for i in 1 2; do
		wait "${pids[i]}"
		is "$who: the others go on, task $i" "$? $(cat "$W/task.$i")" '0 20000'
	done
	wait
	ok "$who: the node ends with the tasks" wait_for 20 none_left
}

run=$XDG_RUNTIME_DIR
ways root
become_user
run=$W/run
ways user

# ---- launchers that are not here: the variables by which they tell a task what it is

# Two tasks of this machine, @ is the number of one: what they say, and the number of their nodes.
launched() { # VARIABLE=VALUE…
	local i pids=()
	for i in 0 1; do
		"${cop_as[@]}" env "${@//@/$i}" "$COPPER" run --source "$SRC" -- \
			sh -c "\"\$COPPER\" cache-stats --json | sed 's/.*\"pid\":\([0-9]*\).*/pid \1/'; cat \$SRC/hello; sleep 0.5; exit $i" </dev/null >"$W/task.$i" 2>&1 &
		pids[i]=$!
	done
	for i in 0 1; do
		wait "${pids[i]}"
		echo "$? $(tail -n 1 "$W/task.$i")"
	done
	grep -h '^pid' "$W"/task.[01] | sort -u | wc -l
	left
}
hostname >"$W/nodefile"
chmod 644 "$W/nodefile"
is 'Flux, on one machine' \
	"$(launched FLUX_TASK_LOCAL_ID=@ FLUX_TASK_RANK=@ FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=1)" \
	$'0 hello\n1 hello\n1\n0 0'
is 'PALS with PMIx, in a job of PBS' \
	"$(launched PALS_LOCAL_RANKID=@ PALS_LOCAL_SIZE=2 PALS_RANKID=@ PALS_NODEID=0 \
		PBS_NODEFILE="$W/nodefile" PBS_JOBID=7.server)" $'0 hello\n1 hello\n1\n0 0'
is 'PALS with Cray PMI' \
	"$(launched PALS_LOCAL_RANKID=@ PALS_RANKID=@ PALS_NODEID=0 PMI_LOCAL_SIZE=2 PMI_SIZE=2 \
		PMI_RANK=@)" $'0 hello\n1 hello\n1\n0 0'
fails_with 125 'FLUX_JOB_SIZE=4 says that this is one of several, .*flux getattr hostlist' \
	env FLUX_TASK_LOCAL_ID=0 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=2 "$COPPER" run \
	--source "$SRC" -- true
fails_with 125 'FLUX_TASK_LOCAL_ID is set, but nothing says how many tasks' \
	env FLUX_TASK_LOCAL_ID=0 FLUX_JOB_SIZE=5 FLUX_JOB_NNODES=2 "$COPPER" run \
	--source "$SRC" -- true

cop_all=8 fails_with 125 'PMI_SIZE=8 says that this is one of several, .* give --hosts' \
	env MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4 PMI_SIZE=8 "$COPPER" run --source "$SRC" -- true
fails_with 2 'starts a node, --mount names a running one' \
	"$COPPER" run --source "$SRC" --mount "$T" -- true
fails_with 2 'cannot be replaced as a whole' "$COPPER" run --source / -- true
