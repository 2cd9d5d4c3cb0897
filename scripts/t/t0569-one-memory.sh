#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file larger than the cache of each node, but not than those of all together, is read from the
# storage once: in order, by mmap, at random offsets, by readers one after the other and at once. A
# node that dies costs its share once more. A file that changes while it is read never gives a
# reader bytes of both versions, and the new one is read once, too.
# covers: cache fetch topo
# modes: release asan
# limit: 240
# takes: 50
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# With a sanitizer, not what only costs the storage something else: it goes the same ways.
planned=30
[ "$cop_mode" = release ] || planned=24
plan $planned

size=$((64 * 1024 * 1024))
once=$((size * 11 / 10))
SRC=$T/src
mkdir "$SRC"
head -c $size /dev/urandom >"$SRC/weights"
# Without a page cache of its own, whose read-ahead would go past what Copper reads.
with_slowfs --direct-io

reader() { # RANK HOW [SEED]: what went wrong, or nothing
	"$PYTHON" "$cop_t/one_memory.py" "$2" "$W/mnt/$1/weights" "$ORIGIN/weights" "${3:-$1}" 2>&1
}
at_once() { # HOW RANK…: what went wrong for any
	local how=$1 rank
	shift
	for rank; do
		reader "$rank" "$how" &
	done
	wait
}
all_within_budget() {
	local rank
	for ((rank = 0; rank < cop_tree; rank++)); do
		[ -n "${cop_killed[$rank]:-}" ] || [ "$(node_stat "$rank" budget.used_bytes)" -le "$(node_stat "$rank" budget.limit_bytes)" ] ||
			return 1
	done
}
storage_gave() { # prints the bytes since the last call
	note "the storage gave $(($(slow_count bytes) * 100 / size)) % of the file" >&2
	slow_count bytes
	slow_reset
}
forget_pages() { # RANK
	"$PYTHON" -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$W/mnt/$1/weights"
}

comes_from_somewhere() { # RANK: what the kernel got is what the places together gave
	is "node $1 counts where each byte came from" \
		"$(for place in own nodes passed disk pack storage; do
			node_stat "$1" from.${place}_bytes
		done | awk '{ n += $1 } END { printf "%d", n }')" "$(node_stat "$1" fuse.read_bytes)"
}

# ---- four nodes of 20 MiB

with_tree 4 --cache-size 20M --compress off
slow_reset
is 'one node after the other reads it' "$(for rank in 3 2 1 0; do reader "$rank" read; done)" ''
is_at_most 'the storage was asked once' "$(storage_gave)" $once
is_at_most 'each node keeps its share' $((size * 9 / 10)) "$(tree_sum budget.home_bytes)"
for rank in 0 1 2 3; do
	forget_pages "$rank"
done
is 'all read it again at random' "$(at_once random 0 1 2 3)" ''
is_at_most 'the storage was asked for hardly anything' "$(storage_gave)" $((size / 10))
ok 'no node used more than its budget' all_within_budget
comes_from_somewhere 0
comes_from_somewhere 3
ok 'some came from the memory of other nodes' [ "$(tree_sum from.nodes_bytes)" -ge $((size / 2)) ]
ok 'the tree stops' without_tree

if [ "$cop_mode" = release ]; then
	with_tree 4 --cache-size 20M --compress off --trees 4
	slow_reset
	is 'all read it at random at first' "$(at_once random 0 1 2 3)" ''
	is_at_most 'the storage was asked once then too' "$(storage_gave)" $once
	ok 'the tree stops' without_tree
fi

# ---- eight nodes, three levels

with_tree 8 --cache-size 20M --chunk 256K --fanout 2 --compress off
slow_reset
is 'eight nodes map it' "$(at_once mmap 0 1 2 3 4 5 6 7)" ''
is_at_most 'the storage was asked once by eight' "$(storage_gave)" $once
kill_node 5
before=$(tree_sum budget.home_bytes)
for rank in 0 1 2 3 4 6 7; do
	forget_pages "$rank"
done
is 'a node dies and the others read it' "$(at_once read 0 1 2 3 4 6 7)" ''
note "homes had $before bytes, now $(tree_sum budget.home_bytes)"
is_at_most 'its share was read once more, not twice' "$(storage_gave)" $((size * 3 / 16))
ok 'no node used more than its budget' all_within_budget
ok 'the tree stops' without_tree

# ---- eight of the least caches that there are, at random at first

if [ "$cop_mode" = release ]; then
	with_tree 8 --cache-size 16M --compress off
	slow_reset
	is 'eight nodes of 16 MiB read it at random' "$(at_once random 0 1 2 3 4 5 6 7)" ''
	is_at_most 'the storage was asked once by those' "$(storage_gave)" $once
	ok 'the tree stops' without_tree
fi

# ---- the file changes while all nodes read it, and no node has room for it

letters() { # RANK: waits for $T/changed in the middle of the file
	timeout "$(patient 120)" "$PYTHON" "$cop_t/one_memory.py" letters \
		"$W/mnt/$1/letters" "$T/half.$1" "$T/changed"
}
half_way() {
	[ -e "$T/half.0" ] && [ -e "$T/half.1" ] && [ -e "$T/half.2" ] && [ -e "$T/half.3" ]
}
head -c $size /dev/zero | tr '\0' a >"$ORIGIN/letters"
head -c $size /dev/zero | tr '\0' b >"$T/new"
with_tree 4 --cache-size 20M --compress off
readers=()
for rank in 0 1 2 3; do
	letters "$rank" >"$T/letters.$rank" &
	readers+=($!)
done
ok 'all nodes have read half of it' wait_for 60 half_way
dd if="$T/new" of="$ORIGIN/letters" conv=notrunc bs=1M status=none
: >"$T/changed"
wait "${readers[@]}"
is 'the other half is what it was, or an error' "$(sort -u "$T"/letters.[0-3])" 'ESTALE a'
"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
slow_reset
is 'then all read the new bytes' "$(for rank in 0 1 2 3; do
	letters "$rank" &
done | sort -u)" b
is_at_most 'which the storage gave once' "$(storage_gave)" $once
ok 'no node used more than its budget, old bytes included' all_within_budget
without_tree

# ---- the data are more than all nodes hold, and a small disk changes little

# One node alone would hold 12 MiB of each 16, as a quarter is for the disk.
mkdir "$T/disk"
with_tree 2 --cache-size 16M --compress off --spill "$T/disk,16M"
reread() { # RANK…: each in turn, twice; what went wrong, or nothing
	local rank
	for rank in "$@" "$@"; do
		forget_pages "$rank"
		reader "$rank" read
	done
}
is 'two nodes read it again and again' "$(reread 0 1)" ''
"$COPPER" cache-stats --reset "$W/mnt/0" >/dev/null
is 'and once more when the counters are zero' "$(reread 0 1)" ''
without_tree
matches 'stop says how much more than their memory it was' "$(cat "$W/out.stop")" \
	'the data was 2\.[4-9] times the memory of all nodes \(6[0-9]\.[0-9] MiB, and their caches hold 24\.0 MiB\)'
