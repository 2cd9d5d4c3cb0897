#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A large file that 8 nodes all read at once: every node reads a share of the storage and forwards
# about as much as the others, and the storage gets hardly more requests than from one tree. With
# --trees 4, four nodes share the reading. Names and small files have one root.
# covers: topo fetch
# modes: release
# limit: 240
# takes: 20
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 19

NODES=8
SRC=$T/src
small_tree "$SRC"
striped_file "$SRC/large"
bytes=$(stat -c %s "$SRC/large")
small=$(checksums "$SRC" | grep -v ' large$')
sum=$(md5sum <"$SRC/large")

read_by_all() { # prints the different sums
	local rank
	for ((rank = 0; rank < NODES; rank++)); do
		md5sum <"$W/mnt/$rank/large" &
	done | sort -u
	wait
}
of_each() { # COUNTER: RANK VALUE
	local rank
	for ((rank = 0; rank < NODES; rank++)); do
		echo "$rank $(node_stat "$rank" "$1")"
	done
}
roots() {
	awk '$2 > 0 { printf "%s%s", n++ ? " " : "", $1 }' "$T/read"
}

# ---- one tree, to compare with

with_tree $NODES --trees 1 --compress off
is 'with one tree every node reads the file' "$(read_by_all)" "$sum"
of_each origin.bytes >"$T/read"
is 'of which only rank 0 reads the storage' "$(roots)" 0
operations=$(tree_sum origin.operations)
reads=$(tree_sum origin.reads)
ok 'the tree stops' without_tree

# ---- as many as it has by itself

with_tree $NODES --compress off
is 'without options there are as many as nodes' "$(sed -n 's/^trees //p' "$JOB"/logs/copper_tree.txt)" 8
is 'every node reads the large file' "$(read_by_all)" "$sum"
of_each origin.bytes >"$T/read"
of_each fabric.bytes_out >"$T/sent"
is 'all of them read the storage' "$(roots)" '0 1 2 3 4 5 6 7'
is 'each byte once' "$(tree_sum origin.bytes)" "$bytes"
# Each root reads each of its groups of 4 MiB in one piece, as a single root does.
is_at_most 'in as many reads, in one piece each' "$(tree_sum origin.reads)" "$reads"
# On a busy machine the reads of a root's groups may meet, and then each opens the file by itself.
is_at_most 'with as many operations, but for what a root looks up and opens first' \
	"$(tree_sum origin.operations)" $((operations + 7 * 4 + 8))
# On a busy machine a node may be silent for so long that another one is asked as well, and both
# answer. One that stays silent is left for 10 s, and others forward its share: then another tree is
# judged.
tries=3
while [ "$(tree_sum fabric.lags)" -gt 0 ] && [ $((tries -= 1)) -gt 0 ]; do
	note 'a node was left because it was silent'
	without_tree || bail 'the tree does not stop'
	with_tree $NODES --compress off
	[ "$(read_by_all)" = "$sum" ] || bail 'the file is not what it was'
	of_each fabric.bytes_out >"$T/sent"
done
read -r most twice < <(awk -v once="$(((NODES - 1) * bytes))" '
	{ if ($2 > most) most = $2; sum += $2 }
	END { print most, sum - once }' "$T/sent")
note "sent by the busiest node: $most, by all of them twice: $twice"
is_at_most 'the busiest node forwards at most 1.1 times its share, but for what is sent twice' \
	$((most - twice)) $(((NODES - 1) * bytes * 11 / (NODES * 10)))
is 'the small files are right on node 5' "$(checksums "$W/mnt/5" | grep -v ' large$')" "$small"
of_each origin.lists >"$T/read"
is 'only rank 0 has read directories' "$(roots)" 0
kill_node 4
echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
is 'a root dies, and the file is what it was' "$(md5sum <"$W/mnt/5/large")" "$sum"

ok 'the nodes that are left stop' without_tree

# ---- a few readers of the storage, as a site may want

with_tree $NODES --compress off --trees 4
is 'with four trees every node reads it' "$(read_by_all)" "$sum"
of_each origin.bytes >"$T/read"
is 'four roots read the storage' "$(roots)" '0 2 4 6'
is 'each byte once by them' "$(tree_sum origin.bytes)" "$bytes"
is_at_most 'their operations are those of one root, but for what each looks up and opens first' \
	"$(tree_sum origin.operations)" $((operations + 3 * 4 + 3 * 4))
ok 'the tree stops' without_tree
