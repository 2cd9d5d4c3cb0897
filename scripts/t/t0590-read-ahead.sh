#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How much of a file is fetched: all of a small file and of a medium program or library, all of
# another medium file from the second chunk on, of a large one what is touched, and a window ahead
# of a sequential reader.
# covers: fuse
# modes: release
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 19

SRC=$T/src
mkdir "$SRC"
head -c $((4 << 20)) /dev/urandom >"$SRC/small"
head -c $((64 << 20)) /dev/urandom >"$SRC/large"
cp "$SRC/large" "$SRC/second"
cp "$SRC/large" "$SRC/third"
head -c $((7 << 20)) "$SRC/large" >"$SRC/medium"
cp "$SRC/medium" "$SRC/libmedium.so.1"
cp "$SRC/medium" "$SRC/program"
chmod 755 "$SRC/program"
head -c $((9 << 20)) "$SRC/large" >"$SRC/liblarge.so"
# With more trees, the node would read groups of its own.
with_tree 2 --trees 1
mnt=$W/mnt/1

# Single pages, so that the kernel itself reads nothing ahead; with a pause, because a read is
# answered before its read-ahead is decided, which the next read may overtake.
touch_mibs() { # FILE MIB…
	look_around
	"$PYTHON" - "$CROWD" "$@" <<'PY'
import os, sys, time
fd = os.open(sys.argv[2], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for mib in sys.argv[3:]:
    time.sleep(0.1 * int(sys.argv[1]))
    assert len(os.pread(fd, 4096, (int(mib) << 20) + 4096)) == 4096
PY
}
# Chunks at a node once nothing is in flight any more, at it or above it, twice in a row.
at_rest() { # RANK
	[ "$(node_stat 0 waiting.flights) $(node_stat 1 waiting.flights)" = '0 0' ] &&
		now=$(node_stat "$1" tables.data.entries)
}
chunks() { # RANK
	local last=-1 now=
	while [ "$now" != "$last" ]; do
		look_around
		sleep "$(awk -v crowd="$CROWD" 'BEGIN { print 0.3 * crowd }')"
		last=$now
		until at_rest "$1"; do
			sleep 0.1
		done
	done
	echo "$now"
}

touch_mibs "$mnt/small" 2
is 'one page of a file of 4 MiB brings all of it' "$(chunks 1)" 4
is 'the root read it once' "$(node_stat 0 origin.reads)" 1
touch_mibs "$mnt/large" 0
is 'one page of a file of 64 MiB brings one chunk' "$(chunks 1)" 5
is 'from a group that the root read' "$(chunks 0)" 8
touch_mibs "$mnt/large" 63 10 2 40 20 50 30
is 'jumps: the chunks that were touched' "$(chunks 1)" 12
touch_mibs "$mnt/large" 0 63 10 2 40 20 50 30
is 'the same jumps again bring nothing more' "$(chunks 1)" 12
ok 'the whole large file is right' cmp "$SRC/large" "$mnt/large"
is 'the whole large file is at the node' "$(chunks 1)" 68
touch_mibs "$mnt/second" 0 1 2
is 'three chunks in order: two more ahead' "$(chunks 1)" $((68 + 3 + 2))
touch_mibs "$mnt/third" 0 1 2 3 4 5
is 'six in order: seven more, the window is eight' "$(chunks 1)" $((73 + 6 + 7))
ok 'the whole third file is right' cmp "$SRC/third" "$mnt/third"
before=$(chunks 1)
touch_mibs "$mnt/medium" 0
is 'the first page of 7 MiB: one chunk comes' "$(chunks 1)" $((before + 1))
messages=$(node_stat 1 fabric.request_messages)
touch_mibs "$mnt/medium" 5
is 'another page of it brings the rest' "$(chunks 1)" $((before + 7))
# The kernel may have asked for the name again.
is_at_most 'the rest comes in one message' "$(node_stat 1 fabric.request_messages)" $((messages + 2))
before=$(chunks 1)
messages=$(node_stat 1 fabric.request_messages)
touch_mibs "$mnt/libmedium.so.1" 0
is 'the first page of a library of 7 MiB brings all of it' "$(chunks 1)" $((before + 7))
# Its name, and its bytes.
is_at_most 'in one message' "$(node_stat 1 fabric.request_messages)" $((messages + 2))
touch_mibs "$mnt/program" 0
is 'so does that of a program' "$(chunks 1)" $((before + 14))
touch_mibs "$mnt/liblarge.so" 0
is 'of a larger one it brings one chunk' "$(chunks 1)" $((before + 15))
ok 'the tree stops' without_tree
