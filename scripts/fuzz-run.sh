#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the fuzz targets one after another, at the lowest priority, and prints the result of each.
#
#   scripts/fuzz-run.sh [TARGET…]     all, or those whose MODULE/NAME contains one of the words
#
# FUZZ_SECONDS (600) for each; FUZZ_DIR (build/fuzz/corpus) keeps the inputs found, with which the
# next run begins. An input that crashes a target is kept in FUZZ_DIR/found. Ends with 1 if there is
# one.
set -u
cd "$(dirname "$0")/.." || exit 2
seconds=${FUZZ_SECONDS:-600}
where=${FUZZ_DIR:-build/fuzz/corpus}
faults=0

case $seconds in
'' | *[!0-9]*)
	echo "fuzz-run: FUZZ_SECONDS=$seconds is no number" >&2
	exit 2
	;;
esac

is_wanted() { # TARGET [WORD…]
	local target=$1 word
	shift
	[ $# -gt 0 ] || return 0
	for word; do
		[[ "$target" != *"$word"* ]] || return 0
	done
	return 1
}

last() { # KEY LOG: the last number that the fuzzer gave
	sed -n "s/.* $1: \([0-9]*\).*/\1/p" "$2" | tail -n 1
}

run() { # TARGET
	local name=$1 module=${1%/*} corpus=$where/$1 log=$where/$1.log seeds=() result=ok found
	mkdir -p "$corpus" "$where/found"
	module=${module#*/}
	[ ! -d "testdata/fuzz/$module" ] || seeds=("testdata/fuzz/$module")
	nice -n 19 "build/fuzz/fuzz/$name" -max_total_time="$seconds" \
		-rss_limit_mb=2048 -timeout=25 \
		-artifact_prefix="$where/found/${name//\//-}-" "$corpus" "${seeds[@]}" >"$log" \
		2>&1 || result=FOUND
	if [ "$result" = FOUND ]; then
		faults=$((faults + 1))
		found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
	fi
	printf '%-28s %8s runs %6s edges %6s inputs  %s\n' "$name" \
		"$(sed -n 's/^#\([0-9][0-9]*\).*/\1/p' "$log" | tail -n 1)" "$(last cov "$log")" \
		"$(find "$corpus" -type f | wc -l)" "$result ${found:-}"
}

for source in internal/*/*/*_fuzz.c; do
	target=${source#internal/}
	target=${target%.c}
	! is_wanted "$target" "$@" || run "$target"
done
[ "$faults" -eq 0 ] || echo "fuzz-run: $faults targets ended; the logs are in $where" >&2
[ "$faults" -eq 0 ]
