#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Eight readers of 800 cold files at once, 10 times: every byte is right every time.
# covers: fetch cache fuse rpc
# modes: release asan tsan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
rounds=10
[ "$cop_mode" = release ] || rounds=3
plan $rounds

SRC=$T/src
numbered_files "$SRC" 800 19000
checksums "$SRC" >"$T/want"
sed 's/^[0-9a-f]*  //' "$T/want" >"$T/names"

reader() { # NUMBER: its own order, so that all meet in the same files from different sides
	(cd "$W/mnt/$(($1 % 2))" && shuf --random-source=<(yes "$1") "$T/names" |
			xargs -n 100 b2sum | sort -k 2) >"$T/got.$1"
}
for ((round = 1; round <= rounds; round++)); do
	with_tree 2
	pids=()
	for ((i = 0; i < 8; i++)); do
		reader "$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	wrong=0
	for ((i = 0; i < 8; i++)); do
		cmp -s "$T/got.$i" "$T/want" || wrong=$((wrong + 1))
	done
	is "round $round: all eight read what is there" "$wrong" 0
	without_tree || bail "the tree does not stop"
done
