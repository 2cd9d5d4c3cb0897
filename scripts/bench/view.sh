#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Imports in views of `copper run` on a node that has everything already, compared with the same
# imports from the local disk's page cache: one process, 128 at once with a view for each, and 128
# at once in one view. Both sides run the same program from the same path. Also what `copper run`
# itself costs, from its own start to that of its command.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

processes=${BENCH_PROCESSES:-128}
module=numpy
SRC=/usr
with_tree 1
import_from /usr
view=("$COPPER" run -- "${import[@]}")
sides() { # NAME COPIES
	eval "$1-each() { add $1-each \"\$(wall $2 \"\${view[@]}\")\"; add $1-each-cpu \"\$(cut -d ' ' -f 2 \"\$T/together\")\"; }"
	eval "$1-native() { add $1-native \"\$(wall $2 \"\${import[@]}\")\"; add $1-native-cpu \"\$(cut -d ' ' -f 2 \"\$T/together\")\"; }"
}
sides one 1
sides many "$processes"
many-one() {
	"$COPPER" run "$BENCH/together" "$processes" "${import[@]}" >"$T/together" ||
		bail 'no imports in one view'
	add many-one "$(cut -d ' ' -f 1 "$T/together")"
	add many-one-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
start-ours() {
	add start-ours "$(wall 1 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$0" run /bin/true; done' "$COPPER" | awk '{ print $1 / 10 }')"
}
start-native() {
	add start-native "$(wall 1 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done' |
			awk '{ print $1 / 10 }')"
}

wall 1 "${view[@]}" >/dev/null
wall 1 "${import[@]}" >/dev/null
hold_what_was_read 0
in_turn "${BENCH_STARTS:-10}" start-ours start-native
add start-cost "$(awk -v a="$(statistic median start-ours)" -v b="$(statistic median start-native)" 'BEGIN { print a - b }')"
add start-most 0.005
report 'copper run, start to exec, at most 5 ms' s at_most 1 start-cost start-most
in_turn "${BENCH_ONE:-10}" one-each one-native
report "one process imports $module, warm, view / native" s at_most 1.03 one-each one-native
in_turn "${BENCH_PAIRS:-2}" many-each many-native
in_turn "${BENCH_PAIRS:-2}" many-one many-native
report "$processes processes import $module at once, warm, a view for each / native" \
	s at_most 1.10 many-each many-native
report 'the same in CPU time of the programs' s at_most 1.10 many-each-cpu many-native-cpu
report "$processes processes in one view / native" s none - many-one many-native
report 'the same in CPU time of the programs' s none - many-one-cpu many-native-cpu
