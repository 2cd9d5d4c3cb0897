#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper trace over BENCH_EVENTS (20 million) events as DFTracer 1.x writes them, gzip -6: one large
# file of a single member, one of members of 5,000 events, and 16 files. Events per second refer to
# the processor time of all threads, decompression included, because the machine is shared; the
# number of processors kept busy is the time that its threads ran or waited to run, divided by the
# time it took. Compared with pandas on the first twentieth, and with what a published analysis
# needed to load 147,302,750 such events: 177 s on 64 worker processes. The figure extrapolated to
# that is the processor time divided by the processors kept busy: the time it takes on this machine
# when nobody else uses it.
# Also: events of torch.profiler with nested arguments (gen-trace.py torch, 700,000), and the first
# question about a thousandth of the one large file, by time, once it has an index.
# limit: 1200
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

events=${BENCH_EVENTS:-20000000}
published=147302750
table=(trace table --by name --per 'pid,tid' --then max)
summary=(trace summary)

"$BENCH/gentrace" "$events" one 1 "$T/one.pfw.gz" &
making=("$!")
"$BENCH/gentrace" "$events" 5000 1 "$T/members.pfw.gz" &
making+=("$!")
mkdir "$T/files"
for ((i = 1; i <= 16; i++)); do
	"$BENCH/gentrace" $((events / 16)) one "$i" "$T/files/app-$i.pfw.gz" ||
		bail 'a trace cannot be written'
done
"$BENCH/gentrace" $((events / 20)) one 1 "$T/part.pfw.gz" || bail 'a trace cannot be written'
for pid in "${making[@]}"; do
	wait "$pid" || bail 'a trace cannot be written'
done

cat >"$T/busy.py" <<'P'
"""Runs a command; prints its wall time, its processor time, and how many processors it kept busy."""
import os, resource, subprocess, sys, time
start, threads = time.monotonic(), {}
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
while process.poll() is None:
    try:
        for thread in os.listdir('/proc/%d/task' % process.pid):
            ran, queued, _ = open('/proc/%d/task/%s/schedstat' % (process.pid, thread)).read().split()
            threads[thread] = int(ran) + int(queued)
    except OSError:
        pass
    time.sleep(0.005)
wall, used = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print('%.6f %.6f %.3f' % (wall, used.ru_utime + used.ru_stime, sum(threads.values()) / 1e9 / wall))
sys.exit(process.returncode)
P
cat >"$T/load-and-group.py" <<'P'
import gzip, json, sys
import pandas as pd
rows = []
for line in gzip.open(sys.argv[1], 'rt'):
    if line[0] == '{':
        e = json.loads(line)
        if e['ph'] == 'X':
            rows.append((e['name'], e['pid'], e['tid'], e['dur']))
frame = pd.DataFrame(rows, columns=['name', 'pid', 'tid', 'dur'])
print(frame.groupby(['name', 'pid', 'tid'])['dur'].sum().groupby('name').max())
P

measure() { # SIDE PATH WORD…: events a second and core, wall time, processors kept busy
	local side=$1 path=$2 wall cpu busy
	shift 2
	read -r wall cpu busy < <("$PYTHON" "$T/busy.py" "$COPPER" "$@" "$path") ||
		bail "copper $* failed"
	add "$side" "$(awk -v n="$events" -v cpu="$cpu" 'BEGIN { printf "%.3f", n / cpu / 1e6 }')"
	add "$side-wall" "$wall"
	add "$side-busy" "$busy"
	add "$side-published" "$(awk -v n="$events" -v of="$published" -v cpu="$cpu" -v busy="$busy" 'BEGIN { print cpu / busy * of / n }')"
	add "$side-cores" "$(awk -v n="$events" -v of="$published" -v cpu="$cpu" 'BEGIN { print cpu * of / n }')"
}
told() { # SIDE WHAT
	report "$2: events a second and core" million at_least 1 "$1" -
	report "$2: wall time of $events events" s none - "$1-wall" -
	report "$2: processors kept busy" processors none - "$1-busy" -
}

add workers 177
add worker-cores $((177 * 64))
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	measure table-one "$T/one.pfw.gz" "${table[@]}"
	measure table-members "$T/members.pfw.gz" "${table[@]}"
	measure table-files "$T/files" "${table[@]}"
	measure summary-one "$T/one.pfw.gz" "${summary[@]}"
	measure summary-members "$T/members.pfw.gz" "${summary[@]}"
	measure summary-files "$T/files" "${summary[@]}"
done
told table-one 'trace table, one file of one member'
told table-members 'trace table, one file of many members'
told table-files 'trace table, 16 files'
told summary-one 'trace summary, one file of one member'
told summary-members 'trace summary, one file of many members'
told summary-files 'trace summary, 16 files'

# Nested arguments: processor time of a table and of a merge.
"$PYTHON" "$cop_root/scripts/gen-trace.py" torch 700000 3 "$T/torch.json" ||
	bail 'a trace cannot be written'
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	together 1 "$COPPER" trace table --by name "$T/torch.json"
	add nested "$(cut -d ' ' -f 2 "$T/together" | awk '{ printf "%.3f", 0.7 / $1 }')"
	add merged "$(wall 1 "$COPPER" trace merge -o "$T/merged.json" "$T/torch.json")"
done
report 'trace table, nested arguments of torch: events a second and core' million at_least 1.2 nested -
report 'trace merge of the same, 209 MB: wall time' s at_most 3 merged -

total=$("$COPPER" trace summary --json "$T/one.pfw.gz" |
	sed -n 's/.*"seconds":{"total":\([0-9.]*\).*/\1/p')
thousandth=(table --by name --from "$(awk -v t="$total" 'BEGIN { print t / 2 }')"
	--to "$(awk -v t="$total" 'BEGIN { print t / 2 + t / 1000 }')" "$T/one.pfw.gz")
add index-making "$(wall 1 "$COPPER" trace index "$T/one.pfw.gz")"
for ((turn = 0; turn < ${BENCH_PAIRS:-3}; turn++)); do
	add indexed "$(wall 1 "$COPPER" trace "${thousandth[@]}")"
done
add index-share "$(awk -v a="$(stat -c %s "$T/one.pfw.gz.copper-index")" \
	-v b="$(stat -c %s "$T/one.pfw.gz")" 'BEGIN { print 100 * a / b }')"
report "trace index of $events events: wall time" s none - index-making -
report 'its share of the file' percent at_most 5 index-share -
report 'a question about a thousandth, with it: wall time' s at_most 1 indexed -

ours() {
	together 1 "$COPPER" "${table[@]}" "$T/part.pfw.gz"
	add ours "$(cut -d ' ' -f 2 "$T/together")"
}
theirs() {
	together 1 "$PYTHON" "$T/load-and-group.py" "$T/part.pfw.gz"
	add theirs "$(cut -d ' ' -f 2 "$T/together")"
}
in_turn 3 ours theirs
report "trace table of $((events / 20)) events / pandas: processor time" s none - ours theirs
report "trace table, $published events extrapolated, alone on $(getconf _NPROCESSORS_ONLN) processors / load on 64 workers as published" s at_most 1 table-files-published workers
report 'the same, one file of many members' s at_most 1 table-members-published workers
report 'the same, one file of one member' s at_most 1 table-one-published workers
report 'the same, processor time of all' s none - table-files-cores worker-cores
