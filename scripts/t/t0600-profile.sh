#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# -A sees the same paths of a program as strace, existing and absent ones alike; the report files
# exist when stop returns.
# covers: profile rank
# quick: yes
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 12

command -v strace >/dev/null || skip_all 'strace is not installed'
SRC=/usr
with_tree 2 -A -N 10 -I 1
M=$W/mnt/1

run_python() {
	env -i PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$M" PYTHONPATH="$M/lib/python3/dist-packages" \
		LD_LIBRARY_PATH="$M/lib/x86_64-linux-gnu" "$@"
}
strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace.py" \
	env -i PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$M" PYTHONPATH="$M/lib/python3/dist-packages" \
	LD_LIBRARY_PATH="$M/lib/x86_64-linux-gnu" "$M/bin/python3" \
	-c 'import numpy, json, nothing_here' 2>/dev/null
ok 'a program runs' run_python "$M/bin/python3" -c 'import numpy'
strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace.sh" \
	/bin/sh -c "ls '$M/share/zoneinfo' >/dev/null; test -e '$M/no/such/thing'; cat '$M/bin/nothing' 2>/dev/null; cat '$M/share/common-licenses/GPL-3' >/dev/null"
wait_for 10 test -e "$JOB/profiling/runtime-snapshot" || :
ok 'snapshots are written while it runs' test -d "$JOB/profiling/runtime-snapshot"
ok 'the tree stops' without_tree

one() { # a final file of node 1
	local found=("$JOB"/"$1"/final/127.0.0.12-*-"$2")
	echo "${found[0]}"
}
for name in operations aggregate top_paths latency fabric; do
	[ -s "$(one profiling "profiling_$name.csv")" ] || note "no profiling_$name.csv"
done
is 'the header of the operations is what scripts expect' \
	"$(head -n 1 "$(one profiling profiling_operations.csv)")" \
	'operation,total_calls,cache_hits,cache_misses,negative_results,avg_latency_us,total_latency_s'
is 'the totals begin as scripts expect' \
	"$(sed -n '1p;2s/,.*//p' "$(one profiling profiling_aggregate.csv)" | tr '\n' ' ')" \
	'metric,value total_counted_fuse_operations '
ok 'the summary for people exists' grep -q 'full-path' "$(one profiling profiling_summary.md)"
ok 'a report from before the teardown exists' test \
	-s "$(dirname "$(one profiling x)")/../pre-destroy"/127.0.0.12-*-pre-destroy-profiling_operations.csv
is 'no temporary file is left' \
	"$(find "$JOB" -name '*.??????' -newer "$HOSTS" | grep -c 'csv\.\|output\.[^.]*$' || :)" 0

"$PYTHON" "$cop_root/scripts/t/traced.py" /usr "$M" "$(one tables md_table_cache_event.output)" \
	"$T/trace.py" "$T/trace.sh" >"$T/compare"
is 'every existing path of the program was seen' \
	"$(sed -n 's/^existing-not-seen: //p' "$T/compare")" ''
is 'every absent one too' "$(sed -n 's/^absent-not-seen: //p' "$T/compare")" ''
is 'the lists have nothing else' "$(sed -n 's/^seen-not-by-strace: //p' "$T/compare")" ''
is 'the comparison is of hundreds of names' \
	"$(awk '/^counted/ { print ($2 > 180 && $3 > 20) ? "enough" : $0 }' "$T/compare")" enough
