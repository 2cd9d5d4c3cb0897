#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many threads fault in pages of a mapped file, in any order, that is four times as large as the
# cache of each node: what travels is the file about once, and not a chunk for each fault.
# covers: fuse fetch
# modes: release asan tsan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 6

MIB=$((1 << 20))
SRC=$T/src
mkdir "$SRC"
head -c $((128 * MIB)) /dev/urandom >"$SRC/big"
touch -d '1 hour ago' "$SRC/big" "$SRC"
cat >"$T/fault.py" <<'PY'
import hashlib, mmap, os, random, sys, threading
path, threads, hashes = sys.argv[1], int(sys.argv[2]), {}
with open(path, "rb") as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
pages = list(range(0, len(m), mmap.PAGESIZE))
random.Random(7).shuffle(pages)
def run(n):
    h = hashlib.blake2b()
    for at in pages[n::threads]:
        h.update(m[at:at + mmap.PAGESIZE])
    hashes[n] = h.hexdigest()
all = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
for t in all:
    t.start()
for t in all:
    t.join()
print(*(hashes[n] for n in sorted(hashes)))
PY
"$PYTHON" "$T/fault.py" "$SRC/big" 16 >"$T/wanted"
with_tree 2 --cache-size 32M
"$PYTHON" "$T/fault.py" "$W/mnt/1/big" 16 >"$T/got"
ok 'the bytes are right' cmp "$T/wanted" "$T/got"
is_at_most 'the source is read little more than once, in MiB' \
	"$(($(tree_sum origin.bytes) / MIB))" 192
# A read is 128 KiB, so without the rest of each chunk it would be 1,024.
is_at_most 'the kernel asks for few of the pages' "$(node_stat 1 fuse.read)" 700
# One that goes through the file is read ahead as ever, in groups of chunks.
before=$(tree_sum origin.operations)
ok 'a sequential reader of the other node' cmp "$SRC/big" "$W/mnt/0/big"
is_at_most 'its chunks are read in groups' "$(($(tree_sum origin.operations) - before))" 280
ok 'the tree stops' without_tree
