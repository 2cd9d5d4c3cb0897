#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What recording every path (-A) adds to a first import, in CPU time of the program and the node
# together. -A does two things: it makes the kernel keep less, so that each path is seen, and it
# records what is seen. --observe makes the kernel keep even less, with and without -A: the
# difference between the two is the recording alone, of more requests than -A itself sees. The
# second line is what -A costs with both.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
import_wall /usr >/dev/null
cold() { # SIDE OPTION…
	local side=$1 before pid
	shift
	with_tree 1 --cache-size 1G "$@"
	pid=$(pid_of 0)
	before=$("$BENCH/cputime" "$pid")
	import_wall "$W/mnt/0" >/dev/null
	add "$side" "$(awk -v before="$before" -v now="$("$BENCH/cputime" "$pid")" \
		'{ printf "%.6f", $2 + now - before }' "$T/together")"
	add "node-$side" "$(awk -v before="$before" -v now="$("$BENCH/cputime" "$pid")" 'BEGIN { printf "%.6f", now - before }')"
	without_tree
}
recording() {
	cold recording --observe -A -d "$T/job"
}
not_recording() {
	cold not-recording --observe -d "$T/job"
}
full() {
	cold full -A -d "$T/job"
}
nothing() {
	cold nothing -d "$T/job"
}
in_turn "${BENCH_PAIRS:-8}" recording not_recording
in_turn "${BENCH_PAIRS:-8}" full nothing
report "cold import $module, CPU time, recording every path / not, same kernel settings" \
	s at_most 1.03 recording not-recording
report 'the same of the node alone' s none - node-recording node-not-recording
report "cold import $module, CPU time, -A / no profile" s none - full nothing
