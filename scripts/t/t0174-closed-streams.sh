#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Standard streams that are closed, all or some, as cron and some launchers leave them: every
# subcommand does what it does otherwise.
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 30

closed_in() { # WHICH COMMAND…
	local which=$1
	shift
	case $which in
	0) "$@" <&- ;;
	1) "$@" >&- ;;
	2) "$@" 2>&- ;;
	'0 1') "$@" <&- >&- ;;
	'0 2') "$@" <&- 2>&- ;;
	'1 2') "$@" >&- 2>&- ;;
	'0 1 2') "$@" <&- >&- 2>&- ;;
	esac
}
SRC=$T/src
small_tree "$SRC"
export XDG_RUNTIME_DIR=$T/sockets
mkdir -m 700 "$XDG_RUNTIME_DIR"
mkdir "$T/mnt"
for which in 0 1 2 '0 1' '0 2' '1 2' '0 1 2'; do
	closed_in "$which" timeout "$(patient 20)" "$COPPER" mount --source "$SRC" "$T/mnt"
	is "closed $which: a mount succeeds" "$?" 0
	is "closed $which: the tree is there" "$(cat "$T/mnt/hello" 2>&1)" hello
	closed_in "$which" timeout "$(patient 20)" "$COPPER" run sh -c 'cat "$1" >"$2"' - \
		"$SRC/hello" "$T/copy"
	is "closed $which: a command runs in its view" "$? $(cat "$T/copy")" '0 hello'
	rm -f "$T/copy"
	closed_in "$which" timeout "$(patient 20)" "$COPPER" stop "$T/mnt"
	is "closed $which: a stop ends, and nothing is left" \
		"$(find "$XDG_RUNTIME_DIR" -mindepth 2 | wc -l) $(mounts_left)" '0 0'
	umount -l "$T/mnt" 2>/dev/null
done
is 'an error is no hang' "$(timeout "$(patient 20)" "$COPPER" mount "$T/none/none" \
	--source "$T/absent" <&- >&- 2>&-; echo $?)" 1
late=
for sub in aggregate paths runs report trace mark cache-stats; do
	timeout "$(patient 20)" "$COPPER" "$sub" "$T/none" <&- >&- 2>&-
	[ "$?" -ne 124 ] || late="$late $sub"
done
is 'subcommands that do not end' "$late" ''
