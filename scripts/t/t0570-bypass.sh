#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# With -M larger files bypass the tree: each node reads them itself, one complete version, without
# delaying what goes through the tree.
# covers: fetch origin
# modes: release asan tsan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 30

limit=1048576
large=$((5 * limit + 77))

drop_pages() { # FILE
	"$PYTHON" -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$1"
}
# Reads the beginning, lets the command change the file, reads the rest, and prints the result.
read_around() { # FILE COMMAND...
	"$PYTHON" - "$@" <<'PY'
import errno, os, subprocess, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
first = os.pread(fd, 4096, 0)
subprocess.run(sys.argv[2:], check=True)
try:
    rest = os.pread(fd, 4096, 3 << 20)
    print("same" if rest[:1] == first[:1] else "mixed")
except OSError as e:
    print(errno.errorcode[e.errno])
PY
}
rewrite() { # BYTE FILE
	head -c "$large" /dev/zero | tr '\0' "$1" >"$2"
}
export -f rewrite
export large

SRC=$T/src
mkdir -p "$SRC/dir"
head -c "$large" /dev/urandom >"$SRC/dir/large"
head -c "$limit" /dev/urandom >"$SRC/dir/limit"
head -c $((limit + 1)) /dev/urandom >"$SRC/dir/beyond"
echo small >"$SRC/small"
truncate -s "$large" "$SRC/sparse"
printf end >>"$SRC/sparse"
for name in changes goes fails hangs; do
	rewrite a "$SRC/$name"
done
with_slowfs --direct-io
with_tree 3 -M 1M
mnt=$W/mnt/1

# ---- which node reads what

# By how much a counter of a node grows when it reads a file of which the kernel has nothing. The
# kernel may drop pages before they are used and ask for them again: the minimum of several rounds
# excludes that.
grows() { # RANK KEY FILE
	local before
	drop_pages "$3"
	before=$(node_stat "$1" "$2")
	cat "$3" >"$T/.read"
	echo $(($(node_stat "$1" "$2") - before))
}
ok 'a leaf reads a large file' cmp "$ORIGIN/dir/large" "$mnt/dir/large"
is 'the leaf reads all of it from the source' \
	"$(least "$large" grows 1 origin.bytes "$mnt/dir/large")" "$large"
is 'the leaf counts the bytes as bypassed' "$(least "$large" grows 1 fuse.bypass_bytes "$mnt/dir/large")" "$large"
is_at_most 'in reads that are counted' 1 "$(node_stat 1 fuse.bypass_reads)"
is 'the parent sent nothing of it' "$(node_stat 0 origin.bytes)" 0
is 'nothing of it stays in the table' "$(node_stat 1 tables.data.bytes)" 0
ok 'another leaf reads the large file, too' cmp "$ORIGIN/dir/large" "$W/mnt/2/dir/large"
is 'the other leaf reads it from the source' "$(least "$large" grows 2 origin.bytes "$W/mnt/2/dir/large")" "$large"
ok 'the root reads the large file, too' cmp "$ORIGIN/dir/large" "$W/mnt/0/dir/large"
again() {
	local before
	before=$(node_stat 1 fuse.bypass_bytes)
	cat "$mnt/dir/large" >"$T/.read"
	echo $(($(node_stat 1 fuse.bypass_bytes) - before))
}
is 'a second reader is given the pages of the kernel' "$(least 0 again)" 0

before=$(node_stat 1 origin.operations)
ok 'a file of just the limit' cmp "$ORIGIN/dir/limit" "$mnt/dir/limit"
ok 'a small file is read' cmp "$ORIGIN/small" "$mnt/small"
is 'files up to the limit come through the tree' "$(node_stat 1 origin.operations)" "$before"
ok 'a file of one byte more' cmp "$ORIGIN/dir/beyond" "$mnt/dir/beyond"
is 'a file of one byte more bypasses the tree' "$(least $((limit + 1)) grows 1 fuse.bypass_bytes "$mnt/dir/beyond")" $((limit + 1))
ok 'a sparse file has its holes and its end' cmp "$ORIGIN/sparse" "$mnt/sparse"
ok 'a large file can be mapped' "$PYTHON" -c '
import mmap, sys
with open(sys.argv[1], "rb") as a, open(sys.argv[2], "rb") as b:
    m = mmap.mmap(b.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    assert m[:] == a.read()' "$ORIGIN/dir/large" "$mnt/dir/large"
drop_pages "$mnt/dir/large"
for ((i = 0; i < 8; i++)); do
	cmp "$ORIGIN/dir/large" "$mnt/dir/large" >>"$T/cmp" 2>&1 &
	pids[i]=$!
done
wrong=0
for pid in "${pids[@]}"; do
	wait "$pid" || wrong=$((wrong + 1))
done
is 'eight readers at once have the right bytes' "$wrong" 0

# ---- files that change

is 'a reader of a file that changes meanwhile gets ESTALE' \
	"$(read_around "$mnt/changes" bash -c 'rewrite b "$1"' - "$ORIGIN/changes")" ESTALE
"$COPPER" cache-stats --invalidate "$mnt" changes >"$T/.out"
ok 'opened again it is the new one, whole' cmp "$ORIGIN/changes" "$mnt/changes"
is 'a reader of a file that is removed gets ESTALE' \
	"$(read_around "$mnt/goes" rm "$ORIGIN/goes")" ESTALE
is 'or one that gets shorter' \
	"$(read_around "$W/mnt/2/changes" truncate -s 2M "$ORIGIN/changes")" ESTALE

# ---- a source in trouble

# A directory is read again when a file in it turns out to be another one.
ls -l "$mnt" >/dev/null
slow_fault eio=/fails
matches 'an error of the source is an error' \
	"$(cat "$mnt/fails" 2>&1 >"$T/.out")" 'Input/output error'
is 'a failed file does not look empty' "$(stat -c %s "$mnt/fails")" "$large"
slow_fault clear
ok 'when it is over, the file is there' cmp "$ORIGIN/fails" "$mnt/fails"

slow_fault hang=/hangs
for ((i = 0; i < 20; i++)); do
	dd if="$mnt/hangs" of="$T/hangs.$i" bs=4k count=1 skip=$((i * 50)) status=none 2>>"$T/dd" &
	hung[i]=$!
done
wait_for 20 eval '[ "$(node_stat 1 waiting.origin_running)" -ge 8 ]'
is 'many reads hang' $? 0
ok 'other reads are answered while many hang' timeout "$(patient 10)" cat "$mnt/dir/beyond" "$mnt/small"
ok 'other names are listed while many reads hang' timeout "$(patient 10)" ls -l "$mnt/dir"
slow_fault clear
for pid in "${hung[@]}"; do
	wait "$pid"
done
ok 'the tree stops' without_tree

fails_with 2 'max-cacheable-bytes.*0 is out of range' "$COPPER" mount -M 0 "$W/mnt/0"
