#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What job scripts of Copper 1.0 call and look for: the lines of the logs, its commands by their old
# names, a reset of the counters.
# covers: node ctl log
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 93

# ---- log lines

logs_of() { # RANK: what its log says, without times and places
	sed -n 's/^[0-9-]* [0-9.-]* \[[A-Z][a-z]*\] ([a-z_]*) //p' \
		"$JOB/logs/$(address_of "$1")"-*-output.log
}
with_tree 4 -k 2 -l 4 -P -N 20
for i in 0 1 2 3; do
	cat "$W/mnt/$i/hello" "$W/mnt/$i/dir/numbers" >/dev/null
	ls "$W/mnt/$i/dir" >/dev/null
done
for line in 'user-facing log_level: 4' 'profile_metrics: enabled' 'profile_top_n: 20' \
	'profile_paths_full: disabled' \
	'starting [a-z]+ engine' 'engine started' \
	'server running at address: ofi[+]tcp://[0-9.:]+' \
	'provider registration completed after [0-9]+ us' \
	'parent readiness confirmed after [0-9]+ us'; do
	is "every log says once: $line" \
		"$(for i in 0 1 2 3; do logs_of $i | grep -cxE "$line"; done | tr '\n' ' ')" \
		'1 1 1 1 '
done
is 'each node that has a parent says once when that first answered' \
	"$(for i in 0 1 2 3; do
		logs_of $i | grep -cE '^first successful parent rpc_(lstat|readfile|readdir) completed after [0-9]+ us since provider startup; path=/'
	done | tr '\n' ' ')" '0 1 1 1 '
is 'rank 0 says how long the addresses took' \
	"$(for i in 0 1 2 3; do logs_of $i |
		grep -cxE 'prepared address book generation took [0-9]+ s'; done | tr '\n' ' ')" \
	'1 0 0 0 '
cp -r "$JOB/logs" "$T/logs.4"
ok 'the tree stops' without_tree

with_tree 2 -l 5 -A
cat "$W/mnt/1/hello" >/dev/null
matches 'level 5 is reported' "$(logs_of 1)" '^user-facing log_level: 5$'
matches 'the log says that all paths are counted' "$(logs_of 1)" '^profile_paths_full: enabled$'
is 'level 4 has no debug lines' "$(cat "$T"/logs.4/*-output.log | grep -c '\[Debug\]')" 0
matches 'level 5 tells what was asked for' \
	"$(logs_of 1)" '^asking kind=(listing|entry) path="/" index=0 rank=0$'
matches 'level 5 tells what was answered' \
	"$(logs_of 1)" '^answer kind=chunk path="/hello" index=0 rank=0 status=0 bytes=6$'
matches 'what was served' "$(logs_of 0)" '^serving kind=chunk path="/hello" index=0$'
matches 'level 5 tells what was read from the source' \
	"$(logs_of 0)" '^reading the source kind=chunk path="/hello" index=0$'
ok 'the tree with level 5 stops' without_tree

# ---- a reset of the counters

json() { # RANK PYTHON: an expression over the statistics s of a node
	"$COPPER" cache-stats --json "$W/mnt/$1" |
		"$PYTHON" -c "import json, sys; s = json.load(sys.stdin); print($2)"
}
counted() { # FOLDER OPERATION COLUMN: the sum over the nodes' reports in it
	cat "$JOB/profiling/$1/"*-profiling_operations.csv |
		awk -F , -v op="$2" -v at="$3" '$1 == op { n += $at } END { print n + 0 }'
}
with_tree 3 -k 2 -A -N 5
M=$W/mnt/1
cat "$M/hello" "$M/dir/numbers" >/dev/null
cat "$W/mnt/2/hello" >/dev/null
held=$(json 1 "s['tables']")
is 'a node has counted' \
	"$(json 1 "s['fuse']['open'] > 0 and s['fabric']['requests_sent'] > 0")" True
is 'reset tells what it did' "$("$COPPER" cache-stats --reset "$M" 2>&1)" \
	"counters of 1/1 nodes set to zero
reports from before the reset are in $JOB/profiling/pre-reset"
is 'the counters are zero' \
	"$(json 1 "[s['fuse'][k] for k in ('open', 'read', 'read_bytes', 'lookup')]")" \
	'[0, 0, 0, 0]'
is 'the cached objects are not' "$(json 1 "s['tables']")" "$held"
is 'the node here has written its report' \
	"$(cd "$JOB/profiling/pre-reset" && echo *_operations.csv)" \
	"$(cd "$JOB/logs" && echo "$(address_of 1)"-*-output.log |
		sed 's/output.log/pre-reset-profiling_operations.csv/')"
is 'with what it had counted' "$(counted pre-reset open 2)" 2
is 'the report has the paths that were read' \
	"$(grep -c '^/' "$JOB/tables/pre-reset/"*-data_table_cache_event.output)" 2
matches 'the bytes of its counters' "$(cat "$JOB/profiling/pre-reset/"*-profiling_fabric.csv)" \
	'^fabric_requests_sent,[1-9]'
is 'other nodes count on' "$(json 2 "s['fuse']['open']")" 1
matches 'all nodes at once' "$("$COPPER" cache-stats --reset --all "$M" 2>&1)" \
	'^counters of 3/3 nodes set to zero$'
is 'all nodes write their reports' \
	"$(find "$JOB/profiling/pre-reset" -name '*-profiling_operations.csv' | wc -l)" 3
is 'after the reset all counters are zero' "$("$COPPER" cache-stats --all --json "$M" |
		"$PYTHON" -c "import json, sys; print(json.load(sys.stdin)['total']['fuse']['open'])")" 0

# Every event is in exactly one report, however many come while counters are reset: absent names,
# each looked up once.
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
# If a report cannot be written, the counters continue.
touch "$T/not-a-directory"
mv "$JOB/profiling" "$JOB/profiling.away"
cp "$T/not-a-directory" "$JOB/profiling"
"$COPPER" cache-stats --reset --all "$M" >"$T/reset" 2>&1
is 'a report that cannot be written is a failure' $? 1
is 'no counter is set to zero when a report cannot be written' \
	"$(sed -n 's/ set to zero$//p' "$T/reset"; grep -c '/profiling: Not a directory' \
		"$T/reset")" \
	"counters of 0/3 nodes
3"
rm "$JOB/profiling"
mv "$JOB/profiling.away" "$JOB/profiling"
ok 'the tree with counters stops' without_tree
is 'no event is lost when a report cannot be written' $((before + $(counted final lookup 5))) 10000
fails_with 2 'these options cannot be combined' "$COPPER" cache-stats --reset --snapshot "$M"
fails_with 1 'no copper node' "$COPPER" cache-stats --reset "$M"

with_tree 1
matches 'without a profile it says that nothing is kept' \
	"$("$COPPER" cache-stats --reset "$W/mnt/0" 2>&1)" \
	'^no reports from before the reset: the job was started without --profile$'

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
fails_with 1 'Operation not supported.*spec_ioctl_file' \
	timeout 20 "$T/old-ioctl" "$W/mnt/0/metrics/.spec_ioctl_file"
is 'a listing of its directory does not hang' \
	"$(timeout 20 ls -a "$W/mnt/0/metrics" | tr '\n' ' ')" '. .. .spec_ioctl_file '
timeout 20 ls -la "$W/mnt/0/metrics" >"$T/.out" 2>&1
fails_with 1 'Operation not supported' timeout 20 "$T/old-ioctl" "$W/mnt/0/metrics/.spec_ioctl_file"
matches 'the log names what to use instead' \
	"$(logs_of 0)" 'file of Copper 1.0.s ioctls was opened; use copper cache-stats'
without_tree >/dev/null

# ---- commands by their old names, from an installation

DESTDIR=$T/dest PREFIX=/opt/copper "$cop_root/scripts/packaging/install.sh" install \
	"$BUILD" >"$T/.out" 2>&1 || bail "$(cat "$T/.out")"
old=$T/dest/opt/copper/scripts
stats=$old/get_copper_stats_ioctl
unset COPPER_ROOT
# With only the installed copper in the environment.
wrapped=(env -u COPPER PATH=/usr/bin:/bin HOME="$T/home")
reported=$W/job.2 # of the tree at level 5, which ended
cp -r "$reported" "$T/copy"
ok 'aggregate_profiling.py' "${wrapped[@]}" \
	python3 "$old/aggregate_profiling.py" "$reported" mine --usage-root "$SRC"
is 'aggregate_profiling.py names the files that it has written' "$(grep '^wrote' "$T/.ok")" \
	"$(printf "wrote $reported/profiling/cluster/mine-profiling_%s\n" aggregate.csv \
		operations.csv summary.md)"
"$COPPER" aggregate "$T/copy" mine --usage-root "$SRC" --skip-home-inference >/dev/null
for name in aggregate.csv operations.csv; do
	ok "the file is what copper aggregate writes: $name" \
		cmp "$reported/profiling/cluster/mine-profiling_$name" \
		"$T/copy/profiling/cluster/mine-profiling_$name"
done
ok 'run by itself, with a prefix of its own choice' \
	"${wrapped[@]}" "$old/aggregate_profiling.py" "$reported"
for name in aggregate.csv operations.csv summary.md; do
	ok "without a prefix it writes cluster-profiling_$name" \
		test -s "$reported/profiling/cluster/cluster-profiling_$name"
done
mkdir "$T/nothing"
"${wrapped[@]}" python3 "$old/aggregate_profiling.py" "$T/nothing" >"$T/.out" 2>&1
is 'aggregate_profiling.py fails if there is nothing to sum up' \
	"$? $(grep -c 'failed to find profiling csv files under: ' "$T/.out")" '1 1'
fails_with 1 'there is no copper here' env -u COPPER PATH=/usr/bin:/bin python3 -c "
import sys; sys.path.insert(0, '$old'); import copper1; copper1.HERE = '/nowhere/at/all'; sys.argv = ['x']; copper1.find_copper()"

# The first tree with all paths: what the second one used before its counters were reset is in its
# pre-reset folder, not in final.
ok 'path_usage_analysis.py' "${wrapped[@]}" python3 "$old/path_usage_analysis.py" "$W/job.2" \
	--usage-root "$SRC" --output-dir "$T/lists" --skip-home-inference
is 'path_usage_analysis.py names its six files' "$(grep '^wrote' "$T/.ok" | sed 's|.*/||' | tr '\n' ' ')" \
	'all_possible_existing_paths.txt used_paths_existing.txt same_run_candidate_not_observed_existing_paths.txt missing_probe_paths.txt roots_and_counts.txt paths_summary.md '
ok 'the list of used paths has what was used' \
	grep -qx "$SRC/hello" "$T/lists/used_paths_existing.txt"
(cd "$old" && "${wrapped[@]}" ./path_usage_analysis.py "$reported" >"$T/.out" 2>&1)
ok 'by default beside the job' test -s "$reported/paths_dir/paths_summary.md"

# ---- the counters of a running node

prepare_tree 1
VIEW_DIR=$W/mnt/0 "${wrapped[@]}" bash "$stats/get_cache_usage_summary.sh" "$T/none" >"$T/.out" 2>&1
is 'cu_cache_stats fails if no node runs' $? 1
matches 'where nothing runs there is a sentence' "$(cat "$T/.out")" 'no copper node'
is 'without a node no table of zeros is written' "$(cd "$T/none" && echo *)" '*'
with_tree 1 -A
M=$W/mnt/0
cat "$M/hello" "$M/dir/numbers" >/dev/null
[ ! -e "$M/absent" ]
export VIEW_DIR=$M
ok 'get_cache_usage_summary.sh' "${wrapped[@]}" bash "$stats/get_cache_usage_summary.sh" "$T/usage"
is 'get_cache_usage_summary.sh leaves every table' "$(cd "$T/usage" && echo *)" \
	'cache_usage_summary.csv cache_usage_summary.txt data_cache_size.output data_table_cache_event.output md_cache_size.output md_table_cache_event.output md_ttl_cache_event.output operation_cache_hit.output operation_cache_miss.output operation_cache_neg.output operation_count.output operation_time.output tree_cache_size.output tree_table_cache_event.output'
is 'the summary has its form' "$(sed -n 3p "$T/usage/cache_usage_summary.txt" | tr -s ' ')" \
	'| Table | Files Found | Used Bytes | Used Human | Entries |'
is 'the summary says what is held' \
	"$(awk -F ' *[|] *' '$2 == "data" { print $3, $4, $6 }' \
		"$T/usage/cache_usage_summary.txt")" \
	"1 $(sed -n 's/^Total bytes: //p; s/^total number of files: //p' \
		"$T/usage/data_cache_size.output" | tr '\n' ' ' | sed 's/ $//')"
is 'the CSV, too' "$(head -n 1 "$T/usage/cache_usage_summary.csv")" \
	table,files_found,used_bytes,used_human,entries
is 'operations are counted' \
	"$(sed -n 's/^open: \([0-9]*\),$/\1/p' "$T/usage/operation_count.output")" 2
is 'operations are timed' "$(grep -cE '^[a-z_]+: [0-9]+ ms,?$' "$T/usage/operation_time.output")" \
	"$(grep -cE '^[a-z_]+: [0-9]+,?$' "$T/usage/operation_count.output")"
is 'absent names are in their file' \
	"$(sed -n 's/^lookup: //p' "$T/usage/operation_cache_neg.output")" 1
is 'paths with their events' "$(grep -c '^/.* {$' "$T/usage/data_table_cache_event.output")" 2
SPEC_DEV_DIR=$T/spec "${wrapped[@]}" bash "$stats/run_ioctl.sh" 300 >"$T/.out" 2>&1
is 'run_ioctl.sh 300' "$? $(cd "$T/spec" && echo *)" '0 operation_count.output'
SPEC_DEV_VIEW=$M/some/metrics/.spec_ioctl_file "${wrapped[@]}" env -u VIEW_DIR python3 \
	"$stats/ioctl.py" IOCTL_GET_MD_CACHE_SIZE "$T/spec" >"$T/.out" 2>&1
is 'ioctl.py with a file in the mount' \
	"$? $(cd "$T/spec" && echo *)" '0 md_cache_size.output operation_count.output'
fails_with 1 '700: this is not read, and single counters are not cleared; copper cache-stats --reset' "${wrapped[@]}" bash "$stats/run_ioctl.sh" 700
fails_with 1 'copper cache-stats --invalidate' "${wrapped[@]}" bash "$stats/run_ioctl.sh" 100
matches 'reset_fs.sh' "$("${wrapped[@]}" bash "$stats/reset_fs.sh" 2>&1)" \
	'^counters of 1/1 nodes set to zero$'
is 'counts from zero' "$(json 0 "s['fuse']['open']")" 0
is 'with the reports of before' "$(counted pre-reset open 2)" 2
ok 'the tree of the commands stops' without_tree
with_tree 1
cat "$W/mnt/0/hello" >/dev/null
export VIEW_DIR=$W/mnt/0
"${wrapped[@]}" bash "$stats/get_all_metrics.sh" "$T/unprofiled" >"$T/.out" 2>&1
is 'without a profile what is held and counted is read' "$? $(cd "$T/unprofiled" && echo *)" \
	'0 data_cache_size.output md_cache_size.output operation_count.output tree_cache_size.output'
matches 'without a profile the script says what is not read, and why' \
	"$(cat "$T/.out")" '^ioctl.py: not read: operation_time.output, .* started with -P '
fails_with 1 'not read: operation_time.output: ' \
	"${wrapped[@]}" python3 "$stats/ioctl.py" 400 "$T/unprofiled"
ok 'the tree without a profile stops' without_tree
unset VIEW_DIR

# ---- cu_fuse

cu_fuse=$T/dest/opt/copper/build/cu_fuse
printf 'n1\nn1\nn2\nn2\n' >"$T/slots"
is 'cu_fuse translates the options of launch_copper_*.sh of 1.0' \
	"$(COPPER=/bin/echo "$cu_fuse" -f -tpath / -vpath /tmp/v -log_level 4 -log_type file \
	-log_output_dir /tmp/j -net_type 'cxi://cxi1' -trees 1 -nf "$T/slots" \
	-max_cacheable_byte_size 10485760 -md_enoent_ttl_ms 2000 -profile_metrics \
	-profile_top_n 20 -profile_paths_full -profile_snapshot_interval_s 60 \
	-facility_address_book /tmp/book -prefiltered_address_book 1 -s /tmp/v)" \
	'mount --foreground --source / -l 4 -t file -d /tmp/j -n cxi://cxi1 -T 1 --hosts n1,n2 -M 10485760 -E 2000 -P -N 20 -A -P -I 60 -F /tmp/book /tmp/v'
is '0 means none' "$(COPPER=/bin/echo "$cu_fuse" -max_cacheable_byte_size 0 -profile_top_n 0 -profile_snapshot_interval_s 0 -vpath /tmp/v)" 'mount /tmp/v'
fails_with 2 '-frobnicate is unknown' "$cu_fuse" -frobnicate
fails_with 2 '-tpath needs a value' "$cu_fuse" -tpath
fails_with 2 'where to. give -vpath DIR' "$cu_fuse" -tpath /
matches 'cu_fuse -h lists the options' "$("$cu_fuse" -h)" '^-profile_metrics -profile_top_n N '
"${wrapped[@]}" "$cu_fuse" -tpath "$SRC" -vpath "$W/mnt/0" -log_output_dir "$T/job.cu" \
	-profile_metrics -s "$W/mnt/0" -- --hosts localhost >"$T/.out" 2>&1
is 'cu_fuse mounts' "$? $(cat "$W/mnt/0/hello")" '0 hello'
"${wrapped[@]}" "$T/dest/opt/copper/bin/copper" stop "$W/mnt/0" >"$T/.out" 2>&1
ok 'cu_fuse writes reports' test -s "$(echo "$T"/job.cu/profiling/final/*-profiling_operations.csv)"

# ---- the long options of cu_fuse, given to copper mount

with_tree 1 -profile_metrics -profile_top_n 20 -profile_paths_full \
	-profile_snapshot_interval_s 5 -log_level 4 -md_enoent_ttl_ms 100
cat "$W/mnt/0/hello" >/dev/null
matches 'copper mount takes the long options of Copper 1.0 with one dash' "$(logs_of 0)" \
	'^profile_top_n: 20$'
ok 'the tree with the long options stops' without_tree
ok 'they are as good as its letters' \
	test -s "$(echo "$JOB"/profiling/final/*-profiling_top_paths.csv)"
