#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Resident memory of a node after an import, beside the bytes in its tables.
# limit: 120
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
resident() { # FIELD PID
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' "/proc/$2/status"
}
cached() { # RANK
	node_json "$1" | "$PYTHON" -c 'import json, sys
print(sum(t["bytes"] for t in json.load(sys.stdin)["tables"].values()))'
}
with_tree 2
add empty "$(resident VmRSS "$(pid_of 1)")"
import_wall "$W/mnt/{}" 2 >/dev/null
for rank in 0 1; do
	pid=$(pid_of "$rank")
	add "rss-$rank" "$(resident VmRSS "$pid")"
	add "anon-$rank" "$(resident RssAnon "$pid")"
	add "peak-$rank" "$(resident VmHWM "$pid")"
	add "cached-$rank" "$(cached "$rank")"
done
report 'resident memory of an empty node' B none - empty -
for rank in 0 1; do
	name=$([ "$rank" -eq 0 ] && echo root || echo leaf)
	report "resident memory of the $name after the import / bytes cached" \
		B at_most 1.15 "rss-$rank" "cached-$rank"
	report "anonymous part of it, $name / bytes cached" B none - "anon-$rank" "cached-$rank"
	report "most ever resident, $name / bytes cached" B none - "peak-$rank" "cached-$rank"
done
