#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stops a tree of 4 nodes with long answers beside twenty busy loops, every second time with
# --rank-files root: each stop must have the sums of all nodes.
#
#   scripts/soak-stop.sh [STOPS [LOOPS]]     100 stops, 20 loops: ten minutes on two processors;
#                                            BUILD=build/asan for another build
# limit: soak_limit
case ${1:-100}${2:-20} in
*[!0-9]*)
	echo "usage: soak-stop.sh [STOPS [LOOPS]]" >&2
	exit 2
	;;
esac
# The supervisor's limit is an arithmetic expression, and this variable is its value.
# shellcheck disable=SC2034
soak_limit=$((${1:-100} * 60 + 120))
# shellcheck source=t/harness.sh
. "$(dirname "$0")/t/harness.sh"

stops=${1:-100}
options=(-A -N 50)
plan 4

SRC=$T/src
long_names "$SRC" 150
exits=0
answers=0
sums=0
begin_load "${2:-20}"
for ((turn = 0; turn < stops; turn++)); do
	if [ $((turn % 2)) -eq 0 ]; then
		with_tree 4 "${options[@]}"
	else
		with_tree 4 "${options[@]}" --rank-files root
	fi
	read_everything 0 1 2 3
	"$COPPER" stop "$W/mnt/$((turn % 4))" >"$T/.out" 2>&1 || exits=$((exits + 1))
	grep -qx 'stopped 4/4 nodes' "$T/.out" || {
		answers=$((answers + 1))
		note "stop $turn: $(cat "$T/.out")"
	}
	[ "$(cluster_value ranks_with_aggregate_files)" = 4 ] || sums=$((sums + 1))
	# shellcheck disable=SC2034
	cop_tree=0
	rm -rf "$JOB"
done
end_load
is "$stops stops: each ends with 0" "$exits" 0
is 'each has stopped 4 of 4 nodes' "$answers" 0
is 'each has the sums of 4 nodes' "$sums" 0
ok 'no node is left' wait_for 30 eval '[ "$(nodes_running) $(mounts_left)" = "0 0" ]'
