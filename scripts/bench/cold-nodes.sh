#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A first import on 8 nodes at once compared with one node, over storage that takes 1 ms for each
# metadata operation, in waiting time: wall time less CPU and less the time in a run queue, of the
# one that waited longest. Eight nodes here share the processors that eight machines would have for
# themselves; that cannot be subtracted completely, because a reader also waits for nodes that are
# in a run queue.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
import_wall /usr >/dev/null
cold() { # SIDE N
	SRC=/usr
	with_slowfs --meta-us 1000 --cache-s 3600
	with_tree "$2" --cache-size 1G
	add "wall-$1" "$(import_wall "$W/mnt/{}" "$2")"
	add "waiting-$1" "$(waiting)"
	without_tree
	without_slowfs
}
eight() {
	cold eight 8
}
one() {
	cold one 1
}
in_turn "${BENCH_PAIRS:-5}" eight one
wants_processors 16
report "cold import $module, waiting time, 8 nodes / 1 node" s at_most 1.2 waiting-eight waiting-one
report "cold import $module, wall time, 8 nodes / 1 node" s none - wall-eight wall-one
