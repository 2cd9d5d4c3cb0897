#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Seven nodes reading at once ask the source for no more than one node alone does.
# covers: fetch topo rpc
# quick: yes
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16

SRC=$T/src
mkdir -p "$SRC"
count=200
[ "$cop_mode" = release ] || count=40
for dir in a b c d; do
	numbered_files "$SRC/$dir/sub" $((count / 4)) 1000000
done
for i in 1 2 3 4; do
	head -c 20000000 /dev/urandom >"$SRC/cold$i"
done
checksums "$SRC" >"$T/want"
bytes=$(find "$SRC" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
with_slowfs --direct-io --meta-us 100 --read-us 200 --slots 32

origin_figures() {
	local name
	for name in bytes read open opendir; do
		printf '%s=%s ' "$name" "$(slow_count "$name")"
	done
}
read_all() { # RANK
	checksums "$W/mnt/$1" >"$T/got.$1"
}

with_tree 1
slow_reset
read_all 0
one=$(origin_figures)
one_lookups=$(slow_count lookup)
one_operations=$(node_stat 0 origin.operations)
is 'a single node reads everything right' "$(cmp "$T/want" "$T/got.0" 2>&1)" ''
is 'a single node reads each byte of the source once' "$(slow_count bytes)" "$bytes"
without_tree

with_tree 7
slow_reset
for ((i = 0; i < 7; i++)); do
	read_all "$i" &
done
wait
for ((i = 0; i < 7; i++)); do
	is "node $i reads everything right" "$(cmp "$T/want" "$T/got.$i" 2>&1)" ''
done
is 'seven nodes read, open and list the source as often as one' "$(origin_figures)" "$one"
# On a busy machine attributes may take longer than the second that a listing waits for them; such a
# name is then asked for by itself.
operations=$(tree_sum origin.operations)
ok "the nodes count the same operations, or a few names that were not answered in time ($operations, $one_operations)" \
	test "$operations" -ge "$one_operations" -a "$operations" -le $((one_operations + 8))
note "lookups at the source: one node $one_lookups, seven nodes $(slow_count lookup)"
is_at_most 'each root looks up little more than its share' \
	"$(slow_count lookup)" $((one_lookups * 2 + 100))
ok 'the tree of seven stops' without_tree

with_tree 7
for ((i = 0; i < 7; i++)); do
	ls -l "$W/mnt/$i" >/dev/null
done
slow_reset
for ((reader = 0; reader < 64; reader++)); do
	b2sum "$W/mnt/$((reader % 7))/cold1" >"$T/sum.$reader" &
done
wait
is '64 readers of one cold file agree' "$(cut -d ' ' -f 1 "$T"/sum.* | sort -u)" \
	"$(b2sum "$ORIGIN/cold1" | cut -d ' ' -f 1)"
is 'the source gave the file once' "$(slow_count bytes)" 20000000
ok 'the tree stops again' without_tree
