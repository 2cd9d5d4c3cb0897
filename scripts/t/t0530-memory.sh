#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The kernel takes its memory back while programs read: sums stay right, inodes are forgotten, the
# node stays small.
# covers: cache fuse
# modes: release
# alone: it drops the caches of the whole machine
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16

group=
in_group() { # COMMAND…: in the memory group
	(
		echo "$BASHPID" >"$group/cgroup.procs" || exit 1
		exec "$@"
	)
}
# Makes a control group of at most this many bytes; 1 with the reason in REASON. Versions 1 and 2 of
# the interface have different names for the file.
new_group() { # NAME BYTES
	local top=/sys/fs/cgroup file=memory.max
	REASON='no memory controller that this test may use'
	if ! grep -qw memory "$top/cgroup.subtree_control" 2>/dev/null; then
		top=$top/memory
		file=memory.limit_in_bytes
		[ -e "$top/$file" ] || return 1
	fi
	mkdir "$top/$1" 2>/dev/null || return 1
	group=$top/$1
	echo "$2" >"$group/$file" 2>/dev/null || return 1
	! [ -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
}
# Remaining processes go back to its parent.
remove_group() {
	local pid
	[ -n "$group" ] || return 0
	while read -r pid; do
		echo "$pid" >"${group%/*}/cgroup.procs"
	done <"$group/cgroup.procs"
	rmdir "$group"
	group=
}
leave() {
	local status=$?
	remove_group 2>/dev/null
	(exit "$status")
	finish
}
trap leave EXIT

# Ten directories of 150 files, and some larger ones.
SRC=$T/src
for d in 0 1 2 3 4 5 6 7 8 9; do
	numbered_files "$SRC/dir$d" 150 2000
done
numbered_files "$SRC/large" 20 3000000
checksums "$SRC" >"$T/want"
count=$(find "$SRC" | wc -l)

resident() { # RANK: bytes
	awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$(node_stat "$1" pid)/status"
}
reader() { # ROUNDS OUT: how many of them were wrong
	local wrong=0
	for ((i = 0; i < $1; i++)); do
		checksums "$W/mnt/1" | cmp -s - "$T/want" || wrong=$((wrong + 1))
	done
	echo "$wrong" >"$2"
}

with_tree 2 --cache-size 32M
reader 1 "$T/wrong"
# Another program may make the kernel forget them at any moment, unless they are held.
hold_pages "$W/mnt/1"
held=$(node_stat 1 kernel.inodes)
let_go
is 'a tree is read' "$(cat "$T/wrong")" 0
is_at_most 'the kernel holds an inode for each file' $((count - 10)) "$held"
exec 5<"$W/mnt/1/dir3/file00007"
sum=$(sha256sum <"$SRC/dir3/file00007")

if echo 1 2>/dev/null >/proc/sys/vm/drop_caches; then
	echo 2 >/proc/sys/vm/drop_caches
	few_inodes() {
		[ "$(node_stat 1 kernel.inodes)" -lt $((count / 10)) ]
	}
	wait_for 5 few_inodes
	left=$(node_stat 1 kernel.inodes)
	is_at_most 'dropped inodes are forgotten by the node too' "$left" $((count / 10))
	is_at_most 'each dropped inode is forgotten by a request' \
		$((held - left)) "$(node_stat 1 fuse.forget)"
	note "$held inodes, $left after drop_caches"
	is 'a file that is open is not' "$(sha256sum <&5)" "$sum"
	reader 4 "$T/wrong" &
	reading=$!
	drops=0
	while kill -0 "$reading" 2>/dev/null && [ "$drops" -lt 40 ]; do
		echo 3 >/proc/sys/vm/drop_caches
		drops=$((drops + 1))
		sleep 0.1
	done
	wait "$reading"
	note "dropped $drops times"
	is 'files read while caches are dropped are right' "$(cat "$T/wrong")" 0
	# It may still grow to the size of its cache, but not again and again.
	now=$(resident 1)
	for _ in 1 2 3 4; do
		first=$now
		reader 4 "$T/wrong" &
		reading=$!
		while kill -0 "$reading" 2>/dev/null; do
			echo 2 >/proc/sys/vm/drop_caches
			sleep 0.2
		done
		wait "$reading"
		now=$(resident 1)
		note "node 1: $((first >> 10)) KiB, then $((now >> 10)) KiB"
		[ "$(cat "$T/wrong")" = 0 ] && [ "$now" -gt $((first + (8 << 20))) ] || break
	done
	is 'files read while caches are dropped are right once more' "$(cat "$T/wrong")" 0
	is_at_most 'the node does not grow with each time' "$now" $((first + (8 << 20)))
	echo 2 >/proc/sys/vm/drop_caches
	wait_for 5 few_inodes
	is_at_most 'the inodes are few again' "$(node_stat 1 kernel.inodes)" $((count / 10))
else
	for point in 3 4 5 6 7 8 9; do
		pass "$point # SKIP drop_caches may not be written"
	done
fi
exec 5<&-
ok 'the tree stops' without_tree

# ---- a program with little memory

# 60 MB of files, as pages and as a map, in 24 MiB.
map_all() {
	"$PYTHON" - "$W/mnt/1" "$SRC" <<'PY'
import mmap, os, sys
mount, source = sys.argv[1:]
for _ in range(3):
    for name in sorted(os.listdir(f"{source}/large")):
        with open(f"{mount}/large/{name}", "rb") as f, open(f"{source}/large/{name}", "rb") as want, \
                mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            assert m[:] == want.read(), name
PY
}
export -f checksums map_all
export PYTHON W SRC
with_tree 2 --cache-size 32M
if new_group "copper-test-$$" $((24 << 20)); then
	ok 'a small program reads everything right' \
		in_group bash -c 'for i in 1 2 3; do checksums "$W/mnt/1" | cmp - "$1" || exit 1; done' sh "$T/want"
	ok 'a small program reads everything right by maps' in_group bash -c map_all
	remove_group
	is_at_most 'memory that the kernel takes back there is asked for again' \
		$((20 * 3000000 * 3)) "$(node_stat 1 fuse.read_bytes)"
else
	for point in 11 12 13; do
		pass "$point # SKIP $REASON"
	done
fi
ok 'the tree stops' without_tree

# ---- a node and its program that have little memory together

if new_group "copper-test-$$-node" $((112 << 20)); then
	in_group bash -c ':' || note 'cannot enter the group'
	echo "$BASHPID" >"$group/cgroup.procs"
	with_tree 1 --cache-size 16M
	wrong=0
	for _ in 1 2; do
		checksums "$W/mnt/0" | cmp -s - "$T/want" || wrong=$((wrong + 1))
	done
	is 'a node in a small group serves everything right' "$wrong" 0
	ok 'the node in a small group lives' without_tree
	remove_group
else
	for point in 15 16; do
		pass "$point # SKIP $REASON"
	done
fi
