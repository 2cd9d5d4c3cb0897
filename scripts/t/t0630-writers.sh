#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The files of a job directory: all of them, with names of any byte; when the disk is full, when the
# node is killed, on request; and the listings of cache-stats.
# covers: profile base/table
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 33

SRC=$T/src
small_tree "$SRC"
"$PYTHON" - "$SRC" <<'PY'
import os, sys
root = os.fsencode(sys.argv[1])
os.mkdir(root + b"/odd")
for name in (b'quo"te', b"com,ma", b"new\nline", b"back\\slash", b"\\n", b"not-utf8-\xff\xfe", b" blank ", b"pi|pe`tick", b"'", b"a: 7", b"x {", b"\x01"):
    with open(root + b"/odd/" + name, "wb") as f:
        f.write(b"x" * 100)
PY
use() {
	cat "$W/mnt/$1/dir/numbers" "$W/mnt/$1"/odd/* >/dev/null
	[ ! -e "$W/mnt/$1/odd/"$'ab"sent,\n\xff' ]
}
files() { # FOLDER: the names in it, without host and pid
	(cd "$JOB/$1" 2>/dev/null && printf '%s\n' * | sed 's/^[0-9.]*-[0-9]*-//' | LC_ALL=C sort \
			-u | tr '\n' ' ')
}
profiles="profiling_aggregate.csv profiling_fabric.csv profiling_first_touch.csv profiling_latency.csv profiling_operations.csv profiling_summary.md profiling_top_paths.csv "
telemetry="cluster_events.csv cluster_nodes.csv cluster_telemetry.csv " # of rank 0
# Sizes are *.output only if they were requested.
asked="data_cache_size.output data_table_cache_event.output md_cache_size.output md_table_cache_event.output md_ttl_cache_event.output tree_cache_size.output tree_table_cache_event.output "
tables=${asked//size.output/size.txt}
tagged() { # TAG NAMES
	local name
	for name in $2; do
		printf '%s ' "$1-$name"
	done
}
# Prints every file that its readers do not understand, or that is not complete.
whole() { # DIRECTORY…
	"$PYTHON" - "$@" <<'PY'
import csv, os, sys
for top in sys.argv[1:]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            text = open(path, "rb").read()
            if text[-1:] != b"\n":
                print(path, "is cut")
            elif name.endswith(".csv"):
                rows = list(csv.reader(open(path, newline="", errors="surrogateescape")))
                if len({len(r) for r in rows}) != 1:
                    print(path, "has ragged rows")
            elif name.endswith("event.output") and not (text.split(b"\n")[0].endswith(b"{") and text.endswith(b"}\n")):
                print(path, "has no end")
            elif name.endswith(("size.output", "size.txt")) and b"\nTotal bytes: " not in b"\n" + text:
                print(path, "has no total")
            elif not name.endswith((".csv", ".md", ".output", ".txt")):
                print(path, "is a leftover")
PY
}

# ---- every file, with names of any byte

with_tree 2 -A -N 50
use 0
use 1
"$COPPER" cache-stats --snapshot "$W/mnt/1" >"$T/.out" 2>&1
is 'a snapshot is written when it is asked for' $? 0
is 'a snapshot is written by both nodes' "$(cat "$T/.out")" \
	"reports of 2/2 nodes written to $JOB/profiling/ioctl-snapshot"
is 'a snapshot has every profile' "$(files profiling/ioctl-snapshot)" \
	"$telemetry$(tagged ioctl-snapshot "$profiles")"
is 'the job directory has every table' \
	"$(files tables/ioctl-snapshot)" "$(tagged ioctl-snapshot "$asked")"
"$COPPER" cache-stats --output-dir "$T/lists/here" "$W/mnt/1" >"$T/usage" 2>&1
is 'the contents of the cache are listed' $? 0
node_json 1 >"$T/json"
is 'the contents of the cache are in five files' "$(cd "$T/lists/here" && echo *)" \
	'cache_usage_summary.csv cache_usage_summary.txt data_cache_size.output md_cache_size.output tree_cache_size.output'
is 'the five files agree with the tables to the byte' \
	"$(awk -F , '{ printf "%s ", $3 }' "$T/lists/here/cache_usage_summary.csv")" \
	"$("$PYTHON" -c '
import json, sys
d = json.load(open(sys.argv[1]))
b = [d["tables"][t]["bytes"] for t in ("data", "tree", "metadata")]
print("used_bytes", *b, sum(b), *(d["budget"][k + "_bytes"] for k in ("limit", "used", "remaining")), end=" ")' "$T/json")"
is 'the output is the summary' "$(cat "$T/usage")" "$(cat "$T/lists/here/cache_usage_summary.txt")"
"$COPPER" cache-stats --from "$T/lists/here" --output-dir "$T/again" >"$T/.out" 2>&1
is 'files are summed up without a node' "$(head -n 5 "$T/again/cache_usage_summary.csv")" \
	"$(head -n 5 "$T/lists/here/cache_usage_summary.csv")"
is 'the files are summed up without a complaint' "$(grep -c output "$T/.out")" 0
ok 'the tree stops' without_tree
is 'all profiles are there' "$(files profiling/final)" "$profiles"
is 'all tables are' "$(files tables/final)" "$tables"
is 'the reports of the moment before are whole' \
	"$(files profiling/pre-destroy)" "$(tagged pre-destroy "$profiles")"
is 'each report is whole' "$(whole "$JOB/profiling" "$JOB/tables")" ''
"$PYTHON" - "$SRC" "$JOB" "$T/lists/here" >"$T/names" <<'PY'
import csv, glob, os, re, sys
src, job, lists = (os.fsencode(a) for a in sys.argv[1:])
want = {os.path.join(src, b"odd", n) for n in os.listdir(src + b"/odd")}
absent = src + b'/odd/ab"sent,\n\xff'
def plain(text):
    return re.sub(rb"\\(.)", lambda m: b"\n" if m.group(1) == b"n" else m.group(1), text)
def table(name, cut):
    got = set()
    for path in glob.glob(job + b"/tables/final/127.0.0.12-*-" + name):
        for line in open(path, "rb").read().split(b"\n"):
            if line.startswith(b"/"):
                got.add(plain(line[:line.rindex(cut)]))
    return got
print("data", want - table(b"data_table_cache_event.output", b" {"))
print("md", (want | {absent}) - table(b"md_table_cache_event.output", b" {"))
print("ttl", {absent} - table(b"md_ttl_cache_event.output", b" {"))
print("size", want - table(b"data_cache_size.txt", b": "))
top = set()
for path in glob.glob(job + b"/profiling/final/127.0.0.12-*-profiling_top_paths.csv"):
    for row in csv.DictReader(open(path, newline="", errors="surrogateescape")):
        top.add((row["category"], os.fsencode(row["path"])))
print("top", {p for p in want if (("data", p) not in top)} | ({absent} if ("metadata_ttl", absent) not in top else set()))
cluster = {os.fsencode(r["path"]) for r in csv.DictReader(open(job + b"/profiling/cluster/cluster-profiling_top_paths.csv", newline="", errors="surrogateescape"))}
print("cluster", (want | {absent}) - cluster)
PY
for name in data md ttl size top cluster; do
	is "names of any byte come back from $name" "$(sed -n "s/^$name //p" "$T/names")" 'set()'
done
"$COPPER" cache-stats --from "$JOB" --json >"$T/.out" 2>&1
is 'a job directory is summed up, too' "$("$PYTHON" -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["data"]["files"], d["combined"]["files"], d["faults"])' "$T/.out")" '2 6 0'

# ---- a node that is killed between snapshots

with_tree 1 -A -N 20 -I 1
use 0
wait_for 10 test -e "$JOB/tables/runtime-snapshot" || :
wait_for 10 eval '[ "$(files tables/runtime-snapshot)" = "$(tagged runtime-snapshot "$tables")" ]'
wait_for 10 test -e "$JOB/profiling/runtime-snapshot/cluster_events.csv"
kill_node 0
# A node killed during a snapshot may leave a temporary file, perhaps a cut one, whose name differs
# from those that are read.
find "$JOB/profiling" "$JOB/tables" -regextype posix-extended -type f \
	-regex '.*\.[0-9]+\.[[:alnum:]]{6}' -delete
is 'a killed node leaves the files of its last snapshot' \
	"$(files profiling/runtime-snapshot)" "$telemetry$(tagged runtime-snapshot "$profiles")"
is 'whole ones' "$(whole "$JOB/profiling" "$JOB/tables")" ''
unmount_killed
cop_tree=0

# ---- no space in the job directory

prepare_tree 1
mkdir -p "$JOB"
mount -t tmpfs -o size=256k,mode=700 tmpfs "$JOB"
cop_tree=1
TMPDIR=$T start_node 0 -A -N 20
use 0
ok 'with room there are files' "$COPPER" cache-stats --snapshot "$W/mnt/0"
before=$(cd "$JOB" && find profiling tables -type f | LC_ALL=C sort)
dd if=/dev/zero of="$JOB/full" bs=4k status=none 2>/dev/null
for i in $(seq 1 300); do [ ! -e "$W/mnt/0/absent-with-a-long-name-$i" ]; done
"$COPPER" cache-stats --snapshot "$W/mnt/0" >"$T/.out" 2>&1
is 'without room the snapshot fails' $? 1
matches 'with a sentence that names the file and the way out' "$(cat "$T/.out")" \
	'cannot write .*: No space left on device; .*make room in the job directory'
is 'no file is gone, and none is new' \
	"$(cd "$JOB" && find profiling tables -type f | LC_ALL=C sort)" "$before"
is 'no half file is among them' "$(whole "$JOB/profiling" "$JOB/tables")" ''
is 'the mount goes on' "$(cat "$W/mnt/0/hello")" hello
rm "$JOB/full"
ok 'with room again it works' "$COPPER" cache-stats --snapshot "$W/mnt/0"
dd if=/dev/zero of="$JOB/full" bs=4k status=none 2>/dev/null
ok 'a full disk does not keep the tree from stopping, which ends with 1' without_tree_and_reports
rm "$JOB/full"
matches 'the log says what is missing' \
	"$(cat "$JOB"/logs/*)" '\[Error\].*profile not written: .*No space left'
umount "$JOB"
