#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# After a job, stop says in words what went badly: each kind of warning where it applies, and none
# for a job that went well.
# covers: advice rank
# limit: 240
# takes: 30
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 58

notes() { # what stop said besides its result
	grep '^copper: note: ' "$W/out.stop"
}
warnings() {
	echo "$JOB/profiling/cluster/cluster_warnings.csv"
}
codes() { # the kinds that were found
	awk -F, 'NR > 1 { printf "%s%s", sep, $1; sep = " " }' "$(warnings)"
}
section() { # the warnings of a summary
	sed -n '/^## Warnings/,/^## [^W]/p' "$1"
}
# Reads one page of each file, as a program that looks at its head.
heads() { # DIR
	"$PYTHON" -c '
import os, sys
for name in sorted(os.listdir(sys.argv[1])):
    fd = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(fd, 4096, 0)
    os.close(fd)' "$1"
}
drop_pages() { # DIR: the kernel asks again for what is read there
	"$PYTHON" -c '
import os, sys
for name in os.listdir(sys.argv[1]):
    fd = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)' "$1"
}
all_of() { # DIR [AT ONCE]
	find "$1" -type f -print0 | xargs -0 -n 4 -P "${2:-1}" cat | wc -c
}

# ---- jobs that go well

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
	module=numpy
else
	module=json
fi
import() { # RANK: from the mount, what the system's Python would import
	local m=$W/mnt/$1 lib
	lib=$(dirname "$(ldconfig -p | awk '$1 == "libc.so.6" { print $NF; exit }')")
	lib=$m/${lib#/usr/}
	PYTHONHOME=$m PYTHONPATH=$m/lib/python3/dist-packages \
		LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack" \
		"$PYTHON" -c "import $module; print($module.__file__)" >"$T/import.$1" 2>&1
}
SRC=/usr
for n in 1 4; do
	with_tree "$n" -N 20
	pids=()
	for ((i = 0; i < n; i++)); do
		import "$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	matches "$n of $n nodes import $module" \
		"$(cat "$T/import.$((n - 1))")" "^$W/mnt/$((n - 1))/"
	ok 'the job stops' without_tree
	is 'the stop of a job that went well says nothing more' "$(cat "$W/out.stop")" "stopped $n/$n nodes"
	is 'the file of warnings of a healthy job has none' \
		"$(cat "$(warnings)")" 'code,weight,sentence,option'
	is 'the summary of a healthy job has no warning' \
		"$(grep -l '## Warnings' "$JOB"/profiling/*/*summary.md)" ''
done

# ---- four kinds at once: files beyond -M, a change, heads of files, absent names

SRC=$T/src
numbered_files "$SRC/heads" 20 4000000
mkdir "$SRC/asked" "$SRC/other"
mkdir "$SRC/asked"/{1..100}
head -c 20000000 /dev/urandom >"$SRC/beyond"
echo old >"$SRC/changes"
head -c 24000000 /dev/urandom >"$SRC/other/all"
numbered_files "$SRC/many" 160 3000

absent() { # MOUNT: many names, in many directories
	"$PYTHON" -c '
import os, sys
for i in range(3000):
    os.path.exists("%s/asked/%d/name%d" % (sys.argv[1], i % 100 + 1, i))' "$1"
}
change() { # MOUNT: a file whose name is known
	stat "$1/changes" >/dev/null
	echo another >"$SRC/changes"
	cat "$1/changes" >/dev/null 2>&1
	echo old >"$SRC/changes"
}
with_tree 1 -A -N 20 -M 8M -E 1
mnt=$W/mnt/0
cat "$mnt/beyond" >/dev/null
heads "$mnt/heads"
absent "$mnt"
change "$mnt"
ok 'a job in which much went badly stops as any other' without_tree
is 'the file has all warnings, the most important first' "$(codes)" 'changed bypass unused absences'
is 'three notes are said' "$(notes | wc -l)" 3
matches 'a note says which file changed' "$(notes | sed -n 1p)" \
	'files changed .*: [0-9]+ reads? found another version, the first in changes, '
matches 'what was read past the tree, and where' "$(notes | sed -n 2p)" \
	'programs read [0-9.]+ MiB .* past the tree, .* the first from beyond; .*--max-cacheable-bytes'
matches 'what was read ahead for nobody' "$(notes | sed -n 3p)" \
	'MiB .* of the bytes that were fetched were read ahead and never used, .* smaller --chunk'
matches 'the fourth is in the file' "$(tail -n 1 "$(warnings)")" \
	'^absences,2[0-9],"programs asked for absent names so often that [0-9]+ were checked again, .*",--enoent-ttl-ms$'
is 'a program can read the file' "$("$PYTHON" -c '
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
print(all(r["sentence"] and r["option"] for r in rows), sorted(rows, key=lambda r: -int(r["weight"])) == rows)' "$(warnings)")" 'True True'
is 'all are in the summary of the job' \
	"$(section "$JOB/profiling/cluster/cluster-profiling_summary.md" | grep -c '^- ')" 4
before=$(section "$JOB/profiling/cluster/cluster-profiling_summary.md")
"$COPPER" aggregate "$JOB" >/dev/null 2>&1
is 'all warnings are in a summary that is written again' \
	"$? $(section "$JOB/profiling/cluster/cluster-profiling_summary.md")" "0 $before"
cp "$(warnings)" "$T/kept.csv"
printf 'code,weight,sentence,option\nx,1,"a line\n## Another",-x\ny,2,"cut' >"$(warnings)"
"$COPPER" aggregate "$JOB" again >/dev/null 2>&1
is 'what stands in that file stays in its line' \
	"$? $(section "$JOB/profiling/cluster/again-profiling_summary.md" |
		grep -e '^- ' -e Another)" '0 - a line ## Another'
mv "$T/kept.csv" "$(warnings)"
is 'what stands there stays in the line of the summary of the node' \
	"$(section "$JOB"/profiling/final/*summary.md | grep -c '^- ')" 4
is 'what stands there stays in the line of the log' \
	"$(cat "$JOB"/logs/*/*.log "$JOB"/logs/*.log 2>/dev/null |
		grep -c 'note: \(files changed\|programs read\|programs asked\|[0-9.]* MiB\)')" 4

# ---- a node that is stopped alone says it itself, and one that is ended by a signal in its log

with_tree 3 -M 8M -T 1
cat "$W/mnt/1/beyond" >/dev/null
"$COPPER" stop --local "$W/mnt/1" >"$W/out.stop" 2>&1
is 'a node can be stopped alone' "$? $(head -n 1 "$W/out.stop")" '0 stopped 1/1 nodes'
matches 'the node that stops says what went badly there' \
	"$(notes)" '^copper: note: programs read [0-9.]+ MiB \(100 % of all\) past the tree'
cat "$W/mnt/2/beyond" >/dev/null
pid=$(node_stat 2 pid)
is_ours "$pid" && kill "$pid"
wait_for 20 is_gone "$pid"
matches 'a node that gets a signal logs it' \
	"$(cat "$JOB"/logs/*/*.log "$JOB"/logs/*.log 2>/dev/null | grep -c 'note: programs read')" 2
"$COPPER" stop "$W/mnt/0" >"$W/out.stop" 2>&1
cop_tree=0
is 'the other nodes print no notes' "$(notes)" ''

# ---- by the job directory, and without a profile

with_tree 2 -M 8M -T 1
cat "$W/mnt/1/beyond" >/dev/null
"$COPPER" stop -d "$JOB" >"$W/out.stop" 2>&1
is 'stop -d ends as ever' "$? $(head -n 1 "$W/out.stop")" '0 stopped 2/2 nodes'
cop_tree=0
matches 'stop -d says what went badly' "$(notes)" 'past the tree'
ok 'without a profile there is no file of it' test ! -e "$(warnings)"

# ---- a cache that is too small

read_again_and_again() {
	local i
	for i in 1 2 0 1 2; do
		all_of "$W/mnt/$i/heads" >"$T/.out"
		drop_pages "$W/mnt/$i/heads"
	done
}
with_tree 3 --cache-size 16M -P -T 1
read_again_and_again
ok 'a job with too small a cache stops' without_tree
is 'the warning is about the cache' "$(codes)" cache
matches 'with the size that is enough' "$(notes)" \
	'the data was (1\.[4-9]|2\.0) times the memory of all nodes \([0-9.]+ MiB, and their caches hold 48\.0 MiB\): [0-9]+ objects \([0-9.]+ MiB\) were dropped and then fetched again; --cache-size (80|96|112)M would have held all that any node needed, (32|48)M all data once'

with_tree 3 --cache-size "$(notes | sed 's/.*--cache-size \([0-9]*M\) .*/\1/')" -P -T 1
read_again_and_again
ok 'a job with that size stops' without_tree
is 'the job with that size has nothing to say' "$(codes)$(notes)" ''

# ---- a dead parent

with_tree 3 -P -T 1
all_of "$W/mnt/1/other" >"$T/.out"
kill_node 0
is 'the files are there though the root is dead' "$(all_of "$W/mnt/1/many" 8)" 480000
ok 'the nodes that are left stop' without_tree
is 'the warning is that nodes read the storage themselves' "$(codes)" fallback
matches 'the job says that nodes read the storage themselves' "$(notes)" \
	'1 of 3 nodes asked the storage themselves [0-9]+ times because no node above them answered; .*--peer-timeout'

with_tree 2 -T 1
ok 'a job with a manifest reads other files' test -e "$W/mnt/1/many"
kill_node 0
all_of "$W/mnt/1/many" 8 >"$T/.out"
"$COPPER" stop -d "$JOB" >"$W/out.stop" 2>&1
cop_tree=0
unmount_killed
matches 'stop -d says it too, with a dead root' \
	"$(notes)" '1 of 2 nodes asked the storage themselves [0-9]+ times'

# ---- manifests of other jobs

# What the kernel got ahead, programs may have used unseen, so these keep it out.
unseen=(--kernel-ahead off)
prefetched() {
	[ "$(node_stat "${1:-0}" prefetching.state)" = 'done' ]
}
with_tree 1 --prefetch auto
all_of "$W/mnt/0/heads" >"$T/.out"
ok 'a job leaves a manifest' without_tree
with_tree 1 --prefetch auto -P "${unseen[@]}"
wait_for 60 prefetched 0
ok 'a job in which no program runs stops' without_tree
is 'the warning is about the prefetch' "$(codes)" manifest
matches 'it says that no program read anything, and not to use --prefetch auto' "$(notes)" \
	'^copper: note: [0-9.]+ MiB were prefetched but never used: no program read anything .* nothing was recorded [^-]*copper run -- COMMAND$'
find "$T" -maxdepth 1 -name '.*manifest*' -exec mv {} "$T/large" \;
with_tree 2 --prefetch "$T/large" -P -T 1 --cache-size 512M "${unseen[@]}"
wait_for 60 prefetched 0
wait_for 60 prefetched 1
all_of "$W/mnt/1/many" 8 >"$T/.out"
ok 'the job with the manifest of another stops' without_tree
is 'the warning is that the manifest was of no use' "$(codes)" manifest
matches 'a note says how much was of no use' "$(notes)" \
	'MiB \([0-9]+ %\) of the bytes that were fetched were never used, most of them prefetched; .*copper paths --manifest'
with_tree 1 --prefetch auto
all_of "$W/mnt/0/many" 8 >"$T/.out"
ok 'a small job leaves one' without_tree
find "$T" -maxdepth 1 -name '.*manifest*' -exec mv {} "$T/small" \;
with_tree 2 --prefetch "$T/small" -P -T 1 "${unseen[@]}"
wait_for 60 prefetched 1
all_of "$W/mnt/1/heads" >"$T/.out"
ok 'a job that needs more stops' without_tree
matches 'what was not in it is said' \
	"$(codes): $(notes)" 'manifest: .* MiB that programs used were not prefetched, '
with_tree 2 --prefetch "$T/large" -P -T 1 --cache-size 512M
wait_for 60 prefetched 1
all_of "$W/mnt/1/heads" >"$T/.out"
ok 'the job that it is of stops' without_tree
is 'the job of the other manifest has nothing to say' "$(codes)$(notes)" ''

# ---- a slow storage, on a node alone and beside a fast tree

with_slowfs --meta-us 20000 --read-us 20000 --cache-s 3600
with_tree 1 -P
all_of "$W/mnt/0/many" 32 >"$T/.out"
ok 'a node alone on a storage of 20 ms stops' without_tree
is 'the warning is that the storage is slow' "$(codes)" storage
matches 'it says how slow, and what that costs' "$(notes)" \
	'the storage is slow: [0-9.]+ ms for each of [0-9]+ operations, [0-9.]+ s for a program that waits for one after another; with --prefetch auto'
without_slowfs
with_slowfs --meta-us 100000 --read-us 100000 --cache-s 3600
with_tree 3 -P -T 1 -k 2
all_of "$W/mnt/1/many" 32 >"$T/.out"
all_of "$W/mnt/2/many" 4 >"$T/.out"
ok 'a job on a slow storage stops' without_tree
matches 'that it was slow is said' "$(codes): $(notes)" \
	'storage: .*the storage is slow: [0-9.]+ ms for each of [0-9]+ operations, where another node answers in [0-9.]+ ms, [0-9.]+ s for a program .*; with --prefetch auto'
