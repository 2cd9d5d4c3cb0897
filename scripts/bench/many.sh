#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 128 processes import at once on one node that has everything already, compared with 128 that
# import from the local disk's page cache. The processes share the processors either way, so this is
# the cost of the mount under load.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

processes=128
# 128 imports of torch would take this machine minutes.
module=numpy
SRC=/usr
with_tree 1
ours() {
	add copper "$(import_wall "$W/mnt/0" "$processes")"
	add copper-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
theirs() {
	add native "$(import_wall /usr "$processes")"
	add native-cpu "$(cut -d ' ' -f 2 "$T/together")"
}
import_wall /usr >/dev/null
import_wall "$W/mnt/0" >/dev/null
hold_what_was_read 0
in_turn "${BENCH_PAIRS:-2}" ours theirs
report "$processes processes import $module at once, warm, mount / native" \
	s at_most 1.1 copper native
report 'the same in CPU time of the programs alone' s none - copper-cpu native-cpu
