#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that its user may execute and not read: through Copper it cannot be had, --direct runs
# it, and copper paths says so.
# covers: view paths walk
# modes: release asan
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 8

SRC=$T/src
mkdir -p "$SRC/closed" "$SRC/open"
cp "$(type -P true)" "$SRC/closed/tool"
cp "$(type -P true)" "$SRC/closed/unused"
cp "$(type -P true)" "$SRC/open/tool"
chmod -R a+rX "$SRC"
chmod 711 "$SRC/closed/tool" "$SRC/closed/unused"
become_user
run() {
	as_user "$COPPER" run "$@"
}
with_tree 1 -A
ok 'natively it runs' as_user "$SRC/closed/tool"
fails_with 126 'Permission denied' "${cop_as[@]}" "$COPPER" run "$SRC/closed/tool"
fails_with 126 'Permission denied' "${cop_as[@]}" "$W/mnt/0/closed/tool"
ok 'the storage runs it in a view' run --direct "$SRC/closed" -- "$SRC/closed/tool"
ok 'one that may be read runs' run "$SRC/open/tool"
ok 'the tree stops' without_tree
as_user "$COPPER" paths --usage-root "$SRC" "$JOB" >"$W/out" 2>"$W/err"
matches 'copper paths counts what was used, and names it' "$(cat "$W/err")" \
	"programs .* may execute but not read: 1, for example $SRC/closed/tool: .*--direct"
as_user "$COPPER" paths --no-sizes --usage-root "$SRC" "$JOB" >"$W/out" 2>"$W/err"
is 'without sizes it cannot know' "$(grep -c 'but not read' "$W/err")" 0
