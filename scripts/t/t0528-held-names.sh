#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node's kernel cannot forget names while a program there waits for the storage in the same
# directory. The node does not delay the answers to others: a reader of a replaced file still gets
# an error.
# covers: fuse fetch
# modes: release asan tsan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 13

SRC=$T/src
mkdir -p "$SRC/dir" "$SRC/other"
for i in {1..20}; do
	echo "old $i" | tee "$SRC/dir/f$i" >"$SRC/other/f$i"
done
echo late >"$SRC/dir/hung"
with_slowfs --cache-s 0

read_on() { # RANK NAME
	timeout "$(patient 20)" cat "$W/mnt/$1/$2" 2>&1
}
replace() { # DIR: as rsync does it
	local i
	for i in {1..20}; do
		echo "new $i" >"$ORIGIN/$1/.new"
		mv "$ORIGIN/$1/.new" "$ORIGIN/$1/f$i"
	done
}

# Each node is the child of the one before. The kernel of node 1 has names of both directories, and
# a program on it asks for one for which the storage does not answer.
slow_fault hang=dir/hung
with_tree 3 --fanout 1 --enoent-ttl-ms 200
for rank in 1 2; do
	is "node $rank reads a file" \
		"$(read_on "$rank" dir/f1) $(read_on "$rank" other/f1)" 'old 1 old 1'
done
asked=$(node_stat 1 fuse.lookup)
stat "$W/mnt/1/dir/hung" >"$T/hung" 2>&1 &
reader=$!
# From then on its kernel has the directory locked.
it_asks() {
	[ "$(node_stat 1 fuse.lookup)" -gt "$asked" ]
}
wait_for 20 it_asks
sleep 0.5
ok 'a program on node 1 waits for the storage' is_ours "$reader"
replace dir
replace other
# A waiting reader cannot be killed before the node answers it, so the test does not wait for one.
begin=$(date +%s%N)
for name in dir/f7 other/f7; do
	read_on 2 "$name" >"$T/${name%/*}.told" &
	told=$!
	ok "node 2 is told that $name is not what its name said" wait_for 10 is_gone "$told"
	matches 'by the error that says so' "$(cat "$T/${name%/*}.told")" 'Stale file handle'
done
note "after $((($(date +%s%N) - begin) / 1000000)) ms"
ok 'the program on node 1 waits still' is_ours "$reader"
# The node has forgotten the old names, so the new file comes if the kernel has forgotten them, too.
matches 'a file that was read before can be read on node 2' "$(read_on 2 dir/f1)" '^(old|new) 1$'
slow_fault clear
ok 'the program on node 1 is answered' wait_for 20 is_gone "$reader"

# Then the kernel of node 1 forgets, and node 2 gets the new names at the next try.
new_on() { # RANK
	[ "$(read_on "$1" dir/f7) $(read_on "$1" other/f7)" = 'new 7 new 7' ]
}
for rank in 2 1; do
	ok "node $rank gets the new files afterwards" wait_for 10 new_on "$rank"
done
ok 'the tree stops' without_tree
