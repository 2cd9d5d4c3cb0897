#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stopping: from any node, with open files, twice, after a death, one node alone.
# covers: op ctl node
# quick: yes
# modes: release asan tsan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 28

with_tree 4
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'stop ends with 0' $? 0
matches 'stop counts the nodes' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
is 'no mount remains after a stop' "$(mounts_left)" 0
is 'no process listens after a stop' "$(ss -Hltn "sport = :$cop_port" | wc -l)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'no node runs after a stop' "$(nodes_running)" 0
ends() { # of the logs: how often each
	sed -n 's/.*) \(end.*\)/\1/p' "$JOB"/logs/*-output.log | sort | uniq -c | xargs
}
is 'the log of each says how it ended' "$(ends)" '4 ended 4 ending reason=stopped'
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'a second stop is not a failure' $? 0
matches 'a second stop says that there was nothing' "$(cat "$T/.out")" 'stopped 0/0 nodes'
"$COPPER" stop "$W/mnt/0" >/dev/full 2>"$T/.err"
is 'a second stop whose result cannot be written is a failure' $? 1
matches 'it says so' "$(cat "$T/.err")" 'stopped 0/0 nodes, but that cannot be written'
cop_tree=0

with_tree 4
"$COPPER" stop "$W/mnt/3" >"$T/.out" 2>&1
matches 'any node stops all' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
is 'all nodes are gone after a stop at any of them' "$(mounts_left)" 0
cop_tree=0

with_tree 2
for rank in 1 0; do
	kill "$(node_stat "$rank" pid)"
	wait_for 20 eval '! is_mounted "$W/mnt/$rank"'
done
wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
is 'so do those of nodes that a signal ended' "$(ends)" '2 ended 2 ending reason=signal'
cop_tree=0

with_tree 4
exec 8<"$W/mnt/1/hello"
cd "$W/mnt/2/dir" || exit 1
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
matches 'open files and working directories do not hold it up' \
	"$(cat "$T/.out")" '^stopped 4/4 nodes$'
cd /
exec 8<&-
is 'open files leave no mount behind' "$(mounts_left)" 0
wait_for 10 eval '[ "$(nodes_running)" -eq 0 ]'
is 'open files leave no process behind' "$(nodes_running)" 0
cop_tree=0

with_tree 4 --peer-timeout 1
kill_node 2
timeout "$(patient 60)" "$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'after a death stop ends with 1' $? 1
matches 'the living stop, and are counted' "$(cat "$T/.out")" '^stopped 3/4 nodes'
matches 'stop names who is missing' "$(cat "$T/.out")" '^127.0.0.13 \(rank 2\) did not answer$'
unmount_killed
is 'the mounts of the living are gone' "$(mounts_left)" 0
cop_tree=0

with_tree 4 --peer-timeout 1
"$COPPER" stop --local "$W/mnt/2" >"$T/.out" 2>&1
is 'a single node can be stopped' $? 0
is 'only the mount of that node is gone' "$(mounts_left)" 3
is 'the other nodes still read' "$(cat "$W/mnt/3/hello")" hello
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'a stop ends the other nodes' "$(mounts_left)" 0
cop_tree=0

# ---- the root dies while the answer to a stop is on its way through it, and another node is silent
# for as long as that takes

with_tree 3 --peer-timeout 1
held=$(node_stat 2 pid)
kill -STOP "$held"
timeout "$(patient 60)" "$COPPER" stop "$W/mnt/1" >"$T/.out" 2>&1 &
stop=$!
ok 'the node that was asked unmounts' wait_for 10 eval '! is_mounted "$W/mnt/1"'
kill_node 0
wait "$stop"
is 'the stop ends all the same, with 1' "$?" 1
matches 'the stop counts the node that answered' "$(cat "$T/.out")" '^stopped 1/3 nodes'
is 'the stop names both nodes that did not answer' "$(grep -c 'did not answer' "$T/.out")" 2
kill -CONT "$held"
"$COPPER" stop --local "$W/mnt/2" >/dev/null 2>&1
unmount_killed
cop_tree=0
