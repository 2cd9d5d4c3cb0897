#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stopping: from any node, with open files, twice, after a death, one node alone.
# modes: release asan tsan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

with_tree 4
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'stop ends with 0' $? 0
matches 'and counts the nodes' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
is 'nothing is mounted after it' "$(mounts_left)" 0
is 'nobody listens any more' "$(ss -Hltn "sport = :$cop_port" | wc -l)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'nothing runs after it' "$(nodes_running)" 0
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'a second stop is no failure' $? 0
matches 'and says that there was nothing' "$(cat "$T/.out")" 'stopped 0/0 nodes'
cop_tree=0

with_tree 4
"$COPPER" stop "$W/mnt/3" >"$T/.out" 2>&1
matches 'any node stops all' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
is 'really' "$(mounts_left)" 0
cop_tree=0

with_tree 4
exec 8<"$W/mnt/1/hello"
cd "$W/mnt/2/dir" || exit 1
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
matches 'open files and working directories do not hold it up' "$(cat "$T/.out")" '^stopped 4/4 nodes$'
cd /
exec 8<&-
is 'nor leave a mount' "$(mounts_left)" 0
wait_for 10 eval '[ "$(nodes_running)" -eq 0 ]'
is 'nor a process' "$(nodes_running)" 0
cop_tree=0

with_tree 4 --peer-timeout 1
kill_node 2
timeout 60 "$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
matches 'after a death the living stop, and are counted' "$(cat "$T/.out")" '^stopped 3/4 nodes'
unmount_killed
is 'their mounts are gone' "$(mounts_left)" 0
cop_tree=0

with_tree 4 --peer-timeout 1
"$COPPER" stop --local "$W/mnt/2" >"$T/.out" 2>&1
is 'one node stops alone' $? 0
is 'its mount is gone, the others are not' "$(mounts_left)" 3
is 'the others still read' "$(cat "$W/mnt/3/hello")" hello
"$COPPER" stop "$W/mnt/0" >"$T/.out" 2>&1
is 'and stop' "$(mounts_left)" 0
cop_tree=0
