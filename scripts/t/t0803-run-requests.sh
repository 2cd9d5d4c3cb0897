#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: which requests programs in an overlay view cause at the node: counts, never times.
# covers: view fuse
# modes: release
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 9

module=json,asyncio,xml.dom.minidom
! "$PYTHON" -c 'import numpy' 2>/dev/null || module=numpy
! "$PYTHON" -c 'import torch' 2>/dev/null || module=$module,torch
SRC=/usr
with_tree 1 --enoent-ttl-ms 600000

# A shell in the view that runs each line it gets, and reports when the command has ended.
as_user mkfifo "$W/to" "$W/from"
as_user "$COPPER" run -- sh -c 'while read -r line; do eval "$line"; echo "$?" >&9; done' <"$W/to" \
	9>"$W/from" >"$W/out.view" 2>&1 &
exec 8>"$W/to" 9<"$W/from"
in_view() { # COMMAND LINE
	local status
	echo "$1" >&8
	read -r status <&9
	return "$status"
}
# All requests that the kernel can make, by the counts of their kinds; their outcomes are counted as
# well.
asked() {
	node_json 0 | "$PYTHON" -c '
import json, sys
kinds = "lookup getattr readlink open read release opendir readdir readdirplus releasedir statfs access getxattr listxattr ioctl lseek forget flush".split()
fuse = json.load(sys.stdin)["fuse"]
print(sum(fuse.get(k, 0) for k in kinds))'
}
import_again() {
	local before
	before=$(asked)
	in_view "/usr/bin/python3 -B -c 'import $module, sys; [m.__file__ for m in sys.modules.values() if getattr(m, \"__file__\", None)]'" || note "$(cat "$W/out.view")"
	echo $(($(asked) - before))
}
matches 'the kinds of requests are those of the counters' \
	"$(node_json 0 | "$PYTHON" -c 'import json, sys; print(*json.load(sys.stdin)["fuse"])')" \
	'lookup.*read.*ioctl'
cold=$(import_again)
ok "a first import of $module comes through the node" test "$cold" -gt 20
note "$cold requests"
hold_what_was_read 0
requests=$(least 0 import_again)
is "a second one in the same view makes no request of any kind" "$requests" 0
of_view() { # COMMAND…
	local before
	before=$(asked)
	as_user "$COPPER" run "$@"
	echo $(($(asked) - before))
}
made=$(least 8 of_view true)
is_at_most 'a view takes a few requests to make' "$made" 16
before=$(node_stat 0 fuse.ioctl)
in_view "/usr/bin/python3 -c 'import os; print([os.isatty(os.open(\"/usr/bin/env\", os.O_RDONLY)) for _ in range(100)] == [False] * 100)'"
is 'isatty ends in the kernel' \
	"$(tail -n 1 "$W/out.view") $(($(node_stat 0 fuse.ioctl) - before))" 'True 0'
in_view "ls -laR /usr/lib/python3* >/dev/null 2>&1; find /usr/lib/python3 -name '*.so' | LC_ALL=C sort | xargs cat | sha256sum >'$W/sum'" || note 'ls fails'
is 'the bytes are right' "$(cat "$W/sum")" \
	"$(find /usr/lib/python3 -name '*.so' | LC_ALL=C sort | xargs cat | sha256sum)"
exec 8>&- 9<&-
ok 'the tree stops' without_tree
is 'no node runs any more' "$(nodes_running)" 0
is 'no mount remains' "$(mounts_left)" 0
