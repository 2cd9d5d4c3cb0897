#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sums over all nodes when one of them does not answer: every form tells whether it is dead, refuses
# or has failed.
# covers: rank op cluster
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 27

row_of() { # RANK: of all.json; "counted" if it is a living node's
	"$PYTHON" -c '
import json, sys
for node in json.load(open(sys.argv[1]))["nodes"]:
    if node["rank"] == int(sys.argv[2]):
        print("counted" if "pid" in node else json.dumps({k: v for k, v in node.items() if k != "rank"}))' "$T/all.json" "$1"
}
totals() { # of those without an answer: dead refused failed missing, after those that answered
	"$PYTHON" -c '
import json, sys
total = json.load(open(sys.argv[1]))["total"]
print(*(total[k] for k in ("nodes", "dead", "refused", "failed", "missing")))' "$T/all.json"
}
log_of_2() {
	cat "$JOB/logs/$(address_of 2)"-*-output.log
}
# Takes the place of rank 2. It waits for its parent, which is dead; meanwhile others find it.
mismatched() { # OPTION…
	rm -f "$JOB/logs/$(address_of 2)"-*-output.log
	start_node 2 --peer-timeout 60 --ready-timeout 120 "$@" &
	mismatched=$!
	wait_for 20 eval 'log_of_2 | grep -q "parent not ready yet"' ||
		bail 'the node with other options does not wait for its parent'
}
# ---- dead and refused

SRC=$T/src
small_tree "$SRC"
mkdir "$T/elsewhere"
of_three_one_lives() {
	with_tree 3 --peer-timeout 1
	kill_node 0
	kill_node 2
	unset 'cop_killed[2]'
}
of_three_one_lives
refused='{"host": "127.0.0.13", "refused": true, "reason": "it was started with other options", "below": 0}'

mismatched --source "$T/elsewhere"
timeout "$(patient 60)" "$COPPER" cache-stats --all --json "$W/mnt/1" >"$T/all.json" 2>&1
is 'a node of other options refuses' "$(row_of 2)" "$refused"
is 'a node that was killed is dead' "$(row_of 0)" '{"host": "127.0.0.11", "dead": true}'
is 'the living is counted' "$(row_of 1)" counted
is 'the total has each in its place' "$(totals)" '1 1 1 0 2'
wait "$mismatched"
is 'the refused node was told so, and does not start' \
	"$? $(grep -c 'was started with other options' "$W/out.2")" '1 1'

mismatched --source "$T/elsewhere"
# Rank 2 has just ended, and counts as dead for a while.
is_refused_in_table() {
	"$COPPER" cache-stats --all --table "$W/mnt/1" >"$T/all.table" 2>&1
	grep -q refused "$T/all.table"
}
COP_POLL_S=1 wait_for 40 is_refused_in_table
matches 'the table has a row for it' \
	"$(cat "$T/all.table")" '^ +2 +127\.0\.0\.13 +refused: it was started with other options$'
matches 'the table has a row for the dead' "$(cat "$T/all.table")" '^ +0 +127\.0\.0\.11 +dead$'
matches 'the table counts the dead below' "$(tail -n 1 "$T/all.table")" '1 dead.*1 refused'
wait "$mismatched"
cop_killed[2]=$mismatched
ok 'the living stops' without_tree

# Asks a node that has not contacted rank 2 since it was killed.
of_three_one_lives
mismatched --source "$T/elsewhere"
timeout "$(patient 60)" "$COPPER" stop "$W/mnt/1" >"$T/.out" 2>"$T/.err"
is 'a stop fails' "$? $(cat "$T/.out")" '1 stopped 1/3 nodes'
is 'the stop says of each node what became of it' \
	"$(grep ' (rank ' "$T/.err" | sort)" '127.0.0.11 (rank 0) did not answer
127.0.0.13 (rank 2) refused: it was started with other options'
wait "$mismatched"
unmount_killed
is 'no mount is left' "$(mounts_left)" 0
cop_tree=0

# ---- failed: it hears the request but can no longer answer

with_slowfs --meta-us 10
hang_at_storage() {
	with_tree 3 --fanout 1 --peer-timeout 1
	slow_fault hang=dir/numbers
	timeout "$(patient 60)" cat "$W/mnt/1/dir/numbers" >/dev/null 2>&1 &
	wait_for 20 eval '[ "$(node_stat 0 waiting.origin_running)" -ge 1 ]'
}
# FILE OPTION…: asks, and whether not all nodes are counted. A question that is under way when the
# node begins to end is not the one that is judged.
is_missing() {
	"$cop_asks" cache-stats "${@:2}" "$W/mnt/1" >"$1" 2>&1
	! grep -q 'the node that asked it was ending' "$1" &&
		grep -qE '"missing":[1-9]|, [1-9] (dead|failed)|^invalidated on [^3]' "$1"
}
# Rank 0 ends within seconds, so each form that does not end the nodes is asked for again and again:
# what is judged is its first answer without that node.
ask_while_it_ends() {
	local pids=()
	timeout "$(patient 60)" "$COPPER" stop --local "$W/mnt/0" >"$T/local" 2>&1 &
	local COP_POLL_S=0.01
	wait_for 20 is_missing "$T/all.json" --all --json &
	pids+=($!)
	wait_for 20 is_missing "$T/all.table" --all --table &
	pids+=($!)
	wait_for 20 is_missing "$T/all.forgot" --invalidate &
	pids+=($!)
	wait "${pids[@]}"
}
# On a busy machine it may have ended before a question arrives.
was_asked() {
	grep -q '"failed":true' "$T/all.json" && grep -q '1 failed' "$T/all.table" &&
		grep -q 'failed: it is ending' "$T/all.forgot"
}
begin_again() {
	note 'the node had ended before it was asked'
	slow_fault clear
	timeout "$(patient 60)" "$COPPER" stop "$W/mnt/1" >"$T/.out" 2>&1
	wait
	wait_for 20 eval '[ "$(processes_of "$COPPER" | wc -l)" -eq 0 ]' || bail 'a node does not end'
	hang_at_storage
}

hang_at_storage
is 'a read hangs at the storage' $? 0
waits='^ +[01] +127\.0\.0\.1[12] .* [0-9]+\.[0-9]s  /dir/numbers \([a-z]+ 0\), [0-9]+ waiters, from '
both_wait() {
	"$COPPER" cache-stats --all --table "$W/mnt/2" >"$T/all.table"
	[ "$(grep -cE "$waits" "$T/all.table")" -eq 2 ]
}
ok 'each node that waits says for what, and since when' wait_for 20 both_wait
matches 'and from whom it comes' "$(sed -nE "s|$waits||p" "$T/all.table" | paste -sd ' ')" \
	'^the storage; storage: [1-9][0-9]* running, [0-9]+ queued rank 0$'
matches 'one that waits for nothing says nothing' "$(cat "$T/all.table")" \
	'^ +2 +127\.0\.0\.13 .* -$'
ask_while_it_ends
tries=5
until was_asked || [ $((tries -= 1)) -eq 0 ]; do
	begin_again
	ask_while_it_ends
done
is 'a node that ends, and waits for the storage, has failed' \
	"$(row_of 0)" '{"host": "127.0.0.11", "failed": true, "reason": "it is ending", "below": 0}'
is 'the nodes below the failed one are asked directly' "$(row_of 1) $(row_of 2)" 'counted counted'
is 'the total has it' "$(totals)" '2 0 0 1 1'
matches 'the table has the late node' \
	"$(cat "$T/all.table")" '^ +0 +127\.0\.0\.11 +failed: it is ending$'
matches 'the table counts the late node' "$(tail -n 1 "$T/all.table")" '1 failed'
matches 'a requester of an invalidation gets the error' \
	"$(cat "$T/all.forgot")" '^127\.0\.0\.11 \(rank 0\) failed: it is ending$'
matches 'the requester hears how many nodes have invalidated' \
	"$(cat "$T/all.forgot")" '^invalidated on 2/3 nodes$'
timeout "$(patient 60)" "$COPPER" stop "$W/mnt/1" >"$T/.out" 2>"$T/.err"
is 'a stop passes it over, and stops those below it' "$? $(cat "$T/.out")" '1 stopped 2/3 nodes'
matches 'the stop says that it passed a node over' "$(cat "$T/.err")" \
	'^127\.0\.0\.11 \(rank 0\) (failed: it is ending|did not answer)$'
slow_fault clear
wait
ok 'no node runs any more' wait_for 20 eval '[ "$(processes_of "$COPPER" | wc -l)" -eq 0 ]'
cop_tree=0
is 'no mount of a node is left' "$(mounts_left)" 1
without_slowfs
