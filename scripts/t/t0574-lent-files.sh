#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many small files, more than the first root can cache: all nodes read them in orders of their own.
# The storage is asked once, and the root answers no more requests than other nodes do.
# covers: cache fetch
# modes: release
# limit: 300
# takes: 20
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 8

count=800
size=82500
bytes=$((count * size))
SRC=$T/src
numbered_files "$SRC/set" $count $size
with_slowfs

# RANK SEED: reads all files in random order past the kernel's pages; what went wrong, or nothing
epoch() {
	"$PYTHON" - "$W/mnt/$1/set" "$2" "$count" "$size" <<'PY' 2>&1
import os, random, sys
where, seed, count, size = sys.argv[1], *map(int, sys.argv[2:5])
order = list(range(count))
random.Random(seed).shuffle(order)
for i in order:
    with open(f"{where}/file{i:05d}", "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        data = f.read()
    if data != random.Random(i).randbytes(size):
        print(f"wrong bytes in file{i:05d}")
        break
PY
}
epochs() { # SEED: all nodes at once
	local rank
	for ((rank = 0; rank < cop_tree; rank++)); do
		epoch "$rank" "$(($1 + rank))" &
	done
	wait
}
storage_gave() { # prints the bytes since the last call
	note "the storage gave $(($(slow_count bytes) * 100 / bytes)) % of the bytes" >&2
	slow_count bytes
	slow_reset
}
served_by_root_in_percent_of_the_mean() {
	local root=$1 all=$2
	root=$(($(node_stat 0 fabric.requests_served) - root))
	all=$(($(tree_sum fabric.requests_served) - all))
	note "rank 0 answered $root of $all requests" >&2
	echo $((root * cop_tree * 100 / all))
}

with_tree 8 --cache-size 20M --compress off --fanout 2
slow_reset
is 'eight nodes read them, each in its own order' "$(epochs 1)" ''
is_at_most 'the storage was asked once' "$(storage_gave)" $((bytes * 11 / 10))
root=$(node_stat 0 fabric.requests_served)
all=$(tree_sum fabric.requests_served)
is 'they read them again' "$(epochs 100)" ''
is_at_most 'the storage was asked for hardly anything' "$(storage_gave)" $((bytes / 10))
is_at_most 'the root answered at most 1.5 times the mean' \
	"$(served_by_root_in_percent_of_the_mean "$root" "$all")" 150
kill_node 5
is 'a node dies and the others read them' "$(for rank in 0 1 2 3 4 6 7; do
	epoch "$rank" $((200 + rank)) &
done
wait)" ''
is_at_most 'its share was read once more' "$(storage_gave)" $((bytes / 3))
ok 'the tree stops' without_tree
