#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demonstration does what it promises, for root and for an ordinary user, and leaves nothing
# behind, even if it is interrupted or fails.
# covers: launch
# modes: release
# limit: 240
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 22

"$PYTHON" -c 'import numpy' 2>/dev/null || skip_all 'no numpy'
mkdir -m 1777 "$T/tmp"
bin=$T/demo/bin
mkdir -p "$bin" "$T/demo/scripts"
cp "$COPPER" "$SLOWFS" "$bin"
cp "$cop_root/scripts/demo.sh" "$T/demo/scripts"
demo=(env -u XDG_RUNTIME_DIR TMPDIR="$T/tmp" BUILD="$bin" DEMO_IMPORT=numpy
	"$T/demo/scripts/demo.sh")

running() { # how many processes of the demo's binaries
	find /proc/[0-9]*/exe -prune -lname "$bin/*" 2>/dev/null | wc -l
}
nothing_left() { # WHEN
	wait_for 5 eval '[ "$(running)" -eq 0 ]'
	is "$1: no process, mount or file is left" \
		"$(running) $(grep -c " $T/tmp" /proc/self/mountinfo) $(find "$T/tmp" -mindepth 1 |
			wc -l)" '0 0 0'
}

"${demo[@]}" >"$T/out.demo" 2>"$T/out.err"
is 'the demo ends well' $? 0
is 'the demo has no complaints' "$(cat "$T/out.err")" ''
text=$(cat "$T/out.demo")
matches 'it says what is imported' "$text" '^Copper demo: 4 nodes on this machine import numpy'
matches 'how long one process took directly' \
	"$text" '^ *direct: 1 process +[0-9.]+ s +[0-9]+ +[0-9]+ +[0-9.]+$'
matches 'four nodes cold' \
	"$text" '^ *Copper, cold: 4 nodes at once +[0-9.]+ s +[0-9]+ +[0-9]+ +[0-9.]+$'
matches 'four nodes warm, without a read at the origin' \
	"$text" '^ *Copper, warm: 4 nodes at once +[0-9.]+ s +[0-9]+ +0 +0\.0$'
for rank in 1 2 3; do
	matches "node $rank asked its parent, never the origin" \
		"$text" "^ *node $rank  cold( +[0-9]+){4} +[1-9][0-9]* +0\$"
done
matches 'the root read the origin' "$text" '^ *node 0  cold( +[0-9]+){5} +[1-9][0-9]*$'
matches 'every node was stopped' "$text" '^ *stopped 4/4 nodes$'
matches 'the last line compares' "$(tail -n 1 "$T/out.demo")" \
	'^ *direct, 1 process: [0-9.]+ s   Copper, 4 nodes: cold [0-9.]+ s, warm [0-9.]+ s   local disk, 4 processes: [0-9.]+ s$'
is 'no line is too wide for a terminal of 120' "$(awk 'length > 120' "$T/out.demo")" ''
nothing_left 'after it'

# In the background bash ignores signals that would end it in the foreground, unless told otherwise.
interrupted() { # SIGNAL WHAT-IT-WAITS-FOR
	local pid
	: >"$T/out.demo"
	env --default-signal=INT setsid "${demo[@]}" >"$T/out.demo" 2>&1 &
	pid=$!
	wait_for 20 grep -q "$2" "$T/out.demo"
	sleep 0.1
	kill "-$1" "$pid"
	wait "$pid"
}
interrupted INT '^1 '
is 'Ctrl-C in the first step ends it with 130' $? 130
nothing_left 'then'
interrupted TERM '^3 '
is 'a signal while nodes import ends it with 143' $? 143
nothing_left 'then, too'

printf '#!/bin/sh\necho no such luck >&2\nexit 1\n' >"$T/broken"
chmod 755 "$T/broken"
cp "$bin/copper" "$T/whole" && cp "$T/broken" "$bin/copper"
"${demo[@]}" >"$T/out.demo" 2>"$T/out.err"
is 'nodes that do not start fail it' $? 1
matches 'nodes that do not start give their reason' \
	"$(cat "$T/out.err")" 'node . did not start: no such luck'
nothing_left 'after that'
cp "$T/whole" "$bin/copper"

become_user
as_user "${demo[@]}" >"$T/out.demo" 2>&1
is 'an ordinary user gets the same' "$? $(grep -c 'stopped 4/4 nodes' "$T/out.demo")" '0 1'
