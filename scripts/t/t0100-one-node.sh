#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One node alone: it shows the source, answers again without asking anyone, reports its counters,
# stops.
# covers: node fuse fetch ctl
# quick: yes
# modes: release asan tsan shared
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 23

matches 'help names every subcommand' "$("$COPPER" --help | tr '\n' ' ')" 'mount.*stop.*cache-stats'
ok 'the version is reported' "$COPPER" --version

SRC=$T/src
small_tree "$SRC"
mkdir -p "$T/alone"
"$COPPER" mount --source "$SRC" "$T/alone" >"$T/out.alone" 2>&1
is 'a node alone mounts without any other option' $? 0
matches 'a node alone says that it is alone' \
	"$(cat "$T/out.alone")" '^copper: note: a tree of one node.*--hosts localhost[^|]*$'
ok 'the tree of a node that is alone is the same as the source' diff -r "$SRC" "$T/alone"
is 'a missing name is missing' "$(cat "$T/alone/none" 2>&1 | sed 's/.*: //')" \
	'No such file or directory'
"$COPPER" stop "$T/alone" >"$T/out.stop" 2>&1
is 'stop ends well' $? 0
matches 'stop says how many nodes it stopped' "$(cat "$T/out.stop")" 'stopped 1/1 nodes'
is 'the mount is gone' "$(mounts_left)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'the process is gone' "$(nodes_running)" 0

# However slow the machine is, absences are not checked again meanwhile.
with_tree 1 -d "$T/job.one" --enoent-ttl-ms 600000
json=$(node_json 0)
is 'the JSON has the rank' "$(json_value rank <<<"$json")" 0
is 'the JSON says that the node is ready' "$(json_value ready <<<"$json")" true
keys='nodes tables.data.bytes tables.tree.entries tables.metadata.bytes budget.limit_bytes budget.used_bytes
budget.remaining_bytes fuse.lookup fuse.getattr fuse.read origin.operations origin.bytes
fabric.requests_sent
fabric.requests_served fabric.bytes_in fabric.bytes_out fabric.retries fabric.failovers fabric.rejected'
missing=
for key in $keys; do
	json_value "$key" <<<"$json" >/dev/null 2>&1 || missing="$missing $key"
done
is 'the JSON has every promised key' "$missing" ''
is 'cache-stats finds the only node by itself' "$("$COPPER" cache-stats --json | json_value rank)" 0

walk() {
	find "$W/mnt/0" -printf '%s' >/dev/null
	cat "$W/mnt/0/hello" "$W/mnt/0/dir/numbers" "$W/mnt/0/dir/deeper/random" \
		"$W/mnt/0/link" >/dev/null
	[ ! -e "$W/mnt/0/dir/none" ]
}
questions() { # of one more walk
	node_json 0 >"$T/before"
	walk
	node_json 0 >"$T/after"
	"$PYTHON" "$cop_t/t05_stats.py" requests "$T/before" "$T/after"
}
walk
# find itself calls statfs, which no kernel caches.
matches 'a second walk asks the node nothing' \
	"$(least 1 questions): $("$PYTHON" "$cop_t/t05_stats.py" names "$T/before" "$T/after")" \
	'^(0: nothing|1: statfs=1)$'
is 'origin bytes are those of the files' "$(node_stat 0 origin.bytes)" \
	"$(cat "$SRC/hello" "$SRC/dir/numbers" "$SRC/dir/deeper/random" | wc -c)"
before=$(node_stat 0 origin.operations)
for name in a b c d e f g h; do
	[ ! -e "$W/mnt/0/dir/$name" ]
done
is 'absent names of a known directory cost the origin nothing' \
	"$(node_stat 0 origin.operations)" "$before"
is '--all holds one node' "$("$COPPER" cache-stats --all "$W/mnt/0" | json_value nodes.0.rank)" 0
matches 'the table for people has a budget' "$("$COPPER" cache-stats "$W/mnt/0")" budget
ok 'the tree stops' without_tree

SRC=$T/src
prepare_tree 1
"$COPPER" mount --foreground --source "$SRC" "$W/mnt/0" >"$T/out.fg" 2>&1 &
foreground=$!
ok 'a node in the foreground mounts' wait_for 10 node_json 0
ok 'the mount of a node in the foreground is there' wait_for 10 is_mounted "$W/mnt/0"
"$COPPER" stop "$W/mnt/0" >/dev/null
wait "$foreground"
is 'a node in the foreground ends with 0 when it is stopped' $? 0
