#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 64 jobs with one run store end at the same moment: each has its row, its end and its totals there,
# and what no store took at that moment waits in a job directory and is imported.
# covers: runs
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=runs.sh
. "$(dirname "$0")/runs.sh"
plan 6

jobs=64
mkdir "$T/src" "$T/job" "$T/mnt" "$T/said"
echo 'for all' >"$T/src/file"
pids=()
for ((i = 0; i < jobs; i++)); do
	timeout "$(patient 60)" "$COPPER" mount --store "$STORE" --tag "number=$i" -d "$T/job/$i" \
		--source "$T/src" --cache-size 16M "$T/mnt/$i" >"$T/said/$i" 2>&1 &
	pids+=($!)
	[ ${#pids[@]} -lt 8 ] || { wait "${pids[@]}" && pids=(); }
done
[ ${#pids[@]} -eq 0 ] || wait "${pids[@]}"
is 'all mount' "$(cat "$T"/mnt/*/file 2>/dev/null | grep -c 'for all')" "$jobs"

pids=()
for ((i = 0; i < jobs; i++)); do
	timeout "$(patient 60)" "$COPPER" stop "$T/mnt/$i" >"$T/said/stop.$i" 2>&1 &
	pids+=($!)
done
unstopped=0
for pid in "${pids[@]}"; do
	wait "$pid" || unstopped=$((unstopped + 1))
done
is 'all stop' "$unstopped" 0
wait_for "$(patient 20)" eval '[ "$(nodes_running)" -eq 0 ]'

waiting=$(find "$T/job" -path '*/runs/*.run' | wc -l)
note "$waiting of $jobs are kept in their job directories"
is 'each is in the store, or waits in its job directory' \
	"$(($(runs list --json | json_of "sum(r['status'] == 'FINISHED' for r in j)") + waiting))" \
	"$jobs"
[ "$waiting" -eq 0 ] || runs import "$T"/job/* >"$T/out" 2>&1
is 'no run is lost' "$(judge "SELECT count(DISTINCT t.value) FROM run r JOIN tag t ON t.run = r.id WHERE t.key = 'number' AND r.status = 'FINISHED'")" "$jobs"
is 'each run has its totals' \
	"$(judge "SELECT count(DISTINCT run) FROM metric WHERE key = 'fuse.requests'")" "$jobs"
is 'the store is whole' "$(judge 'PRAGMA integrity_check')" ok
