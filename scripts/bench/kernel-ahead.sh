#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a first import still asks of the node, and what it costs in processor time, beside a second
# one: with a manifest of which names and pages are put into the kernel ahead (--kernel-ahead), with
# a manifest alone, and with neither. On the bare mount and in a view, with one process and with 64
# at once. The import begins when the prefetch has ended and the node is idle. Requests, READs and
# operations at the storage are counts; processor time is that of the programs and of the node. It
# runs as an ordinary user, whose mounts the kernel reads ahead less.
# user: yes
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

be_ordinary_user
SRC=/usr
with_slowfs --cache-s 3600
manifest=$W/.slow.copper-manifest
read -ra copies <<<"${BENCH_COPIES:-1 64}"

import_all() { # bare|view N: seconds of processor time of the programs
	local import
	if [ "$1" = view ]; then
		import_from "$SRC"
		as_user "$COPPER" run --mount "$W/mnt/0" -- "$BENCH/together" "$2" "${import[@]}" | cut -d ' ' -f 2
	else
		import_from "$W/mnt/0"
		as_user "$BENCH/together" "$2" "${import[@]}" | cut -d ' ' -f 2
	fi
}
# Requests of the kernel, of those READ, and operations at the storage.
counts() {
	node_json 0 | "$PYTHON" -c 'import json, sys
node = json.load(sys.stdin)
fuse = node["fuse"]
print(sum(fuse[k] for k in ("lookup", "getattr", "readlink", "open", "read", "opendir", "readdir")),
	fuse["read"], node["origin"]["operations"])'
}
sample() { # SIDE bare|view N
	local asked reads operations node now
	read -r asked reads operations <<<"$(counts)"
	node=$("$BENCH/cputime" "$(pid_of 0)")
	add "$1-seconds" "$(awk -v a="$(import_all "$2" "$3")" -v b="$node" -v c="$("$BENCH/cputime" "$(pid_of 0)")" \
		'BEGIN { print a + c - b }')"
	read -r -a now <<<"$(counts)"
	add "$1-requests" "$((now[0] - asked))"
	add "$1-reads" "$((now[1] - reads))"
	add "$1-operations" "$((now[2] - operations))"
}
is_idle() { # what is put into the kernel has not grown for a moment
	local before=$ahead
	ahead=$(node_stat 0 fuse.ahead)
	[ "$(node_stat 0 prefetching.state)" = "${1:-done}" ] && [ "$ahead" = "$before" ]
}
start() { # HOW
	ahead=
	case $1 in
	ahead) with_tree 1 --prefetch "$manifest" --kernel-ahead on ;;
	manifest) with_tree 1 --prefetch "$manifest" --kernel-ahead off ;;
	nothing) with_tree 1 --prefetch off && return ;;
	esac
	wait_for 60 is_idle || bail 'the prefetch does not end'
}

import_wall /usr >/dev/null
with_tree 1 --prefetch auto
import_all bare 1 >/dev/null
without_tree
[ -s "$manifest" ] || bail 'there is no manifest'
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	for way in bare view; do
		for n in "${copies[@]}"; do
			for how in ahead manifest nothing; do
				start "$how"
				sample "$how-$way-$n-first" "$way" "$n"
				sample "$how-$way-$n-second" "$way" "$n"
				without_tree
			done
		done
	done
done
for way in bare view; do
	for n in "${copies[@]}"; do
		for how in ahead manifest nothing; do
			for what in seconds requests reads operations; do
				report "$how, $way, $n processes: $what of the first import / of the second" \
					"${what/seconds/s}" none - "$how-$way-$n-first-$what" \
					"$how-$way-$n-second-$what"
			done
		done
	done
done
