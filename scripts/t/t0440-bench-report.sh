#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How make bench judges its samples: met, missed, unreliable, and what would be needed; and the
# document that it writes.
# covers: base
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 15

root=$(cd "$(dirname "$0")/../.." && pwd)
cat >"$T/rows.sh" <<EOS
. "$root/scripts/bench/lib.sh"
side() { local name=\$1 value; shift; for value; do add "\$name" "\$value"; done; }
side steady 1.00 1.01 0.99 1.02 0.98 1.00 1.01 0.99 1.00 9.00
side slower 1.50 1.51 1.52 1.49
side wild 1 2 3 4 5 6 7 8
side few 1.0 1.2 1.5
side same 7 7 7
side nothing 0 0 0
report 'one outlier among ten' s at_most 1.03 steady -
report 'slower' s at_most 1.03 slower steady
report 'at least' s at_least 1.4 slower steady
report 'wild' s at_most 9 wild steady
report 'beside something wild' s at_most 9 steady wild
report 'few, and far apart' s at_most 9 few -
report 'a count' requests at_most 7 same -
report 'nothing' requests at_most 0 nothing -
report 'not judged' s none - wild steady
wants_processors 100000
report 'with too few processors' s at_most 1.03 slower steady
report 'good all the same' s at_most 1.6 slower steady
EOS
: >"$T/rows"
BENCH_ROWS=$T/rows BUILD=$BUILD bash "$T/rows.sh" >"$T/out" 2>"$T/err"
says() { # ROW
	sed -n "s/^$1 | .* | //p" "$T/out"
}
is 'one outlier among ten samples does not make a row unreliable' "$(says 'one outlier among ten')" met
is 'a missed figure is missed' "$(says slower)" MISSED
is 'at least is the other way round' "$(says 'at least')" met
matches 'samples that spread by more than a third are not judged' \
	"$(says wild)" '^UNRELIABLE \(spreads by 0\.7'
matches 'a sample beside samples that spread is not compared' \
	"$(says 'beside something wild')" '^UNRELIABLE'
matches 'of few samples all count' "$(says 'few, and far apart')" '^UNRELIABLE \(spreads by 0\.42\)'
is 'a count has no spread' "$(says 'a count')$(says nothing)" metmet
is 'a row without a figure is not judged' "$(says 'not judged')" -
matches 'a figure that wants more processors says so' "$(says 'with too few processors')" \
	'^MISSED \(100000 processors would be needed, [0-9]+ are here\)$'
is 'a figure that wants more processors can be met' "$(says 'good all the same')" met
is 'each row is kept, with its spread' \
	"$(python3 -c 'import json, sys; print(*[json.loads(l)["spread"] for l in sys.stdin])' \
		<"$T/rows")" \
	'0.0175 0.0199 0.0199 0.7778 0.7778 0.4167 0.0 0.0 0.7778 0.0199 0.0199'

bench=$root/scripts/bench/run.sh
ok 'a run writes one document' env BENCH_PAIRS=1 "$bench" --json "$T/bench.json" book
is 'with what was measured, and where' "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(*sorted(d), len(d["rows"]), d["rows"][0]["bench"])' "$T/bench.json")" \
	'kernel machine processors revision rows written 2 book'
fails_with 2 'no measurement is called nothing' "$bench" --json "$T/none.json" nothing

mkdir "$T/source"
echo text >"$T/source/file"
cat >"$T/tree.sh" <<EOS
. "$root/scripts/bench/lib.sh"
SRC=$T/source
with_tree 1
cat "\$W/mnt/0/file" >"$T/text"
node_stat 0 fuse.read >"$T/reads"
without_tree
EOS
BUILD=$BUILD bash "$T/tree.sh" >/dev/null 2>"$T/err"
is 'a measurement reads what a node has counted' "$(cat "$T/reads")" 1
