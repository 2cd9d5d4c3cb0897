#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace: what analysts of programs on devices ask: by rank, trace file and argument; values
# of counters; self and busy time; the longest; what never ended; each gives what an independent
# computation gives.
# covers: trace/table trace/who
# modes: release asan tsan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
plan 28

mkdir "$T/ranks"
timeout "$(patient 120)" "$PYTHON" "$cop_t/trace_questions_judge.py" "$COPPER" "$T/ranks" \
	>"$T/judged" 2>&1
is 'every answer is that of the judge' "$(grep -v '^same ' "$T/judged" | head -n 5)" ''
is 'all questions were asked' "$(grep -c '^same ' "$T/judged")" 20

# ---- processes without a host

printf '%s\n' '[' '{"name":"step","ph":"X","pid":1,"tid":1,"ts":1,"dur":100}' >"$T/a.json"
printf '%s\n' '[' '{"name":"step","ph":"X","pid":1,"tid":1,"ts":1,"dur":200}' >"$T/b.json"
trace table --csv --by name --per pid --then max --show dur "$T/a.json" "$T/b.json"
is 'the file tells processes of one pid apart' "$(sed -n 2p "$T/out")" step,0.000200000
is_told 'a row that adds up two processes of one pid' 0 'several processes have one pid.*trace' \
	table --by pid "$T/a.json" "$T/b.json"
trace table --by pid,trace "$T/a.json" "$T/b.json"
is 'nothing is said if a key tells them apart' "$(cat "$T/err")" ''
trace summary --json "$T/a.json" "$T/b.json"
matches 'the summary counts both' "$(cat "$T/out")" '"processes":2,"threads":2,'

# ---- what never ended

cat >"$T/hang.json" <<'L'
[
{"name":"work","ph":"X","pid":1,"tid":1,"ts":1,"dur":100},
{"name":"wait","ph":"B","pid":1,"tid":1,"ts":200},
{"name":"beat","ph":"i","pid":8,"tid":1,"ts":300}
L
trace table --by name "$T/hang.json"
is 'a table has a column for begins without an end if there are any' \
	"$(awk '{ print $1, $NF }' "$T/out" | paste -sd ';')" 'name unfinished;work 0;wait 1'
trace table --by name "$T/a.json"
is 'and no such column if there are none' "$(awk 'NR == 1 { print $NF }' "$T/out")" bandwidth
trace table --csv --by name --show count "$T/hang.json"
is 'columns that are asked for do not have them' "$(paste -sd ' ' "$T/out")" 'name,count work,1'
trace events --csv "$T/hang.json"
is 'events have no duration for them' "$(grep wait "$T/out")" \
	'0.000199000,,unfinished,1,wait,,1,1,,,,'
trace summary "$T/hang.json"
matches 'the summary names them' "$(paste -sd ' ' "$T/out")" \
	'unfinished  1 .*processes   2 .*events that never ended.* wait +hang.json \(pid 1\) +1 +1'

# ---- counters

cat >"$T/loss.json" <<'L'
[
{"name":"train_loss","ph":"C","pid":1,"tid":1,"ts":1000000,"args":{"value":0.5}},
{"name":"train_loss","ph":"C","pid":1,"tid":1,"ts":2000000,"args":{"value":1e-7}}
L
trace table --csv --by time --show value --sort time "$T/loss.json"
is 'a counter over time' "$(paste -sd ' ' "$T/out")" 'time,value 0,0.5 1,1e-07'
trace events --csv "$T/loss.json"
is 'events have the value' "$(sed -n 2p "$T/out")" \
	'0.000000000,0.000000000,counter,1,train_loss,,1,1,,,,0.5'

# ---- a clock that was wrong

trace events --csv --offset "$T/b.json=0.25" "$T/a.json" "$T/b.json"
is 'the times of one file are moved' "$(cut -d , -f 1,2 "$T/out" | paste -sd ' ')" \
	'time,dur 0.000000000,0.000100000 0.250000000,0.000200000'
trace summary --json --offset "$T/b.json=-1" "$T/a.json" "$T/b.json"
matches 'also back' "$(cat "$T/out")" '"total":1.000100000'
is_told 'the offset of a file that is not read' 2 "--offset: '[^']*/loss.json' is none of the files" \
	table --by name --offset "$T/loss.json=1" "$T/a.json"

# ---- what is wrongly asked for

is_told 'an offset without a number' 2 "--offset: 'x=y' is not FILE=SECONDS" table --by name \
	--offset x=y "$T/a.json"

is_told 'a column that --then leaves open' 2 "what becomes of the column 'count'" table --by name \
	--per pid --show dur,count --then dur=max "$T/a.json"
is_told 'an unknown word of --then' 2 "--then: 'dur=most' is neither max" table --by name \
	--per pid --then dur=most "$T/a.json"
is_told 'a class without an expression' 1 "--class: 'compute' is not NAME=RE" summary \
	--class compute "$T/a.json"
is_told 'no duration' 2 "--min-dur: 'x' is not a number" events --min-dur x "$T/a.json"
