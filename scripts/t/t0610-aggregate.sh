#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper aggregate: the cluster files are equal to those worked out by hand, and to an independent
# sum for a real job.
# covers: cluster base/table walk
# quick: yes
# modes: release shared asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 49

jobs=$cop_root/testdata/jobs
HOME=$T/home # not of any test's paths
export HOME

aggregate() { # [OPTION…] JOBDIR [PREFIX]: exit status in $status, output in $T/out and $T/err
	timeout "$(patient 60)" "$COPPER" aggregate "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
}

# ---- jobs whose sums were worked out by hand

# One point for each file. @INPUT@ stands for the directory that was read.
golden() { # NAME PREFIX
	local job=$T/$1 input file
	cp -r "$jobs/$1/job" "$job"
	input=$job/profiling/final
	[ -d "$input" ] || input=$job
	aggregate "$job" "$2"
	is "$1: done" "$status" 0
	for file in aggregate.csv operations.csv summary.md top_paths.csv; do
		[ -e "$jobs/$1/expected/$2-profiling_$file" ] || continue
		sed "s|@INPUT@|$input|" "$jobs/$1/expected/$2-profiling_$file" >"$T/want"
		ok "$1: $file, byte by byte" \
			cmp "$T/want" "$job/profiling/cluster/$2-profiling_$file"
	done
}
golden aggregate-v1 cluster
is 'the last lines say what was written' "$(tail -n 4 "$T/out")" \
	"$(printf "wrote $T/aggregate-v1/profiling/cluster/cluster-profiling_%s\n" aggregate.csv \
		operations.csv summary.md top_paths.csv)"
is 'nothing goes to standard error' "$(cat "$T/err")" ''
aggregate --json "$T/aggregate-v1"
is 'the JSON has the range across ranks, and who has the extremes' \
	"$("$PYTHON" -c 'import json, sys
for name, r in json.load(open(sys.argv[1]))["ranges"].items():
    print(name, r["min"]["value"], r["min"]["name"], r["median"], r["max"]["value"], r["max"]["rank"])
' "$T/out")" \
	'total_cache_hits 80 x4000c0s0b0n1-69204 19436.5 38793 None
total_cache_misses 15 x4000c0s0b0n1-69204 38.5 62 None
total_negative_results 5 x4000c0s0b0n1-69204 247 489 None
metadata_enoent_ttl_serves 2 x4000c0s0b0n1-69204 2506.5 5011 None
total_measured_latency_seconds 0.310005 x4000c0s0b0n0-114357 1.155002 1.999999 None'
cp -r "$jobs/aggregate-v1/job" "$T/listed"
mkdir "$T/listed/logs"
printf 'x4000c0s0b0n1\nx4000c0s0b0n0\n' >"$T/listed/logs/node_file.txt"
aggregate --json "$T/listed"
is 'a list of hosts gives the ranks of the extremes' \
	"$("$PYTHON" -c 'import json, sys
r = json.load(open(sys.argv[1]))["ranges"]["total_cache_hits"]
print(r["min"]["rank"], r["min"]["name"], r["max"]["rank"], r["max"]["name"])' "$T/out")" \
	'0 x4000c0s0b0n1 1 x4000c0s0b0n0'
golden aggregate-ours 'run 1'
golden aggregate-broken cluster
is 'every file of no use and every odd value is named, with the reason' \
	"$(grep -v '^copper aggregate: ' "$T/err")" \
	"$(cat "$jobs/aggregate-broken/expected/faults")"

# What Python's csv module reads from the cluster files, as in scripts of Copper 1.0.
csv_sum() { # FILE KEY VALUE: of the row whose first column is KEY
	"$PYTHON" -c 'import csv, sys
print([row[sys.argv[3]] for row in csv.DictReader(open(sys.argv[1], newline="")) if sys.argv[2] in row.values()][0])' "$@"
}
is 'a reader of CSV finds the sums' \
	"$(csv_sum "$T/aggregate-v1/profiling/cluster/cluster-profiling_operations.csv" getattr \
		total_calls)" 39429

# ---- how much of some directories was used, counted by hand

env=$T/soft/conda_env
mkdir -p "$env/bin" "$env/lib" "$env/empty" "$HOME/.local"
touch "$env/bin/python" "$env/bin/other" "$env/lib/a.py" "$env/lib/b.py" "$env/lib/c.py" \
	"$HOME/.local/used" "$HOME/not"
cp -r "$jobs/aggregate-v1/job" "$T/cover"
mkdir -p "$T/cover/tables/final"
{
	echo 'metadata {'
	for path in "$env" "$env/bin/python" "$env/lib" "$env/lib/a.py" "$env/lib/none.so" \
		"$HOME/.local/used" "$T/elsewhere"; do
		printf '%s {\ncache hits: 1,\ncache misses: 0,\nneg: 0\n}\n' "$path"
	done
	echo '}'
} >"$T/cover/tables/final/n1-1-md_table_cache_event.output"
aggregate --usage-root "$env/lib/" --usage-root "$T/none" "$T/cover"
sed 's/^| \([^ ]*\)\(.*\) \([^ ]*\) |$/| `\1`\2 `\3` |/; s/ `-` / /' >"$T/want" <<EOF
| $env/lib | yes | 3 | 1 | 3 | 33.33% | 1 | 1 | 100.00% | 1 | $env/lib |
| $T/none | no | 0 | 0 | 0 | n/a | 0 | 0 | n/a | 0 | - |
| $env | yes | 5 | 2 | 5 | 40.00% | 2 | 4 | 50.00% | 1 | $env |
| $HOME/.local | yes | 1 | 1 | 1 | 100.00% | 0 | 1 | 0.00% | 0 | $HOME/.local/used |
EOF
coverage_rows() {
	sed -n '/^| Root/,$p' "$1/profiling/cluster/cluster-profiling_summary.md" | grep '^| `'
}
coverage_rows "$T/cover" | sed 's/|  |$/| |/' >"$T/got"
ok 'the coverage table has what was counted by hand' diff "$T/want" "$T/got"
aggregate --skip-home-inference "$T/cover"
is 'without the home directory if that is asked for' \
	"$(coverage_rows "$T/cover" | cut -d '`' -f 2)" "$env"
aggregate --output-dir "$T/other/place" "$T/cover" x
ok 'the files go where they are wanted' cmp "$T/other/place/x-profiling_aggregate.csv" \
	"$T/cover/profiling/cluster/cluster-profiling_aggregate.csv"
aggregate --no-coverage "$T/cover"
is '--no-coverage leaves the coverage out' \
	"$status$(grep -c Coverage "$T/cover/profiling/cluster/cluster-profiling_summary.md")" 00

# ---- nothing to read

mkdir -p "$T/empty/profiling/final"
aggregate "$T/empty"
is 'an empty job directory is a failure' "$status" 1
is 'an empty job directory is named' "$(head -n 1 "$T/err")" \
	"copper aggregate: failed to find profiling csv files under: $T/empty/profiling/final"
is 'refused words write no file' "$(cat "$T/out"; ls "$T/empty/profiling")" final
fails_with 1 'cannot read the job directory' "$COPPER" aggregate "$T/none"
fails_with 2 'JOBDIR' "$COPPER" aggregate
fails_with 2 'PREFIX' "$COPPER" aggregate "$T/empty" ../x
fails_with 2 'usage-root' "$COPPER" aggregate "$T/empty" --usage-root
mkfifo "$T/empty/profiling/final/h-1-profiling_aggregate.csv"
ln -s /dev/zero "$T/empty/profiling/final/h-1-profiling_operations.csv"
aggregate "$T/empty"
is 'no fifo and no endless device is read' "$status" 1
matches 'the fifo and the device are named' "$(tr '\n' ' ' <"$T/err")" \
	'h-1-profiling_aggregate.csv: it is not a regular file h-1-profiling_operations.csv: it is not'
fails_with 1 'cannot write to standard output; the cluster files are in' \
	sh -c 'exec "$@" >/dev/full' - "$COPPER" aggregate --no-coverage "$T/aggregate-v1"
cp -r "$T/aggregate-v1" "$T/disk"
if mount -t tmpfs -o size=16k,nr_inodes=64,mode=755 none "$T/disk/profiling/cluster" \
	2>/dev/null; then
	head -c 16384 /dev/zero >"$T/disk/profiling/cluster/full" 2>/dev/null
	aggregate "$T/disk"
	is 'a full disk is a failure' "$status" 1
	matches 'that names the file and the way out' \
		"$(cat "$T/err")" 'cannot write .*No space left on device; the disk is full: make room there; --output-dir names another place$'
	is 'a full disk leaves no part of a file' "$(ls "$T/disk/profiling/cluster")" full
	mount -o remount,ro "$T/disk/profiling/cluster"
	aggregate "$T/disk"
	matches 'where nothing may be written another place is proposed' \
		"$(cat "$T/err")" 'Read-only file system; --output-dir names another place'
	umount "$T/disk/profiling/cluster"
else
	for what in 1 2 3 4; do pass "a full disk, $what # SKIP no tmpfs here"; done
fi

# ---- 10,000 ranks (1,000 but in the shared build): memory of ten, and a few bytes of each

peak_kb() { # JOBDIR
	"$PYTHON" -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$COPPER" aggregate "$1"
}
# A sanitizer keeps what is freed; as little of it as it can.
export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=0:thread_local_quarantine_size_kb=0
many=10000
[ "$cop_mode" = shared ] || many=1000
# How much of the libraries counts, which are shared there, depends on what the kernel maps at once.
spread_kb=2048
[ "$cop_mode" != shared ] || spread_kb=4096
"$PYTHON" "$cop_t/make-ranks.py" "$T/few/profiling/final" 10
"$PYTHON" "$cop_t/make-ranks.py" "$T/many/profiling/final" "$many"
few_kb=$(peak_kb "$T/few")
is_at_most "$many ranks need at most $((spread_kb / 1024)) MiB more than ten" "$(peak_kb "$T/many")" \
	$((few_kb + spread_kb + (cop_slower - 1) * 32768))
independent() { # JOBDIR: sums by Python, in integers, as the cluster files have them
	"$PYTHON" - "$1" <<'PY'
import csv, glob, sys
from decimal import Decimal
where = sys.argv[1] + "/profiling/final/*-profiling_"
metrics, operations = {}, {}
names = glob.glob(where + "aggregate.csv")
for name in names:
    for row in csv.DictReader(open(name, newline="")):
        metrics[row["metric"]] = metrics.get(row["metric"], 0) + Decimal(row["value"])
for name in glob.glob(where + "operations.csv"):
    for row in csv.DictReader(open(name, newline="")):
        sums = operations.setdefault(row["operation"], [0, 0, 0, 0, Decimal(0)])
        for i, column in enumerate(["total_calls", "cache_hits", "cache_misses", "negative_results", "total_latency_s"]):
            sums[i] += Decimal(row[column]) if i == 4 else int(row[column])
print("ranks_with_aggregate_files,%d" % len(names))
for name in sorted(metrics):
    print("%s,%s" % (name, metrics[name]))
for name in sorted(operations):
    calls, hits, misses, negatives, seconds = operations[name]
    print("%s,%d,%d,%d,%d,%.2f,%.6f" % (name, calls, hits, misses, negatives, float(seconds * 1000000) / calls, seconds))
PY
}
cluster_rows() { # JOBDIR
	tail -q -n +2 "$1"/profiling/cluster/cluster-profiling_{aggregate,operations}.csv
}
independent "$T/many" >"$T/want"
cluster_rows "$T/many" >"$T/got"
ok "the sums over $many ranks are what Python adds up" cmp "$T/want" "$T/got"

# ---- a job of ours

SRC=$T/src
small_tree "$SRC"
mkdir -p "$SRC/conda_env/lib/python3.11/site-packages" "$SRC/conda_env/bin"
echo 'print("hi")' >"$SRC/conda_env/lib/python3.11/site-packages/mod.py"
with_tree 2 -N 20
for rank in 0 1; do
	cat "$W/mnt/$rank/hello" "$W/mnt/$rank/dir/numbers" \
		"$W/mnt/$rank/conda_env/lib/python3.11/site-packages/mod.py" >/dev/null
	ls -lR "$W/mnt/$rank" >/dev/null
	for i in 1 2 3; do cat "$W/mnt/$rank/conda_env/lib/libnone.so.$i" 2>/dev/null; done
done
without_tree || fail 'the tree stops'
aggregate "$JOB"
is 'a real job is aggregated' "$status$(cat "$T/err")" 0
independent "$JOB" >"$T/want"
cluster_rows "$JOB" >"$T/got"
ok 'to what Python adds up' cmp "$T/want" "$T/got"
is 'the sums contain both nodes' "$(sed -n 's/^ranks_with_aggregate_files,//p' "$T/got")" 2
matches 'the summary has the classes of its paths' \
	"$(cat "$JOB/profiling/cluster/cluster-profiling_summary.md")" \
	'^\| `missing_shared_library_probe` \| [1-9]'
matches 'the summary says how much of the environment was used' \
	"$(coverage_rows "$JOB")" "^\| .$SRC/conda_env. \| yes \| "
aggregate "$JOB/profiling/pre-destroy"
is 'the folder of a snapshot is aggregated, too' \
	"$status$(sed -n 1p "$T/out")" "02 ranks in $JOB/profiling/pre-destroy"
aggregate --json "$JOB" again
is 'JSON has the same sums' "$(json_value metrics.total_cache_hits <"$T/out")" \
	"$(sed -n 's/^total_cache_hits,//p' "$T/got")"
mkdir "$T/again"
"$COPPER" mount -P -d "$JOB" --source "$SRC" "$T/again" && "$COPPER" stop "$T/again" >/dev/null
aggregate "$JOB" mixed
matches 'another run in the same directory is noticed' \
	"$(cat "$T/err")" '3 ranks left files in this job directory, and its last run had 1: '

# ---- on a storage that is asked as little as can be

"$PYTHON" "$cop_t/make-ranks.py" "$T/few/profiling/final" 50
SRC=$T/few
with_slowfs --slots 16
aggregate --no-coverage --output-dir "$T/far" "$SRC" far
is 'a job on a slow storage is aggregated' "$status" 0
files=$(slow_count read)
ok 'a file costs a lookup, its size, an open and a read' \
	test "$(($(slow_count lookup) + $(slow_count getattr) + $(slow_count open)))" \
	-le $((3 * files + 40))
without_slowfs
