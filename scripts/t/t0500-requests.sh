#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the kernel asks the node, and the node its parent: counts, never times.
# covers: fuse fetch stats
# modes: release shared
# limit: 100
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 31

stats() {
	"$PYTHON" "$cop_t/t05_stats.py" "$@"
}

# Counts the requests of a command on a node; its output goes to $T/cmd.out. Sets NAMES (by opcode)
# and REQUESTS.
requests_of() { # RANK COMMAND…
	local rank=$1
	shift
	node_json "$rank" >"$T/before"
	"$@" >"$T/cmd.out" 2>"$T/cmd.err"
	node_json "$rank" >"$T/after"
	REQUESTS=$(stats requests "$T/before" "$T/after")
	NAMES=$(stats names "$T/before" "$T/after")
}

# Runs the python below that prefix, as a job would start it from the mount.
run_python() { # PREFIX CODE
	local lib
	lib=$1/lib/$(uname -m)-linux-gnu
	env -i COP_TEST_DIR="$T" HOME="$T" PATH="$1/bin:/usr/bin:/bin" PYTHONHOME="$1" \
		PYTHONDONTWRITEBYTECODE=1 \
		LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack:$1/lib" python3 -c "$2"
}

# ---- a second import asks nothing that the kernel can answer

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
	module=numpy
else
	module=json
fi
SRC=/usr
with_tree 1 --enoent-ttl-ms 600000
mnt=$W/mnt/0
code="import $module; print($module.__file__)"
is 'the first open and opendir reach the node' \
	"$(cat "$mnt/bin/env" >/dev/null; ls "$mnt/bin" >/dev/null; node_stat 0 \
		fuse.open) $(node_stat 0 fuse.opendir)" '1 1'
requests_of 0 run_python "$mnt" "$code"
matches "python imports $module from the mount" "$(cat "$T/cmd.out")" "^$mnt/"
note "cold: $NAMES"
again() { # COMMAND…: its requests on node 0
	requests_of 0 "$@"
	echo "$NAMES" >"$T/names"
	echo "$REQUESTS"
}
requests=$(least 10 again run_python "$mnt" "$code")
matches "python imports $module again" "$(cat "$T/cmd.out")" "^$mnt/"
is_at_most 'the second import makes at most 10 requests other than IOCTL' "$requests" 10
note "warm: $(cat "$T/names"), and $(stats delta fuse.ioctl "$T/before" "$T/after") ioctl"
is 'no file and no directory was opened at the node since' \
	"$(node_stat 0 fuse.open) $(node_stat 0 fuse.opendir)" '1 1'
is 'no file and no directory was released at the node' \
	"$(node_stat 0 fuse.release) $(node_stat 0 fuse.releasedir)" '0 0'

ls "$mnt/share" >/dev/null
requests=$(least 1 again "$PYTHON" -c '
import os, sys
missing = 0
for _ in range(1000):
    try:
        os.stat(sys.argv[1])
    except FileNotFoundError:
        missing += 1
print(missing)' "$mnt/share/there-is-no-such-name")
is 'an absent name is absent 1,000 times' "$(cat "$T/cmd.out")" 1000
is_at_most 'that is at most one request' "$requests" 1

look_for() { # DIRECTORY NAMES: prints how many of them are absent
	"$PYTHON" -c '
import os, sys
absent = 0
for i in range(int(sys.argv[2])):
    try:
        os.stat(f"{sys.argv[1]}/there-is-no-such-name-{i}")
    except FileNotFoundError:
        absent += 1
print(absent)' "$@"
}
is '5,000 names are absent in the mount point' "$(look_for "$mnt" 5000)" 5000
requests=$(least 1 again look_for "$mnt" 5000)
is 'they are absent again' "$(cat "$T/cmd.out")" 5000
is_at_most 'that is at most one request' "$requests" 1
ok 'the tree stops' without_tree

# ---- a second walk over 20,000 files (6,000 in the release build) asks nothing

small=24 large=2
[ "$cop_mode" != release ] || small=4 large=1
files=$((500 * small + 4000 * large))

SRC=$T/many
"$PYTHON" - "$SRC" "$small" "$large" <<'PY'
import os, sys
for size, directories in (500, int(sys.argv[2])), (4000, int(sys.argv[3])):
    for d in range(directories):
        path = os.path.join(sys.argv[1], f"of{size}", f"dir{d}")
        os.makedirs(path)
        for i in range(size):
            os.close(os.open(os.path.join(path, f"file{i}"), os.O_CREAT | os.O_WRONLY, 0o644))
PY
with_tree 1 --enoent-ttl-ms 600000
mnt=$W/mnt/0
requests_of 0 find "$mnt" -type f -printf '%p %s %T@\n'
is "the first walk finds $files files" "$(wc -l <"$T/cmd.out")" "$files"
note "first walk: $NAMES"
# find itself calls statfs, which no kernel caches.
requests=$(least 1 again find "$mnt" -type f -printf '%p %s %T@\n')
is "the second walk finds $files files" "$(wc -l <"$T/cmd.out")" "$files"
matches 'the second walk asks the node for no name, attribute or list' \
	"$requests: $(cat "$T/names")" '^(0: nothing|1: statfs=1)$'
ok 'the tree stops' without_tree

# ---- what a leaf asks its parent for

SRC=$T/leaf
"$PYTHON" - "$SRC" <<'PY'
import os, random, sys
for d in range(30):
    path = os.path.join(sys.argv[1], f"top{d % 5}", f"dir{d}")
    os.makedirs(path)
    for i in range(40):
        with open(os.path.join(path, f"file{i}"), "wb") as f:
            f.write(random.Random(d * 100 + i).randbytes(1 + i * 1000))
PY
directories=$(find "$SRC" -type d | wc -l)
files=$(find "$SRC" -type f | wc -l)
checksums "$SRC" >"$T/want"
# Besides listings and chunks: attributes of the root.
constant=2
with_tree 3 --fanout 1
for rank in 0 1 2; do
	node_json "$rank" >"$T/start.$rank"
done
checksums "$W/mnt/2" >"$T/got"
is 'a leaf reads a whole tree right' "$(cmp "$T/want" "$T/got" 2>&1)" ''
for rank in 0 1 2; do
	node_json "$rank" >"$T/end.$rank"
	note "node $rank: sent $(stats delta fabric.requests_sent "$T/start.$rank" \
			"$T/end.$rank")," \
		"served $(stats delta fabric.requests_served "$T/start.$rank" "$T/end.$rank")"
done
note "$directories directories, $files files"
for rank in 2 1; do
	is_at_most "node $rank asked for each directory and each file once" \
		"$(stats delta fabric.requests_sent "$T/start.$rank" "$T/end.$rank")" \
		$((directories + files + constant))
done
is_at_most 'the root asked nobody for them' \
	"$(stats delta fabric.requests_sent "$T/start.0" "$T/end.0")" $constant
is 'the root listed each directory once' \
	"$(stats delta origin.lists "$T/start.0" "$T/end.0")" "$directories"
is_at_most 'the root read each file once' \
	"$(stats delta origin.reads "$T/start.0" "$T/end.0")" "$files"
ok 'the tree stops' without_tree

# ---- a source with pseudo file systems, the mount point inside

SRC=/
with_tree 1
mnt=$W/mnt/0
before=$(node_stat 0 fuse.open)
for _ in 1 2 3; do
	cat "$mnt/etc/passwd" >/dev/null
done
is 'OPENs are delivered' "$(($(node_stat 0 fuse.open) - before))" 3
is 'ls of / shows the same names' "$(timeout "$(patient 20)" ls -A "$mnt" 2>&1)" "$(ls -A /)"
# Directories of other programs under /tmp may hold mounts that hang on purpose; processes come and
# go.
timeout "$(patient 30)" find "$mnt" -xdev -maxdepth 3 \( -path "$mnt/tmp/*" ! -path "$mnt$T" -o \
	-path "$mnt/proc/[0-9]*" \) -prune -o -print \
	>"$T/found" 2>"$T/found.err"
status=$?
note "find says: $(sed "s|$mnt||g" "$T/found.err" | head -n 5)"
is 'find -xdev -maxdepth 3 over it ends' \
	"$((status == 124)) $(grep -vc 'No such file' "$T/found.err")" '0 0'
self() { # PREFIX: the process that reads, and what it reads of itself
	timeout "$(patient 10)" "$PYTHON" -c '
import os, sys
for name in "self", "thread-self":
    with open(f"{sys.argv[1]}/proc/{name}/stat") as f:
        print(int(f.read().split()[0]) == os.getpid())
with open(f"{sys.argv[1]}/proc/meminfo") as f:
    print(f.read().splitlines()[0].split()[:2])' "$1" 2>&1
}
is '/proc/self and /proc/meminfo are those of the asker' "$(self "$mnt")" "$(self '')"
is '/proc/self is that of the next process that asks' "$(self "$mnt")" "$(self '')"
is 'a file of /sys is read' \
	"$(timeout "$(patient 10)" cat "$mnt/sys/kernel/mm/transparent_hugepage/enabled" \
		"$mnt/sys/devices/system/cpu/online" 2>&1)" \
	"$(cat /sys/kernel/mm/transparent_hugepage/enabled /sys/devices/system/cpu/online 2>&1)"
is 'the nodes in /dev are listed' \
	"$(cd "$mnt/dev" && timeout "$(patient 10)" stat -c '%n %F %t:%T' null zero fuse \
		random 2>&1)" \
	"$(cd /dev && stat -c '%n %F %t:%T' null zero fuse random)"
is 'seen from inside the mount is an empty directory' \
	"$(timeout "$(patient 10)" ls -A "$mnt$mnt" 2>&1; timeout "$(patient 10)" stat -c %F \
		"$mnt$mnt" 2>&1)" directory
