#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A budget of 16 MiB and a tree of 120 MB: the limit holds at every moment and every byte is right.
# covers: cache fetch
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 10

SRC=$T/src
count=120
[ "$cop_mode" = release ] || count=60
numbered_files "$SRC" $((count / 2)) 1000000
head -c $((count * 500000)) /dev/urandom >"$SRC/large"
checksums "$SRC" >"$T/want"
# Listings of half a megabyte and more.
"$PYTHON" - "$SRC" <<'PY'
import os, sys
for d in range(8):
    os.mkdir(f"{sys.argv[1]}/names{d}")
    for i in range(6000):
        os.symlink("nowhere", f"{sys.argv[1]}/names{d}/a-name-that-is-rather-long-so-that-the-listing-is-too-{i}")
PY
names=$(find "$SRC"/names* | wc -l)
with_tree 3 --cache-size 16M

: >"$T/used"
(
	while [ ! -e "$T/done" ]; do
		for rank in 0 1 2; do
			node_json "$rank" | json_value budget >>"$T/used"
		done
		sleep 0.1
	done
) &
watcher=$!
readers=()
for rank in 0 1 2; do
	checksums "$W/mnt/$rank" >"$T/got.$rank" &
	readers+=($!)
	find "$W/mnt/$rank"/names* >"$T/names.$rank" &
	readers+=($!)
done
wait "${readers[@]}"
touch "$T/done"
wait "$watcher"
for rank in 0 1 2; do
	is "node $rank reads everything right" "$(cmp "$T/want" "$T/got.$rank" 2>&1)" ''
done
is 'every name is listed' "$(cat "$T"/names.? | wc -l)" $((3 * names))
is 'the limit is the one asked for' "$(node_stat 0 budget.limit_bytes)" 16777216
over=$("$PYTHON" -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(len(rows) > 2, sum(r["used_bytes"] > r["limit_bytes"] for r in rows), max(r["used_bytes"] for r in rows))' "$T/used")
matches 'used_bytes was never above it' "$over" '^True 0 '
note "looked at $(wc -l <"$T/used") times; most: ${over##* }"
for rank in 0 1 2; do
	pid=$(node_stat "$rank" pid)
	[ "$cop_mode" = release ] || continue
	note "node $rank: $(grep VmHWM "/proc/$pid/status")"
done
is_at_most 'remaining and used make the limit' \
	$(($(node_stat 1 budget.used_bytes) + $(node_stat 1 budget.remaining_bytes))) 16777216
is 'reading it again is right too' "$(checksums "$W/mnt/2" | cmp - "$T/want" 2>&1)" ''
is_at_most 'things were dropped to stay inside' 1 "$(tree_sum cache.evictions)"
ok 'the tree stops' without_tree
