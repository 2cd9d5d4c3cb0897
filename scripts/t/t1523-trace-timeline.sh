#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace timeline: the page in a browser: it opens, keys zoom and move, search finds and selects,
# nothing of a trace becomes markup, nothing is loaded, it says what it omits.
# covers: trace/timeline
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
browser=$(command -v chromium-headless-shell || command -v chromium ||
		command -v chromium-browser || command -v google-chrome) ||
	skip_all 'no Chromium here, which would look at the page'
plan 20

export HOME=$T TMPDIR=$T
look() { # PAGE WORD
	timeout "$(patient 100)" "$PYTHON" "$cop_t/timeline_page.py" "$browser" "$1" "$2" \
		>"$T/seen" 2>"$T/.err" || note "$(tail -n 5 "$T/.err")"
}
seen() { # WHAT
	sed -n "s/^$1: //p" "$T/seen"
}

"$PYTHON" - "$T/torch.json" <<'P'
import json, sys
evil = '<img src=x onerror=alert(1)>'
events = [{'name': 'process_name', 'ph': 'M', 'pid': 7, 'args': {'name': evil}}]
for i in range(300):
    at = 100 * i
    events += [
        {'name': evil if i == 150 else 'step', 'cat': 'cpu_op', 'ph': 'X', 'pid': 7, 'tid': 1, 'ts': at,
         'dur': 90, 'args': {'Input Dims': [[i, 2], []], evil: evil}},
        {'name': 'launch', 'cat': 'rt', 'ph': 'X', 'pid': 7, 'tid': 1, 'ts': at + 10, 'dur': 5},
        {'name': 'flow', 'cat': 'f', 'ph': 's', 'id': i, 'pid': 7, 'tid': 1, 'ts': at + 10},
        {'name': 'kernel%d' % (i % 3), 'cat': 'kernel', 'ph': 'X', 'pid': 8, 'tid': 2, 'ts': at + 40, 'dur': 40},
        {'name': 'flow', 'cat': 'f', 'ph': 'f', 'bp': 'e', 'id': i, 'pid': 8, 'tid': 2, 'ts': at + 40},
        {'name': 'memory', 'ph': 'C', 'pid': 7, 'ts': at, 'args': {'bytes': i}}]
json.dump({'traceEvents': events}, open(sys.argv[1], 'w'))
P
trace timeline -o "$T/page.html" "$T/torch.json"
is 'a page is written' "$? $(cat "$T/err")" '0 '
look "$T/page.html" onerror
matches 'it opens' "$(seen ready)" '^[0-9]+$'
is 'it says what it shows' "$(seen facts | tr -s ' ')" '900 spans · 2 processes · 3 threads · 1 file · 29.99 ms'
is 'nothing is omitted' "$(seen omitted)" -
is 'something is drawn' "$(seen colours)" True
is 'keys zoom and move' "$(seen 'zoom, move, zoom out and all are seen')" '3, True'
is 'search finds' "$(seen found)" '1 span, 90 µs'
is 'Enter goes to it' "$(seen first)" '1 of 1 span'
matches 'what is selected is described, as text' "$(seen details)" \
	'^<img src=x onerror=alert\(1\)> .*15 ms .*90 µs.*Input Dims.\[\[150,2\],\[\]\]'
matches 'Escape ends it' "$(seen 'nothing is selected')" '^Click a span'
is 'a question mark lists the keys' "$(seen 'help is open')" True
is 'nothing else is loaded' "$(seen loaded)" 1
is 'the console is empty' "$(seen console)" -
is 'nothing of a trace is an element' "$(seen 'elements of traces')" 0
look "$T/page.html" launch
matches 'flows lead to the other end' "$(seen details)" '^launch .*→ to kernel0'

generate 1 20000 3 "$T/many.pfw"
trace timeline --limit 5000 -o "$T/few.html" "$T/many.pfw"
look "$T/few.html" write
matches 'beyond the limit, the longest are kept' "$(seen facts)" '^[45],?[0-9]{3} spans'
matches 'and the page says so' "$(seen omitted)" '^Not in this page: 1[56],[0-9]{3} spans shorter than [0-9.]+ µs'
is 'the page is as small' "$(($(stat -c %s "$T/few.html") < 1000000))" 1
is_told 'no output' 2 '-o FILE is missing' timeline "$T/many.pfw"
