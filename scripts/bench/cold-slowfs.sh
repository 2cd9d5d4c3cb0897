#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A first import over storage that takes 1 ms for each metadata operation: through one node of
# Copper, and directly on that storage. Both begin with fresh mounts, so with cold kernel caches.
# Twice: on a file system whose client keeps names and attributes as long as it likes (the best that
# a parallel file system does; this is judged), and on one whose client asks every time.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

keeps=(--meta-us 1000 --cache-s 3600)
asks=(--meta-us 1000)
copper() { # SIDE [OPTION…]
	local side=$1
	shift
	SRC=/usr
	with_slowfs "$@"
	slow_reset
	with_tree 1
	add "$side" "$(import_wall "$W/mnt/0")"
	add "$side-ops" "$(slow_charged)"
	without_tree
	without_slowfs
}
direct() { # SIDE [OPTION…]
	local side=$1
	shift
	SRC=/usr
	with_slowfs "$@"
	slow_reset
	add "$side" "$(import_wall "$W/slow")"
	add "$side-ops" "$(slow_charged)"
	without_slowfs
}
copper_keeps() {
	copper copper-keeps "${keeps[@]}"
}
direct_keeps() {
	direct direct-keeps "${keeps[@]}"
}
import_wall /usr >/dev/null
in_turn "${BENCH_PAIRS:-5}" copper_keeps direct_keeps
copper copper-asks "${asks[@]}"
direct direct-asks "${asks[@]}"
report "cold import $module at 1 ms, no manifest / direct, client keeps names" \
	s at_most 0.5 copper-keeps direct-keeps
report 'operations that reached the storage, the same' ops at_most 1.2 copper-keeps-ops direct-keeps-ops
report "cold import $module at 1 ms, no manifest / direct, client asks always" \
	s none - copper-asks direct-asks
report 'operations that reached the storage, the same' ops none - copper-asks-ops direct-asks-ops
