#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The cost of one request: how many system calls the node that serves it makes, and how often one of
# its threads sleeps, in a chain of three nodes (root, middle, leaf). These are counts, and each is
# the mean of many of a kind: a lookup of a name whose directory the leaf knows; a read of 128 KiB
# that the leaf has in its cache (and the kernel no longer has); a chunk of 1 MiB that comes from
# the middle's cache; and, at the middle, a chunk that it gets from the root and passes on. Threads
# of a node look for more work before they sleep, so a slow or busy machine shows more of both.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

command -v strace >/dev/null || bail 'there is no strace'
count=200
chunks=64
SRC=$T/src
mkdir -p "$SRC/names"
for ((i = 0; i < count; i++)); do
	echo x >"$SRC/names/file$i"
done
random_file "$SRC/hit" $((count / 8))
random_file "$SRC/miss" "$chunks"
random_file "$SRC/relayed" "$chunks"
look_up() { # each name once, without a list
	"$PYTHON" - "$W/mnt/2/names" "$count" <<'PY'
import os, sys
for i in range(int(sys.argv[2])):
    os.stat(f"{sys.argv[1]}/file{i}")
PY
}
read_in() { # FILE BYTES
	"$PYTHON" - "$W/mnt/2/$1" "$2" <<'PY'
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM)
while os.read(f, int(sys.argv[2])):
    pass
PY
}
slept() { # PID
	cat /proc/"$1"/task/*/status | awk '/^voluntary/ { sum += $2 } END { print sum }'
}
# One pass counts sleeps and the next one calls, since a traced process sleeps more often.
counted() { # SIDE RANK N COMMAND…: of a node that is not traced
	local pid before
	pid=$(pid_of "$2")
	before=$(slept "$pid")
	"${@:4}" || bail "$* failed"
	add "$1-slept" "$(awk -v a="$(slept "$pid")" -v b="$before" -v n="$3" 'BEGIN { printf "%.2f", (a - b) / n }')"
}
traced() { # SIDE RANK N COMMAND…
	local tracer
	strace -f -c -o "$T/calls" -p "$(pid_of "$2")" 2>"$T/strace" &
	tracer=$!
	wait_for 10 grep -q attached "$T/strace" || bail 'strace does not attach'
	"${@:4}" || bail "$* failed"
	kill "$tracer"
	wait "$tracer"
	add "$1-calls" "$(awk -v n="$3" '$NF == "total" { printf "%.2f", ($4 ~ /^[0-9]+$/ ? $4 : $3) / n }' "$T/calls")"
	awk -v n="$3" '$4 ~ /^[0-9]+$/ && $NF != "total" && $4 / n >= 0.1 { printf "%s%s %.1f", sep, $NF, $4 / n; sep = ", " }' "$T/calls" >"$T/$1.kinds"
}
measure() { # HOW
	with_tree 3 --fanout 1 --cache-size 1G
	stat "$W/mnt/2/names/file0" >/dev/null
	"$1" lookup 2 "$count" look_up
	cat "$W/mnt/2/hit" >/dev/null
	forget_pages "$W/mnt/2/hit"
	"$1" hit 2 "$count" read_in hit 131072
	cat "$W/mnt/1/miss" >/dev/null
	"$1" miss 2 "$chunks" read_in miss 1048576
	"$1" relayed 1 "$chunks" read_in relayed 1048576
	without_tree
}
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	measure counted
	measure traced
done
show() { # SIDE WHAT
	report "system calls for $2 ($(cat "$T/$1.kinds"))" calls none - "$1-calls" -
	report "times that a thread slept for $2" times none - "$1-slept" -
}
show lookup 'a lookup of a name in a listed directory'
show hit 'a read of 128 KiB that the leaf has'
show miss 'a chunk of 1 MiB that the parent has'
show relayed 'a chunk of 1 MiB that is passed on'
