#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The page of copper report in a browser: widths, light and dark, contrast, keyboard, paper, nothing
# loaded, nothing on the console; and the same checks find the faults of a page that has them.
# covers: html
# modes: shared
# limit: 180
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
browser=$(command -v chromium-headless-shell || command -v chromium ||
		command -v chromium-browser || command -v google-chrome) ||
	skip_all 'no Chromium here, which would look at the page'
plan 53

export HOME=$T TMPDIR=$T
look() { # PAGE
	timeout "$(patient 100)" "$PYTHON" "$cop_t/browser.py" "$browser" "$1" 2>"$T/.err" ||
		note "$(tail -n 5 "$T/.err")"
}
is_good() { # WHOSE PAGE
	local line
	look "$2" >"$T/seen"
	is "all was looked at: $1" "$(wc -l <"$T/seen")" 22
	while read -r line; do
		is "$1, ${line%%: *}" "${line#*: }" ok
	done <"$T/seen"
}

# ---- a large job that has everything but paths, and a small real one

"$PYTHON" "$cop_t/make-telemetry.py" "$T/many" 512
"$COPPER" report "$T/many" >/dev/null || bail 'no page of many nodes'
is_good 'many nodes' "$T/many/report.html"

with_tree 3 -A -N 20
read_everything 0 1 2
without_tree >/dev/null || bail 'the job does not end'
"$COPPER" paths "$JOB" --usage-root "$SRC" >/dev/null 2>&1 || bail 'copper paths fails'
"$COPPER" report "$JOB" >/dev/null || bail 'no page of three nodes'
is_good 'three nodes' "$JOB/report.html"

# ---- faults are found

sed 's|</main>|<p style="width:3000px;color:#ccc">pale and wide</p><script>alert(1)</script><img src="there.png" alt="x"></main>|;
	s|<section id="paths"|<section hidden id="paths"|; s|max-width: var(--most)|max-width: 20rem; min-width: 0 !important|; s|:focus-visible {|.never {outline:0} * {outline: none !important} .never {|' \
	"$T/many/report.html" >"$T/bad.html"
look "$T/bad.html" >"$T/seen"
matches 'a page that is too wide' "$(grep '^360 wide' "$T/seen")" ': page 30|: .*P '
matches 'a section that is hidden' "$(grep '^1024 wide' "$T/seen")" 'hidden paths'
matches 'a drawing that is too small' "$(grep '^names in drawings, 1600' "$T/seen")" ': .*tree 0'
matches 'pale text' "$(grep '^texts can be read, light' "$T/seen")" 'P\.null 1\.'
matches 'focus that nobody sees' "$(grep '^what has the focus' "$T/seen")" ': #main'
matches 'a script' "$(grep '^the console' "$T/seen")" 'Content Security Policy'
is 'all the same 22 things' "$(wc -l <"$T/seen")" 22
