#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The sums that stop adds up in the tree equal those of copper aggregate over the files of the
# nodes; --rank-files.
# covers: rank op cluster
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 32

use() { # RANK: something different on each node
	ls -R "$W/mnt/$1" >/dev/null
	cat "$W/mnt/$1/dir/numbers" "$W/mnt/$1/hello" >/dev/null
	cat "$W/mnt/$1/dir/deeper/random" >/dev/null
	for i in $(seq 1 $((5 * $1 + 1))); do
		[ ! -e "$W/mnt/$1/absent$i" ] || return 1
		[ ! -e "$W/mnt/$1/dir/lib$i.so" ] || return 1
	done
}
cluster() {
	echo "$JOB/profiling/cluster/cluster-profiling_$1"
}
names() {
	(cd "$JOB/profiling/cluster" 2>/dev/null && echo *)
}

# ---- seven nodes, each in a file of its own and all of them in the sums

with_tree 7 -k 2 -N 20
for i in 0 1 2 3 4 5 6; do
	use "$i"
done
ok 'seven nodes stop' without_tree
is 'the files of the job are there' "$(names)" \
	'cluster-profiling_aggregate.csv cluster-profiling_fabric.csv cluster-profiling_latency.csv cluster-profiling_operations.csv cluster-profiling_summary.md cluster-profiling_top_paths.csv cluster_events.csv cluster_nodes.csv cluster_telemetry.csv cluster_warnings.csv'
is 'seven nodes are in them' "$(sed -n 2p "$(cluster aggregate.csv)")" ranks_with_aggregate_files,7
cp -r "$JOB/profiling/cluster" "$T/stop"
ok 'copper aggregate reads the files of the nodes' "$COPPER" aggregate "$JOB"
for name in aggregate.csv operations.csv; do
	ok "copper aggregate comes to the same $name, byte for byte" \
		cmp "$T/stop/cluster-profiling_$name" "$(cluster "$name")"
done
until_coverage() { # only aggregate walks the trees that were used
	sed '/^## Path Coverage/,$d' "$1" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
is 'copper aggregate comes to the same summary' \
	"$(until_coverage "$T/stop/cluster-profiling_summary.md")" \
	"$(until_coverage "$(cluster summary.md)")"
"$PYTHON" - "$JOB/profiling/final" "$T/stop" >"$T/compare" <<'PY'
import collections, csv, glob, sys
final, cluster = sys.argv[1:]
def rows(pattern):
    for name in sorted(glob.glob(pattern)):
        yield from csv.DictReader(open(name, newline="", errors="surrogateescape"))
top = collections.defaultdict(lambda: [0] * 8)
columns = "total_events cache_hits cache_misses negative_results ttl_stores ttl_serves ttl_expires ttl_clears".split()
for r in rows(final + "/*-profiling_top_paths.csv"):
    for i, c in enumerate(columns):
        top[r["category"], r["path"]][i] += int(r[c])
bad, busiest = [], 0
for r in rows(cluster + "/*top_paths.csv"):
    got = [int(r[c]) for c in columns]
    want = top.get((r["category"], r["path"]))
    # The nodes list their 20 most used paths; the sums know all.
    if want is None or any(g < w for g, w in zip(got, want)) or r["too_low_by_at_most"] != "0":
        bad.append((r, want))
    busiest = max(busiest, got[0])
print("top", bad[:3] if bad else "good", busiest == max(v[0] for v in top.values()))
fabric = collections.Counter()
for r in rows(final + "/*-profiling_fabric.csv"):
    fabric[r["metric"]] += int(r["value"])
got = {r["metric"]: int(r["value"]) for r in rows(cluster + "/*fabric.csv")}
# Stopping itself takes messages, even after the first nodes have written their files.
print("fabric", set(got) == set(fabric) and all(got[k] >= fabric[k] for k in got) and got["origin_operations"] == fabric["origin_operations"])
calls = collections.Counter()
worst = collections.defaultdict(float)
for r in rows(final + "/*-profiling_latency.csv"):
    calls[r["operation"]] += int(r["count"])
    worst[r["operation"]] = max(worst[r["operation"]], float(r["max_us"]))
good = True
for r in rows(cluster + "/*latency.csv"):
    good &= int(r["count"]) == calls[r["operation"]] and float(r["max_us"]) == worst[r["operation"]]
    good &= float(r["p50_us"]) <= float(r["p90_us"]) <= float(r["p99_us"]) <= float(r["max_us"])
print("latency", good and len(calls) > 3)
PY
is 'the most used paths are those of all nodes' "$(sed -n 's/^top //p' "$T/compare")" 'good True'
is 'the counters are the sums of theirs' "$(sed -n 's/^fabric //p' "$T/compare")" True
is 'the latencies are of all calls' "$(sed -n 's/^latency //p' "$T/compare")" True

# ---- without a file of each node

SUM=$(grep total_counted "$(cluster aggregate.csv)")
with_tree 7 -k 2 -N 20 --rank-files none -I 1
for i in 0 1 2 3 4 5 6; do
	use "$i"
done
sleep 1.2
"$COPPER" cache-stats --snapshot "$W/mnt/3" >"$T/.out" 2>&1
is 'a snapshot that nobody writes is a failure' $? 1
ok 'the nodes without reports stop' without_tree
is 'without files of each node, only those of the whole job remain' \
	"$(cd "$JOB" && find profiling tables -type f -printf '%h\n' | sort -u)" 'profiling/cluster'
matches 'with what all of them did' \
	"$(cat "$(cluster aggregate.csv)")" 'ranks_with_aggregate_files,7'
note "with files: $SUM, without: $(grep total_counted "$(cluster aggregate.csv)")"

with_tree 3 -A --rank-files root
use 2
ok 'three nodes stop' without_tree
is 'only one of the three nodes has written files' \
	"$(cd "$JOB/profiling/final" && printf '%s\n' * | sed 's/-[0-9]*-.*//' |
		sort -u) $(find "$JOB/tables/final" -type f | wc -l)" '127.0.0.11 7'
is 'the sums contain all three nodes' \
	"$(sed -n 2p "$(cluster aggregate.csv)")" ranks_with_aggregate_files,3

# ---- what is missing is reported

with_tree 7 -k 2 -P --peer-timeout 1
use 4
kill_node 1
"$COPPER" stop "$W/mnt/4" >"$T/.out" 2>&1
matches 'a node is dead' "$(cat "$T/.out")" '^stopped 6/7 nodes'
is 'the sums contain the other nodes' \
	"$(sed -n 2p "$(cluster aggregate.csv)")" ranks_with_aggregate_files,6
matches 'the summary says which nodes are missing' \
	"$(cat "$(cluster summary.md)")" 'not in these sums: `1`'
unmount_killed
cop_tree=0
with_tree 5 -k 2 -P --peer-timeout 1
kill_node 0
"$COPPER" stop "$W/mnt/2" >"$T/.out" 2>&1
is 'with a dead root the node that was asked writes' \
	"$(sed -n 2p "$(cluster aggregate.csv)")" ranks_with_aggregate_files,4
unmount_killed
cop_tree=0

# ---- nowhere to write

if [ "$(id -u)" -eq 0 ]; then
	unmount_killed
	cop_tree=0
	TMPDIR=$T with_tree 1 -P
	mkdir -p "$JOB/profiling/cluster"
	mount -t tmpfs -o ro,mode=700 none "$JOB/profiling/cluster" || bail 'no tmpfs'
	ok 'a node stops where the sums cannot be written, which ends with 1' \
		without_tree_and_reports
	matches 'the stop says where the sums are, without an option that it does not have' \
		"$(sed -n 's/.*cluster-profiling_aggregate.csv: //p' "$W/out.stop")" \
		"^Read-only file system; the sums of 1 nodes are kept in $T/copper-sums-[^/]* on this host$"
	umount "$JOB/profiling/cluster"
else
	pass 'nowhere to write # SKIP not root'
	pass 'nowhere to write # SKIP not root'
fi

# ---- every path: the classes cover all of them, not the lists of the most used ones

entries() { # FILE: the entries of its table of classes, and the number of classes
	sed -n '/^| Path Class/,/^$/p' "$1" | awk -F ' *[|] *' 'NR > 2 && NF > 4 {
		n += $3; classes++ } END { print n, classes }'
}
with_tree 3 -k 2 -A -N 3
for i in 0 1 2; do
	use "$i"
done
ok 'three nodes with every path stop' without_tree
cp -r "$JOB/profiling/cluster" "$T/stop.full"
want=$("$PYTHON" - "$JOB/tables/final" <<'PY'
import glob, re, sys
n = 0
for name in glob.glob(sys.argv[1] + "/*_cache_event.output"):
    for one in re.split(r"\n(?=/)", open(name, errors="surrogateescape").read())[1:]:
        n += any(int(x) for x in re.findall(r": (\d+),?", one.split(" {\n", 1)[1]))
print(n)
PY
)
ok 'there are more paths than a list has' test "$want" -gt 36
is 'the classes that stop writes cover every path' \
	"$(entries "$T/stop.full/cluster-profiling_summary.md" | cut -d ' ' -f 1)" "$want"
rm -r "$JOB/profiling/cluster"
ok 'copper aggregate reads their tables' "$COPPER" aggregate --no-coverage "$JOB"
is 'copper aggregate comes to the same classes' "$(entries "$(cluster summary.md)")" \
	"$(entries "$T/stop.full/cluster-profiling_summary.md")"
matches 'the summary says that they are of every path' "$(cat "$(cluster summary.md)")" \
	'^Every path of each rank, by kind'

# ---- a job that ended by a signal, as at a time limit

with_tree 3 -k 2 -N 50
for i in 0 1 2; do
	use "$i"
done
pids=()
for i in 0 1 2; do
	pids+=("$(node_stat "$i" pid)")
	is_ours "${pids[i]}" || bail "pid ${pids[i]} is not of this test"
done
have_ended() {
	! kill -0 "${pids[@]}" 2>/dev/null
}
kill -TERM "${pids[@]}"
ok 'the nodes end' wait_for 20 have_ended
"$COPPER" aggregate --no-coverage "$JOB" >"$T/out" 2>"$T/err"
matches 'copper aggregate says how the job ended' "$(cat "$T/err")" \
	'the job: ended by a signal, as at a time limit, without copper stop$'
ok 'the paths that the ranks left are added up' \
	grep -qx "metadata,\"$SRC/absent1\",3,0,0,3,0,0,0,0" "$(cluster top_paths.csv)"
