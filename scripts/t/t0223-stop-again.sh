#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stopping a job once more when the first stop did not reach every node: what is left, what is
# reported, and which counts are summed up.
# covers: remotestop op rank
# modes: release asan tsan
# limit: 150
# takes: 60
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 41

stops() { # DESCRIPTION STATUS LINE OPERAND…
	local what=$1 want=$2 line=$3 status
	shift 3
	timeout "$(patient 90)" "$COPPER" stop "$@" >"$T/.out" 2>"$T/.err"
	status=$?
	is "$what" "$status $(cat "$T/.out")" "$want $line"
}

all_gone() {
	unmount_killed
	ok 'no node runs any more' wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
	is 'no mount is left' "$(mounts_left)" 0
	cop_tree=0
}

# ---- a dead node

start_plain 3 --peer-timeout 1
kill_node 2
stops 'a stop that misses a dead node fails' 1 'stopped 2/3 nodes' "$W/mnt/0"
matches 'the stop names the node that may be left' \
	"$(cat "$T/.err")" '^127\.0\.0\.13 \(rank 2\) did not answer'
ok 'the secret is kept for the node that may be left' test -e "$JOB/secret"
stops 'once more there is nothing to stop' 0 'stopped 0/3 nodes' -d "$JOB"
is 'the stop says who never answered' "$(cat "$T/.err")" \
	'127.0.0.13 (rank 2) did not answer the last stop, and does not run: it was stopped before, or was killed
copper stop: no node of this job runs any more'
ok 'the secret goes with the last node' test ! -e "$JOB/secret"
stops 'from then on that is known' 0 'stopped 0/0 nodes' -d "$JOB"
matches 'the stop says why' "$(cat "$T/.err")" 'was stopped already'
all_gone

start_plain 3 --peer-timeout 1
kill_node 0
stops 'the same with a dead root, whom another node stands in for' 1 'stopped 2/3 nodes' "$W/mnt/1"
rm "$JOB/secret"
stops 'once more, without the secret' 0 'stopped 0/3 nodes' -d "$JOB"
matches 'the root never answered' "$(cat "$T/.err")" \
	'^127\.0\.0\.11 \(rank 0\) did not answer the last stop, and does not run'
is 'only the root is named' "$(grep -c rank "$T/.err")" 1
all_gone

start_plain 2
for i in 0 1; do
	kill_node "$i"
done
rm "$JOB/secret"
stops 'nor is a secret needed where all were killed' 0 'stopped 0/2 nodes' -d "$JOB"
is 'each dead node is named' "$(grep -c '(rank [01]) does not run' "$T/.err")" 2
all_gone

# ---- a node that hangs

start_plain 3 --peer-timeout 1
hung=$(node_stat 2 pid)
kill -STOP "$hung"
stops 'a stop that misses a node that hangs fails' 1 'stopped 2/3 nodes' "$W/mnt/0"
stops 'so does the next while it hangs' 1 'stopped 0/3 nodes' -d "$JOB" --timeout 3
matches 'the stop says that a named node may run' \
	"$(cat "$T/.err")" '^127\.0\.0\.13 \(rank 2\) .*may still run'
is 'no other node has anything left to report' "$(grep -c '(rank [01])' "$T/.err")" 0
kill -CONT "$hung"
"$COPPER" stop -d "$JOB" >"$T/.out" 2>"$T/.err"
is 'when it has come to itself it is stopped' "$?" 0
# The message of the first stop may have reached the node before.
matches 'a node that has come to itself has stopped' "$(cat "$T/.out")" '^stopped [01]/3 nodes$'
stops 'and nothing is left' 0 'stopped 0/0 nodes' -d "$JOB"
all_gone

# ---- a node that answers late: reached by the command itself alone

# RANK OF-WHOSE-END OPTION…: runs stop -d while RANK hangs, which wakes up when the other node has
# ended.
late() {
	local pid end
	pid=$(node_stat "$1" pid)
	end=$(node_stat "$2" pid)
	kill -STOP "$pid"
	timeout "$(patient 90)" "$COPPER" stop -d "$JOB" >"$T/.out" 2>"$T/.err" &
	wait_for 40 is_gone "$end"
	kill -CONT "$pid"
	wait "$!"
	is 'a node that answers late is stopped' "$? $(cat "$T/.out")" "0 stopped $3 nodes"
}
summary() {
	cat "$JOB"/profiling/cluster/*.md
}

with_tree 3 -P --fanout 1 --peer-timeout 1
kill_node 0
late 2 1 2/3
is 'with a dead root its counts are in the sums' "$(cluster_value ranks_with_aggregate_files)" 2
matches 'the summary names the dead root' "$(summary)" 'did not answer: `127\.0\.0\.11` \(rank 0\)$'
is 'the summary names nobody else' "$(summary | grep -o '(rank [0-9])' | sort -u)" '(rank 0)'
all_gone

with_tree 3 -P --peer-timeout 1
late 2 0 3/3
is 'a stop without that node has summed up where the root lives' \
	"$(cluster_value ranks_with_aggregate_files)" 2
matches 'the summary says that a node is missing' \
	"$(summary)" 'did not answer: `127\.0\.0\.13` \(rank 2\)$'
"$COPPER" aggregate --no-coverage "$JOB" >"$T/.out" 2>&1
is 'the files of the nodes have all three' "$(cluster_value ranks_with_aggregate_files)" 3
all_gone
