#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node's fate may depend on its command: Slurm and other launchers end every process that a
# command started as soon as it has returned. So a node's command returns only when the nodes below
# have heard that the tree is ready.
# covers: start startnote
# modes: release asan tsan
# limit: 90
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 15

begin() { # RANK [OPTION…]: in the background; returned.RANK appears when the command has returned
	local rank=$1
	rm -f "$T/returned.$rank"
	(
		start_node "$@"
		echo $? >"$T/returned.$rank"
	) &
}
log_of() { # RANK
	cat "$JOB/logs/$(address_of "$1")"-*-output.log
}
waits_for_rank_2_alone() {
	log_of 0 | grep -q 'nodes not ready yet: 127\.0\.0\.13$'
}
# Rank 1 has contacted rank 0 and is deaf from then on; then the last of the others starts.
with_deaf_child() {
	prepare_tree 3
	cop_tree=3
	begin 0
	begin 1
	wait_for 20 waits_for_rank_2_alone || bail 'rank 1 does not come to rank 0'
	deaf=$(processes_of "$COPPER" | while read -r pid; do
		[ "$(tr '\0' '\n' <"/proc/$pid/cmdline" | grep -A 1 -x -e --rank | tail -n 1)" = \
			1 ] && echo "$pid"
	done)
	# shellcheck disable=SC2086
	kill -STOP $deaf
	begin 2
	wait_for 20 test -s "$T/returned.2"
}

# ---- one that does not hear

with_deaf_child
is 'a node without nodes below it returns at once' "$(cat "$T/returned.2")" 0
sleep 1
ok 'the one above a node that has not heard does not' test ! -e "$T/returned.0"
# shellcheck disable=SC2086
kill -CONT $deaf
wait_for 20 test -s "$T/returned.1"
wait_for 20 test -s "$T/returned.0"
is 'the command above returns when the node below it has returned' "$(cat "$T/returned.0" "$T/returned.1" | tr '\n' ' ')" '0 0 '
is 'a stop has nothing to complain about' "$(log_of 0 | grep -c 'has not said that it knows')" 0
ok 'another node reads through the one whose command still waits' cmp "$SRC/hello" "$W/mnt/1/hello"
ok 'the node that waits stops' without_tree

with_deaf_child
wait_for 30 test -s "$T/returned.0"
is 'a node does not wait for the others for ever' "$(cat "$T/returned.0")" 0
matches 'it says for whom it waited' \
	"$(log_of 0)" 'has not said that it knows .*rank=1 host=127\.0\.0\.12'
# shellcheck disable=SC2086
kill -CONT $deaf
wait_for 20 test -s "$T/returned.1"
is 'a node that wakes up later is told then' "$(cat "$T/returned.1")" 0
ok 'the late node stops with the others' without_tree

# ---- a launcher that ends everything that its command started

# The command is the first process of a namespace of its own: when it ends, the kernel kills all
# others there.
begin_doomed() { # RANK [OPTION…]
	(
		cop_as=(unshare --pid --fork)
		start_node "$@"
		echo $? >"$T/returned.$1"
	) &
}
know=0
for round in 1 2 3; do
	prepare_tree 3
	rm -f "$T"/returned.*
	begin_doomed 0 --fanout 1 --ready-timeout 20
	begin 2 --fanout 1 --ready-timeout 20
	begin_doomed 1 --fanout 1 --ready-timeout 20
	for rank in 0 1 2; do
		wait_for 60 test -s "$T/returned.$rank"
	done
	[ "$(cat "$T"/returned.[012] | tr '\n' ' ')" = '0 0 0 ' ] && know=$((know + 1))
	is "each has heard, in round $round" "$(cat "$W"/out.[012] | grep -v '^copper: note:')" ''
	"$COPPER" stop --local "$W/mnt/2" >"$W/out.stop" 2>&1
	umount -l "$W/mnt/0" "$W/mnt/1" 2>/dev/null
done
is 'every node returns with 0' "$know" 3
ok 'no node runs any more' wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
