#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The published formats of Copper 1.0 in both directions: readers that follow its documentation get
# the right values from our job directories, and our commands get them from a directory such as it
# leaves, and from those that we left when sizes were elsewhere.
# covers: cluster base/table
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 44

HOME=$T/home # not of any test's paths
export HOME
old() { # WHAT DIRECTORY
	"$PYTHON" "$cop_t/old_readers.py" "$@"
}
copper() { # ARG…: standard output to $T/out, standard error to $T/err
	timeout "$(patient 60)" "$COPPER" "$@" </dev/null >"$T/out" 2>"$T/err"
}
value() { # KEY: of the JSON in $T/out
	json_value "$1" <"$T/out"
}

# ---- ours, for the scripts of Copper 1.0

SRC=$T/src/conda_env
mkdir -p "$SRC/lib/python3/site-packages/many" "$SRC/bin" "$SRC/unused"
for i in $(seq 1 40); do
	head -c $((i * 100)) /dev/zero >"$SRC/lib/python3/site-packages/many/m$i.py"
done
head -c 3000000 /dev/zero >"$SRC/bin/python3"
touch "$SRC/unused/never"
with_tree 4
is 'the directories are there from the start' \
	"$(cd "$JOB" && find profiling tables -type d | LC_ALL=C sort | tr '\n' ' ')" \
	'profiling profiling/cluster profiling/final tables tables/final '
without_tree || fail 'it stops'

# Without files that nobody has asked for: in the form of earlier directories, what is in a cache
# counts as asked for.
with_tree 4 -A -N 20 -I 1 --bundle off
# Each node is asked for everything that can be seen: prints every name on the way, as it is in the
# source.
use() { # RANK…
	"$PYTHON" - "$W/mnt" "$SRC" "$@" <<'PY'
import os, sys
mounts, source, *ranks = sys.argv[1:]
seen = {source}
def touch(rank, name):
    for i in range(1, name.count("/") + 2):
        seen.add(source + "/" + "/".join(name.split("/")[:i]))
    return "%s/%s/%s" % (mounts, rank, name)
for rank in ranks:
    os.listdir("%s/%s" % (mounts, rank))
    for name in ["bin/python3"] + ["lib/python3/site-packages/many/m%d.py" % i for i in range(1, 21)]:
        open(touch(rank, name), "rb").read()
    for i in range(12):
        assert not os.path.exists(touch(rank, "lib/libnone.so.%d" % i))
print(*sorted(seen), sep="\n")
PY
}
use 3 1 >"$T/truth"
grep -c 'libnone' "$T/truth" >"$T/absent"
wait_for 20 test -e "$JOB/tables/runtime-snapshot" || :
ok 'a snapshot is asked for' copper cache-stats --snapshot "$W/mnt/2"
held() { # what the tables of all nodes hold, for people who wrote it down
	copper cache-stats --all --json "$W/mnt/0"
	value total.tables
}
# Read-ahead may still be coming in, so the snapshot that counts is one between two equal values.
snapshot() {
	held >"$T/held"
	copper cache-stats --snapshot "$W/mnt/2" && held | cmp -s - "$T/held"
}
ok 'a second snapshot is asked for' wait_for 20 snapshot
ok 'the tree stops' without_tree
FINAL=$JOB/tables/final
old observed "$FINAL" >"$T/observed"
is 'path scripts of Copper 1.0 see every path that was used, and no other' \
	"$(diff "$T/truth" "$T/observed")" ''
is 'path scripts of Copper 1.0 see as many missing paths as there were' \
	"$(old missing "$FINAL" | wc -l)" "$(cat "$T/absent")"
old usage "$JOB/tables" >"$T/usage"
is 'the cache usage script of Copper 1.0 counts each node once, to the byte' \
	"$(cut -d ' ' -f 1-3 "$T/usage" | tr '\n' ' ')" "$("$PYTHON" -c '
import json, sys
t = json.load(open(sys.argv[1]))
print(*("%s 4 %d" % (k, t[k]["bytes"]) for k in ("data", "tree", "metadata")), end=" ")' "$T/held")"
is 'the cache usage script of Copper 1.0 works from the top of the job directory' \
	"$(old usage "$JOB")" "$(cat "$T/usage")"
is 'entries are the paths that are held' "$(cut -d ' ' -f 4 "$T/usage" | tr '\n' ' ')" \
	"$(for t in data tree md; do cat "$JOB/tables/ioctl-snapshot/"*-${t}_cache_size.output |
		grep -c ^/; done | tr '\n' ' ')"
old sums "$JOB" >"$T/sums"
is 'the sums of the script of Copper 1.0 contain every rank' "$(sed -n 's/^ranks //p' "$T/sums")" 4
cluster_of() { # PREFIX: what our cluster files say, in the form of the reader
	"$PYTHON" - "$JOB/profiling/cluster/$1-profiling_" <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "aggregate.csv", newline="")))
print("ranks", rows[0]["value"])
for row in rows[1:]:
    print("metric", row["metric"], "%.6f" % float(row["value"]))
for row in csv.DictReader(open(sys.argv[1] + "operations.csv", newline="")):
    print("operation", *(row[c] for c in ("operation", "total_calls", "cache_hits", "cache_misses", "negative_results")), row["total_latency_s"])
PY
}
is 'the sums of the script of Copper 1.0 are those of our cluster files' "$(cluster_of cluster | diff - "$T/sums")" ''
is 'every node was started and ended once' \
	"$(grep -E '^operation (init|destroy) ' "$T/sums" | cut -d ' ' -f 2,3 | tr '\n' ' ')" \
	'destroy 4 init 4 '
summary=$(echo "$JOB"/profiling/final/127.0.0.14-*-profiling_summary.md)
old summary "$summary" >"$T/summary"
is 'the summary of a node has the headings' "$(grep '^#' "$T/summary" | tr '\n' ' ')" \
	'# Copper Profiling Summary ## Aggregate Operation Metrics ## Derived High-Level Metrics ## Storage ## Top Paths ## Full Path Outputs ## Hottest Paths ### Metadata ### Data ### Metadata ENOENT TTL ## Path Class Heuristics ## Pruning Guidance '
is 'the summary of a node has the columns' "$(grep ^Operation, "$T/summary")" \
	'Operation,Total Calls,Cache Hits,Cache Misses,Negative Results,Avg Latency (us),Total Latency (s)'
is 'with the figures of the file' "$(grep '^[a-z]' "$T/summary")" \
	"$(sed '1d; s/,[^,]*,[^,]*$//; s/,/ /g' \
		"$JOB"/profiling/final/127.0.0.14-*-profiling_operations.csv)"
is 'a tag is named in snapshots alone' \
	"$(grep -l 'Snapshot tag' "$JOB"/profiling/*/*summary.md | sed 's|/[^/]*$||; s|.*/||' |
		sort -u | tr '\n' ' ')" \
	'ioctl-snapshot pre-destroy runtime-snapshot '
matches 'it names what has every use counted' \
	"$(cat "$summary")" 'count first uses; `copper mount --observe` counts every use\.$'
matches 'the summary of the job names what it has counted' \
	"$(cat "$JOB/profiling/cluster/cluster-profiling_summary.md")" \
	'without `copper mount --observe`.* count first uses\.$'
storage() { # NAME: of the job, by its sums
	sed -n "s/^metric storage_$1 //p" "$T/sums"
}
cluster_counter() {
	sed -n "s/^origin_$1,//p" "$JOB/profiling/cluster/cluster-profiling_fabric.csv"
}
is 'the storage has its part: operations and bytes' "$(storage operations) $(storage bytes)" \
	"$(cluster_counter operations).000000 $(cluster_counter bytes).000000"
ok 'the summary has the time of the storage' test "$(cluster_counter time_us)" -gt 0
matches 'in the summary of the job' "$(cat "$JOB/profiling/cluster/cluster-profiling_summary.md")" \
	"^\| .storage_operations. \| $(cluster_counter operations) \|$"
is 'the summaries of nodes have it by node' \
	"$(sed -n 's/^| Storage operations | \(.*\) |$/\1/p' "$JOB"/profiling/final/*summary.md |
		awk '{ n += $1 } END { print n }')" \
	"$(cluster_counter operations)"

# ---- ours, for us

ok 'our commands read them, too' copper cache-stats --from "$JOB" --json
is 'our commands count each node once' "$(value combined.files) $(value faults)" '12 0'
cp "$T/out" "$T/from"
ok 'the summary of the job has the paths' copper paths "$JOB" --usage-root "$SRC" --json
is 'as many as there are' "$(value observed) $(value totals.absent.paths) $(value faults)" \
	"$(wc -l <"$T/truth") $(cat "$T/absent") 0"
# As job directories were when sizes were beside the paths, and a snapshot during the run had them,
# too.
cp -r "$JOB" "$T/earlier"
for file in "$T"/earlier/tables/*/*_cache_size.txt; do mv "$file" "${file%.txt}.output"; done
ok 'in which its scripts saw what was not there' \
	test "$(old observed "$T/earlier/tables/final" | wc -l)" -gt "$(wc -l <"$T/truth")"
ok 'earlier directories are read' copper cache-stats --from "$T/earlier" --json
is 'earlier directories have the same sums' "$(cat "$T/out")" "$(cat "$T/from")"
ok 'earlier directories have their paths' copper paths "$T/earlier" --usage-root "$SRC" --json
is 'of which there are as many' "$(value observed) $(value totals.absent.paths) $(value faults)" \
	"$(wc -l <"$T/truth") $(cat "$T/absent") 0"

# ---- a directory of Copper 1.0, for us

OLD=$T/old
"$PYTHON" "$cop_t/old_job.py" "$OLD" "$T/soft"
ok 'a job of Copper 1.0 is summed up' copper aggregate --no-coverage "$OLD"
is 'a job of Copper 1.0 is summed up without a word' "$(cat "$T/err")" ''
JOB=$OLD
is 'as by its own script' "$(cluster_of cluster)" "$(old sums "$OLD")"
is 'the counts cover every use, and nothing else is said' \
	"$(grep -c observe "$OLD/profiling/cluster/cluster-profiling_summary.md")" 0
ok 'the paths of a job of Copper 1.0 are read' copper paths "$OLD" --json
is 'the paths of a job of Copper 1.0 are read without a word' "$(cat "$T/err")" ''
is 'the paths lists have all paths, and the two that are missing' \
	"$(value observed) $(value totals.absent.paths) $(value faults)" '7 2 0'
ok 'the sizes of a job of Copper 1.0 are summed up' copper cache-stats --from "$OLD" --json
is 'without a word here, too' "$(cat "$T/err")" ''
is 'to what its own script finds' \
	"$(for t in data tree metadata; do echo \
		"$t $(value "$t.files") $(value "$t.bytes") $(value "$t.entries")"; done)" \
	"$(old usage "$OLD")"
is 'the script of Copper 1.0 finds the same sizes' "$(value combined.bytes) $(value faults)" \
	"$((500 + 80 + 2 * 5 * 144)) 0"

# ---- the part of a slow storage

with_slowfs --direct-io --meta-us 1000 --read-us 20000
with_tree 2 -P
cat "$W/mnt/1/bin/python3" "$W/mnt/1/lib/python3/site-packages/many"/*.py >/dev/null
ok 'the tree over it stops' without_tree
reads=$(cluster_counter reads)
ok 'each read is in the time of the storage' \
	test "$reads" -ge 41 -a "$(cluster_counter time_us)" -ge $((reads * 20000))
without_slowfs
