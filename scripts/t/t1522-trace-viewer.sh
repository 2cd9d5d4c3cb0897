#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The timeline of a job in Chromium's own trace viewer, as its npm package contains it: nodes and
# programs by their names, every span, arrows from children to parents, and no warning. A timeline
# with a fault is detected.
# covers: timeline tracer
# modes: shared
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
for name in node npm; do
	command -v "$name" >/dev/null ||
		skip_all "no $name, with which Chromium's trace viewer comes"
done
timeout 90 npm install --prefix "$T/npm" --no-audit --no-fund \
	--ignore-scripts 'traceviewer@1.0.11' </dev/null >"$T/npm.log" 2>&1 ||
	skip_all 'no registry of npm is reached, from which Chromium'\''s trace viewer comes'
plan 13

seen() { # FILE: what the viewer makes of it, in $T/seen
	timeout "$(patient 100)" node "$cop_t/trace_viewer.js" "$T/npm/node_modules" \
		"$1" >"$T/seen" 2>&1
}
seen_changed() { # PYTHON: of the same timeline after the events e have been changed
	"$PYTHON" - "$1" "$T/timeline.json" "$T/changed.json" <<'P'
import json, sys
change, file, out = sys.argv[1:]
document = json.load(open(file))
e = document["traceEvents"]
exec(change)
json.dump(document, open(out, "w"))
P
	seen "$T/changed.json"
	echo "$? $(grep -v -e '^process ' -e '^flight ' "$T/seen" | paste -sd ' ')"
}

# A chain of three nodes, and on the hosts of it programs with marks, of DFTracer and of
# torch.profiler.
SRC=$T/src
small_tree "$SRC"
with_tree 3 --trace --trees 1 --fanout 1
for rank in 0 1 2; do
	read_everything "$rank"
done
PYTHONPATH=$cop_root/internal/trace/mark/python PERFFLOW_OPTIONS=log-dir=$JOB/trace "$PYTHON" \
	"$cop_t/mark_old.py"
generate 1 400 5 "$JOB/trace/app-1.pfw.gz" gzip=100
generate chrome 400 6 "$JOB/trace/torch.json"
ok 'the tree stops' without_tree

trace merge -o "$T/timeline.json" "$JOB/trace"
is 'all is merged' "$? $(grep -v '^copper trace merge: clocks:' "$T/err")" '0 '
seen "$T/timeline.json"
is 'the viewer sees what the file has, without a warning' "$?" 0
matches 'all of it' "$(tail -n 1 "$T/seen")" \
	'^same: ([7-9]) processes, [0-9]{3,} spans, [1-9][0-9]* asynchronous, [1-9][0-9]* flights, [1-9][0-9]* values of counters$'
spans=$(grep -o '"ph":"[Xi]"' "$T/timeline.json" | wc -l)
is 'every span' "$(sed -n 's/^same.* \([0-9]*\) spans.*/\1/p' "$T/seen")" "$spans"
is 'the nodes come first, in order of rank' \
	"$(grep '^process' "$T/seen" | head -n 3 | sed 's/ (pid [0-9]*)//')" \
	"$(for i in 0 1 2; do echo "process $(address_of $i) rank $i: copper"; done)"
matches 'programs come after the nodes' \
	"$(grep '^process' "$T/seen" | tail -n +4 | paste -sd ' ')" \
	'perfflow\.array.*torch\.json|torch\.json.*perfflow\.array'
arrows=$(grep '^flight ' "$T/seen" | sed 's/ (pid [0-9]*)//g; s/: [0-9]*$//')
is 'arrows lead from the wire of a child to what its parent did, and nowhere else' "$arrows" \
	"flight wire of $(address_of 1) rank 1: copper > serve of $(address_of 0) rank 0: copper
flight wire of $(address_of 2) rank 2: copper > serve of $(address_of 1) rank 1: copper"
is 'as many as requests left' "$(sed -n 's/^flight .*: //p' "$T/seen" | awk '{ n += $1 } END { print n }')" \
	"$(grep -o '"ph":"s"' "$T/timeline.json" | wc -l)"

trace merge -o "$T/timeline.json.gz" "$JOB/trace"
gzip -dc "$T/timeline.json.gz" >"$T/unpacked.json"
seen "$T/unpacked.json"
is 'a compressed timeline looks the same in the viewer' "$? $(tail -n 1 "$T/seen" | cut -c 1-5)" '0 same:'

matches 'a flight that arrives nowhere is found out' \
	"$(seen_changed 'next(x for x in e if x["ph"] == "f")["id"] = "0x1"')" \
	'^1 .*flights: the file has'
matches 'a node without a name is found out' \
	"$(seen_changed 'e.remove(next(x for x in e if x["ph"] == "M" and x["name"] == "process_name" and "rank 1" in x["args"]["name"]))')" \
	'^1 [0-9]+ has no name'
matches 'a begin without an end is found out' \
	"$(seen_changed 'next(x for x in e if x["ph"] == "X" and x["dur"] > 10)["ph"] = "B"')" \
	'^1 .*spans and instants: the file has'
