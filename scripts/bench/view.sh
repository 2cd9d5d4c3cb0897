#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Imports in views of `copper run` on a node that has everything already, compared with the same
# imports from the local disk's page cache, by an ordinary user: one process in a view; 128 at once,
# each in its own view, and all in one. Both sides run the same program from the same path. Also
# what `copper run` itself costs, from its own start to that of its command.
# user: yes
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

processes=${BENCH_PROCESSES:-128}
module=numpy
SRC=/usr
be_ordinary_user
hold() {
	local COPPER=$COPPER PYTHON=$PYTHON
	if [ -n "$cop_user" ]; then
		COPPER=$T/bin/user-copper
		PYTHON=$T/bin/user-python3
	fi
	hold_what_was_read 0
}
with_tree 1
import_from /usr
together() { # N COMMAND…
	as_user "$BENCH/together" "$@" >"$T/together" || bail "$* failed"
}
view=("$COPPER" run --)
# Sets the array `words` to those before a command.
words_of() { # view|native
	case $1 in
	view) words=("${view[@]}") ;;
	native) words=() ;;
	esac
}
imports() { # NAME SIDE COPIES
	local words
	words_of "$2"
	add "$1-$2" "$(wall "$3" "${words[@]}" "${import[@]}")"
	add "$1-$2-cpu" "$(cut -d ' ' -f 2 "$T/together")"
}
one() { # SIDE
	imports one "$1" 1
}
many() { # SIDE
	imports many "$1" "$processes"
}
many-native() {
	many native
}
many-one() {
	as_user "$COPPER" run "$BENCH/together" "$processes" "${import[@]}" >"$T/together" ||
		bail 'no imports in one view'
	add many-one "$(cut -d ' ' -f 1 "$T/together")"
	add many-one-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
start() { # SIDE: ten in a row
	local words
	words_of "$1"
	# shellcheck disable=SC2016
	add "start-$1" "$(wall 1 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$@"; done' sh \
			"${words[@]}" /bin/true | awk '{ print $1 / 10 }')"
}
# Runs a function with each of the two sides in turn, forwards and backwards.
both_in_turn() { # N FUNCTION
	local turn
	for ((turn = 0; turn < $1; turn++)); do
		if [ $((turn % 2)) -eq 0 ]; then
			"$2" view && "$2" native
		else
			"$2" native && "$2" view
		fi || bail 'a sample failed'
	done
}

both_in_turn 1 one
rm -f "$T"/side.*
hold
both_in_turn "${BENCH_STARTS:-10}" start
paste "$T/side.start-view" "$T/side.start-native" | awk '{ print $1 - $2 }' >"$T/side.cost-view"
add start-most 0.005
report 'copper run, start to exec, at most 5 ms' s at_most 1 cost-view start-most
both_in_turn "${BENCH_ONE:-20}" one
report "one process imports $module, warm, a view / native" s at_most 1.10 one-view one-native
report 'the same in CPU time of the programs' s none - one-view-cpu one-native-cpu
both_in_turn "${BENCH_PAIRS:-2}" many
report "$processes processes import $module at once, warm, a view for each / native" \
	s at_most 1.10 many-view many-native
report 'the same in CPU time of the programs' s at_most 1.10 many-view-cpu many-native-cpu
in_turn "${BENCH_PAIRS:-2}" many-one many-native
report "$processes processes in one view / native" s none - many-one many-native
report 'the same in CPU time of the programs' s none - many-one-cpu many-native-cpu
