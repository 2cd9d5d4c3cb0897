#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source several times in the tasks of one mpiexec: one after the other, at the same
# time, by some of the tasks only; and mixed programs, of which only some call it.
# covers: scheduler launch
# modes: release asan
# limit: 180
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_left.sh
. "$(dirname "$0")/run_left.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec of MPICH; scripts/install-deps.sh all installs it'
plan 26

SRC=$T/src
small_tree "$SRC"
export SRC COPPER

# One call, of a script or not.
call='"$COPPER" run --source "$SRC" -- cat "$SRC/hello"'
# mpiexec with these arguments: its exit status, the number of hellos, and what else was printed.
launch() { # ARGUMENT…
	local status
	"${cop_as[@]}" timeout "$(patient 60)" mpiexec.hydra -launcher fork "$@" </dev/null \
		>"$W/out" 2>&1
	status=$?
	echo "$status $(grep -cx hello "$W/out")$(grep -vx hello "$W/out" | sed 's/^/ /')"
}
# How many seconds the command takes, whose output is in $W/took.
seconds() { # COMMAND…
	local began
	began=$(date +%s%N)
	"$@" >"$W/took"
	echo $((($(date +%s%N) - began) / 1000000000))
}

ways() { # WHO
	local who=$1 one
	one=$(seconds launch -n 3 sh -c "$call")
	is "$who: each of three scripts calls once" "$(cat "$W/took")" '0 3'
	# Before, such calls cost half a minute each.
	is_at_most "$who: calls one after another cost what one costs each" \
		"$(seconds launch -n 3 sh -c "$call; $call; $call; $call")" $((4 * (one + 1)))
	is "$who: all of them ran" "$(cat "$W/took") $(left)" '0 12 0 0'
	is_at_most "$who: a task that calls once more at first costs little" \
		"$(seconds launch -n 3 sh -c "[ \$PMI_RANK != 0 ] || $call; $call")" \
		$((2 * (one + 2)))
	is "$who: it ran, too" "$(cat "$W/took") $(left)" '0 4 0 0'
	is "$who: a task that calls once more at the end" \
		"$(launch -n 3 sh -c "$call; [ \$PMI_RANK != 2 ] || $call") $(left)" '0 4 0 0'
	is "$who: calls at the same time" \
		"$(launch -n 3 sh -c "$call & $call & $call; wait") $(left)" '0 9 0 0'
	is "$who: tasks that begin apart" \
		"$(launch -n 3 sh -c "for i in 1 2 3; do sleep 0.\$PMI_RANK; $call; done") $(left)" \
		'0 9 0 0'
	is "$who: calls for two trees" "$(launch -n 2 sh -c "$call
		\"\$COPPER\" run --source \"\$SRC/dir\" -- tail -n 1 \"\$SRC/dir/numbers\"" |
			tr '\n' ' ')$(left)" '0 2 20000  20000 0 0'
	# ---- mixed programs
	is "$who: the first task is another program" \
		"$(launch -n 1 true : -n 1 "$COPPER" run --source "$SRC" -- cat "$SRC/hello") $(left)" \
		'0 1 0 0'
	is "$who: another program that runs for longer does not hold up the others" \
		"$(launch -n 1 sh -c "until [ -e $W/done ]; do sleep 0.1; done" : \
			-n 2 sh -c "$call; [ \$PMI_RANK != 1 ] || touch $W/done")" '0 2'
	rm -f "$W/done"
	ok "$who: the node ends when nobody has used it for some seconds" wait_for 20 none_left
	is "$who: a start that fails says so once for all calls" \
		"$(launch -n 2 sh -c '"$COPPER" run --source "$SRC/none" -- true; [ $? = 125 ]' |
			grep -c "^0 0 copper run: --source .*/none: No such file") $(left)" '1 0 0'
}
run=$XDG_RUNTIME_DIR
ways root
become_user
run=$W/run
ways user
