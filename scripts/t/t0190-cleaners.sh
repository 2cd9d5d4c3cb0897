#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A cleaner of /tmp takes the files beside the control socket of a living node, or all of its
# directory: the node puts them back, and is found again.
# covers: ctl node
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 13

with_tree 2 --enoent-ttl-ms 60000
run() {
	"$COPPER" run --mount "$W/mnt/1" -- cat "$SRC/hello" 2>/dev/null
}
is_found() {
	[ "$(run)" = hello ] && node_json 1 >/dev/null 2>&1 &&
		[ "$("$COPPER" cache-stats --json "$W/mnt/0" 2>/dev/null | json_value rank)" = 0 ]
}
files() {
	find "$XDG_RUNTIME_DIR/copper" -mindepth 1 -printf '%f\n' | sed 's/.*\.//' | sort | uniq -c | xargs
}
all='2 key 2 note 2 sock'
is 'what two nodes have there' "$(files)" "$all"
has_all() {
	[ "$(files 2>/dev/null)" = "$all" ]
}
find "$XDG_RUNTIME_DIR" -name '*.key' -delete -o -name '*.note' -delete
ok 'keys and notes come back' wait_for 20 has_all
ok 'and the nodes are found' is_found
rm "$XDG_RUNTIME_DIR"/copper/*
ok 'sockets come back' wait_for 20 has_all
ok 'and answer' is_found
rm -r "$XDG_RUNTIME_DIR/copper"
ok 'the directory comes back' wait_for 20 has_all
is 'for this user alone' "$(stat -c %a "$XDG_RUNTIME_DIR/copper")" 700
ok 'and the nodes are found again' is_found
if command -v systemd-tmpfiles >/dev/null; then
	echo "e $XDG_RUNTIME_DIR - - - 1s" >"$W/clean.conf"
	mkdir "$XDG_RUNTIME_DIR/other"
	touch "$XDG_RUNTIME_DIR/other/file"
	find "$XDG_RUNTIME_DIR" -exec touch -h -d '20 days ago' {} +
	sleep 1.2
	timeout "$(patient 20)" systemd-tmpfiles --clean --prefix="$XDG_RUNTIME_DIR" "$W/clean.conf" 2>"$W/clean.err"
	is 'systemd-tmpfiles passes over the directory' "$(files)" "$all"
	is 'and cleans beside it' "$(find "$XDG_RUNTIME_DIR" -name file)" ''
else
	pass 'systemd-tmpfiles passes over the directory # SKIP no systemd-tmpfiles'
	pass 'and cleans beside it # SKIP no systemd-tmpfiles'
fi
find "$XDG_RUNTIME_DIR/copper" -name '*.sock' -delete
ok 'sockets come back once more' wait_for 20 has_all
ok 'the tree stops' without_tree
is 'nothing is left' "$(find "$XDG_RUNTIME_DIR/copper" -mindepth 1 | wc -l) $(nodes_running) $(mounts_left)" '0 0 0'
