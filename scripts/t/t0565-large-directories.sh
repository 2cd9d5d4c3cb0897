#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Directories with more names than a listing has attributes for: a program that goes through them
# gets the attributes in pages, with few requests, and one that asks for a few names costs no more
# than those. The answers are right when the directory changes meanwhile and when a name hangs.
# covers: fetch fuse
# modes: release asan
# limit: 480
# takes: 70
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 68

# A sanitizer sees as much of a dozen pages as of sixty.
large=60000
[ "$cop_mode" = release ] || large=12000
SRC=$T/src
mkdir -p "$SRC"
# n* have files of different sizes; kinds has links and directories too.
"$PYTHON" - "$SRC" "$large" <<'PY'
import os, sys
os.chdir(sys.argv[1])
for count in 64, 65, 200, 1000, 5000, int(sys.argv[2]):
    os.mkdir(f"n{count}")
    for i in range(count):
        with open(f"n{count}/name-{i}", "wb", buffering=0) as f:
            if i % 3 == 0:
                f.write(b"x" * (i % 50))
for dir in "few", "sorted", "changed", "old":
    os.mkdir(dir)
    for i in range(3000):
        with open(f"{dir}/name-{i}", "wb", buffering=0) as f:
            f.write(b"old %d" % i)
for dir in "sorted200", "some200":
    os.mkdir(dir)
    for i in range(200):
        with open(f"{dir}/name-{i}", "wb", buffering=0) as f:
            f.write(b"%d" % i)
os.mkdir("kinds")
for i in range(1500):
    if i % 3 == 0:
        os.mkdir(f"kinds/k{i}")
    elif i % 3 == 1:
        os.symlink(f"to/{i}", f"kinds/k{i}")
    else:
        open(f"kinds/k{i}", "wb").close()
PY
written "$SRC"
sleep 1

listed() { # DIR: what ls shows
	# shellcheck disable=SC2012 # what ls does is the point
	ls -lU --time-style=full-iso "$1" | sort
}
declare -A at=()
mark() {
	at[requests]=$(node_stat 2 fabric.requests_sent)
	at[middle]=$(node_stat 1 fabric.requests_sent)
	at[stats]=$(node_stat 0 origin.stats)
	at[operations]=$(node_stat 0 origin.operations)
}
since() { # requests | middle | stats | operations: what was added since `mark`
	local now
	case $1 in
	requests) now=$(node_stat 2 fabric.requests_sent) ;;
	middle) now=$(node_stat 1 fabric.requests_sent) ;;
	*) now=$(node_stat 0 "origin.$1") ;;
	esac
	echo $((now - at[$1]))
}
look() { # PYTHON with os, and d for the directory; prints what it prints
	local dir=$1
	shift
	timeout "$(patient 60)" "$PYTHON" -c "
import os, sys
d = sys.argv[1]
def names(): # in the order of the mount
    return [e.name for e in os.scandir(d)]
def size(name):
    return os.lstat(d + '/' + name).st_size
$1" "$dir" "${@:2}"
}

# ---- who goes through a directory

with_tree 3 --fanout 1
ls "$W/mnt/2" >/dev/null
# What a leaf costs that lists the directory in a new tree, or one more new tree or two: attributes
# that a root does not get within a second, as on a machine that gives its threads no processor, go
# out of their page and are asked for singly.
costs() { # COUNT
	local try
	for try in 1 2 3; do
		mark
		listed "$W/mnt/2/n$1" >"$T/leaf"
		requests=$(since requests)
		stats=$(since stats)
		operations=$(since operations)
		note "$1 names: $requests requests, $stats attributes and $operations operations at the origin"
		[ "$stats" -gt $(($1 + 4)) ] && [ "$try" -lt 3 ] || return 0
		without_tree
		with_tree 3 --fanout 1
		ls "$W/mnt/2" >/dev/null
	done
}
for count in 64 65 200 1000 5000 "$large"; do
	costs "$count"
	# The listing, which may be asked for again with more room; the first names; the pages.
	is_at_most "$count names: requests of a leaf" "$requests" $((count / 1000 + 6))
	is_at_most "$count names: attributes that the origin reads" "$stats" $((count + 4))
	is_at_most "$count names: operations at the origin" \
		"$operations" $((count + count / 50 + 40))
	listed "$SRC/n$count" >"$T/n$count"
	ok "$count names: they are shown as the source has them" cmp "$T/leaf" "$T/n$count"
	mark
	listed "$W/mnt/1/n$count" >"$T/middle"
	is "$count names: the node on the way has all of it" "$(since middle) $(since stats)" '0 0'
	ok "$count names: and shows the same" cmp "$T/leaf" "$T/middle"
done
look "$W/mnt/2/kinds" '
for e in sorted(os.scandir(d), key=lambda e: e.name):
    s = e.stat(follow_symlinks=False)
    print(e.name, e.inode(), e.is_dir(follow_symlinks=False), e.is_symlink(), s.st_ino, s.st_mode, s.st_size, os.readlink(e.path) if e.is_symlink() else "")' >"$T/kinds"
ok 'types, inode numbers and link targets are right' cmp "$T/kinds" <(look "$SRC/kinds" '
for e in sorted(os.scandir(d), key=lambda e: e.name):
    s = e.stat(follow_symlinks=False)
    print(e.name, e.inode(), e.is_dir(follow_symlinks=False), e.is_symlink(), s.st_ino, s.st_mode, s.st_size, os.readlink(e.path) if e.is_symlink() else "")')

# ---- who does not

mark
is 'names alone cost no attributes' \
	"$(look "$W/mnt/2/few" 'print(len(names()))') $(since stats)" '3000 0'
mark
is 'one name of a directory costs one request' \
	"$(look "$W/mnt/2/few" 'print(size("name-17"))') $(since requests) $(since stats)" '6 1 1'
mark
is 'ten names cost ten' \
	"$(look "$W/mnt/2/few" 'print(sum(size(f"name-{i}") for i in range(100, 2000, 190)))') $(since requests) $(since stats)" \
	'75 10 10'
# In the order of their names, which is not that of the listing: 32 names for each of three pages.
mark
is 'all names, sorted' "$(look "$W/mnt/2/sorted" 'print(sum(size(n) for n in sorted(names())))')" \
	"$(look "$SRC/sorted" 'print(sum(size(n) for n in names()))')"
note "$(since requests) requests, $(since stats) attributes"
is_at_most 'need far fewer requests than there are' "$(since requests)" 120
is_at_most 'and each name once from the storage, but for the first' "$(since stats)" 3100

# In a directory with a single page, names in rising order are enough, and others are more names.
mark
is 'all of 200 names, sorted' \
	"$(look "$W/mnt/2/sorted200" 'print(sum(size(n) for n in sorted(names())))')" \
	"$(look "$SRC/sorted200" 'print(sum(size(n) for n in names()))')"
is_at_most 'need a few requests' "$(since requests)" 16
is_at_most 'and each name once from the storage, but for the first' "$(since stats)" 212
mark
is 'a quarter of 200 names in no order costs as many' \
	"$(look "$W/mnt/2/some200" 'print(sum(size(f"name-{i * 77 % 200}") for i in range(50)))') $(since requests) $(since stats)" \
	"$(look "$SRC/some200" 'print(sum(size(f"name-{i * 77 % 200}") for i in range(50)))') 51 50"
look "$W/mnt/2/some200" 'print(sum(size(n) for n in names()))' >"$T/sum"
is_at_most 'until somebody wants all of them' "$(since requests)" 60

# ---- a directory that changes while somebody goes through it

# What is changed is in the last page, which has not been fetched yet.
is 'what was changed meanwhile is shown as it is' "$(look "$W/mnt/2/changed" '
src = sys.argv[2]
order = names()
for n in order[:500]:
    size(n)
other, gone = order[-1], order[-2]
with open(src + "/new", "w") as f:
    f.write("quite another one")
os.rename(src + "/new", src + "/" + other)
os.unlink(src + "/" + gone)
wrong = [n for n in order[500:] if n not in (other, gone) and size(n) != os.lstat(src + "/" + n).st_size]
try:
    missing = size(gone)
except FileNotFoundError:
    missing = "gone"
print(len(wrong), size(other), missing, open(d + "/" + other).read())' "$SRC/changed")" \
	'0 17 gone quite another one'

# ---- files that change

reads() { # FILE TEXT
	[ "$(cat "$1" 2>&1)" = "$2" ]
}
mark
listed "$W/mnt/2/old" >/dev/null
is_at_most 'a directory comes in pages' "$(since requests)" 10
for name in name-7 name-8; do
	echo "newer than before" >"$SRC/old/$name"
done
cat "$W/mnt/2/old/name-7" >"$T/stale" 2>&1
matches 'a file that has changed is stale' "$(cat "$T/stale")" 'Stale'
ok 'a replaced file is soon the new one' wait_for 20 reads "$W/mnt/2/old/name-7" 'newer than before'
ok 'its neighbour is the new one, too' wait_for 20 reads "$W/mnt/2/old/name-8" 'newer than before'
ok 'on the node on the way as well' wait_for 20 reads "$W/mnt/1/old/name-7" 'newer than before'
is 'other names there are right' "$(cat "$W/mnt/2/old"/name-20*)" "$(cat "$SRC/old"/name-20*)"
echo "invalidated" >"$SRC/n200/name-1"
"$COPPER" cache-stats --invalidate "$W/mnt/2" "n200/name-1" >"$T/.out" 2>&1 ||
	note "$(cat "$T/.out")"
is 'an invalidated name is the new one on all nodes' \
	"$(cat "$W"/mnt/{0,1,2}/n200/name-1)" $'invalidated\ninvalidated\ninvalidated'
listed "$W/mnt/2/n200" >"$T/leaf"
ok 'the directory is shown as the source has it' cmp "$T/leaf" <(listed "$SRC/n200")
ok 'the tree stops' without_tree

# ---- little memory

# The file fills the cache, so names and pages find room only if something else leaves.
head -c 24M /dev/urandom >"$SRC/filler"
with_tree 2 --fanout 1 --cache-size 16M
ok 'a file larger than the cache is read' cmp "$SRC/filler" "$W/mnt/1/filler"
listed "$W/mnt/1/n$large" >"$T/leaf"
ok "with little memory $large names are shown as well" cmp "$T/leaf" "$T/n$large"
is_at_most 'within the limit' "$(node_stat 1 budget.used_bytes)" $((16 << 20))
ok 'the tree stops' without_tree

# ---- a name that hangs

SRC=$T/slow
mkdir -p "$SRC/d"
for i in {1..1200}; do
	echo "$i" >"$SRC/d/f$i"
done
sleep 1
with_slowfs --cache-s 0
slow_fault hang=d/f700
with_tree 3 --fanout 1
mark
is 'a name that hangs holds no other' \
	"$(look "$W/mnt/2/d" 'print(sum(size(n) for n in names() if n != "f700"))')" \
	"$(look "$ORIGIN/d" 'print(sum(size(n) for n in names() if n != "f700"))')"
is_at_most 'and they come in pages' "$(since requests)" 12
stat -c %s "$W/mnt/2/d/f700" >"$T/hung" 2>&1 &
reader=$!
is 'while somebody waits for it, its directory is read' \
	"$(look "$W/mnt/1/d" 'print(len(names()), size("f699"))')" '1200 4'
ok 'a program that wants the name waits' is_ours "$reader"
slow_fault clear
ok 'until it is answered' wait_for 20 eval '! kill -0 "$reader"'
is 'with what it is' "$(cat "$T/hung")" 4
