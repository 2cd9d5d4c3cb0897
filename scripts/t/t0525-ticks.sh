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

# Reads directories through both nodes and changes them again, until three changes were not to be
# seen in what the storage shows of them: all of it happened in the tick that had just begun. One
# process, so that it does.
read -ra changed < <("$PYTHON" - "$ORIGIN" "$SRC" "$W/mnt/1" "$W/mnt/0" <<'PY'
import os, sys, time
origin, source, *mounts = sys.argv[1:]

def write(name, text, flags=os.O_TRUNC):
    fd = os.open(f"{origin}/{name}", os.O_WRONLY | os.O_CREAT | flags, 0o644)
    os.write(fd, text)
    os.close(fd)

def stamps(name):
    s = os.stat(f"{source}/{name}")
    return int(s.st_mtime), int(s.st_ctime), s.st_size, s.st_ino

def change(d):
    write(f"{d}/over", b"AAAA\n")
    write(f"{d}/instead", b"AAAA\n")
    for mount in mounts:
        for late in "late", "later":
            assert not os.path.exists(f"{mount}/{d}/{late}")
        for name in "over", "instead":
            with open(f"{mount}/{d}/{name}") as f:
                assert f.read() == "AAAA\n"
    before = stamps(d), stamps(f"{d}/over")
    write(f"{d}/new", b"BBBB\n")
    os.rename(f"{origin}/{d}/new", f"{origin}/{d}/instead")
    write(f"{d}/over", b"BBBB\n", 0)
    write(f"{d}/late", b"late\n")
    write(f"{d}/later", b"late\n")
    return before == (stamps(d), stamps(f"{d}/over"))

changed = []
for i in range(1, 61):
    if i % 3 == 1:
        time.sleep(1.02 - time.time() % 1)
    if change(f"d{i}"):
        changed.append(f"d{i}")
    if len(changed) == 3:
        break
print(*changed)
PY
)
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
