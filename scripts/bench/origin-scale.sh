#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How many requests reach the storage when N nodes import the same at once, compared with one node.
# The nodes count them exactly; the counts do not depend on the machine's load, except for what two
# processes ask for at the same moment.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
total() { # KEY
	"$COPPER" cache-stats --json --all "$W/mnt/0" | json_value "total.origin.$1"
}
for n in 1 2 4 8 16; do
	with_tree "$n" --cache-size 1G
	import_wall "$W/mnt/{}" "$n" >/dev/null
	add "operations-$n" "$(total operations)"
	add "bytes-$n" "$(total bytes)"
	without_tree || bail "the tree does not stop"
done
for n in 2 4 8 16; do
	report "origin operations, $n nodes / 1 node" ops at_most 1.005 "operations-$n" operations-1
	report "origin bytes, $n nodes / 1 node" B at_most 1.005 "bytes-$n" bytes-1
done
