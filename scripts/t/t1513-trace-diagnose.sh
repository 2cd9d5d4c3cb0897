#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace diagnose: names each seeded fault first, none in traces without one; the command that
# it shows runs; JSON has the same.
# covers: trace/diagnose
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=traces.sh
. "$(dirname "$0")/traces.sh"
faults=$cop_root/testdata/traces/make-faults.py
mapfile -t clean < <("$PYTHON" "$faults" clean)
mapfile -t seeded < <("$PYTHON" "$faults" list)
plan $((${#clean[@]} + 2 * ${#seeded[@]} + 6))

for name in "${clean[@]}"; do
	mkdir "$T/$name"
	"$PYTHON" "$faults" "$name" "$T/$name"
	trace diagnose --json "$T/$name"
	is "$name: no cause is named" "$(paste -sd ' ' "$T/out")" '[]'
done
trace diagnose "$T/${clean[0]}"
matches 'a terminal is told so' "$(cat "$T/out")" '^no cause found in [0-9.]+ s$'

for line in "${seeded[@]}"; do
	name=${line%%$'\t'*}
	mkdir "$T/$name"
	"$PYTHON" "$faults" "$name" "$T/$name"
	trace diagnose --json "$T/$name"
	"$PYTHON" - "$T/out" "$T/command" <<'P' >"$T/cause"
import json, sys
causes = json.load(open(sys.argv[1]))
print(causes[0]['cause'] if causes else 'none')
assert all(c['seconds'] > 0 and c['evidence'] and c['help'] for c in causes)
assert [c['seconds'] for c in causes] == sorted((c['seconds'] for c in causes), reverse=True)
open(sys.argv[2], 'w').write(causes[0]['command'] if causes else 'false')
P
	is "$name: the cause is named first" "$(cat "$T/cause")" "${line#*$'\t'}"
	sed "s|^copper |$COPPER |" "$T/command" >"$T/command.sh"
	timeout "$(patient 60)" sh "$T/command.sh" >"$T/shown" 2>/dev/null </dev/null
	is "$name: the command that is shown has an answer" \
		"$? $(($(wc -l <"$T/shown") > 1))" '0 1'
	[ "$name" = slow-rank ] || rm -r "${T:?}/$name"
done

trace diagnose "$T/slow-rank"
matches 'a terminal gets a paragraph' "$(paste -sd ' ' "$T/out")" \
	'^1\. one slow process: .* node1 rank 2 \(pid 4002\) takes .* of 60 compute.*see:   copper trace table .*helps: .*saves: up to 1\.[45]'
trace diagnose --csv "$T/slow-rank"
is 'CSV has the columns' "$(head -n 1 "$T/out")" 'cause,seconds,share,evidence,command,help,saves'
trace diagnose --csv --pid 4000 --pid 4001 "$T/slow-rank"
is 'a selection leaves out the slow one' "$(wc -l <"$T/out")" 1
is_told 'no trace' 1 'nowhere: No such file' diagnose "$T/nowhere"
