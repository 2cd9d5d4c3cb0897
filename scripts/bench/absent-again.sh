#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a search for test files costs a node's parent (a glob of mocha): 2,285 absent names in 1,860
# directories are looked for again and again, each time after the kernel has forgotten them. These
# are counts: they do not depend on the machine's load, except for the third look without -E, which
# comes while the directories are believed.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

DIRS=1860
NAMES=2285
SRC=$T/src
mkdir "$SRC"
for ((i = 0; i < DIRS; i++)); do
	mkdir "$SRC/p$i"
	: >"$SRC/p$i/index.js"
done
# The timestamps are old enough that none is young.
find "$SRC" -exec touch -d '1 hour ago' {} +

look() { # SIDE: the names in the order of a walk, the first directories with two
	local messages requests
	messages=$(node_stat 1 fabric.request_messages)
	requests=$(node_stat 1 fabric.requests_sent)
	"$PYTHON" -c '
import os, sys
at, dirs, names = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(dirs):
    for name in ("test.js", ".mocharc.js")[: 1 + (i < names - dirs)]:
        if os.path.exists(f"{at}/p{i}/{name}"):
            sys.exit(name)' "$W/mnt/1" $DIRS $NAMES || bail 'an absent name exists'
	add "$1-requests" $(($(node_stat 1 fabric.requests_sent) - requests))
	add "$1-messages" $(($(node_stat 1 fabric.request_messages) - messages))
}
# SIDE: with the seconds before each look; between the second and the third pass as many as between
# the first and the second.
looks() {
	look "$1-1"
	sleep 6
	look "$1-2"
	sleep 2.2
	look "$1-3"
}
for given in '' 2000; do
	side=${given:-grows}
	with_tree 2 ${given:+--enoent-ttl-ms "$given"}
	looks "$side"
	without_tree
	with=${given:+" with -E $given"}
	for n in 1 2 3; do
		rule=(none -)
		[ $n -eq 1 ] || rule=(at_most 60)
		report "$NAMES absent names in $DIRS directories, look $n$with, requests to the parent" requests none - "$side-$n-requests" -
		report 'the same, messages' messages "${rule[@]}" "$side-$n-messages" -
	done
done
