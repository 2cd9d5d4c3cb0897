#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stopping by the job directory: with a dead node here, with none, with a dead root; and the
# messages when it cannot.
# covers: remotestop ctl node
# modes: release asan
# limit: 180
# takes: 50
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 78

stop_job() { # [OPTION…]: from a machine that has none of the nodes, as far as sockets tell
	XDG_RUNTIME_DIR=$T/elsewhere timeout "$(patient 120)" "$COPPER" stop \
		"$@" >"$T/.out" 2>"$T/.err"
}
mkdir -m 700 "$T/elsewhere"

all_gone() { # WHAT
	# Guards of killed nodes that a stop elsewhere does not see keep their mounts as long as
	# this session lasts.
	unmount_killed
	ok "$1" wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'
	is "$1: no mount is left" "$(mounts_left)" 0
	cop_tree=0
}

# ---- no node here

look() { # [OPTION…]: from the same
	XDG_RUNTIME_DIR=$T/elsewhere timeout "$(patient 120)" "$COPPER" cache-stats -d "$JOB" \
		"$@" >"$T/.out" 2>"$T/.err"
}
with_tree 3 -P
: >"$JOB/logs/node_file.txt"
look
is 'all nodes are seen from where none of them is' "$?" 0
is 'in a table like that of a node' "$(sed 's/^\( *[^ ]* *[^ ]* *[^ ]*\).*/\1/' "$T/.out")" \
	"$("$COPPER" cache-stats --all --table "$W/mnt/0" | sed 's/^\( *[^ ]* *[^ ]* *[^ ]*\).*/\1/')"
stop_job -d "$JOB"
is 'a tree is stopped from where none of its nodes are' "$?" 0
is 'the stop from outside reaches all nodes' "$(cat "$T/.out")" 'stopped 3/3 nodes'
is 'the stop from outside has no remark' "$(cat "$T/.err")" ''
is 'the root has summed up' \
	"$(sed -n 's/^ranks_with_aggregate_files,//p' \
		"$JOB/profiling/cluster/cluster-profiling_aggregate.csv")" 3
all_gone 'nothing runs'
stop_job -d "$JOB"
is 'a second time is not a failure' "$?" 0
matches 'a second stop says that the tree has ended' \
	"$(cat "$T/.out" "$T/.err")" 'stopped 0/0 nodes'
matches 'a stop that stops nothing says why' \
	"$(cat "$T/.err")" 'nothing to stop: the tree of .* was stopped already'
look
is 'a tree that was stopped cannot be seen' "$? $(cat "$T/.out")" '1 '
matches 'and that is why' "$(cat "$T/.err")" 'cache-stats: the tree of .* was stopped already'
"$COPPER" stop -d "$JOB" >/dev/full 2>"$T/.err"
is 'a stop that stops nothing and cannot write that is a failure' "$?" 1
matches 'and says so' "$(cat "$T/.err")" 'stopped 0/0 nodes, but that cannot be written'

# ---- the node here is dead, and it is the root

with_tree 3 -P --peer-timeout 1
kill_node 0
look --json
is 'with a dead root the others are seen' \
	"$("$PYTHON" -c 'import json, sys
print(*(n.get("dead", False) for n in sorted(json.load(sys.stdin)["nodes"], key=lambda n: n["rank"])))' \
		<"$T/.out")" 'True False False'
"$COPPER" stop -d "$JOB" >"$T/.out" 2>"$T/.err"
is 'with a dead root the others are stopped' "$?" 0
is 'with a dead root the stopped nodes are counted' "$(cat "$T/.out")" 'stopped 2/3 nodes'
matches 'the dead one is named' "$(cat "$T/.err")" '^127.0.0.11 \(rank 0\) does not run'
is 'the counts of the others are summed up' \
	"$(sed -n 's/^ranks_with_aggregate_files,//p' \
		"$JOB/profiling/cluster/cluster-profiling_aggregate.csv")" 2
"$COPPER" aggregate --no-coverage "$JOB" >"$T/.out" 2>&1
matches 'aggregate names the nodes whose files are missing' \
	"$(cat "$T/.out")" '1 of the 3 nodes of the job left no file at all, .*: 127.0.0.11$'
all_gone 'nothing runs'
stop_job -d "$JOB"
matches 'a later stop knows that the tree was stopped' "$(cat "$T/.err")" 'stopped already'

with_tree 5 --fanout 1 --peer-timeout 1
for i in 0 1 3; do
	kill_node "$i"
done
stop_job -d "$JOB"
is 'a chain with gaps is stopped' "$?" 0
is 'as far as it lives' "$(cat "$T/.out")" 'stopped 2/5 nodes'
is 'the dead nodes are named' "$(grep -c 'does not run' "$T/.err")" 3
all_gone 'nothing runs'

# ---- a node that does not answer may still run

with_tree 3 --peer-timeout 1
silent=$(node_stat 2 pid)
kill -STOP "$silent"
stop_job -d "$JOB"
is 'a node that hangs is a failure' "$?" 1
is 'the two other nodes are stopped' "$(cat "$T/.out")" 'stopped 2/3 nodes'
matches 'the node that did not answer is named' \
	"$(cat "$T/.err")" '^127.0.0.13 \(rank 2\) did not answer and may still run'
kill -CONT "$silent"
stop_job -d "$JOB"
is 'once more stops it' "$?" 0
# The node may have found the root's message when it woke up.
matches 'if it has not ended by itself' "$(cat "$T/.out")" '^stopped [01]/3 nodes'
all_gone 'nothing runs'

# ---- the secret

start_plain 2
mv "$JOB/secret" "$T/secret"
stop_job -d "$JOB"
is 'without the secret nothing is stopped' "$?" 1
matches 'a stop without the secret says what is missing' \
	"$(cat "$T/.err")" "no secret, .*$JOB/secret.* --secret-file"
head -c 32 /dev/urandom | base64 >"$T/other"
chmod 600 "$T/other"
stop_job -d "$JOB" --secret-file "$T/other" --timeout 20
is 'with another secret nothing is stopped' "$?" 1
is 'with another secret no node is stopped' "$(cat "$T/.out")" 'stopped 0/2 nodes'
is 'each node that refuses is named' "$(grep -c 'may still run: something listens' "$T/.err")" 2
look --secret-file "$T/other"
is 'with another secret nothing is seen' "$? $(cat "$T/.out")" '1 '
matches 'and the refusal is said' "$(cat "$T/.err")" 'none of the 2 nodes of .* answered'
is 'the tree lives' "$(cat "$W/mnt/1/hello")" hello
stop_job -d "$JOB" --secret-file "$T/secret"
is 'with the right one all are stopped' "$?" 0
all_gone 'nothing runs'

start_plain 2
stop_job -d "$JOB"
is 'the secret of the job directory is found' "$(cat "$T/.out")" 'stopped 2/2 nodes'
ok 'the secret goes with the tree' test ! -e "$JOB/secret"
all_gone 'nothing runs'

start_plain 2 --insecure
stop_job -d "$JOB"
is 'a tree without a secret needs none' "$(cat "$T/.out")" 'stopped 2/2 nodes'
all_gone 'nothing runs'

# ---- addresses from a book

book_port=$(free_port)
for i in 0 1; do
	echo "$(address_of "$i") ofi+tcp://$(address_of "$i"):$book_port"
done >"$T/book"
start_plain 2 --address-book "$T/book" --peer-timeout 1
kill_node 1
stop_job -d "$JOB"
is 'with an address book stop needs no rendezvous' "$?" 0
is 'with an address book the living node is stopped' "$(cat "$T/.out")" 'stopped 1/2 nodes'
all_gone 'nothing runs'

# ---- a tree of one node

prepare_tree 1
"$COPPER" mount --source "$SRC" -d "$JOB" "$W/mnt/0" >/dev/null 2>&1
look
matches 'a node alone is seen by its socket' "$(cat "$T/.out")" '[0-9]'
stop_job -d "$JOB"
is 'a node alone is stopped by its socket' "$?" 0
is 'the job directory knows the socket of a node alone' "$(cat "$T/.out")" 'stopped 1/1 nodes'
all_gone 'nothing runs'

# ---- starting again over a live tree

with_tree 2
cp "$JOB/logs/copper_tree.txt" "$T/tree"
mkdir "$W/mnt/again"
fails_with 1 "127.0.0.12 \(rank 1\) of this tree runs already, as process .*; end that tree with 'copper stop -d $JOB'" \
	"$COPPER" mount --hosts "$HOSTS" --rank 1 --secret-file "$SECRET" --job-dir "$JOB" \
	--source "$SRC" "$W/mnt/again"
fails_with 1 "mounted there already; stop it with 'copper stop $W/mnt/1'" \
	"$COPPER" mount --hosts "$HOSTS" --rank 1 --secret-file "$SECRET" --job-dir "$JOB" \
	--source "$SRC" "$W/mnt/1"
ok 'the tree lives' cmp "$SRC/hello" "$W/mnt/1/hello"

# ---- what is refused

fails_with 1 'no/such/dir: No such file' "$COPPER" stop -d /no/such/dir
mkdir "$T/empty"
fails_with 1 'is not a job directory: it has no logs' "$COPPER" stop -d "$T/empty"
mkdir "$T/empty/logs"
fails_with 1 'copper_tree.txt is not there' "$COPPER" stop -d "$T/empty"
: >"$T/empty/logs/copper_tree.txt"
fails_with 1 'is not a list of a tree.s nodes' "$COPPER" stop -d "$T/empty"
sed 's/^host.*/host ;rm/' "$T/tree" >"$T/empty/logs/copper_tree.txt"
fails_with 1 'line [0-9]+ does not belong in a list' "$COPPER" stop -d "$T/empty"
fails_with 2 'local stops one node here' "$COPPER" stop --local -d "$JOB"
fails_with 2 'job-dir only shows' "$COPPER" cache-stats --reset -d "$JOB"

# ---- a list of an older tree in the same place does not harm the live tree

sed 's/^terms .*/terms 0123456789abcdef/' "$T/tree" >"$JOB/logs/copper_tree.txt"
stop_job -d "$JOB" --timeout 20
is 'a stop with another tree stops nothing' "$?" 1
ok 'the tree lives after a stop of another one' cmp "$SRC/hello" "$W/mnt/1/hello"
cp "$T/tree" "$JOB/logs/copper_tree.txt"
stop_job -d "$JOB" "$W/mnt/1"
is 'the right list stops it' "$(cat "$T/.out")" 'stopped 2/2 nodes'
all_gone 'nothing runs'
