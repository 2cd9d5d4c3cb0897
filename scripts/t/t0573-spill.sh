#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# With a disk for what memory cannot hold, data larger than the memory of all nodes is read from the
# storage once, by one node and by four. Nothing of it stays, and a disk that will not do is refused
# or left alone.
# covers: spill cache fetch conf check
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 35

size=$((64 * 1024 * 1024))
files=500
set_bytes=$((files * 110000))
SRC=$T/src
disk=$T/disk
mkdir "$SRC" "$disk"
head -c $size /dev/urandom >"$SRC/weights"
numbered_files "$SRC/set" $files 110000
# Every read reaches slowfs and is counted: as long as a node keeps a file open, the kernel would
# answer from its pages.
with_slowfs --direct-io

reader() { # RANK HOW [SEED]: what went wrong, or nothing; its kernel forgets the pages
	"$PYTHON" "$cop_t/one_memory.py" "$2" "$W/mnt/$1/weights" "$ORIGIN/weights" "${3:-$1}" 2>&1
	"$PYTHON" -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$W/mnt/$1/weights"
}
epoch() { # RANK: reads all files in an order of its own; what went wrong, or nothing
	"$PYTHON" - "$W/mnt/$1/set" "$1" $files <<'PY' 2>&1
import os, random, sys
where, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
order = list(range(count))
random.Random(seed).shuffle(order)
for i in order:
    with open(f"{where}/file{i:05d}", "rb") as f:
        data = f.read()
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if data != random.Random(i).randbytes(len(data)) or len(data) != 110000:
        print(f"wrong bytes in file{i:05d}")
        break
PY
}
at_once() { # FUNCTION RANK…: what went wrong for any
	local what=$1 rank
	shift
	for rank; do
		"$what" "$rank" random &
	done
	wait
}
storage_gave() { # prints the bytes since the last call
	note "the storage gave $(($(slow_count bytes) * 100 / size)) % of 64 MiB; $(tree_sum spill.read_bytes) bytes came from disks so far" >&2
	slow_count bytes
	slow_reset
}

# ---- one node: without, and with

with_tree 1 --cache-size 20M --compress off
slow_reset
is 'a node reads the file twice' "$(reader 0 read && reader 0 random)" ''
ok 'and asks the storage twice' [ "$(storage_gave)" -ge $((size * 17 / 10)) ]
ok 'the tree stops' without_tree

with_tree 1 --cache-size 20M --compress off --spill "$disk"
slow_reset
is 'with a disk it reads the file three times' "$(reader 0 read && reader 0 random && reader 0 mmap)" ''
is_at_most 'and asks the storage once, but for what the disk was too slow for' "$(storage_gave)" \
	$((size * 101 / 100 + $(node_stat 0 spill.dropped_bytes)))
ok 'the rest came from its disk' [ "$(node_stat 0 spill.read_bytes)" -ge $((size * 13 / 10)) ]
is_at_most 'each part was written once' "$(node_stat 0 spill.written_bytes)" $size
is_at_most 'memory keeps its limit' "$(node_stat 0 budget.used_bytes)" \
	"$(node_stat 0 budget.limit_bytes)"
is_at_most 'which leaves a part of the cache to the disk' "$(node_stat 0 budget.limit_bytes)" \
	$((16 * 1024 * 1024))
is 'the directory is empty all the time' "$(ls -A "$disk")" ''
matches 'cache-stats shows the disk' "$("$COPPER" cache-stats "$W/mnt/0")" \
	$'\nspill      [0-9.]+ MiB used of [0-9.]+ [GT]iB on the disk of this node\n'
"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
is 'an invalidation empties it' "$(node_stat 0 budget.spill_bytes)" 0
# Its own count: the kernel may still have pages of the storage.
asked=$(node_stat 0 origin.bytes)
is 'and the file is read again' "$(reader 0 read)" ''
is_at_most 'from the storage' $size $(($(node_stat 0 origin.bytes) - asked))
pid=$(node_stat 0 pid)
held=$(stat -Lc '%b %a %h' /proc/"$pid"/fd/* 2>/dev/null | sort -n | tail -1)
matches 'its file has no name, and is for nobody else' "$held" '^[0-9]+ 600 0$'
kill_node 0
is 'a node that is killed leaves nothing behind' "$(ls -A "$disk")" ''
without_tree

# ---- four nodes

with_tree 4 --cache-size 16M --compress off --fanout 2 --spill "$disk,256M"
slow_reset
is 'four nodes read it at random' "$(at_once reader 0 1 2 3)" ''
is 'and many small files' "$(at_once epoch 0 1 2 3)" ''
is_at_most 'the storage gave each byte once' "$(storage_gave)" \
	$(((size + set_bytes) * 11 / 10 + $(tree_sum spill.dropped_bytes)))
is 'they read the file again' "$(at_once reader 3 2 1 0)" ''
is 'and the small files' "$(at_once epoch 3 2 1 0)" ''
is_at_most 'the storage gave hardly anything' "$(storage_gave)" \
	$(((size + set_bytes) / 20 + $(tree_sum spill.dropped_bytes)))
ok 'the tree stops' without_tree

mkdir "$T/refused" "$T/theirs"
chown 12345 "$T/theirs"
alone=("$COPPER" mount --source "$ORIGIN" "$T/refused" --spill)

# ---- a disk that fills up

mkdir "$T/small"
head -c 48M /dev/zero >"$T/image"
if mkfs.ext4 -qF "$T/image" 2>/dev/null && mount -o loop "$T/image" "$T/small" 2>/dev/null; then
	with_tree 1 --cache-size 20M --compress off --spill "$T/small,500M"
	matches 'a disk that has less room than asked for gives half of it' "$(cat "$W/out.0")" \
		'--spill .*/small: of the 500.0 MiB that it may use only [0-9.]+ MiB are free, and it uses half of those'
	head -c 48M /dev/zero >"$T/small/others" 2>/dev/null
	is 'it fills up and programs do not notice' "$(reader 0 read && reader 0 random)" ''
	is 'it is left alone' "$(node_stat 0 spill.failed) $(node_stat 0 budget.spill_limit_bytes)" '1 0'
	is 'with one warning' "$(grep -h 'the spill in' "$JOB"/logs/* |
		grep -c 'is left alone: cannot write: No space left on device')" 1
	ok 'the tree stops' without_tree
	fails_with 1 'only .* are free there; remove something, or leave the option out' "${alone[@]}" "$T/small"
	umount "$T/small"
else
	for i in 1 2 3 4 5 6; do pass "a disk that fills up # SKIP no loop devices here"; done
fi

# ---- what is refused

fails_with 1 '--spill /no/such: No such file or directory; name a directory that each node has' \
	"${alone[@]}" /no/such
fails_with 1 '--spill .*/weights: this is not a directory' "${alone[@]}" "$ORIGIN/weights"
fails_with 1 'belongs to another user' "${alone[@]}" "$T/theirs"
fails_with 1 'which machines share over a network; name a directory on a disk of each node' \
	"${alone[@]}" "$SRC"
fails_with 2 '--spill: .lots. is not a size' "${alone[@]}" "$disk,lots"
matches '--check says what there will be' "$("$COPPER" mount --check --source "$ORIGIN" --spill "$disk,64M" 2>&1)" \
	"ok +spill +$disk takes up to 64.0 MiB"
