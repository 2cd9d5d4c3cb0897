#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `find -printf %s` over 50,000 files that were found right before, compared with the same on the
# local disk.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=$T/src
mkdir -p "$SRC"
(cd "$SRC" && for dir in $(seq 1 100); do
	mkdir "d$dir" && (cd "d$dir" && seq -f 'file%04.0f' 1 500 | xargs touch)
done)
with_tree 1
find_in() { # DIR
	wall 1 find "$1" -printf '%s %m\n'
}
copper() {
	find_in "$W/mnt/0" >/dev/null
	add copper "$(find_in "$W/mnt/0")"
}
native() {
	find_in "$SRC" >/dev/null
	add native "$(find_in "$SRC")"
}
add first "$(find_in "$W/mnt/0")"
in_turn "${BENCH_PAIRS:-10}" copper native
report 'find over 50,000 warm files / native' s at_most 1.0 copper native
report 'the first find over them' s none - first -
