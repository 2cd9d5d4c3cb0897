#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Four nodes on this machine import at once, compared with four native processes at once. Cold: a
# fresh tree each time, all four nodes empty; the source itself is in the page cache in both cases.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
native() { # SIDE
	add "$1" "$(import_wall /usr 4)"
}
native warm-up
with_tree 4
import_wall "$W/mnt/{}" 4 >/dev/null
warm() {
	add warm "$(import_wall "$W/mnt/{}" 4)"
}
native_warm() {
	native native-warm
}
hold_what_was_read 0 1 2 3
in_turn "${BENCH_PAIRS:-8}" warm native_warm
let_go
without_tree || bail "the tree does not stop"

cold() {
	with_tree 4
	add cold "$(import_wall "$W/mnt/{}" 4)"
	without_tree
}
native_cold() {
	native native-cold
}
in_turn "${BENCH_PAIRS:-8}" cold native_cold
wants_processors 8
report "4 nodes import $module at once, warm / 4 native" s at_most 1.1 warm native-warm
report "4 nodes import $module at once, cold / 4 native" s at_most 1.5 cold native-cold
