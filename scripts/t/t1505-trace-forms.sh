#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace reads the traces of other tools as they write them (testdata/traces/README.md): every
# event as an independent reader has it, also compressed, from a pipe, twice in one file; the
# timeline of each has all of them; what is lost of a directory is named.
# modes: release asan
# limit: 240
# covers: read timeline
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
forms=("$cop_root"/testdata/traces/*/*)
plan $((2 * ${#forms[@]} + 33))

judge() { # FILE [SHOWN]
	timeout "$(patient 60)" "$PYTHON" "$cop_t/forms_judge.py" "$COPPER" "$@" 2>"$T/err" | tail -n 3
}
events() { # PATH…: name and duration of each span, in order of time
	trace events --json "$@"
	"$PYTHON" -c 'import json, sys
print(" ".join("%s:%d" % (e["name"], round(e["dur"] * 1e6)) for e in json.load(sys.stdin)
               if e["kind"] == "span" and not e.get("unfinished")))' <"$T/out"
}

# ---- each form

for file in "${forms[@]}"; do
	name=${file#"$cop_root"/testdata/traces/}
	matches "$name: every event" "$(judge "$file")" '^same [0-9]+ events$'
	trace merge -o "$T/merged.json" "$file"
	matches "$name: all of them in a timeline" \
		"$(timeout "$(patient 60)" "$PYTHON" "$cop_t/merge_judge.py" "$T/merged.json" "$file" 2>&1)" \
		'^same [0-9]+ events$'
done

# ---- the same in other wrappings

torch=$cop_root/testdata/traces/torch
gzip -c "$torch/rank0.json" >"$T/rank0.json.gz"
matches 'gzip' "$(judge "$torch/rank0.json" "$T/rank0.json.gz")" '^same 7 events$'
for method in stored deflated; do
	"$PYTHON" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", getattr(zipfile, "ZIP_" + sys.argv[2].upper())) as archive:
    archive.write(sys.argv[3], "rank0.json")' "$T/$method.json.zip" "$method" "$torch/rank0.json"
	matches "zip, $method" "$(judge "$torch/rank0.json" "$T/$method.json.zip")" '^same 7 events$'
done
"$PYTHON" -c 'import sys, zipfile
class Pipe:
    def __init__(self, file): self.file = file
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
with zipfile.ZipFile(Pipe(open(sys.argv[1], "wb")), "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write(sys.argv[2], "rank0.json")' "$T/streamed.json.zip" "$torch/rank0.json"
matches 'a zip that was written to a pipe' \
	"$(judge "$torch/rank0.json" "$T/streamed.json.zip")" '^same 7 events$'
head -c 700 "$T/deflated.json.zip" >"$T/cut.json.zip"
is_told 'a zip that is cut off' 0 'cut\.json\.zip: the zip data is cut off' table --by name \
	"$T/cut.json.zip"
printf '\x28\xb5\x2f\xfd....' >"$T/a.json.zst"
is_told 'zstd' 1 'it is compressed by zstd: give <\(zstd -dc FILE\) in its place' summary \
	"$T/a.json.zst"
cat "$torch/rank0.json" "$torch/rank1.json" >"$T/two.json"
matches 'two documents after each other' "$(judge "$T/two.json")" '^same 14 events$'
cat "$T/rank0.json.gz" <(gzip -c "$torch/rank1.json") >"$T/two.json.gz"
matches 'two documents in two members' "$(judge "$T/two.json" "$T/two.json.gz")" '^same 14 events$'

# ---- pipes

one='{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":2}'
for path in - /dev/stdin; do
	printf '[%s]' "$one" | "$COPPER" trace table --csv --by name --show dur "$path" >"$T/out" 2>"$T/err"
	is "$path is read" "$(tail -n 1 "$T/out")" a,0.000002000
done
"$COPPER" trace table --csv --by name --show dur - <<<"$one" >"$T/out" 2>"$T/err"
is 'standard input that is a file is read' "$(tail -n 1 "$T/out")" a,0.000002000
"$COPPER" trace table --csv --by name --show count <(gzip -c <<<"$one") <(echo "$one") >"$T/out" 2>"$T/err"
is 'two pipes are two files' "$(tail -n 1 "$T/out")" a,2
printf '%s' "$one" | TMPDIR=$T/nowhere "$COPPER" trace table --by name - >"$T/out" 2>"$T/err"
matches 'a pipe that cannot be kept says why' "$(cat "$T/err")" \
	'standard input cannot be copied to a temporary file: No such file or directory'

# ---- a rank and a process for each file

mkdir "$T/ranks"
for rank in 0 1; do
	printf '{"traceEvents":[{"name":"step","ph":"X","pid":1,"tid":1,"ts":1,"dur":%d}]}' \
		$((100 + 100 * rank)) >"$T/ranks/rank$rank.json"
done
trace merge -o "$T/merged.json" "$T/ranks"
is 'one pid in two files is two processes' \
	"$(grep -o '"name":"rank[01].json (pid 1)"' "$T/merged.json" | sort | paste -sd ' ')" \
	'"name":"rank0.json (pid 1)" "name":"rank1.json (pid 1)"'
trace merge -o "$T/merged.json" "$torch"
is 'the rank that a file tells names its processes' \
	"$(grep -oE 'rank[01].json rank [01]: python \(pid 1\)' "$T/merged.json" | paste -sd ' ')" \
	'rank0.json rank 0: python (pid 1) rank1.json rank 1: python (pid 1)'
printf '%s\n' '{"name":"write","cat":"POSIX","pid":9,"tid":9,"ts":1767189313000000,"dur":5,"ph":"X"}' \
	>"$T/posix.pfw"
is 'a file with a base is beside one on the real clock' \
	"$(trace summary --json "$torch/rank0.json" "$T/posix.pfw"; "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["seconds"]["total"] < 1)' <"$T/out")" True

printf '%s\n' '{"name":"a","ph":"X","pid":1,"tid":1,"ts":0.001,"dur":9007199254740.991}' \
	'{"name":"b","ph":"X","pid":1,"tid":1,"ts":1767189312000000.002,"dur":0.0005}' >"$T/far.pfw"
trace events --csv "$T/far.pfw"
is 'times of half a century have their nanoseconds' \
	"$(tail -n +2 "$T/out" | cut -d, -f1,2 | paste -sd ' ')" \
	'0.000000000,9007199.254740991 1767189312.000000001,0.000000001'
trace events --json "$T/far.pfw"
is 'times of half a century have their nanoseconds in JSON' \
	"$(grep -o '"time":[0-9.]*,"dur":[0-9.]*' "$T/out" | paste -sd ' ')" \
	'"time":0.000000000,"dur":9007199.254740991 "time":1767189312.000000001,"dur":0.000000001'
trace events "$T/far.pfw"
is 'times of half a century have their microseconds on a terminal' \
	"$(tail -n +2 "$T/out" | awk '{ print $1, $2 }' | paste -sd ' ')" \
	'0.000000 9007199.254741 1767189312.000000 0.000000'

# ---- what describes a counter is no value of it

otel=$cop_root/testdata/traces/opentelemetry/metrics.jsonl
trace table --csv --by name,series,arg:operation --show value:count,value "$otel"
is 'of attributes none is a value, but each is a key' "$(tail -n +2 "$T/out" | LC_ALL=C sort)" \
	'duration,count,,1,0
duration,count,read,1,3
duration,sum,read,1,0.75
quantiles,count,,1,4
quantiles,sum,,1,10
requests,value,"wri""te",1,5
requests,value,read,1,9007199254740993
sizes,count,,1,2
sizes,sum,,1,8
temperature,value,,2,2'
trace merge -o "$T/merged.json" "$otel"
is 'points that differ in attributes are different counters of a timeline' \
	"$("$PYTHON" -c 'import json, sys
print(*((e.get("id"), e["args"]) for e in json.load(open(sys.argv[1]))["traceEvents"]
        if e["name"] == "requests"), sep="\n")' "$T/merged.json" | sort)" \
	"('operation=read', {'value': 9007199254740993})
('operation=wri\"te,status=200,ok=true', {'value': 5})"

# ---- what a timeline keeps

trace merge -o "$T/merged.json" "$cop_root/testdata/traces/chromium/trace.json" \
	"$torch/rank0.json"
"$PYTHON" - "$T/merged.json" >"$T/kept" <<'P'
import json, sys
events = json.load(open(sys.argv[1]))['traceEvents']
out, into = [next(e for e in events if e.get(way)) for way in ('flow_out', 'flow_in')]
print(out['bind_id'] == into['bind_id'], out['tts'], out['tdur'], into['cname'])
print(next((e['tts'], e['tdur']) for e in events if e['name'] == 'outer'))
print(next(e['args']['bytes'] for e in events if e.get('cat') == 'kernel'))
print(next(e['args']['path'] for e in events if e['name'] == 'sample'))
P
is 'flows of slices, the time of threads and colours' "$(sed -n 1p "$T/kept")" 'True 500 35 good'
is 'the time of a thread between begin and end' "$(sed -n 2p "$T/kept")" '(100, 90)'
is 'integers of any length' "$(sed -n 3p "$T/kept")" 123456789012345678901234567890
is 'a path of Windows' "$(sed -n 4p "$T/kept")" 'C:\Users\x'

# ---- what is lost is named

mkdir "$T/four"
printf '{"traceEvents":[%s]}' "$one" >"$T/four/rank0.json"
: >"$T/four/rank1.json"
printf '{"traceEvents":[{"name":"b","ph":"X","pid":1,"tid":1,"ts":1,"dur":-1},%s]}' "$one" \
	>"$T/four/rank2.json"
printf '{"traceEvents":[%s]}' "$one" | gzip -c | head -c 40 >"$T/four/rank3.json.gz"
echo '{"learning_rate": 0.1}' >"$T/four/config.json"
trace summary --json "$T/four"
is 'of four ranks of a directory, what is lost of each' \
	"$(sed "s|.*$T/four/||" "$T/err" | cut -d: -f1 | sort -u | paste -sd ' ')" \
	'rank1.json rank2.json rank3.json.gz'
is 'the events of the others count' "$("$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["spans"] >= 2)' <"$T/out")" True
is_told 'no event that can be read' 1 'no event could be read' table --by name \
	<(printf '[{"name":"b","ph":"X","ts":1,"dur":-1}]')
is 'names of a hash' "$(printf '%s\n' \
	'{"name":"FH","ph":"M","args":{"name":"/a","value":7}}' \
	'{"name":"FH","ph":"M","args":{"name":"/b","value":7}}' \
	'{"name":"x","ph":"X","ts":1,"dur":1,"args":{"fhash":7}}' |
	"$COPPER" trace table --by file - 2>&1 >"$T/out" | grep -c 'stands for /a and for /b')" 1
is 'an end ends what it names' "$(printf '%s\n' \
	'{"name":"outer","ph":"B","pid":1,"tid":1,"ts":0}' \
	'{"name":"lost","ph":"B","pid":1,"tid":1,"ts":10}' \
	'{"name":"outer","ph":"E","pid":1,"tid":1,"ts":100}' >"$T/lost.json"; events "$T/lost.json")" \
	outer:100
