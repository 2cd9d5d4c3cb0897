#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file of 1 GiB that the parent has in its memory, read on the node below it by one program in
# order, compared with a bare loop of fi_writedata between two endpoints with the same provider and
# chunk, which has no reader and no kernel between; then by mmap, compared with read; then eight
# files by eight programs. Processor seconds are those of the reader and of both nodes, and beside
# them those of cp from the local page cache.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

mib=${BENCH_MIB:-1024}
bytes=$((mib << 20))
SRC=$T/src
random_file "$SRC/big" "$mib"
for i in 0 1 2 3 4 5 6 7; do
	random_file "$SRC/$i" 64
done
large() {
	"$PYTHON" "$cop_t/largefile.py" "$@"
}

# The node below can hold a part of the file only, and so asks its parent each time.
prepare_tree 2
cop_tree=2
start_node 0 --trees 1 --cache-size $((bytes * 2 + (1 << 30))) &
parent=$!
start_node 1 --trees 1 --cache-size 512M || bail "no node: $(cat "$W/out.1")"
wait "$parent" || bail "no node: $(cat "$W/out.0")"
pids=("$(pid_of 0)" "$(pid_of 1)")
nodes_cpu() {
	"$BENCH/cputime" "${pids[@]}" | awk '{ sum += $1 } END { print sum }'
}

# Reads a file of the lower node by a command, and adds the bytes per second and the processor
# seconds for a GiB.
measured() { # SIDE COMMAND…
	local side=$1 before
	shift
	forget_pages "$W/mnt/1/big"
	before=$(nodes_cpu)
	together 1 "$@"
	add "$side" "$(awk -v b=$bytes '{ print b / $1 }' "$T/together")"
	add "cpu-$side" "$(awk -v b=$bytes -v t="$(nodes_cpu)" -v f="$before" \
		'{ print ($2 + t - f) / b * 1073741824 }' "$T/together")"
}
by_read() {
	measured read "$PYTHON" "$cop_t/largefile.py" read "$W/mnt/1/big"
}
by_mmap() {
	measured mmap "$PYTHON" "$cop_t/largefile.py" mmap "$W/mnt/1/big"
}
bare() {
	add bare "$("$BENCH/writedata" $bytes 1048576)"
	add cpu-bare "$("$BENCH/writedata" $bytes 1048576 cpu |
		awk -v b=$bytes '{ sum += $1 } END { print sum / b * 1073741824 }')"
}
copied() {
	measured cp cp "$W/mnt/1/big" /dev/null
	together 1 cp "$SRC/big" /dev/null
	add cpu-local "$(awk -v b=$bytes '{ print $2 / b * 1073741824 }' "$T/together")"
}
others() {
	by_mmap && bare && copied
}
large read "$W/mnt/0/big"
large read "$W/mnt/1/big"
reads=$(tree_sum origin.bytes)
in_turn "${BENCH_PAIRS:-6}" by_read others
[ "$(tree_sum origin.bytes)" -eq "$reads" ] || bail "the storage was read again"
wants_processors 4
report 'one reader in order / bare fi_writedata' B/s at_least 0.9 read bare
wants_processors 0
report 'by mmap in order / by read' B/s at_least 0.8 mmap read
report 'processor time for a GiB, reader and both nodes / bare fi_writedata, both ends' s none - \
	cpu-read cpu-bare
report 'the same by mmap / by read' s none - cpu-mmap cpu-read
report 'the same by cp / cp of a local file in the page cache' s none - cpu-cp cpu-local

even() {
	local i
	for i in 0 1 2 3 4 5 6 7; do
		forget_pages "$W/mnt/1/$i"
	done
	large evenly "$W"/mnt/1/[0-7] >"$T/even" || bail "a reader failed"
	add evenly "$(awk '{ print $1 / $2 }' "$T/even")"
}
even
rm "$T/side.evenly"
in_turn 6 even true
report 'eight readers of eight files: busiest / least' times at_most 1.5 evenly -
