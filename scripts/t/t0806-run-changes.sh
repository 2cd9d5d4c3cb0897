#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: what a long-lived view sees when the source changes, when the node is killed, and when
# the tree is stopped.
# covers: view mountguard
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

SRC=$T/src
small_tree "$SRC"
mkdir -p "$SRC/pkg/deep" "$SRC/cold/deep"
echo one >"$SRC/cold/file"
echo one >"$SRC/cold/deep/file"
become_user
chown -R "$cop_user" "$SRC"

# A program in a view that reports on request what it sees.
cat >"$T/look.py" <<'PY'
import os, sys
def look(path):
    try:
        return " ".join(sorted(os.listdir(path))) if path.endswith("/") else open(path).read().strip()
    except OSError as e:
        return os.strerror(e.errno)
print("ready", flush=True)
for line in sys.stdin:
    print(look(line.rstrip("\n")), flush=True)
PY
open_view() { # WORD…
	as_user rm -f "$W/to" "$W/from"
	as_user mkfifo "$W/to" "$W/from"
	as_user "$COPPER" run "$@" "$PYTHON" "$T/look.py" <"$W/to" >"$W/from" 2>/dev/null &
	cop_view=$!
	exec 8>"$W/to" 9<"$W/from"
	read -r _ <&9
}
look() { # PATH BELOW SRC; a directory ends with /
	local seen
	echo "$SRC/$1" >&8
	read -r seen <&9
	echo "$seen"
}
close_view() {
	exec 8>&- 9<&-
	wait "$cop_view"
}
fresh() { # the source as it was, and so seen
	rm -rf "$SRC/pkg"
	mkdir -p "$SRC/pkg"
	echo one >"$SRC/pkg/old"
	as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
}
change() {
	echo new >"$SRC/pkg/new"
	echo two >"$SRC/pkg/tmp" && mv "$SRC/pkg/tmp" "$SRC/pkg/old"
}
appears() { # PATH TEXT
	[ "$(look "$1")" = "$2" ]
}

with_tree 1 --enoent-ttl-ms 200

# ---- names that appear, files that are replaced

fresh
open_view --view bind
is 'bind: as it is' "$(look pkg/old) $(look pkg/new)" 'one No such file or directory'
change
ok 'bind: a new name is seen within seconds' wait_for 5 appears pkg/new new
is 'bind: a known file is the old one' "$(look pkg/old)" one
ok 'bind: --invalidate' as_user "$COPPER" cache-stats --invalidate "$W/mnt/0"
ok 'bind: the new file is seen' wait_for 5 appears pkg/old two
close_view

# As copper-run(1) describes it. It holds while the kernel has the names, which it may take back at
# any time.
absent='No such file or directory'
seen_by_overlay() {
	fresh
	open_view --view overlay
	first="$(look pkg/old) $(look pkg/new)"
	change
	sleep 1
	then="$(look pkg/new) $(look pkg/old)"
	next=$(as_user "$COPPER" run cat "$SRC/pkg/new")
	invalidated=$(as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null && echo yes)
	listed=$(wait_for 5 appears pkg/ 'new old' && echo new)
	last="$(look pkg/new) $(look pkg/old)"
	other=$(look hello)
	all=$(as_user "$COPPER" run sh -c "cat '$SRC/pkg/new' '$SRC/pkg/old'")
	close_view
}
for _ in {1..8}; do
	seen_by_overlay
	[ "$then $last" != "$absent one $absent Stale file handle" ] || break
done
is 'overlay: as it is' "$first" "one $absent"
is 'overlay: for this command what was absent stays so, and a known file is the old one' \
	"$then" "$absent one"
is 'overlay: the new name is there for the next command' "$next" new
is 'overlay: --invalidate' "$invalidated" yes
is 'overlay: the list is new' "$listed" new
is 'overlay: an absent name stays absent, a replaced file is stale' \
	"$last" "$absent Stale file handle"
is 'overlay: a name that was not asked for is the new one' "$other" hello
is 'overlay: the next command sees both new names' "$all" $'new\ntwo'

# ---- the tree is stopped

open_view
is 'a command runs in a view' "$(look hello)" hello
ok 'copper stop returns meanwhile' without_tree
is 'the machine has no mount of it' "$(mounts_left) $(nodes_running)" '0 0'
is 'a shortage of the kernel is an error, not an absence' "$(look cold/file), $(look cold/)" \
	'Transport endpoint is not connected, Transport endpoint is not connected'
close_view

# ---- the node is killed

with_tree 1
open_view
is 'a command runs in a view' "$(look hello)" hello
kill_node 0
is 'a dead node is an error, not an absence' \
	"$(look cold/file), $(look cold/), $(look cold/deep/file)" \
	'Transport endpoint is not connected, Transport endpoint is not connected, Transport endpoint is not connected'
close_view
as_user "$COPPER" stop "$W/mnt/0" >/dev/null 2>&1
cop_tree=0
is 'no mount remains' "$(mounts_left)" 0
