#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace compare: the tables of several runs side by side give what pandas gives, number by
# number; what is wrongly asked for.
# covers: trace/table base/table
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
"$PYTHON" -c 'import pandas' 2>/dev/null ||
	skip_all 'no pandas here; scripts/install-deps.sh all installs it'
plan 19

judge() { # NAME=PATH…: prints what differs, or that too little is the same
	timeout "$(patient 120)" "$PYTHON" "$cop_t/trace_cases_judge.py" compare "$COPPER" \
		"$@" >"$T/judged" 2>&1
	grep -v '^same ' "$T/judged" | head -n 5
	[ "$(grep -c '^same ' "$T/judged")" -eq 18 ] ||
		echo "only $(grep -c '^same ' "$T/judged") answers"
}

generate 1 1500 1 "$T/one.pfw"
generate 1 1200 2 "$T/two.pfw.gz" late gzip=100
generate 2 1000 3 "$T/three.pfw"
generate 0 900 4 "$T/four.pfw"
mkdir "$T/all"
cp "$T/two.pfw.gz" "$T/four.pfw" "$T/all"

is 'two runs: every answer is that of pandas' "$(judge "base=$T/one.pfw" "scr=$T/two.pfw.gz")" ''
is 'four runs, of several files and a directory' \
	"$(judge "base-on-PFS=$T/one.pfw" "a=$T/three.pfw,$T/four.pfw" "b=$T/all" \
		"c=$T/four.pfw")" ''

# ---- what is wrongly asked for

run="a=$T/one.pfw"
printf 'hello\n' >"$T/no.pfw"
is_told 'no name' 2 "'[^']*one\.pfw' is not NAME=PATH" compare --by name "$T/one.pfw"
is_told 'an empty name' 2 "'=x' is not NAME=PATH" compare --by name "$run" =x
is_told 'one name twice' 2 "two runs are called 'a'" compare --by name "$run" "$run"
is_told 'no --by' 2 '--by is missing \(see copper trace compare --help\)' compare "$run"
is_told 'an unknown column' 1 "no column 'durs'; the columns are count, dur, " compare --by name \
	--show durs "$run"
is_told 'an expression that does not compile' 1 "compare: --file 'a\[' is not an extended regular" \
	compare --by name --file 'a[' "$run"
is_told 'a run with no trace' 1 'b: none of the 1 files is a trace' compare --by name \
	"$run" "b=$T/no.pfw"
is_told 'a run that is not there' 1 'nowhere: No such file or directory.* c: there is no file' \
	compare --by name "$run" "c=$T/nowhere"
is 'a run that does not exist prints nothing' "$(cat "$T/out")" ''
