#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that looks for absent names in many directories, again and again: what that costs the
# second of two nodes; when it sees a name that was made meanwhile; and that a TTL that the user
# gave does not grow.
# covers: fetch guess
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16

DIRS=400
SRC=$T/src
mkdir "$SRC"
for ((i = 0; i < DIRS; i++)); do
	mkdir "$SRC/d$i"
	echo "$i" >"$SRC/d$i/module.js"
done
# The timestamps are old enough that none is young.
find "$SRC" -exec touch -d '1 hour ago' {} +

now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}
# Looks in each directory for a name about which the kernel knows nothing, since it is a new one
# each time.
looks=0
look() { # leaves in requests and messages what it cost
	local messages_before requests_before
	looks=$((looks + 1))
	messages_before=$(node_stat 1 fabric.request_messages)
	requests_before=$(node_stat 1 fabric.requests_sent)
	"$PYTHON" -c '
import os, sys
at, dirs, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.exit(any([os.path.exists(f"{at}/d{i}/{name}") for i in range(dirs)]))' "$W/mnt/1" "$DIRS" \
		"absent$looks" || bail 'an absent name exists'
	messages=$(($(node_stat 1 fabric.request_messages) - messages_before))
	requests=$(($(node_stat 1 fabric.requests_sent) - requests_before))
	note "look $looks: $requests requests in $messages messages"
}
sleep_until_ms() { # MS
	local left=$(($1 - $(now_ms)))
	[ "$left" -le 0 ] || sleep "$((left / 1000)).$(printf %03d $((left % 1000)))"
}

absent() { # NAME…
	local name
	for name; do
		[ ! -e "$W/mnt/1/$name" ] || bail "$name exists"
	done
}
forget() { # [PATH]
	"$COPPER" cache-stats --invalidate "$W/mnt/1" "$@" >"$T/.out" 2>&1 ||
		bail "--invalidate: $(cat "$T/.out")"
}

# ---- without options

with_tree 2
began=$(now_ms)
look
sleep 2.1
look
is_at_most 'once the TTL is over each directory is checked' $DIRS "$requests"
# Each directory is believed for as long as it has been unchanged. If the machine stands still for
# that long, the directories are due too early; then it tries again, when they have been unchanged
# for longer.
for try in 1 2 3; do
	same=$(($(now_ms) - began))
	sleep_until_ms $((began + 2 * same + 100))
	looked=$(now_ms)
	look
	due=$requests/$messages
	sleep 2.1
	look
	[ $(($(now_ms) - looked)) -ge $same ] || break
	note "round $try took too long"
done
is 'after as long as they were the same all are checked again, and none twice' "${due%/*}" $DIRS
is_at_most 'together, so that it takes few messages' "${due#*/}" 100
is 'directories that stay the same are believed for longer than the TTL' "$requests" 0

# By now each directory is believed for seconds.
absent d8/told.js d9/told.js d9/beside.js top.js
echo told >"$SRC/d8/told.js"
forget d8
is 'after an invalidation of the directory a new name is seen at once' \
	"$(cat "$W/mnt/1/d8/told.js")" told
echo told >"$SRC/d9/told.js"
forget d9/told.js
is 'or of the name' "$(cat "$W/mnt/1/d9/told.js")" told
echo told >"$SRC/top.js"
forget
is 'or of everything' "$(cat "$W/mnt/1/top.js")" told

# Listed once more.
look
sleep 2.1
look
absent d7/new.js
clears=$(node_stat 1 enoent.clears)
echo new >"$SRC/d7/new.js"
ok 'a new name appears without being told of' wait_for 70 test -e "$W/mnt/1/d7/new.js"
is 'with its bytes' "$(cat "$W/mnt/1/d7/new.js")" new
is_at_most 'since its directory was found changed' $((clears + 1)) "$(node_stat 1 enoent.clears)"
ok 'the tree stops' without_tree

# ---- with a time that is given

with_tree 2 --enoent-ttl-ms 500
look
for i in 1 2 3 4; do
	sleep 0.6
	look
	is_at_most "a TTL that was given does not grow: check $i" $DIRS "$requests"
done
ok 'the tree with -E stops' without_tree
