#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace merge: one valid document of all generations at once, in order of time, with every
# event of the sources once; a process for each host and pid; ids told apart by file, flights not;
# clocks corrected; what is cut off, what cannot be written.
# covers: timeline
# quick: yes
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
plan 65

judge() { # FILE [PATH…]
	timeout "$(patient 120)" "$PYTHON" "$cop_t/merge_judge.py" "$@" 2>&1
}
ask() { # FILE EXPRESSION: of the events e and the names of processes p
	"$PYTHON" -c 'import gzip, json, sys
data = open(sys.argv[1], "rb").read()
e = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)["traceEvents"]
p = {x["pid"]: x["args"]["name"] for x in e if x["ph"] == "M" and x["name"] == "process_name"}
t = {(x["pid"], x["tid"]): x["args"]["name"] for x in e if x["ph"] == "M" and x["name"] == "thread_name"}
print(eval(sys.argv[2]))' "$@" 2>&1 | tail -n 1
}
mkdir "$T/tmp"
export TMPDIR=$T/tmp

# ---- every format, alone and together

mkdir "$T/all"
seed=1
while read -r name form words; do
	seed=$((seed + 1))
	# The words are words.
	# shellcheck disable=SC2086
	generate "$form" 600 "$seed" "$T/all/$name" $words
	trace merge -o "$T/one.json" "$T/all/$name"
	matches "$name: all its events, in order" \
		"$(judge "$T/one.json" "$T/all/$name")" '^same [0-9]+ events$'
done <<'L'
dlio.pfw 0
dftracer1.pfw 1
late.pfw.gz 1 late gzip=100
dftracer2.pfw 2
perfflow.cpu.1.pfw perfflow
perfflow.object.cpu.1.pfw perfflow-object
verbose.pfw verbose
verbose.pfw.gz verbose gzip=77
torch.json chrome
torch.json.gz chrome gzip=0
L

# Two nodes of Copper's: what they say of the clocks of hosts holds for the programs on them, too.
"$PYTHON" - "$T/all" <<'P'
import json, sys
start = 1698080323781412
hosts = {'node%d' % i: 0x8000000000000000 + i for i in range(4)}
for rank in (0, 1):
    with open('%s/copper-%d.pfw' % (sys.argv[1], rank), 'w') as out:
        def put(**event):
            out.write(json.dumps(event, separators=(',', ':')) + '\n')
        own = {'hhash': hosts['node%d' % rank]}
        common = dict(pid=77, tid=77 + rank)
        out.write('[\n')
        for host, value in hosts.items():
            put(id=0, name='HH', cat='dftracer', ph='M', args=dict(own, name=host, value=value), **common)
        put(id=0, name='PR', cat='dftracer', ph='M', args=dict(own, rank=rank), **common)
        put(id=0, name='process_name', cat='dftracer', ph='M', args=dict(own, name='copper'), **common)
        put(id=0, name='thread_name', cat='dftracer', ph='M', args=dict(own, name='progress'), **common)
        for i, value in enumerate(hosts.values()):
            if rank == 0:
                for k in range(3):
                    put(id=0, name='CO', cat='dftracer', ph='M', ts=start + 4000000 * k, pid=77, tid=77,
                        args=dict(hhash=value, name='clock', value=i * (1234.5 - 7 * k), rtt=80))
        for n in range(50):
            ts = start + 1000 * n + rank
            put(id=n, name='fetch', cat='copper', ts=ts, dur=400, ph='X', args=dict(own, bytes=n), **common)
            put(id=n, name='flight', cat='copper', ts=ts + 100, ph='f' if rank == 0 else 's', bp='e', args=own, **common)
            put(id=n, name='memory', cat='copper', ts=ts + 100, ph='C', args=dict(own, bytes=n), **common)
        out.write(']\n')
P
trace merge -o "$T/all.json" "$T/all"
matches 'all of them at once' "$(judge "$T/all.json" "$T/all"/*)" '^same [0-9]+ events$'
matches 'what clocks are ahead is told' \
	"$(cat "$T/err")" 'clocks: node1 \+1220\.5 to \+1234\.5 us \(± 40 us\)'
is 'the clock of rank 0 is that of all' "$(grep -c 'clocks: node0' "$T/err")" 0
is 'a rank is named, in order of rank' "$(ask "$T/all.json" '[n for n in p.values()][:2]')" \
	"['node0 rank 0: copper (pid 77)', 'node1 rank 1: copper (pid 77)']"
is 'threads have their names' \
	"$(ask "$T/all.json" 'sorted(n for n in t.values() if n == "progress")')" \
	"['progress', 'progress']"
is 'flights lead from one node to the other' "$(ask "$T/all.json" \
	'len({x["id"] for x in e if x["ph"] == "s"} & {x["id"] for x in e if x["ph"] == "f"})')" 50
is 'counters have values only' \
	"$(ask "$T/all.json" '{tuple(x["args"]) for x in e if x["ph"] == "C" and x["name"] == "memory"}')" "{('bytes',)}"
matches 'files have their names' \
	"$(ask "$T/all.json" '{x["args"].get("fname", "/p/") for x in e if x.get("cat") == "POSIX" and "args" in x}')" '/p/lustre1/user'
is 'no hash is left' "$(grep -cE '"[fh]hash"' "$T/all.json")" 0
trace merge -o "$T/all.json.gz" "$T/all"
ok 'compressed it is gzip' gzip -t "$T/all.json.gz"
ok 'compressed it is the same' sh -c "gzip -dc '$T/all.json.gz' | cmp - '$T/all.json'"
trace summary --json "$T/all" && cp "$T/out" "$T/before"
trace summary --json "$T/all.json"
is 'what was merged reads as the same spans, but for what is aggregated' \
	"$("$PYTHON" -c 'import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
print(abs(a["seconds"]["total"] - b["seconds"]["total"]) < 1, a["counters"] == b["counters"], a["flows"] == b["flows"])' "$T/before" "$T/out")" 'True True True'

# ---- the other commands correct clocks as well

printf '%s\n' '{"name":"HH","ph":"M","args":{"name":"n1","value":1}}' \
	'{"id":1,"name":"CO","cat":"dftracer","pid":1,"tid":1,"ts":1000,"ph":"M","args":{"hhash":1,"name":"clock","value":-250.25,"rtt":20}}' >"$T/clock.pfw"
printf '%s\n' \
	'{"name":"a","ph":"X","pid":1,"tid":1,"ts":"1000","dur":"1","args":{"hostname":"n1"}}' \
	'{"name":"b","ph":"X","pid":1,"tid":1,"ts":"1100","dur":"1","args":{"hostname":"n2"}}' \
	>"$T/app.pfw"
is_told 'events' 0 'clocks: n1 -250\.25 us \(± 10 us\)' events --csv "$T/app.pfw" "$T/clock.pfw"
is 'events: they are in their real order' \
	"$(cut -d , -f 1,5 "$T/out" | tr '\n' ' ')" 'time,name 0.000000000,b 0.000150250,a '
is_told 'summary' 0 'clocks: n1 -250\.25 us' summary "$T/app.pfw" "$T/clock.pfw"
is_told 'table' 0 'clocks: n1 -250\.25 us' table --by name "$T/app.pfw" "$T/clock.pfw"
is_told 'without a clock' 0 '^$' events --csv "$T/app.pfw"

# ---- processes, ids, halves

printf '%s\n' '[' '{"name":"x","ph":"X","pid":5,"tid":"main","ts":1,"dur":1,"args":{"v":NaN,"w":[1.,{"\u0001":-Infinity}]}},' \
	'{"name":"out","ph":"B","pid":5,"tid":6,"ts":2,"args":{"a":1,"b":2}},' \
	'{"name":"in","ph":"B","pid":5,"tid":6,"ts":3},' \
	'{"ph":"E","pid":5,"tid":7,"ts":4},' '{"name":"last","ph":"i","pid":5,"tid":6,"ts":9.5},' \
	'{"name":"w","cat":"c","ph":"b","id2":{"local":"0x1"},"pid":5,"tid":6,"ts":4},' \
	'{"name":"w","cat":"c","ph":"e","id2":{"local":"0x1"},"pid":5,"tid":6,"ts":4},' \
	'{"name":"cut","cat":"c","ph":"b","id":9,"pid":5,"tid":6,"ts":4},' \
	'{"name":"go","cat":"ac2g","ph":"s","id":9,"pid":5,"tid":6,"ts":4},' \
	'{"name":"go","cat":"ac2g","ph":"f","bp":"e","id":9,"pid":5,"tid":6,"ts":5}' >"$T/h1.json"
cp "$T/h1.json" "$T/h2.json"
is_told 'a process that was killed' 0 '[0-9] begins of spans have no end' merge -o "$T/h.json" \
	"$T/h1.json" "$T/h2.json"
matches 'is in order' "$(judge "$T/h.json")" '^same [0-9]+ events$'
is 'a span without an end lasts to the last time of its thread' \
	"$(ask "$T/h.json" '[(x["name"], x["dur"]) for x in e if x["ph"] == "X" and x.get("args", {}).get("unfinished")][::2]')" "[('out', 7.5), ('in', 6.5)]"
is 'an end without a begin is left out' "$(ask "$T/h.json" 'sum(x["ph"] in "BE" for x in e)')" 0
is 'files without a host are processes of their own' "$(ask "$T/h.json" 'sorted(p.items())')" \
	"[(5, 'h1.json (pid 5)'), (4194305, 'h2.json (pid 5)')]"
is 'threads that are words have numbers and names' \
	"$(ask "$T/h.json" 'sorted(t.values())')" "['main', 'main']"
is 'what is no number is null' \
	"$(ask "$T/h.json" '[x["args"] for x in e if x["name"] == "x"][0]')" \
	"{'v': None, 'w': [1, {'\\x01': None}]}"
is 'ids of two files are different ones' \
	"$(ask "$T/h.json" 'len({x["id"] for x in e if x["ph"] in "be"}), len({x["id"] for x in e if x["ph"] in "sf"})')" '(2, 2)'
is_told 'a selection' 0 '' merge -o "$T/s.json" --name '^x$' --pid 5 "$T/h1.json"
is 'the timeline has no other event' "$(ask "$T/s.json" '[x["name"] for x in e if x["ph"] != "M"]')" "['x']"

# ---- where it is written

ls "$T/all" >"$T/names"
cp "$T/all.json" "$T/all/merged.json"
is_told 'the output in what is read' 0 'merged\.json is not read, because it is the output' merge \
	-o "$T/all/merged.json" "$T/all"
ok 'an output file among the inputs is not read' cmp "$T/all.json" "$T/all/merged.json"
rm "$T/all/merged.json"
generate 1 20000 3 "$T/large.pfw"
cp "$T/h.json" "$T/kept.json"
(ulimit -f 1000; trace merge -o "$T/kept.json" "$T/large.pfw"; echo "$?" >"$T/status")
is 'a file that grows too large' "$(cat "$T/status") $(sed 's/.*kept.json //' "$T/err")" \
	'1 cannot be written: File too large'
ok 'leaves what was there' cmp "$T/h.json" "$T/kept.json"
is_told 'a directory that is not there' 1 \
	'none/x\.json cannot be written: No such file or directory' merge \
	-o "$T/none/x.json" "$T/h1.json"
is_told 'what is no file' 1 '/dev/null is not a regular file, so it is not replaced' merge \
	-o /dev/null "$T/h1.json"
mkdir "$T/many"
for i in $(seq 16); do
	cp "$T/large.pfw" "$T/many/$i.pfw"
done
for signal in TERM PIPE; do
	"$COPPER" trace merge -o "$T/kept.json" "$T/many" 2>"$T/err" &
	pid=$!
	for _ in $(seq 1000); do
		compgen -G "$T/kept.json.*" >/dev/null && break
		sleep 0.01
	done
	kill -s "$signal" "$pid"
	wait "$pid"
	is "SIG$signal ends it" "$?" $((128 + $(kill -l "$signal")))
	ok "SIG$signal leaves what was there" cmp "$T/h.json" "$T/kept.json"
done
rm -r "$T/many"
is 'no temporary file remains' \
	"$(find "$T/tmp" "$T" -name '*.json.*' ! -name '*.gz' ! -path "$T/all/*")" ''

# ---- what is wrongly asked for

: >"$T/empty.pfw"
printf '\x1f\x8b\x08 no gzip at all' >"$T/none.pfw.gz"
printf 'hello\n' >"$T/no.pfw"
is_told 'no trace' 1 'no\.pfw: it is neither JSON nor gzip.*none of the 3 files is a trace' merge \
	-o "$T/no.json" "$T/no.pfw" "$T/empty.pfw" "$T/none.pfw.gz"
ok 'no file is left of it' test ! -e "$T/no.json"
is_told 'nothing' 1 'there is no file to read' merge -o "$T/no.json" "$T/nowhere"
is_told 'no -o' 2 '-o FILE is missing' merge "$T/h1.json"
trace merge -o "$T/no.json"
is 'no PATH is misuse' "$?" 2
