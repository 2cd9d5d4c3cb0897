#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What job scripts of Copper 1.0 call and look for: the lines of the logs, its commands by their old names, a reset of the counters.
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 44

# ---- log lines

logs_of() { # RANK: what its log says, without times and places
	sed -n 's/^[0-9-]* [0-9.-]* \[[A-Z][a-z]*\] ([a-z_]*) //p' "$JOB/logs/$(address_of "$1")"-*-output.log
}
with_tree 4 -k 2 -l 4 -P -N 20
for i in 0 1 2 3; do
	cat "$W/mnt/$i/hello" "$W/mnt/$i/dir/numbers" >/dev/null
	ls "$W/mnt/$i/dir" >/dev/null
done
for line in 'user-facing log_level: 4' 'profile_metrics: enabled' 'profile_top_n: 20' 'profile_paths_full: disabled' \
	'starting [a-z]+ engine' 'engine started' 'server running at address: ofi[+]tcp://[0-9.:]+' \
	'provider registration completed after [0-9]+ us' 'parent readiness confirmed after [0-9]+ us'; do
	is "every log says once: $line" "$(for i in 0 1 2 3; do logs_of $i | grep -cxE "$line"; done | tr '\n' ' ')" '1 1 1 1 '
done
is 'each node that has a parent says once when that first answered' \
	"$(for i in 0 1 2 3; do
		logs_of $i | grep -cE '^first successful parent rpc_(lstat|readfile|readdir) completed after [0-9]+ us since provider startup; path=/'
	done | tr '\n' ' ')" '0 1 1 1 '
is 'rank 0 says how long the addresses took' \
	"$(for i in 0 1 2 3; do logs_of $i | grep -cxE 'prepared address book generation took [0-9]+ s'; done | tr '\n' ' ')" '1 0 0 0 '
cp -r "$JOB/logs" "$T/logs.4"
ok 'the tree stops' without_tree

with_tree 2 -l 5 -A
cat "$W/mnt/1/hello" >/dev/null
matches 'level 5 is told' "$(logs_of 1)" '^user-facing log_level: 5$'
matches 'and tells all paths' "$(logs_of 1)" '^profile_paths_full: enabled$'
is 'level 4 has no debug lines' "$(cat "$T"/logs.4/*-output.log | grep -c '\[Debug\]')" 0
matches 'level 5 tells what was asked for' "$(logs_of 1)" '^asking kind=(listing|entry) path="/" index=0 rank=0$'
matches 'and what was answered' "$(logs_of 1)" '^answer kind=chunk path="/hello" index=0 rank=0 status=0 bytes=6$'
matches 'what was served' "$(logs_of 0)" '^serving kind=chunk path="/hello" index=0$'
matches 'and read from the source' "$(logs_of 0)" '^reading the source kind=chunk path="/hello" index=0$'
ok 'and this tree stops' without_tree

# ---- a reset of the counters

json() { # RANK PYTHON: an expression over the statistics s of a node
	"$COPPER" cache-stats --json "$W/mnt/$1" | "$PYTHON" -c "import json, sys; s = json.load(sys.stdin); print($2)"
}
counted() { # FOLDER OPERATION COLUMN: the sum over the nodes' reports in it
	cat "$JOB/profiling/$1/"*-profiling_operations.csv | awk -F , -v op="$2" -v at="$3" '$1 == op { n += $at } END { print n + 0 }'
}
with_tree 3 -k 2 -A -N 5
M=$W/mnt/1
cat "$M/hello" "$M/dir/numbers" >/dev/null
cat "$W/mnt/2/hello" >/dev/null
held=$(json 1 "s['tables']")
is 'a node has counted' "$(json 1 "s['fuse']['open'] > 0 and s['fabric']['requests_sent'] > 0")" True
is 'reset tells what it did' "$("$COPPER" cache-stats --reset "$M" 2>&1)" \
	"counters of 1/1 nodes set to zero
reports of before are in $JOB/profiling/pre-reset"
is 'the counters are zero' "$(json 1 "[s['fuse'][k] for k in ('open', 'read', 'read_bytes', 'lookup')]")" '[0, 0, 0, 0]'
is 'what is held is not' "$(json 1 "s['tables']")" "$held"
is 'the node here has written its report' "$(cd "$JOB/profiling/pre-reset" && echo *_operations.csv)" \
	"$(cd "$JOB/logs" && echo "$(address_of 1)"-*-output.log | sed 's/output.log/pre-reset-profiling_operations.csv/')"
is 'with what it had counted' "$(counted pre-reset open 2)" 2
is 'and the paths' "$(grep -c '^/' "$JOB/tables/pre-reset/"*-data_table_cache_event.output)" 2
matches 'the bytes of its counters' "$(cat "$JOB/profiling/pre-reset/"*-profiling_fabric.csv)" '^fabric_requests_sent,[1-9]'
is 'other nodes count on' "$(json 2 "s['fuse']['open']")" 1
matches 'all nodes at once' "$("$COPPER" cache-stats --reset --all "$M" 2>&1)" '^counters of 3/3 nodes set to zero$'
is 'and all of them write' "$(find "$JOB/profiling/pre-reset" -name '*-profiling_operations.csv' | wc -l)" 3
is 'now all are zero' "$("$COPPER" cache-stats --all --json "$M" | "$PYTHON" -c "import json, sys; print(json.load(sys.stdin)['total']['fuse']['open'])")" 0

# Every event is in one report, however many come while counters are reset: absent names, each looked up once.
probes() { # RANK FIRST
	"$PYTHON" - "$W/mnt/$1" "$2" <<'PY'
import os, sys
for i in range(5000):
    try:
        os.stat("%s/no-%d-%d" % (sys.argv[1], int(sys.argv[2]), i))
    except FileNotFoundError:
        pass
PY
}
probes 1 1 &
pids=($!)
probes 2 2 &
pids+=($!)
before=0
resets=0
while kill -0 "${pids[@]}" 2>/dev/null && [ "$resets" -lt 50 ]; do
	"$COPPER" cache-stats --reset --all "$M" >"$T/reset" 2>&1 || break
	resets=$((resets + 1))
	before=$((before + $(counted pre-reset lookup 5)))
done
wait "${pids[@]}"
note "$resets resets meanwhile"
ok 'counters are reset while others count' test "$resets" -ge 1
# A report that cannot be written: the counters go on.
touch "$T/not-a-directory"
mv "$JOB/profiling" "$JOB/profiling.away"
cp "$T/not-a-directory" "$JOB/profiling"
"$COPPER" cache-stats --reset --all "$M" >"$T/reset" 2>&1
is 'a report that cannot be written is a failure' $? 1
is 'and no counter is set to zero' "$(sed -n 's/ set to zero$//p' "$T/reset"; grep -c 'cannot make .*/profiling/pre-reset' "$T/reset")" \
	"counters of 0/3 nodes
3"
rm "$JOB/profiling"
mv "$JOB/profiling.away" "$JOB/profiling"
ok 'the tree with counters stops' without_tree
is 'nothing that was counted is lost' $((before + $(counted final lookup 5))) 10000
fails_with 2 'these options do different things' "$COPPER" cache-stats --reset --snapshot "$M"
fails_with 1 'no copper node' "$COPPER" cache-stats --reset "$M"

with_tree 1
matches 'without a profile it says that nothing is kept' "$("$COPPER" cache-stats --reset "$W/mnt/0" 2>&1)" '^no reports of before: the job was started without --profile$'

# ---- the file of 1.0's ioctls

mkdir -p "$SRC/metrics"
: >"$SRC/metrics/.spec_ioctl_file"
cat >"$T/old-ioctl" <<PY
#!$PYTHON
import fcntl, os, sys
try:
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), 2000, 0)
except OSError as e:
    sys.exit(str(e))
PY
chmod +x "$T/old-ioctl"
fails_with 1 'Operation not supported.*spec_ioctl_file' timeout 20 "$T/old-ioctl" "$W/mnt/0/metrics/.spec_ioctl_file"
is 'a listing of its directory does not hang' "$(timeout 20 ls -a "$W/mnt/0/metrics" | tr '\n' ' ')" '. .. .spec_ioctl_file '
timeout 20 ls -la "$W/mnt/0/metrics" >"$T/.out" 2>&1
fails_with 1 'Operation not supported' timeout 20 "$T/old-ioctl" "$W/mnt/0/metrics/.spec_ioctl_file"
matches 'the log names what to use instead' "$(logs_of 0)" 'file of Copper 1.0.s ioctls was opened; use copper cache-stats'
