#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that use the source's own path, past the mount, are found and told; those in a view of
# copper run, of other users, and what a job writes are not.
# covers: bypass firsttouch
# modes: release asan
# user: yes
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 24

SRC=$T/src
numbered_files "$SRC/lib" 3 12000000
numbered_files "$SRC/view" 4 12000000
numbered_files "$SRC/few" 5 1000
mkdir "$SRC/out"
chmod -R a+rX "$SRC"
chmod 777 "$SRC/out"
become_user

# A program that has every file of a directory open, the first one mapped, and one that it writes.
cat >"$T/use.py" <<'PY'
import mmap, os, sys, time
source, which, ready, end = sys.argv[1:]
files = [open(os.path.join(source, which, name), "rb") for name in sorted(os.listdir(os.path.join(source, which)))]
mapped = mmap.mmap(files[0].fileno(), 0, prot=mmap.PROT_READ)
files[0].close()
mapped[0], [f.read(1) for f in files[1:]]
try:
    out = open(os.path.join(source, "out", which), "wb")
    out.truncate(50000000)
except OSError:
    pass  # a view is read-only
open(ready, "w").close()
while not os.path.exists(end):
    time.sleep(0.05)
PY
chmod 755 "$T/use.py"
mkdir -m 777 "$T/ready"
pids=()
has_begun() { # PID NAME; or will not
	[ -e "$T/ready/$2" ] || ! kill -0 "$1"
}
use() { # HOW… -- DIR NAME: starts it, and returns when it has the files
	local how=()
	while [ "$1" != -- ]; do
		how+=("$1")
		shift
	done
	"${how[@]}" "$PYTHON" "$T/use.py" "$SRC" "$2" "$T/ready/$3" "$T/end" >"$T/out.$3" 2>&1 &
	pids+=($!)
	wait_for 60 has_begun "$!" "$3"
	[ -e "$T/ready/$3" ] || bail "$3: $(cat "$T/out.$3")"
}
end_all() {
	touch "$T/end"
	wait "${pids[@]}"
	pids=()
	rm -f "$T/end" "$T"/ready/*
}
past() { # RANK: files, bytes, programs
	echo "$(node_stat "$1" past.files) $(node_stat "$1" past.bytes) $(node_stat "$1" \
			past.programs)"
}
has_past() { # RANK
	[ "$(node_stat "$1" past.files)" -gt 0 ]
}
notes() {
	grep '^copper: note: ' "$W/out.stop"
}
warnings() {
	echo "$JOB/profiling/cluster/cluster_warnings.csv"
}

# ---- one past the mount, others not

with_tree 2 -N 20
for view in overlay bind; do
	use as_user "$COPPER" run --mount "$W/mnt/0" --view "$view" -- view "$view"
done
use as_user "$COPPER" run --mount "$W/mnt/0" --direct "$SRC/view" -- view direct
if [ -n "$cop_user" ]; then
	use env -- view other
fi
use as_user env -- lib past
ok 'what a program has open and mapped past the mount is found while it runs' wait_for 90 has_past 0
ok 'each node finds it' wait_for 90 has_past 1
is 'each node counts one program, its files and sizes, and no file in views, of other users, or written' "$(past 0)" '3 36000000 1'
is 'on the other node too' "$(past 1)" '3 36000000 1'
as_user "$COPPER" cache-stats --all "$W/mnt/0" >"$T/all" 2>&1
matches 'the sums of the job have it while it runs' "$(tr -d '\n' <"$T/all")" \
	'"past": *\{ *"files": *6, *"bytes": *72000000, *"programs": *2, *"beyond": *0'
end_all
ok 'the tree stops' without_tree
is 'stop prints the warning about programs past the mount' "$(notes)" \
	"copper: note: 2 programs used 6 files (68.7 MiB) of the source at its own path, past the mount, where Copper cannot help, the first $SRC/lib/file00000; start them with copper run -- COMMAND, or give them paths below the mount point"
matches 'the file of warnings has it' \
	"$(tail -n +2 "$(warnings)")" '^past,10[0-9],"2 programs used 6 files .*",copper run$'
matches 'the summary has the warning' \
	"$(sed -n '/^## Warnings/,/^## [^W]/p' \
		"$JOB/profiling/cluster/cluster-profiling_summary.md")" 'past the mount'
matches 'the log of a node says which program it was' \
	"$(cat "$JOB"/logs/*.log "$JOB"/logs/*/*.log 2>/dev/null)" \
	"a program uses files of the source past the mount pid=[0-9]+ file=\"$SRC/lib/file00000\""

# ---- a job that was stopped while it ran, and soon

with_tree 1
use as_user env -- lib soon
ok 'a tree stops while a program runs' without_tree
matches 'the last look finds the program' \
	"$(notes)" '^copper: note: 1 program used 3 files \(34\.3 MiB\) of the source'
end_all

# ---- by the job directory, and with a dead root

with_tree 2
use as_user env -- lib alone
use as_user env -- view both
kill_node 0
as_user "$COPPER" stop -d "$JOB" >"$W/out.stop" 2>&1
cop_tree=0
unmount_killed
matches 'stop -d says it too, of the nodes that are left' "$(notes)" ': 2 programs used 7 files'
end_all

# ---- jobs that go well

with_tree 1 -P
use as_user env -- few few
ok 'few and small files are counted' wait_for 90 has_past 0
is 'exactly' "$(past 0)" '5 5000 1'
end_all
ok 'the tree stops' without_tree
is 'a job without such a program has no warning' "$(notes)$(tail -n +2 "$(warnings)")" ''

with_tree 1 -P
as_user find "$W/mnt/0/lib" "$W/mnt/0/view" -type f -exec cat {} + >/dev/null
for view in overlay bind; do
	use as_user "$COPPER" run --mount "$W/mnt/0" --view "$view" -- view "$view"
done
ok 'a job in views stops while it runs' without_tree
is 'a job in views has no warning' "$(notes)$(tail -n +2 "$(warnings)")" ''
end_all

# ---- the system itself

# Every program of this user that starts now is past the mount.
own=$SRC
SRC=/usr
with_tree 1 -P
SRC=$own
use as_user env -- lib system
ok 'a job with the system as its source stops while programs run' without_tree
is 'programs of the system are not past the mount' "$(notes)$(tail -n +2 "$(warnings)")" ''
end_all

# ---- what may be expected of many looks

with_tree 1 -P
pid=$(node_stat 0 pid)
is 'a thread of its own looks' "$(cat "/proc/$pid/task/"*/comm | grep -c '^cop-bypass$')" 1
ok 'the thread ends with the node' without_tree
ok 'the node with the thread is gone' wait_for 20 is_gone "$pid"
