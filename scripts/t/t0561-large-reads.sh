#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Model weights as programs load them: a header, and then slices through a mapping in any order, on
# every node in an order of its own. The storage is asked once, although no node can hold the file,
# and each slice is right. Eight programs that read eight files on one node are served evenly.
# covers: fetch fuse cache
# modes: release
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 12

SRC=$T/src
mkdir -p "$SRC"
large() {
	timeout "$(patient 120)" "$PYTHON" "$cop_t/largefile.py" "$@"
}
large make "$SRC/spread.safetensors" 1 36 2000000
large make "$SRC/small.safetensors" 2 24 400000
for i in 0 1 2 3 4 5 6 7; do
	head -c 16M /dev/urandom >"$SRC/part$i"
done
spread=$(stat -c %s "$SRC/spread.safetensors")
small=$(stat -c %s "$SRC/small.safetensors")
ok 'one file is spread over the nodes' test "$spread" -gt $((64 << 20))

slices_on() { # FILE RANK…: what goes wrong
	local file=$1 rank pids=()
	shift
	for rank; do
		large slices "$W/mnt/$rank/$file" "$rank" >"$T/slices.$rank" 2>&1 &
		pids+=($!)
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}" || cat "$T"/slices.*
	done
}

# ---- four nodes, of which none can hold the large file

with_tree 4 --cache-size 28M --compress off
is 'every node maps the large file and finds each slice right' \
	"$(slices_on spread.safetensors 0 1 2 3)" ''
is 'of which there are so many' "$(cat "$T/slices.0")" '36 slices, 0 wrong'
# What a root reads around a place in a file that does not fit is read once more in the worst case.
is_at_most 'the storage was asked for it once' "$(tree_sum origin.bytes)" $((spread * 11 / 10))
before=$(tree_sum origin.bytes)
is 'a file below 64 MiB, too' "$(slices_on small.safetensors 0 1 2 3)" ''
is_at_most 'also once' "$(($(tree_sum origin.bytes) - before))" $((small * 11 / 10))
is 'no bytes were wrong' "$(tree_sum fabric.corrupt)" 0
ok 'the tree stops' without_tree

# ---- a node that holds the file alone

with_tree 1 --compress off
is 'one node that can hold it' "$(slices_on spread.safetensors 0)" ''
is_at_most 'asks the storage once' "$(node_stat 0 origin.bytes)" $((spread * 11 / 10))
ok 'the tree stops' without_tree

# ---- eight programs on one node

# Of what the fastest has when it is done, in hundredths of what the slowest has.
evenness() {
	local part
	for part in 0 1 2 3 4 5 6 7; do
		forget_pages "$W/mnt/1/part$part"
	done
	large evenly "$W"/mnt/1/part[0-7] | awk '{ printf "%d\n", $1 * 100 / ($2 + 1) }'
}
forget_pages() { # FILE
	dd if="$1" iflag=nocache count=0 status=none
}

with_tree 2 --trees 1 --cache-size 160M
cat "$W"/mnt/0/part[0-7] >/dev/null
is_at_most 'eight programs that read eight files get about as much each' "$(least 150 evenness)" 150
without_tree
