#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A storage whose timestamps are whole seconds, and one that once wrongly denies a name: a change
# within a tick is seen although the timestamps stay the same, and what has not changed recently
# costs nothing more.
# covers: origin fetch
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

SRC=$T/src
mkdir -p "$SRC"/old/{a,b,c} "$SRC/once"
for name in {a,b,c}/{1..20}; do
	echo "$name" >"$SRC/old/$name"
done
echo here >"$SRC/once/hidden"
echo here >"$SRC/once/beside"
for i in {1..60}; do
	mkdir "$SRC/d$i"
done
with_slowfs --tick 1
with_tree 2 --fanout 1 --enoent-ttl-ms 500
is 'time stamps are of whole seconds' \
	"$(stat -c '%.Y %.Z' "$SRC"/d* | grep -vcE '^[0-9]+[.,]0+ [0-9]+[.,]0+$')" 0
sleep 2.2

on_both() { # TEXT NAME: both nodes read it so
	[ "$(cat "$W/mnt/1/$2" "$W/mnt/0/$2" 2>&1)" = "$1"$'\n'"$1" ]
}
stamps() { # NAME
	stat -c '%Y %Z %s %i' "$SRC/$1"
}

# ---- what has not changed lately

first=$(node_stat 0 origin.operations)
(cd "$W/mnt/1" && cat old/*/*) >"$T/read"
is 'a tree is read' "$(cat "$T/read")" "$(cd "$ORIGIN" && cat old/*/*)"
# The root of the mount has its listing, too, with d1 to d60, which are old; all of it is counted
# once, but for the first name in the root, which is asked for by itself, too.
is 'each name of the directory was asked for once' \
	"$(node_stat 0 origin.lists) $(node_stat 0 origin.stats)" "5 $((62 + 3 + 60 + 1 + 1))"
cold=$(node_stat 0 origin.operations)
note "$((cold - first)) operations"
sleep 2.2
(cd "$W/mnt/1" && cat old/*/*) >"$T/again"
is 'a directory that has not changed lately is not asked for again' \
	"$(cmp "$T/read" "$T/again" 2>&1) $(node_stat 0 origin.operations)" " $cold"

# ---- a change in the tick in which it was read

# Everything here happens in the tick that has just begun; otherwise it proves nothing, and other
# directories are used.
# DIR: leaves in BEFORE and AFTER what the storage shows of the directory and a file before and
# after they changed again.
change() {
	local late rank
	echo AAAA >"$ORIGIN/$1/over"
	echo AAAA >"$ORIGIN/$1/instead"
	for rank in 1 0; do
		for late in late later; do
			[ ! -e "$W/mnt/$rank/$1/$late" ] || note "$late is on node $rank already"
		done
	done
	if ! on_both AAAA "$1/over" || ! on_both AAAA "$1/instead"; then
		note "$1 was not read"
	fi
	BEFORE="$(stamps "$1") $(stamps "$1/over")"
	echo BBBB >"$ORIGIN/$1/new"
	mv "$ORIGIN/$1/new" "$ORIGIN/$1/instead"
	echo BBBB 1<>"$ORIGIN/$1/over"
	echo late | tee "$ORIGIN/$1/late" >"$ORIGIN/$1/later"
	AFTER="$(stamps "$1") $(stamps "$1/over")"
}
changed=()
for ((i = 1; i <= 60 && ${#changed[@]} < 3; i++)); do
	[ $((i % 3)) -ne 1 ] || "$PYTHON" -c 'import time; time.sleep(1.02 - time.time() % 1)'
	change "d$i"
	[ "$BEFORE" != "$AFTER" ] || changed+=("d$i")
done
is 'three directories and files changed, and the storage does not show it' "${#changed[@]}" 3
for dir in "${changed[@]}"; do
	ok "$dir: a name that came in the tick is found" wait_for 20 on_both late "$dir/late"
	ok "$dir: another name that came in the tick is found" wait_for 20 on_both late "$dir/later"
	ok "$dir: a file that was written over has its new bytes" \
		wait_for 20 on_both BBBB "$dir/over"
	ok "$dir: a file that another took the place of has its new bytes" \
		wait_for 20 on_both BBBB "$dir/instead"
done

# ---- a name that the storage denies once

slow_fault enoent=once/hidden
is 'a neighbour of the denied name is found meanwhile' \
	"$(cat "$W/mnt/1/once/beside" "$W/mnt/0/once/beside" 2>&1)" $'here\nhere'
slow_fault clear
ok 'a name that was denied while its directory was read is found' \
	wait_for 20 on_both here once/hidden
ok 'the tree stops' without_tree
