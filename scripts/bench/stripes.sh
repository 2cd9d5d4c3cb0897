#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How much of a large file each of 16 nodes forwards when all of them read it at once: the busiest
# node compared with the mean, with the number of trees that Copper chooses and with one tree. The
# nodes count exactly. Every node caches the file, so it has 1 GiB if the machine has memory for 16
# copies, and otherwise 256 MiB; the shares are the same.
# limit: 900
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

nodes=16
mib=1024
[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 48 ] || mib=256
SRC=$T/src
mkdir "$SRC"
head -c "${mib}M" /dev/urandom >"$SRC/large"

round() { # NAME OPTION…: adds what the busiest node sent, and the mean
	local name=$1 rank
	shift
	with_tree $nodes --compress off --cache-size $((mib + 128))M "$@"
	for ((rank = 0; rank < nodes; rank++)); do
		cat "$W/mnt/$rank/large" >/dev/null &
	done
	for ((rank = 0; rank < nodes; rank++)); do
		wait -n
	done
	for ((rank = 0; rank < nodes; rank++)); do
		node_stat "$rank" fabric.bytes_out
	done >"$T/sent"
	add "$name-most" "$(sort -n "$T/sent" | tail -n 1)"
	add "$name-mean" "$(awk '{ sum += $1 } END { printf "%.0f", sum / NR }' "$T/sent")"
	without_tree || bail 'the tree does not stop'
	echo 1 2>/dev/null >/proc/sys/vm/drop_caches
}
round trees
round tree --trees 1
report "forwarded bytes, busiest node / mean, file of $mib MiB, 16 nodes" \
	B at_most 1.3 trees-most trees-mean
report 'the same with one tree' B none - tree-most tree-mean
