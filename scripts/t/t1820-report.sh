#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper report: the page of a real job, while it runs and afterwards, compared with the job's own
# CSV files; of a job of 10,000 nodes, of Copper 1.0, of an empty directory; hostile names; files
# that exist and disks that are full.
# covers: html jobdata
# quick: yes
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 49

judge() { # FILE WHAT [ARGUMENT…]
	"$PYTHON" "$cop_t/report_judge.py" "$@"
}
is_page() { # WHOSE FILE
	is "the page of $1 is whole" "$(judge "$2" whole)" whole
	is "the page of $1 loads and runs nothing" "$(judge "$2" loads)" ''
}

# ---- a job of three nodes, with a name that looks like markup

EVIL='<img src=x onerror="alert(1)">&amp;'
SRC=$T/src
mkdir -p "$SRC/lib"
head -c 300000 /dev/urandom >"$SRC/lib/data"
echo 1 >"$SRC/lib/$EVIL"
printf 'x' >"$SRC/lib/"$'bad\377\nname'
STORE=$T/runs.db
with_tree 3 -A -N 20 -I 1 --store "$STORE"
read_everything 0 1 2
SNAPSHOT=$JOB/profiling/runtime-snapshot
has_snapshot() {
	[ "$(find "$SNAPSHOT" -name '*-profiling_operations.csv' 2>/dev/null | wc -l)" -eq 3 ] &&
		[ -s "$SNAPSHOT/cluster_nodes.csv" ]
}
ok 'a running job writes a snapshot' wait_for 30 has_snapshot
"$COPPER" report "$JOB" -o "$T/early.html" >/dev/null || bail 'no page of a running job'
is_page 'a job that runs' "$T/early.html"
is 'the page says that it shows a snapshot' "$(judge "$T/early.html" says 'counts of a snapshot')" yes
is 'the page says whose snapshot it shows' \
	"$(judge "$T/early.html" says 'This is what 1 of the 3 nodes said')" yes
ok 'the job ends' without_tree

CLUSTER=$JOB/profiling/cluster
out=$("$COPPER" report "$JOB" --store "$STORE" 2>"$T/.err")
is 'the command prints where the page is' "$out" "$JOB/report.html"
is 'the command prints nothing else' "$(cat "$T/.err")" ''
PAGE=$JOB/report.html
is_page 'a job' "$PAGE"
matches 'the page has its sections' "$(judge "$PAGE" sections)" \
	'^job (warnings )?when operations from tree paths environment memory start events before$'
is 'operations are those of the job' \
	"$(judge "$PAGE" operations "$CLUSTER/cluster-profiling_operations.csv")" same
is 'the most used paths are those of the job' \
	"$(judge "$PAGE" paths "$CLUSTER/cluster-profiling_top_paths.csv")" same
is 'a name with markup in it is text' "$(judge "$PAGE" says "$SRC/lib/$EVIL")" yes
is 'bytes that are no characters are shown by their numbers' \
	"$(judge "$PAGE" says 'bad\xff\x0aname')" yes
is 'the source is there' "$(judge "$PAGE" says "3 nodes served $SRC")" yes
is 'what the nodes did is theirs' "$(judge "$PAGE" nodes "$CLUSTER/cluster_nodes.csv")" same
is 'where the bytes came from is theirs' "$(judge "$PAGE" from "$CLUSTER/cluster_nodes.csv")" same
is 'the intervals are all there' \
	"$(judge "$PAGE" table when from \
		"0 $(sed -n 2p "$CLUSTER/cluster_telemetry.csv" | cut -d, -f2)" | wc -l)" \
	"$(grep -c '^0,' "$CLUSTER/cluster_telemetry.csv")"
phases=$(head -n 1 "$CLUSTER/cluster_nodes.csv" | tr , '\n' | sed -n 's/^phase_\(.*\)_s$/\1/p')
# shellcheck disable=SC2086
is 'the phases of the start too' "$(judge "$PAGE" table start node $phases | wc -l)" 3
is 'only what was not asked for is missing from the page' "$(judge "$PAGE" missing)" 'environment before'
is 'the page says how to get what is missing' "$(judge "$PAGE" says "copper paths $JOB compares")" yes

# ---- what is used of the environment, and the run before

"$COPPER" paths "$JOB" --usage-root "$SRC" >/dev/null 2>&1 || bail 'copper paths fails'
fails_with 1 'exists: --force replaces it, -o FILE names another' "$COPPER" report "$JOB"
ok '--force replaces it' "$COPPER" report "$JOB" --force --store "$STORE"
is 'the environment is there now' "$(judge "$PAGE" missing)" before
matches 'the page says how much of the environment was used' \
	"$(judge "$PAGE" says 'The job used 5 of 5 paths (100 %) of its environment')" yes
FIRST=$JOB
with_tree 3 -P --store "$STORE" --chunk 128K
read_everything 0
ok 'a second job ends' without_tree
ok 'the page of the second job is written' \
	env COPPER_STORE="$STORE" "$COPPER" report "$JOB" -o "$T/second.html"
is 'compares it with the first' \
	"$(judge "$T/second.html" says \
		"$(sed -n 's/^run  *\(........\).*/\1/p' \
			<("$COPPER" runs show last~1 --store "$STORE"))")" yes
matches 'the comparison shows the option that differs' \
	"$(judge "$T/second.html" table before option before 'this run')" $'^chunk\t-\t131072'
is 'without -N and -A it says what is missing' \
	"$(judge "$T/second.html" missing)" 'paths environment'
is 'on standard output it is the same' \
	"$(COPPER_STORE=$STORE "$COPPER" report "$JOB" -o - | cmp - "$T/second.html" 2>&1)" ''

# ---- what cannot be

mkdir "$T/empty"
fails_with 1 'has nothing that a report could show.*profiling/cluster.*copper mount -d' \
	"$COPPER" report "$T/empty"
fails_with 1 'No such file' "$COPPER" report "$T/nowhere"
fails_with 1 'is a directory: name a file with -o' "$COPPER" report "$FIRST" -o "$T" --force
fails_with 2 'JOBDIR' "$COPPER" report
if [ "$(id -u)" -eq 0 ] && mkdir "$T/full" && mount -t tmpfs -o size=64k tmpfs "$T/full"; then
	head -c 40000 /dev/zero >"$T/full/fill"
	fails_with 1 'cannot write .*No space left.*-o FILE names another place' \
		"$COPPER" report "$FIRST" -o "$T/full/page.html"
	is 'on a full disk nothing is left' "$(ls -A "$T/full")" fill
	umount "$T/full"
else
	pass 'a full disk # SKIP needs root'
	pass 'what is left there # SKIP needs root'
fi

# ---- ten thousand nodes

"$PYTHON" "$cop_t/make-telemetry.py" "$T/many" 10000
ok 'a job of 10,000 nodes has a page' "$COPPER" report "$T/many" -o "$T/many.html"
is_at_most 'below 5 MB' "$(stat -c %s "$T/many.html")" 5000000
is_page '10,000 nodes' "$T/many.html"
is 'the tree has the statistics first' "$(judge "$T/many.html" table tree node 'read by programs' |
		cut -f1 | head -n 3 | tr '\n' ' ')" 'minimum median maximum '
is 'the tree has the outliers by name' \
	"$(judge "$T/many.html" table tree node | grep -c '^13 x0001c0s0b5$')" 1
is 'the tree is drawn, down to them' \
	"$(grep -cE '<title>(storage → 0: 953.7 MiB|0 → 1: -|1 → 13: 953.7 MiB)</title>' \
		"$T/many.html")" 3
is 'an event with markup is text' "$(judge "$T/many.html" says 'rank 1 <b>not markup</b>')" yes

# ---- Copper 1.0

cp -r "$cop_root/testdata/jobs/aggregate-v1/job" "$T/old"
ok 'a job of Copper 1.0 has a page' "$COPPER" report "$T/old"
is 'the page of a job of Copper 1.0 has its sums' \
	"$(judge "$T/old/report.html" operations \
		"$cop_root/testdata/jobs/aggregate-v1/expected/cluster-profiling_operations.csv")" \
	same
is 'an old job has its paths' \
	"$(judge "$T/old/report.html" missing | tr ' ' '\n' | grep -c '^paths$')" 0
