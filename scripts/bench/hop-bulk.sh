#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 1 GiB from the cache of a parent into the cache of its child, checksums included, compared with a
# bare loop of fi_writedata with the same provider and chunk size, between memory of the same size.
# The loop's memory has been touched before, so it compares with the child's third pass (its cache
# was emptied in between); the first pass includes getting 1 GiB from the kernel.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

gib=1073741824
chunk=1048576
copper() {
	"$BENCH/hop" bulk "$gib" "$chunk" >"$T/bulk" || bail "hop failed"
	add first "$(sed -n 1p "$T/bulk")"
	add third "$(sed -n 3p "$T/bulk")"
}
bare() {
	add bare "$("$BENCH/writedata" "$gib" "$chunk")"
	add one "$("$BENCH/writedata" "$gib" "$chunk" one)"
}
in_turn "${BENCH_PAIRS:-8}" copper bare
report 'one hop, 1 GiB memory to memory / bare fi_writedata' B/s at_least 0.9 third bare
report 'the same into fresh memory / bare fi_writedata' B/s at_least 0.5 first bare
report 'one hop, 1 GiB / bare fi_writedata of one chunk over and over' B/s none - third one
