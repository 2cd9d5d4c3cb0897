#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How far the kernel reads ahead of a program: 128 KiB as it does by itself, 256 and 512 KiB, and
# what that costs and saves. The first import of numpy and the first start of clang on the second of
# two nodes, and a file of 256 MiB in order, by read and by mmap. The requests of the kernel, the
# bytes of the storage and the messages of the node are counts, which do not depend on the load.
# Each row has a tree of its own. Only root may change the read-ahead.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

set_read_ahead() { # KIB
	local dir
	for dir in "$W/mnt/0" "$W/mnt/1"; do
		echo "$1" >"/sys/class/bdi/$(awk -v dir="$dir" '$5 == dir { print $3 }' \
			/proc/self/mountinfo)/read_ahead_kb" || bail 'only root may change the read-ahead'
	done
}
numpy() {
	import_wall "$W/mnt/1"
}
start_clang() {
	local real
	real=$(realpath --relative-to=/usr "$(type -P clang)")
	wall 1 env LD_LIBRARY_PATH="$W/mnt/1/lib/x86_64-linux-gnu" "$W/mnt/1/$real" -c -x c \
		-o /dev/null /dev/null
}
by() { # read|mmap
	wall 1 "$PYTHON" "$cop_t/largefile.py" "$1" "$W/mnt/1/large"
}
measured() { # KIB SIDE SOURCE COMMAND…
	local kib=$1 side=$2 before now
	SRC=$3
	shift 3
	with_tree 2
	set_read_ahead "$kib"
	before=$(counts)
	add "$side-s-$kib" "$("$@")"
	add "$side-cpu-$kib" "$(cut -d ' ' -f 2 "$T/together")"
	now=$(counts)
	paste <(printf '%s\n' reads bytes messages) <(tr ' ' '\n' <<<"$now") <(tr ' ' '\n' <<<"$before") |
		while read -r what after first; do
			add "$side-$what-$kib" $((after - first))
		done
	without_tree
}
# The kernel's reads on the node, the bytes that the storage gave, the messages of the node.
counts() {
	echo "$(node_stat 1 fuse.read) $(tree_sum origin.bytes) $(node_stat 1 fabric.request_messages)"
}
random_file "$T/src/large" 256
mkdir -p "$T/src"
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	for kib in 128 256 512; do
		measured $kib numpy /usr numpy
		! type -P clang >/dev/null || measured $kib clang /usr start_clang
		measured $kib read "$T/src" by read
		measured $kib mmap "$T/src" by mmap
	done
done
for side in numpy clang read mmap; do
	[ -e "$T/side.$side-s-128" ] || continue
	for kib in 256 512; do
		report "$side, $kib KiB / 128 KiB: reads" '' none - "$side-reads-$kib" "$side-reads-128"
		report "$side, $kib KiB / 128 KiB: bytes" B at_most 1.02 "$side-bytes-$kib" \
			"$side-bytes-128"
		report "$side, $kib KiB / 128 KiB: messages" '' at_most 1.02 "$side-messages-$kib" \
			"$side-messages-128"
	done
done
for kib in 128 256 512; do
	report "by read in order / by mmap, $kib KiB" s at_least 0.8 "read-s-$kib" "mmap-s-$kib"
	report "processor seconds of a reader by read, $kib KiB / 128 KiB" s none - "read-cpu-$kib" read-cpu-128
done
