#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A first import over storage that takes 1 ms for each metadata operation: directly, through Copper,
# and through Copper with the manifest that an earlier job left (--prefetch auto); on 1 node and on
# 4 that import at once. Every turn begins with fresh mounts, so with cold kernel caches; the
# storage's client keeps names and attributes, as in cold-slowfs. The import begins when mount
# returns, so that all the work of the prefetch counts.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

cost=(--meta-us 1000 --cache-s 3600)
manifest=$T/manifest

import_all() { # N
	import_from "$W/mnt/{}"
	wall "$1" "${import[@]}"
}
copper() { # SIDE N [OPTION…]
	local side=$1 n=$2
	shift 2
	SRC=/usr
	with_slowfs "${cost[@]}"
	with_tree "$n" "$@"
	add "$side" "$(import_all "$n")"
	add "$side-wait" "$(waiting)"
	without_tree
	without_slowfs
}
direct() { # SIDE N
	local import
	SRC=/usr
	with_slowfs "${cost[@]}"
	import_from "$W/slow"
	add "$1" "$(wall "$2" "${import[@]}")"
	add "$1-wait" "$(waiting)"
	without_slowfs
}
# This is what an earlier job leaves; it is not measured.
record() {
	SRC=/usr
	with_slowfs "${cost[@]}"
	with_tree 1 --prefetch auto
	import_all 1 >/dev/null
	without_tree
	mv "$T/.slow.copper-manifest" "$manifest" || bail 'the first job left no manifest'
	without_slowfs
}
import_wall /usr >/dev/null
record
for ((turn = 0; turn < ${BENCH_PAIRS:-5}; turn++)); do
	for n in 1 4; do
		direct "direct-$n" "$n"
		copper "plain-$n" "$n"
		copper "manifest-$n" "$n" --prefetch "$manifest"
	done
done
report "cold import $module at 1 ms, 1 node, with manifest / direct" \
	s at_most 0.18 manifest-1 direct-1
report "cold import $module at 1 ms, 1 node, no manifest / direct" s none - plain-1 direct-1
# Four imports and four nodes share the processors of one machine. The longest wait is nearer to
# what four machines would see.
wants_processors 8
report "cold import $module at 1 ms, 4 nodes, longest wait, with manifest / direct" \
	s none - manifest-4-wait direct-4-wait
report "cold import $module at 1 ms, 4 nodes, longest wait, no manifest / direct" \
	s none - plain-4-wait direct-4-wait
report "cold import $module at 1 ms, 4 nodes, with manifest / direct" \
	s at_most 0.28 manifest-4 direct-4
report "cold import $module at 1 ms, 4 nodes, no manifest / direct" s none - plain-4 direct-4
