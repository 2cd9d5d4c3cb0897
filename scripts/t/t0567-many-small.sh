#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many small files, more than one node can cache and less than all nodes together, which each node
# reads in an order of its own, again and again: the storage is asked once for each. A node that
# dies costs its share once more; files that are replaced meanwhile are seen.
# covers: cache fetch
# modes: release
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 14

count=600
bytes=$((count * 110000))
SRC=$T/src
numbered_files "$SRC/set" $count 110000
with_slowfs

# RANK SEED: reads all files in random order past the kernel's pages; what went wrong, or nothing
epoch() {
	"$PYTHON" - "$W/mnt/$1/set" "$2" "$count" <<'PY' 2>&1
import os, random, sys
where, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
order = list(range(count))
random.Random(seed).shuffle(order)
for i in order:
    with open(f"{where}/file{i:05d}", "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        data = f.read()
    if data != random.Random(i).randbytes(len(data)) or len(data) != 110000:
        print(f"wrong bytes in file{i:05d}")
        break
PY
}
epochs() { # RANK…: all at once
	local rank
	for rank; do
		epoch "$rank" "$((RANDOM * 8 + rank))" &
	done
	wait
}
storage_gave() { # prints the bytes since the last call
	note "the storage gave $(($(slow_count bytes) * 100 / bytes)) % of the bytes, $(slow_count \
			open) opens, $(tree_sum origin.operations) operations so far" >&2
	slow_count bytes
	slow_reset
}

# ---- one node with enough memory, to compare with

with_tree 1 --cache-size 128M --compress off
is 'one node that can hold them reads them' "$(epochs 0)" ''
alone=$(node_stat 0 origin.operations)
ok 'the tree stops' without_tree

# ---- four nodes that can only together

with_tree 4 --cache-size 29M --compress off --fanout 2
slow_reset
is 'four nodes read them, each in its own order' "$(epochs 0 1 2 3)" ''
operations=$(tree_sum origin.operations)
is_at_most 'the storage gave each byte once' "$(storage_gave)" $((bytes * 11 / 10))
is_at_most 'with hardly more operations than for one node' "$operations" $((alone * 3 / 2))
is 'they read them again' "$(epochs 3 2 1 0)" ''
is_at_most 'the storage gave hardly anything' "$(storage_gave)" $((bytes / 10))
ok 'the root kept a part, other nodes the rest' \
	[ "$(tree_sum budget.home_bytes)" -gt $((bytes / 3)) ]
kill_node 2
is 'a node dies and the others read them' "$(epochs 0 1 3)" ''
is_at_most 'what it kept was read once more' "$(storage_gave)" $((bytes * 4 / 10))
is 'an epoch later' "$(epochs 0 1 3)" ''
note "the storage gave $(storage_gave)"
ok 'no node used more than its budget' [ "$(for rank in 0 1 3; do
	[ "$(node_stat "$rank" budget.used_bytes)" -le 30408704 ] || echo "$rank"
done)" = '' ]
head -c 110000 /dev/zero >"$ORIGIN/set/new"
mv "$ORIGIN/set/new" "$ORIGIN/set/file00007"
"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
is 'a file that was replaced is the new one after an invalidation' \
	"$(tr -d '\0' <"$W/mnt/3/set/file00007" | wc -c)" 0
ok 'the nodes that are left stop' without_tree
