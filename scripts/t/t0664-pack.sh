#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job keeps what it read as one file, from which the next job starts after it has asked the
# storage for the attributes of each directory and file; whatever changed is read anew. A pack that
# is damaged, foreign or cut off does no harm.
# covers: prefetch packfile fetch origin conf
# modes: release asan
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system and an owner of its own'
plan 48

unset COPPER_PREFETCH
cache=$XDG_CACHE_HOME/copper
SRC=$T/src
numbered_files "$SRC/small" 30 9000
numbered_files "$SRC/deep/er/still" 4 70000
numbered_files "$SRC/unused" 20 1000
head -c 3500000 /dev/urandom >"$SRC/deep/large"
ln -s er/still/file00001 "$SRC/deep/link"
ln -s ../small "$SRC/deep/dir"
chmod 600 "$SRC/small/file00003"
with_slowfs --meta-us 100

# What programs see of all that they use, on each of these nodes.
seen() { # DIR
	(cd "$1" && cat small/* deep/large deep/er/still/* deep/link && ls small deep/er/still deep/dir/ &&
		stat -L -c '%n %s %y %F' small/* deep/er/still/* deep/large deep/link) 2>&1 | b2sum
}
use() { # RANK…: each sees what the storage has
	local rank
	want=$(seen "$ORIGIN")
	for rank; do
		seen "$W/mnt/$rank" >"$T/seen.$rank" &
	done
	wait
	for rank; do
		[ "$(cat "$T/seen.$rank")" = "$want" ] || return 1
	done
}
prefetched() { # RANK…
	local rank
	for rank; do
		[ "$(node_stat "$rank" prefetching.state)" = "done" ] || return 1
	done
}
pack() {
	find "$cache" -name '*.copper-pack'
}
left() { # what is there besides a manifest and a pack
	find "$cache" "$T" -maxdepth 1 -name '*copper-pack.*' | wc -l
}
logged() { # REGEX
	grep -hE "$1" "$JOB"/logs/*.log 2>/dev/null | sort -u | wc -l
}
job() { # N [OPTION…]: a job on so many nodes that uses the files
	local nodes=$1 ranks
	shift
	with_tree "$nodes" "$@"
	ranks=$(seq 0 $((nodes - 1)))
	# shellcheck disable=SC2086
	wait_for 20 prefetched $ranks
	# shellcheck disable=SC2086
	use $ranks
}
taken() {
	node_stat 0 prefetch.packed
}

# ---- the first job, and what it leaves

ok 'a first job runs' job 1
ok 'it ends' without_tree
is 'it leaves a pack' "$(pack | wc -l)" 1
is 'which is its user'\''s alone' "$(stat -c %a "$(pack)")" 600
is 'and nothing unfinished' "$(left)" 0

# ---- the second job

slow_reset
ok 'four nodes read the same files' job 4
is 'the storage reads none of them' "$(slow_count read) $(slow_count bytes)" '0 0'
is 'nor a directory' "$(slow_count readdir)" 0
# 35 files, 2 links, 6 directories; the names that no job used are not asked for.
is_at_most 'it is asked for each name' "$(node_stat 0 origin.stats)" 45
ok 'the root took them from the pack' test "$(taken)" -ge 40
ok 'the second job ends' without_tree
before=$(stat -c %i "$(pack)")
ok 'another job runs' job 2 --kernel-ahead off
ok 'and ends' without_tree
is 'what lacks nothing is not written again' "$(stat -c %i "$(pack)")" "$before"

# ---- what changes between the jobs

change() {
	local f=$ORIGIN/small
	# The same size and mtime, in place.
	touch -r "$f/file00001" "$T/times"
	printf 'other bytes' | dd of="$f/file00001" conv=notrunc status=none
	touch -r "$T/times" "$f/file00001"
	# Another file of the same size and mtime, and of the same inode number if the file system
	# gives the free one again.
	touch -r "$f/file00002" "$T/times"
	rm "$f/file00002"
	head -c 9000 /dev/urandom >"$f/file00002"
	touch -r "$T/times" "$f/file00002"
	truncate -s 100 "$f/file00004"
	mv "$f/file00005" "$f/renamed"
	# Two names change places.
	mv "$f/file00006" "$f/swap" && mv "$f/file00007" "$f/file00006" && mv "$f/swap" "$f/file00007"
	rm "$f/file00008"
	echo more >>"$ORIGIN/deep/large"
	# The directory has the mtime of before.
	touch -r "$ORIGIN/deep/er/still" "$T/times"
	echo new >"$ORIGIN/deep/er/still/new"
	rm "$ORIGIN/deep/er/still/file00002"
	touch -r "$T/times" "$ORIGIN/deep/er/still"
	ln -sf er/still/file00003 "$ORIGIN/deep/link"
	rm "$ORIGIN/deep/dir" && ln -s ../unused "$ORIGIN/deep/dir"
}
cp "$(pack)" "$T/old"
without_slowfs
change
with_slowfs --meta-us 100
ok 'after changes, all nodes see what the storage has' job 3
ok 'the rest comes from the pack' test "$(taken)" -ge 15
ok 'the job with changes ends' without_tree
slow_reset
ok 'the job after it runs' job 2
is 'and has all of it in its pack' "$(slow_count read)" 0
ok 'it ends, too' without_tree
cp "$T/old" "$(pack)"
ok 'a pack of before the changes does no harm' job 2
ok 'its job ends' without_tree

# A directory in place of another one, a file in place of a directory.
without_slowfs
mv "$ORIGIN/small" "$ORIGIN/away"
numbered_files "$ORIGIN/small" 3 500
with_slowfs --meta-us 100
ok 'another directory of the same name is seen' job 2
ok 'the job with another directory ends' without_tree

# ---- what changes during the start

# Each file is whole at each moment: it repeats the number of its round. A reader must see one
# round, and none from before the tree began to start.
without_slowfs
rm -r "${ORIGIN:?}"/*
mkdir "$ORIGIN/d"
round() { # NUMBER
	local i
	for i in 1 2 3 4 5 6; do
		yes "$1" 2>/dev/null | head -c 20000 >"$T/next"
		mv "$T/next" "$ORIGIN/d/f$i"
	done
	echo "$1" >"$T/round"
}
rounds() { # FIRST: until it is told to end
	local n=$1
	while [ ! -e "$T/enough" ]; do
		round $((n++))
	done
}
read_rounds() { # RANK LEAST: 0 if each file is of one round that is not older
	local i numbers
	for i in 1 2 3 4 5 6; do
		# A file that is replaced while it is read is an error, as on the storage.
		while ! cat "$W/mnt/$1/d/f$i" >"$T/file.$1" 2>/dev/null; do
			:
		done
		# The last line is cut off.
		numbers=$(head -n -1 "$T/file.$1" | sort -u)
		[ "$(wc -l <<<"$numbers")" -eq 1 ] && [ "$numbers" -ge "$2" ] || {
			note "rank $1, f$i: $(tr '\n' ' ' <<<"$numbers"), wanted $2 or later"
			return 1
		}
	done
}
round 1000
with_slowfs --meta-us 500
with_tree 1
read_rounds 0 1000
without_tree
for first in 2000 3000; do
	rm -f "$T/enough"
	least=$(cat "$T/round")
	rounds "$first" &
	changer=$!
	with_tree 3
	read_rounds 1 "$least" && read_rounds 2 "$least" && read_rounds 0 "$least"
	result=$?
	: >"$T/enough"
	wait "$changer"
	is 'what is read during changes is whole, and not from before the start' "$result" 0
	without_tree
done
without_slowfs
SRC=$ORIGIN
unset ORIGIN

# ---- a pack that cannot be used

ORIGIN=$SRC
rm -r "$cache" "${SRC:?}"/*
numbered_files "$SRC/small" 20 9000
mkdir -p "$SRC/deep/er/still"
numbered_files "$SRC/deep/er/still" 1 5
head -c 300000 /dev/urandom >"$SRC/deep/large"
ln -s large "$SRC/deep/link"
ln -s ../small "$SRC/deep/dir"
job 1
without_tree
cp -p "$(pack)" "$T/good"
refused() { # DESCRIPTION REGEX
	job 2
	is "$1: right bytes" "$?" 0
	is "$1: one line says so" "$(logged "$2")" 1
	without_tree
	cp -p "$T/good" "$(pack)"
}
size=$(stat -c %s "$(pack)")
printf 'damaged' | dd of="$(pack)" bs=1 seek=$((size / 2)) conv=notrunc status=none
refused 'damaged bytes of a file' 'pack of the last job is (damaged|not used)'
printf 'damaged' | dd of="$(pack)" bs=1 seek=$((size - 100)) conv=notrunc status=none
refused 'a damaged index' 'it is damaged'
truncate -s $((size / 3)) "$(pack)"
refused 'a pack that is cut off' 'it is damaged'
head -c "$size" /dev/urandom >"$(pack)"
refused 'garbage' 'it is damaged'
chmod 660 "$(pack)"
refused 'a pack that a group can write' 'others may write to it'
chown 12345 "$(pack)"
refused 'a pack of another user' 'belongs to another user'

# ---- limits

job 2 --chunk 64K
is 'a pack of other chunks is left alone' "$(taken)" 0
without_tree
rm "$(pack)"
job 1 --pack-limit 200K --kernel-ahead off
without_tree
is_at_most 'a pack keeps to its limit' "$(stat -c %s "$(pack)")" 204800
cp -p "$T/good" "$(pack)"
job 1 --pack-limit 0
is '--pack-limit 0 uses none' "$(taken)" 0
without_tree
rm "$(pack)"
job 1 --pack-limit 0
without_tree
is 'and writes none' "$(pack | wc -l)" 0

# ---- a full disk, two jobs, a long job

mkdir "$T/full"
mount -t tmpfs -o size=200k,mode=700 tmpfs "$T/full" || bail 'no tmpfs here'
XDG_CACHE_HOME=$T/full job 1
is 'with a full disk a job reads right' "$?" 0
XDG_CACHE_HOME=$T/full without_tree
is 'a full disk is one line' "$(logged 'pack for the next job was not written')" 1
is 'and leaves nothing unfinished' "$(find "$T/full" -name '*pack*' | wc -l)" 0
umount "$T/full"

rm -rf "$cache"
job 1 --prefetch auto --kernel-ahead off
without_tree
ok 'a pack that was asked for by name is beside the source' test -s "$T/.src.copper-pack"
rm "$T"/.src.copper-*
job 1 --kernel-ahead off
ok 'a job that goes on writes its pack meanwhile' wait_for 30 eval '[ -n "$(pack)" ]'
without_tree
job 1
taken >"$T/taken"
without_tree
ok 'which the next one uses' test "$(cat "$T/taken")" -ge 20
