#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# --observe: the kernel caches nothing, so everything that a program does is seen each time; and all
# results are right.
# covers: fuse profile
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

stats() {
	"$PYTHON" "$cop_t/t05_stats.py" "$@"
}

SRC=$T/src
small_tree "$SRC"
mkdir -p "$SRC/many"
for i in $(seq 1 50); do
	echo "$i" >"$SRC/many/file$i"
done
cp /bin/true "$SRC/true"
with_tree 2 --observe -P --enoent-ttl-ms 600000
mnt=$W/mnt/1

# 50 stats, 20 opens with a read to the end, 10 absent names, 5 lists, 3 links: always the same.
program() {
	"$PYTHON" - "$mnt" <<'PY'
import os, sys
top = sys.argv[1]
for i in range(1, 51):
    assert os.stat(f"{top}/many/file{i}").st_size == len(str(i)) + 1
for i in range(1, 21):
    fd = os.open(f"{top}/many/file{i}", os.O_RDONLY)
    assert os.read(fd, 100) == b"%d\n" % i
    assert os.read(fd, 100) == b""
    os.close(fd)
for i in range(10):
    assert not os.path.exists(f"{top}/many/absent{i}")
for _ in range(5):
    assert len(os.listdir(f"{top}/many")) == 50
for _ in range(3):
    assert os.readlink(f"{top}/link") == "dir/numbers"
PY
}
run() { # NUMBER
	node_json 1 >"$T/before.$1"
	program >"$T/cmd.out" 2>&1 || note "$(cat "$T/cmd.out")"
	node_json 1 >"$T/after.$1"
	stats names "$T/before.$1" "$T/after.$1"
}
grew() { # NUMBER KEY
	stats delta "$2" "$T/before.$1" "$T/after.$1"
}
cold=$(run 0)
first=$(run 1)
note "cold: $cold"
note "then: $first"
is 'a second warm run asks as much as the first' "$(run 2)" "$first"
is 'a third warm run asks as much as the first' "$(run 3)" "$first"
is 'every open is seen' "$(grew 2 fuse.open)" 20
is 'every list is seen' "$(grew 2 fuse.opendir)" 5
is 'every link is seen' "$(grew 2 fuse.readlink)" 3
is 'every absent name is seen' "$(grew 2 fuse.negative)" 10
is_at_most 'every look at a file is seen' \
	$((50 + 20 + 10)) "$(($(grew 2 fuse.lookup) + $(grew 2 fuse.getattr)))"
is_at_most 'the reads of every open are seen' 20 "$(grew 2 fuse.read)"
is 'what the kernel does not keep the node does: the source is asked nothing' \
	"$(stats delta origin.operations <(node_json 0) <(program; node_json 0))" 0
ok 'the tree is the same' diff -r --no-dereference "$SRC" "$mnt"
is 'the tree is the same when it is read again' "$(checksums "$mnt" | cmp - <(checksums "$SRC") 2>&1)" ''
ok 'a program is executed' "$mnt/true"
ok 'a private map reads' "$PYTHON" -c '
import mmap, sys
with open(sys.argv[1], "rb") as want, open(sys.argv[2], "rb") as f:
    m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    assert m[:] == want.read()' "$SRC/dir/deeper/random" "$mnt/dir/deeper/random"
# Reads that bypass the kernel's pages, together with shared maps, only work if libfuse and the
# kernel can be told so.
matches 'a shared map reads, or is refused' \
	"$("$PYTHON" "$cop_t/contract.py" shared_map "$SRC/dir/numbers" "$mnt/dir/numbers" 2>&1 |
		tail -n 1)" '^$|Errno 19'
ok 'the tree stops' without_tree
unclassified() { # OPERATION: of node 1, what is neither hit nor miss nor absent, out of how many
	awk -F , -v op="$1" '$1 == op { print $2 - $3 - $4 - $5 " of " ($2 > 200 ? "many" : $2) }' \
		"$JOB"/profiling/final/127.0.0.12-*-profiling_operations.csv
}
is 'each getattr is a hit or a miss' "$(unclassified getattr)" '0 of many'
is 'each lookup is a hit or a miss, or its name is absent' "$(unclassified lookup)" '0 of many'
matches 'the summary says that every use counts' \
	"$(cat "$JOB"/profiling/final/127.0.0.12-*-profiling_summary.md)" \
	'`--observe`.*counts.* count every use\.$'
