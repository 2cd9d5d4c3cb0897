#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper mark: commands and regions of scripts, and that a command runs as without it.
# covers: mark
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 27
export COPPER PERFFLOW_OPTIONS=log-dir=$T/log

traced() { # DIR
	find "$1" -name '*.pfw' 2>/dev/null | wc -l
}
count() {
	"$PYTHON" "$cop_t/marks.py" count "$T/log" 2>&1
}
nest() {
	"$PYTHON" "$cop_t/marks.py" nest "$T/log" 2>&1
}

# ---- what is written

cat >"$T/script" <<'SH'
#!/bin/sh
"$COPPER" mark begin 'load data'
"$COPPER" mark step -- sh -c 'exit 3'
echo "$?"
"$COPPER" mark end 'load data'
echo "$$"
SH
chmod +x "$T/script"
mapfile -t said < <("$T/script")
is 'a command, and a region around it' \
	"${said[0]} $(count)" '3 1 files load data:B 1 load data:E 1 step:B 1 step:E 1'
is 'the file is that of the script' \
	"$(basename "$T/log"/*)" "perfflow.array.$(hostname).${said[1]}-shell.pfw"
is 'begin and end are of the script, a command of its own process' "$("$PYTHON" -c '
import json, sys
e = json.load(open(sys.argv[1]))
shell = int(sys.argv[2])
print([x["pid"] == shell for x in e], e[1]["pid"] == e[2]["pid"], [x["cat"] for x in e])' \
		"$T/log"/* "${said[1]}")" \
	"[True, False, False, True] True ['shell', 'shell', 'shell', 'shell']"
is 'events of commands nest in their regions' "$(nest)" ''
rm -rf "$T/log"
PERFFLOW_OPTIONS=log-dir=$T/log:log-event=compact:log-format=object:cpu-mem-usage=true "$COPPER" \
	mark -c prepare one -- sleep 0.2
is 'compact, with the time, processor and memory' "$("$PYTHON" -c '
import glob, json, sys
e = json.load(open(glob.glob(sys.argv[1] + "/perfflow.object.*")[0]))["traceEvents"]
print([x["ph"] for x in e], 200e3 <= e[2]["dur"] < 60e6, e[0]["args"]["memory_usage"] > 0, e[0]["args"]["cpu_usage"] < 90, e[2]["cat"])' "$T/log")" \
	"['C', 'C', 'X'] True True True prepare"
rm -rf "$T/log"
"$COPPER" mark begin -p 4711 a 2>"$T/err"
is 'options come first' "$?" 2
"$COPPER" mark -p 4711 begin a && "$COPPER" mark --pid=4711 end a
is 'marks of another shell nest' \
	"$(basename "$T/log"/*) $(nest)" "perfflow.array.$(hostname).4711-shell.pfw "
rm -rf "$T/log"
seq 200 | xargs -P 8 -n 1 "$COPPER" mark many -- true
is 'many at the same time' "$(count) $(nest)" '1 files many:B 200 many:E 200 '
rm -rf "$T/log"
mkdir "$T/job"
PERFFLOW_OPTIONS='' COPPER_JOB_DIR=$T/job "$COPPER" mark a -- true
is "in a job's directory there is a folder for traces" \
	"$(traced "$T/job/trace") $(stat -c %a "$T/job/trace")" '1 700'

# ---- the command

is 'standard streams' "$(echo in | "$COPPER" mark a -- sh -c 'cat; echo err >&2' 2>&1)" 'in
err'
"$COPPER" mark a -- sh -c 'kill -TERM $$' 2>/dev/null
is 'a signal that ends it' "$?" 143
"$COPPER" mark a -- \
	sh -c 'trap "echo told; exit 5" USR1; echo ready; while :; do sleep 0.05; done' >"$T/out" &
pid=$!
wait_for 10 grep -q ready "$T/out"
kill -USR1 "$pid"
wait "$pid"
is 'a signal that it takes' "$? $(tail -n 1 "$T/out")" '5 told'
(
	trap '' INT
	"$COPPER" mark a -- sh -c 'kill -INT $$; echo on'
) >"$T/out"
is 'a signal that is ignored stays ignored for the command' "$(cat "$T/out")" on
is 'the command ends with its parent' \
	"$("$COPPER" mark a -- sh -c 'echo $$; exec sleep 600' >"$T/out" & pid=$!
	wait_for 10 test -s "$T/out"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	wait_for 10 eval '! kill -0 "$(cat "$T/out")" 2>/dev/null' && echo gone)" gone
is 'the begin of a command that was cut off can be read' "$(count | grep -c ' a:B')" 1
fails_with 127 '/nonexistent: no such command' "$COPPER" mark a -- /nonexistent
fails_with 126 '/etc/passwd: Permission denied' "$COPPER" mark a -- /etc/passwd
is 'the command has its environment' \
	"$(env -i A=b PERFFLOW_OPTIONS="$PERFFLOW_OPTIONS" "$COPPER" mark a -- env |
		LC_ALL=C sort)" "A=b
PERFFLOW_OPTIONS=$PERFFLOW_OPTIONS"

# ---- what is wrong

export PERFFLOW_OPTIONS=log-dir=$T/file/below
: >"$T/file"
"$COPPER" mark a -- sh -c 'exit 7' 2>"$T/err"
is 'the command runs all the same' \
	"$? $(wc -l <"$T/err") $(grep -c 'copper mark: cannot write .*: Not a directory' \
		"$T/err")" '7 1 1'
fails_with 1 'cannot write .*: Not a directory' "$COPPER" mark begin a
export PERFFLOW_OPTIONS=log-dir=$T/off:log-enable=False
"$COPPER" mark a -- sh -c 'exit 7' && "$COPPER" mark begin a
is 'off' "$? $("$COPPER" mark begin a; echo $?) $(traced "$T/off")" '7 0 0'
fails_with 2 "is missing" "$COPPER" mark
fails_with 2 "'a' is not followed by -- and a COMMAND" "$COPPER" mark a
fails_with 2 'COMMAND is missing after --' "$COPPER" mark a --
fails_with 2 'NAME is missing after begin' "$COPPER" mark begin
fails_with 2 "one NAME after end is enough: 'b'" "$COPPER" mark end a b
fails_with 2 'NAME is empty' "$COPPER" mark '' -- true
