#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clocks that are wrong by hours in either direction, and that jump while nodes run: no wait gets
# longer or shorter, and nothing gets fresher or older. The machine's clock is not touched: a node
# gets another wall clock from a library, and another monotonic clock from a namespace.
# covers: base rpc loop
# modes: shared
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
ldd "$COPPER" >/dev/null 2>&1 || skip_all 'a static program takes no library'
plan 14

# shellcheck source=clocks.sh
. "$(dirname "$0")/clocks.sh"

hours=$((10 * 3600))
set_clock 0 $hours
set_clock 1 -$hours
set_clock 2 0
set_clock ahead $hours
set_clock behind -$hours

# Starts the nodes of a tree, each with its own clock; on request rank 2 has been up for a month.
start_tree() { # [OPTION…]
	local rank pids=()
	prepare_tree 3
	cop_tree=3
	for rank in 0 1 2; do
		clock_of "$rank"
		[ "$rank" -ne 2 ] || ! unshare --time --monotonic 2592000 true 2>/dev/null ||
			cop_as=(unshare --time --fork --monotonic 2592000 "${cop_as[@]}")
		start_node "$rank" "$@" &
		pids+=($!)
	done
	cop_as=()
	for rank in 0 1 2; do
		wait "${pids[rank]}" || bail "rank $rank: exit $?: $(cat "$W/out.$rank")"
	done
}
jump() {
	set_clock 0 -$hours
	set_clock 1 $hours
	set_clock 2 $((2 * hours))
}

start_tree -P -N 5 --enoent-ttl-ms 500
pass 'nodes whose clocks differ by 20 hours form a tree'
shown() { # RANK: how many hours its log is ahead, rounded
	local line
	line=$(head -n 1 "$JOB"/logs/"$(address_of "$1")"-*.log)
	echo $((($(date -d "${line:0:10} $(echo "${line:11:8}" | tr - :)" +%s) - $(date +%s) + 360000 + 1800) / 3600 - 100))
}
is 'the log of each has its wall clock' "$(shown 0) $(shown 1) $(shown 2)" '10 -10 0'
for rank in 0 1 2; do
	[ ! -e "$W/mnt/$rank/late" ] || bail "a name that is not there"
done
read_everything 0 1 2
jump
echo late >"$SRC/late"
for rank in 0 1 2; do
	ok "an absence ends in its time on node $rank, though its clock jumps" \
		wait_for 20 test -e "$W/mnt/$rank/late"
done
set_clock 0 $hours
ok 'what is read is the same though clocks jump' diff -r "$SRC" "$W/mnt/2"
is 'the commands work at any hour' \
	"$(clock_of behind; node_stat 1 nodes)$(clock_of ahead; node_stat 1 nodes)" 33
rm "$SRC/late"

# A client waits for all nodes with a deadline; by the wall clock it would be over at once, or
# never.
clock_of behind
timeout "$(patient 60)" "${cop_as[@]}" "$COPPER" stop -d "$JOB" --secret-file "$SECRET" \
	>"$T/.out" 2>&1
is 'a command whose clock is behind stops the tree' "$?" 0
cop_as=()
matches 'the stop with a wrong clock reaches all nodes' "$(cat "$T/.out")" 'stopped 3/3 nodes'
cop_tree=0
wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
is 'no node and no mount of the tree remains' "$(nodes_running)$(mounts_left)" 00

start_tree
clock_of ahead
jump
ok 'a clock that jumps is in the way of no stop' \
	timeout "$(patient 60)" "${cop_as[@]}" "$COPPER" stop "$W/mnt/1"
cop_as=()
cop_tree=0
wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
is 'a stop leaves nothing, though a clock jumps' "$(nodes_running)$(mounts_left)" 00

# Only the file system's clock shows that a node's message in the job directory is of this start.
for who in ahead behind; do
	prepare_tree 2
	clock_of "$who"
	start_node 0 --log-type stdout --ready-timeout 20 &
	first=$!
	cop_as=()
	wait_for 20 test -d "$JOB/logs"
	timeout "$(patient 60)" "$COPPER" mount --hosts "$HOSTS" --rank 1 --secret-file "$SECRET" \
		--job-dir "$JOB" --source "$T/none" \
		"$W/mnt/1" >"$W/out.1" 2>&1
	wait "$first"
	matches "a node whose clock is $who hears why another did not start" \
		"$(cat "$W/out.0")" "$(address_of 1).*did not start.*none"
done
