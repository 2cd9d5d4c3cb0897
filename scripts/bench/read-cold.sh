#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Reads a 1 GiB file from front to end that the node has and the kernel does not, compared with
# libfuse's own example passthrough_ll over the local page cache (slowfs without costs if that
# example is not installed).
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=$T/src
random_file "$SRC/big" 1024
with_tree 1 --cache-size 3G
example=/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c
mkdir -p "$T/through"
if [ -r "$example" ] && gcc -O2 -w -D_GNU_SOURCE -I/usr/include/fuse3 -I"${example%/*}" \
	-o "$T/passthrough" "$example" -lfuse3; then
	against=passthrough_ll
	"$T/passthrough" -o "source=$SRC,cache=always,timeout=3600" "$T/through" ||
		bail "passthrough_ll does not mount"
else
	against=slowfs
	"$SLOWFS" --cache-s 3600 "$SRC" "$T/through" || bail "slowfs does not mount"
fi
read_cold() { # FILE
	forget_pages "$1"
	wall 1 dd if="$1" of=/dev/null bs=1M status=none
}
copper() {
	add copper "$(read_cold "$W/mnt/0/big")"
}
through() {
	add through "$(read_cold "$T/through/big")"
}
add first "$(read_cold "$W/mnt/0/big")"
read_cold "$T/through/big" >/dev/null
reads=$(node_stat 0 fuse.read)
in_turn "${BENCH_PAIRS:-6}" copper through
[ "$(node_stat 0 fuse.read)" -gt "$reads" ] || bail "the kernel kept the pages"
umount "$T/through"
report "1 GiB that the node has and the kernel not / $against" s at_most 0.5 copper through
report '1 GiB that only the origin has' s none - first -
