#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Spans that programs of a job write about themselves: they are children of the job's span, and lie
# over Copper's start and reads in the timeline and the report.
# covers: html
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 17

SRC=$T/src
small_tree "$SRC"
export COPPER_PREFETCH=off
with_tree 1 --otel --store-interval 200ms
program() { # FORM FILE
	"$COPPER" run --mount "$W/mnt/0" -- "$PYTHON" "$cop_t/program_spans.py" "$1" "$2" \
		"$SRC/dir/numbers"
}
ok 'a program that prints its spans' program console "$JOB/train.json"
ok 'one that prints each on a line' program line "$JOB/otel/rank-0.jsonl"
ok 'one that writes OTLP' program otlp "$JOB/otel/train.jsonl"
ok 'the job stops' without_tree

# ---- one trace

"$COPPER" trace events --json "$JOB" >"$T/events" 2>"$T/err"
asked() { # EXPRESSION over the spans s, by name
	"$PYTHON" -c 'import json, sys
s = {}
for e in json.load(open(sys.argv[1])):
    if e["kind"] == "span":
        s.setdefault(e["name"], []).append(e)
job = s["copper.job"][0]
print(eval(sys.argv[2]))' "$T/events" "$1"
}
is 'all of them are in the trace of the job' "$(asked 'sorted((k, len(v)) for k, v in s.items() if not k.startswith("copper."))')" \
	"[('epoch', 6), ('load', 6), ('step <b>', 6), ('training.fit', 3)]"
is 'inside of the time of the job' \
	"$(asked 'all(job["time"] <= e["time"] and e["time"] + e["dur"] <= job["time"] + job["dur"] for e in s["training.fit"])')" True
id=$(sed -n '1s/.*"traceId":"\([0-9a-f]*\)".*/\1/p' "$JOB/otel/traces.jsonl")
span=$(grep -o '"traceId":"[^}]*"name":"copper.job"' "$JOB/otel/traces.jsonl" | sed -n 's/.*"spanId":"\([0-9a-f]*\)".*/\1/p')
is 'and children of its span' "$(grep -c "\"parentSpanId\": \"$span\"" "$JOB/otel/train.jsonl") $(
	grep -c "\"trace_id\": \"0x$id\"" "$JOB/train.json") $(grep -c "\"parent_id\": \"0x$span\"" "$JOB/train.json")" '1 7 1'

# ---- the timeline and the report

ok 'they are in the timeline' "$COPPER" trace timeline -o "$T/timeline.html" "$JOB"
is 'as in the merged file' "$("$COPPER" trace merge -o "$T/merged.json" "$JOB" && grep -o '"name":"training.fit"[^}]*"ph":"b"\|"ph":"b"[^}]*"name":"training.fit"' "$T/merged.json" | wc -l)" 3
report() {
	"$COPPER" report "$JOB" --force -o "$T/page.html" >/dev/null
	tr '\n' ' ' <"$T/page.html" | grep -o '<section id="spans".*' | sed 's|</section>.*||' >"$T/section"
}
ok 'the report has a section for them' report
matches 'it says what took most time' "$(cat "$T/section")" \
	'<figcaption>training.fit took most time: [0-9.]+ m?s in 3 spans</figcaption>'
is 'each has a bar' "$(grep -o '<title>training.fit: \|<title>epoch: \|<title>step &lt;b&gt;: ' "$T/section" | sort | uniq -c | tr -s ' ' | sed 's/ $//' | paste -sd '\0')" \
	' 6 <title>epoch: 6 <title>step &lt;b&gt;: 3 <title>training.fit:'
matches "Copper's start and stop are above them, and the reads" "$(cat "$T/section")" \
	'<title>copper.start: .*<title>copper.stop: .*<title>read by all nodes: '
is 'each process has its row' "$(grep -o '<text class="r"[^>]*>[^<]*' "$T/section" | sed 's/.*>//; s/ [0-9]*$//' | sort | paste -sd ' ')" \
	'Copper n001 rank-0.jsonl reads train.json'
is 'nothing of them is markup' "$(grep -c '<b>' "$T/page.html")" 0

# ---- a file of another time, and none

sed 's/"start_time": "20[0-9]*/"start_time": "2019/; s/"end_time": "20[0-9]*/"end_time": "2019/' "$JOB/train.json" >"$JOB/old.jsonl"
report
matches 'spans of an earlier job are counted, and not drawn' "$(cat "$T/section")" \
	'7 spans are of another time than this job, and not shown'
rm "$JOB"/*.json* "$JOB/otel/train.jsonl" "$JOB/otel/rank-0.jsonl"
report
is 'a job without spans has no such section' "$(cat "$T/section")" ''
