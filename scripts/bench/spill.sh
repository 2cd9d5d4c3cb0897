#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Data larger than the memory of all nodes, with and without a disk behind it (--spill): the bytes
# that the storage gives, and the seconds. One node of 20M reads a file of 64 MiB three times; four
# nodes of 16M read that and 500 small files twice, each in an order of its own.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

size=$((64 * 1024 * 1024))
files=500
SRC=$T/src
mkdir "$SRC" "$T/disk"
head -c $size /dev/urandom >"$SRC/weights"
numbered_files "$SRC/set" $files 110000
with_slowfs --meta-us 0

read_all() { # MOUNT SEED FILES
	"$PYTHON" -c '
import os, random, sys
mount, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
places = [("weights", at) for at in range(0, 64 << 20, 64 << 10)]
places += [("set/file%05d" % i, 0) for i in range(count)]
random.Random(seed).shuffle(places)
for name, at in places:
    fd = os.open(os.path.join(mount, name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(fd, 64 << 10 if name == "weights" else 1 << 20, at)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)' "$@"
}

round() { # NAME NODES TIMES FILES OPTION…
	local name=$1 nodes=$2 times=$3 count=$4 rank turn began
	shift 4
	with_tree "$nodes" --compress off "$@"
	slow_reset
	began=$EPOCHREALTIME
	for ((turn = 0; turn < times; turn++)); do
		for ((rank = 0; rank < nodes; rank++)); do
			read_all "$W/mnt/$rank" $((turn * 16 + rank)) "$count" &
		done
		for ((rank = 0; rank < nodes; rank++)); do
			wait -n
		done
	done
	add "$name-s" "$(awk "BEGIN { print $EPOCHREALTIME - $began }")"
	add "$name-share" "$(awk "BEGIN { print $(slow_count bytes) / ($size + $count * 110000) }")"
	without_tree || bail 'the tree does not stop'
}
round one 1 3 0 --cache-size 20M
round one-disk 1 3 0 --cache-size 20M --spill "$T/disk"
round four 4 2 $files --cache-size 16M --fanout 2
round four-disk 4 2 $files --cache-size 16M --fanout 2 --spill "$T/disk"
report 'storage bytes / data, one node of 20M, 64 MiB three times' '' at_most 1.1 one-disk-share one-share
report 'the same, seconds' s none - one-disk-s one-s
report 'storage bytes / data, four nodes of 16M, 119 MB twice' '' at_most 1.1 four-disk-share four-share
report 'the same, seconds' s none - four-disk-s four-s
