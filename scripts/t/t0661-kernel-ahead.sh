#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a manifest brought is in the node's kernel before a program asks for it: the program's first
# reads reach the node no more than its second ones. None of it counts as a program's, and a node
# ends while its own reads hang.
# covers: kernelahead fuse prefetch node
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 24

SRC=$T/src
numbered_files "$SRC/many" 40 9000
numbered_files "$SRC/large" 1 3000000
echo unused >"$SRC/unused"
touch -d '1 hour ago' "$SRC"/*/* "$SRC"
manifest=$T/.slow.copper-manifest
with_slowfs --meta-us 100 --cache-s 3600

use() { # what a program does
	(cd "$W/mnt/0" && ls many && cat many/* large/* absent/x) 2>/dev/null | b2sum
}
want=$(cd "$SRC" && { ls many && cat many/* large/*; } | b2sum)
bytes=$((40 * 9000 + 3000000))
# All bytes are there, and then the names of the other side of the mount.
is_ahead() {
	local asked
	[ "$(node_stat 0 fuse.ahead_bytes)" -ge "$bytes" ] || return
	asked=$(node_stat 0 fuse.ahead)
	sleep 1
	[ "$(node_stat 0 fuse.ahead)" = "$asked" ]
}
prefetched() {
	[ "$(node_stat 0 prefetching.state)" = "done" ]
}
reads() {
	echo "$(node_stat 0 fuse.read) $(node_stat 0 fuse.readdir)"
}

with_tree 1 --prefetch auto
is 'without a manifest nothing is put into the kernel' "$(use) $(node_stat 0 fuse.ahead_bytes)" \
	"$want 0"
ok 'the first job stops' without_tree
cp "$manifest" "$T/first"

with_tree 1 --prefetch auto --kernel-ahead on -P --trace
ok 'the kernel gets all bytes that the manifest names' wait_for 20 is_ahead
is 'none of it is a request of a program' "$(reads)" '0 0'
is 'the first program gets what it asks for' "$(use)" "$want"
# The kernel may have taken back a page meanwhile. Without it, the program reads more than 40.
read -r before listed <<<"$(reads)"
is_at_most 'and reads next to nothing through the node' "$((before + listed))" 4
ok 'a file that the manifest does not name is read' grep -q unused "$W/mnt/0/unused"
seen=$(node_stat 0 fuse.read)
is 'through the node' "$((seen - before))" 1
ok 'the second job stops' without_tree
is 'the profile has the program alone' \
	"$(cat "$JOB"/profiling/final/*-profiling_operations.csv | awk -F, '$1 == "read" { print $2 }')" \
	"$seen"
is 'and so has the trace' \
	"$(zcat "$JOB"/trace/*.pfw.gz | grep -c '"name":"read"')" "$seen"
is 'the manifest keeps what was hidden, in its order, and adds what was seen' \
	"$(diff "$T/first" "$manifest" | grep -v '^>.*unused$' | grep -c '^[<>] [dnf]')" 0
matches 'at its end' "$(grep '^[dnf]' "$manifest" | tail -n 1)" 'unused$'

cp "$T/first" "$manifest"
with_tree 1 --prefetch auto --kernel-ahead off
wait_for 20 prefetched
is 'it can be switched off' "$(use) $(node_stat 0 fuse.ahead)" "$want 0"
ok 'the program then reads through the node' test "$(node_stat 0 fuse.read)" -gt 40
ok 'the third job stops' without_tree
ok 'and its manifest has what it needed' cmp "$T/first" "$manifest"

# The directories of a view are others to the kernel; its files are the same.
with_tree 1 --prefetch "$T/first" --kernel-ahead on
wait_for 20 is_ahead
before=$(($(node_stat 0 fuse.lookup) + $(node_stat 0 fuse.read)))
files=("$SRC"/many/* "$SRC"/large/*)
is 'a program in a view gets what it asks for' "$(as_user "$COPPER" run --mount "$W/mnt/0" -- \
	cat "${files[@]}" 2>/dev/null | b2sum)" "$(cat "$ORIGIN"/{many,large}/* | b2sum)"
# It reads no directory, so otherwise each of the 41 files would be looked up.
is_at_most 'of which the node is asked for little' \
	"$(($(node_stat 0 fuse.lookup) + $(node_stat 0 fuse.read) - before))" 20
without_tree

for option in -A --observe; do
	with_tree 1 --prefetch "$T/first" --kernel-ahead on "$option"
	wait_for 20 prefetched
	is "with $option each path is seen" "$(node_stat 0 fuse.ahead)" 0
	without_tree
done

# ---- ends

for ((i = 0; i < 4; i++)); do
	with_tree 1 --prefetch "$T/first" --kernel-ahead on
	without_tree || break
done
is 'a node ends while it reads ahead' "$i" 4

# The thread waits for the program, whose request hangs, and then hangs itself: what it is to read
# was dropped.
with_tree 1 --prefetch "$T/first" --kernel-ahead on --cache-size 64M
slow_fault hang=/unused
cat "$W/mnt/0/unused" >/dev/null 2>&1 &
reader=$!
wait_for 20 prefetched
as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null 2>&1
slow_fault hang=/large
slow_fault hang=/many
ok 'a node whose own read hangs ends' without_tree
slow_fault clear
kill "$reader" 2>/dev/null
wait "$reader" 2>/dev/null
ok 'and leaves no mount' test "$(grep -c "$W/mnt" /proc/self/mountinfo)" -eq 0
