#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An import through the mount on a node that has everything already, compared with the same import
# from the local disk's page cache.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
with_tree 1
copper() {
	add copper "$(import_wall "$W/mnt/0")"
	add copper-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
native() {
	add native "$(import_wall /usr)"
	add native-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
import_wall /usr >/dev/null
import_wall "$W/mnt/0" >/dev/null
hold_what_was_read 0
in_turn "${BENCH_PAIRS:-12}" copper native
report "warm import $module, mount / native" s at_most 1.03 copper native
report 'the same in CPU time of the program alone' s none - copper-cpu native-cpu

# Each isatty of Python is a request. In a virtual machine, waking a thread on another, halted
# processor takes some 50 us, and 5 us on the same one. With everything on one processor, the figure
# shows what the requests cost without that.
pinned() { # SIDE ROOT
	local import
	import_from "$2"
	add "$1" "$(wall 1 taskset -c 0 "${import[@]}")"
}
copper_pinned() {
	pinned copper-pinned "$W/mnt/0"
}
native_pinned() {
	pinned native-pinned /usr
}
taskset -a -c -p 0 "$(pid_of 0)" >/dev/null
in_turn "${BENCH_PAIRS:-12}" copper_pinned native_pinned
report 'the same with the program and the node on one processor' \
	s at_most 1.03 copper-pinned native-pinned
