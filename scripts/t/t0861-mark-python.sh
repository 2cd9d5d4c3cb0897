#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Marks in Python: code that was written for PerfFlowAspect, threads, children of every kind, ends
# of every kind.
# covers: mark
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=marks.sh
. "$(dirname "$0")/marks.sh"
plan 31
export PYTHONPATH=$cop_root/internal/trace/mark/python

marks() { # [OPTIONS] -- WHAT…
	local options=()
	[ "$1" = -- ] || {
		options=("$1")
		shift
	}
	shift
	traces "${options[@]}" -- "$PYTHON" "$cop_t/mark_new.py" "$@"
}
traced() { # DIR
	find "$1" -name '*.pfw' 2>/dev/null | wc -l
}
count() {
	"$PYTHON" "$cop_t/marks.py" count "$T/log" 2>&1
}
nest() {
	"$PYTHON" "$cop_t/marks.py" nest "$T/log" 2>&1
}

# ---- in place of PerfFlowAspect

traces -- "$PYTHON" "$cop_t/mark_old.py"
is 'code written for it runs' "$? $(cat "$T/err")" '0 '
is 'code written for PerfFlowAspect has the events that it would have had' "$(count)" \
	'1 files alone:b 1 alone:e 1 bar:B 2 bar:E 2 closed:E 1 ended:e 1 foo:B 2 foo:E 2 load:b 1 load:e 1 load:n 1 main:B 1 main:E 1 opened:B 1 submitted:b 1'
is 'with their categories, scopes and ids' \
	"$("$PYTHON" "$cop_t/marks.py" list "$T/log" | grep -e '^[lmse]' -e '^bar.*B' |
		sed 's/outer [0-9]*/outer N/' | LC_ALL=C sort -u)" \
	'bar __main__ B - -
ended __main__ e outer N
load mark_old.py b - 123
load mark_old.py e - 123
load mark_old.py n s 9
main mark_old.py B - -
main mark_old.py E - -
submitted __main__ b outer N'
matches 'the name of the file, too' \
	"$(basename "$T/log"/*)" "^perfflow\.array\.$(hostname)\.[0-9]+\.pfw\$"
traces log-event=Compact -- "$PYTHON" "$cop_t/mark_old.py"
is 'compact' "$(count | grep -o -e 'foo:.*foo:. [0-9]*' -e 'foo:. [0-9]*' -e 'bar:. [0-9]*' |
		paste -sd ' ')" 'bar:X 2 foo:X 2'
traces log-enable=False -- "$PYTHON" "$cop_t/mark_old.py"
is 'off: it runs as without' "$? $(traced "$T/log") $(cat "$T/err")" '0 0 '

# ---- what is new

marks -- basics
is 'regions, counters, and what ends with an exception' \
	"$? $(nest)$("$PYTHON" "$cop_t/marks.py" list "$T/log" | cut -d ' ' -f 1-3 | head -n 9 |
		paste -sd ,)" \
	'0 loop m B,residual __main__ C,infinite __main__ C,bytes __main__ C,step __main__ B,step __main__ E,loop m E,broken __main__ B,broken __main__ E'
is 'copper trace reads the counters as they were' "$("$COPPER" trace table --csv --by name \
		--show value --sort name "$T/log" | paste -sd ' ')" \
	'name,value bytes,9007199254740993 residual,0.25'
marks log-format=object:name=part:log-filename-include=name,instance-path,pid -- basics
matches 'object, and a name like that of C' "$(basename "$T/log"/*)" \
	"^perfflow\.object\.part\.\{$(printf 1 | sha1sum | cut -c -8)\}\.[0-9]+\.pfw\$"
is 'the document has the members of the format' \
	"$("$PYTHON" -c 'import json, sys; print(sorted(json.load(open(sys.argv[1]))))' \
		"$T/log"/*)" "['displayTimeUnit', 'otherData', 'traceEvents']"
marks cpu-mem-usage=True -- basics
is 'processor and memory' "$("$PYTHON" -c '
import json, sys
e = [e["args"] for e in json.load(open(sys.argv[1])) if e["ph"] == "C" and e["name"] == "step"]
print(len(e), sum(a["memory_usage"] > 5000 for a in e), all(a["cpu_usage"] >= 0 for a in e))' \
		"$T/log"/*)" '2 1 True'
marks -- off
is 'marks that are on are not off' "$?" 1
marks log-enable=False -- off
is 'off, a function is itself' "$? $(traced "$T/log") $(cat "$T/err")" '0 0 '
marks -- unknown
is 'an unknown pointcut is told' \
	"$? $(cut -d : -f 1-2 "$T/err")" "0 copper-mark: unknown pointcut 'beside'"
marks log-evnt=Compact:log-event=Short:x:log-filename-include=pid,day -- basics
is 'what is wrong in the options is told, in the words of C' \
	"$? $(sort "$T/err" | sed 's/.*OPTIONS: //')" '0 log-filename-include knows no day; ignored
no option is called log-evnt; ignored
not KEY=VALUE: x; ignored
not a value of log-event: Short; ignored'
marks -- coroutines
is 'coroutines that overlap' "$? $(count)" '0 1 files waits:b 2 waits:e 2'

# ---- threads, children, ends

marks -- threads
is 'threads' "$(count) $(nest)" '1 files step:B 8000 step:E 8000 '
for how in fork spawn forkserver; do
	marks -- processes "$how"
	is "multiprocessing, $how: every event of every child" \
		"$? $(count | cut -d ' ' -f 3-)" '0 step:B 7 step:E 7' || note "$(cat "$T/err")"
done
for how in exit flush; do
	marks -- fork "$how"
	is "os.fork, $how: a file each, nothing twice" "$(count)" '2 files step:B 21 step:E 21'
done
marks -- crash 2000
matches 'killed: what was marked before is there' \
	"$? $(count)" '^137 1 files step:B 2001 step:E 200[01]$'
marks -- closes "$T/own"
is 'a program that closes our file' "$? $(cat "$T/own") $(count)" '0 mine 1 files step:B 2 step:E 2'
marks -- closes "$T/own" <&- >&- 2>&-
is 'a program without standard descriptors has its events' \
	"$(cat "$T/own") $(count)" 'mine 1 files step:B 2 step:E 2'
marks -- alarms 20000
is 'handlers that interrupt marks' "$? $(count | grep -o 'loop:. [0-9]*' | paste -sd ' ')" \
	'0 loop:B 20000 loop:E 20000'
marks -- limit 20000
is 'a limit of file sizes: told once, and how many are missing' \
	"$? $(count | cut -d ' ' -f \
		-2) $(sed 's/[0-9][0-9]* events are/N events are/; s/ in .*//; s/write .*: F/write: F/' "$T/err" | paste -sd ' ')" \
	'0 1 files copper-mark: cannot write: File too large; the program goes on, events beyond its buffers are left out copper-mark: N events are missing'
: >"$T/file"
PERFFLOW_OPTIONS=log-dir=$T/file/below "$PYTHON" "$cop_t/mark_new.py" basics 2>"$T/err"
is 'a program that cannot make its directory goes on, without marks' \
	"$? $(grep -c 'cannot write .*Not a directory; the program goes on, without marks' \
		"$T/err")" '0 1'
mkdir "$T/job"
(cd "$T" && COPPER_JOB_DIR=$T/job "$PYTHON" "$cop_t/mark_new.py" basics)
is "in a job's directory there is a folder for traces" \
	"$(traced "$T/job/trace") $(stat -c %a "$T/job/trace")" '1 700'
rm -rf "$T/log"
export PERFFLOW_OPTIONS=log-dir=$T/log
seq 20 | xargs -P 4 -n 1 sh -c '"$0" "$1" basics' "$PYTHON" "$cop_t/mark_new.py"
unset PERFFLOW_OPTIONS
is 'twenty processes in one directory' \
	"$(count | grep -o -e '^[0-9]* files' -e ' step:. [0-9]*' | paste -sd ' ')" \
	'20 files  step:B 20  step:E 20'

if command -v mpiexec.hydra >/dev/null &&
	"$PYTHON" -c 'import ctypes; ctypes.CDLL("libmpich.so.12")' 2>/dev/null; then
	traces -- mpiexec.hydra -launcher fork -n 4 "$PYTHON" "$cop_t/mark_new.py" mpi
	is 'MPI: each rank has its file' "$(count)$(nest)" '4 files barrier:B 4 barrier:E 4'
else
	pass 'MPI # SKIP no mpich'
fi
