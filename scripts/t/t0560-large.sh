#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A file much larger than the cache, sparse files, a directory of 100,000 names: right bytes, no
# byte over the limit, and the source is read again only for what was evicted. The release build has
# 256 MiB and 20,000 names.
# covers: cache fetch
# modes: release shared
# limit: 100
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 23

contract() {
	"$PYTHON" "$cop_t/contract.py" "$@"
}
size=$((512 * 1024 * 1024))
names=100000
[ "$cop_mode" != release ] || size=$((size / 2)) names=20000
limit=$((64 * 1024 * 1024))

# Each KiB has its number; the rest cannot be compressed.
large_file() { # PATH
	"$PYTHON" - "$1" "$size" <<'PY'
import os, sys
base = os.urandom(1024 * 1024)
with open(sys.argv[1], "wb", buffering=0) as f:
    for mib in range(int(sys.argv[2]) >> 20):
        data = bytearray(base)
        for k in range(1024):
            data[k << 10:(k << 10) + 8] = (mib * 1024 + k).to_bytes(8, "big")
        f.write(data)
PY
}
# Pages that the kernel keeps would hide what the node does.
drop_pages() { # FILE
	"$PYTHON" -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)' "$1"
}
read_at_random() { # PATH SEED COUNT
	"$PYTHON" - "$@" "$size" <<'PY'
import os, random, sys
path, seed, count, size = sys.argv[1], *map(int, sys.argv[2:])
rng = random.Random(seed)
fd = os.open(path, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for _ in range(count):
    k = rng.randrange((size >> 10) - 200)
    data = os.pread(fd, 200 << 10, k << 10)
    assert len(data) == 200 << 10, f"{len(data)} bytes at {k << 10}"
    for i in range(200):
        assert int.from_bytes(data[i << 10:(i << 10) + 8], "big") == k + i, f"wrong bytes at {(k + i) << 10}"
PY
}
# Records used_bytes of both nodes until it is told to end.
watch_budget() {
	while [ ! -e "$T/done" ]; do
		for rank in 0 1; do
			node_json "$rank" | json_value budget >>"$T/used"
		done
		sleep 0.1
	done
}
again() { # KEY: what both nodes did since `start`
	echo $(($("$PYTHON" "$cop_t/t05_stats.py" delta "$1" "$T/start.0" <(node_json 0)) +
		$("$PYTHON" "$cop_t/t05_stats.py" delta "$1" "$T/start.1" <(node_json 1))))
}

SRC=$T/src
mkdir "$SRC"
large_file "$SRC/large"
with_tree 2 --cache-size 64M
mnt=$W/mnt/1
node_json 0 >"$T/start.0"
node_json 1 >"$T/start.1"
watch_budget &
watcher=$!
ok "a leaf reads $((size >> 20)) MiB in order" cmp "$SRC/large" "$mnt/large"
note "the source gave $(again origin.bytes) bytes"
is_at_most 'the source was read once for it, but for what was evicted before its time' \
	"$(again origin.bytes)" $((size * 21 / 20))
is_at_most 'what does not fit was evicted' $((size - 2 * limit)) "$(again cache.evicted_bytes)"
drop_pages "$mnt/large"
ok "a leaf reads $((size >> 20)) MiB at random" read_at_random "$mnt/large" 1 300
note "then the source had given $(again origin.bytes) bytes, $(again \
		cache.evicted_bytes) were evicted"
is_at_most 'what the source gave again had been evicted' \
	"$(again origin.bytes)" $((size + $(again cache.evicted_bytes)))
drop_pages "$mnt/large"
pids=()
read_at_random "$mnt/large" 2 100 2>"$T/random.2" &
pids+=($!)
read_at_random "$W/mnt/0/large" 3 100 2>"$T/random.3" &
pids+=($!)
cmp "$SRC/large" "$mnt/large" >"$T/random.4" 2>&1 &
pids+=($!)
failed=0
for pid in "${pids[@]}"; do
	wait "$pid" || failed=$((failed + 1))
done
is 'two read it at random while one reads it in order' "$failed $(cat "$T"/random.?)" '0 '
touch "$T/done"
wait "$watcher"
is_at_most 'what the source gave again had been evicted then too' \
	"$(again origin.bytes)" $((size + $(again cache.evicted_bytes)))
is 'used_bytes was never above the limit' "$("$PYTHON" -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(len(rows) > 4, sum(r["used_bytes"] > r["limit_bytes"] for r in rows), max(r["limit_bytes"] for r in rows))' "$T/used")" \
	"True 0 $limit"
for rank in 0 1; do
	resident=$(awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$(node_stat "$rank" pid)/status")
	note "node $rank: $((resident >> 20)) MiB at most for $((limit >> 20)) MiB of cache"
	is_at_most "memory of node $rank stays near its limit" "$resident" $((limit * 3 / 2))
done
ok 'the tree stops' without_tree
rm "$SRC/large"

# ---- holes

SRC=$T/holes
bash "$cop_t/make-tree.sh" "$SRC"
# Data at each second MiB: many extents, and a tail that is a hole.
"$PYTHON" -c '
import sys
with open(sys.argv[1], "wb") as f:
    for i in range(0, 200, 2):
        f.seek(i << 20)
        f.write(b"x" * 5000)
    f.truncate(201 << 20)' "$SRC/big/stripes"
with_tree 2 --cache-size 64M
mnt=$W/mnt/1
same_holes=()
for name in stripes hole-only hole-middle data-then-hole over-4-gib; do
	same_holes+=("$SRC/big/$name" "$mnt/big/$name")
done
ok 'SEEK_DATA and SEEK_HOLE are those of the source' contract same_holes "${same_holes[@]}"
written "$SRC/big/stripes"
ok 'cp keeps the holes' cp --sparse=auto "$mnt/big/stripes" "$T/copy"
ok 'cp copies the bytes' cmp "$SRC/big/stripes" "$T/copy"
is_at_most 'and takes no more room' "$(stat -c %b "$T/copy")" "$(stat -c %b "$SRC/big/stripes")"
is 'past 4 GiB it is right' \
	"$(tail -c 4 "$mnt/big/over-4-gib") $(dd if="$mnt/big/over-4-gib" bs=1 skip=4300000000 \
		count=4 status=none)" 'tail past'
ok 'the tree stops' without_tree

# ---- a directory of many names

SRC=$T/names
mkdir "$SRC"
"$PYTHON" -c '
import os, sys
for i in range(int(sys.argv[2])):
    os.close(os.open(f"{sys.argv[1]}/entry{i:06}", os.O_CREAT | os.O_WRONLY, 0o644))' "$SRC" "$names"
with_tree 2 --enoent-ttl-ms 600000
mnt=$W/mnt/1
is "ls shows $names names" "$(find "$mnt" -mindepth 1 -printf x | wc -c)" "$names"
is 'ls shows each name once' "$(find "$mnt" -mindepth 1 -printf '%f\n' | sort -u | wc -l)" "$names"
before=$(node_stat 0 origin.lists)
ok 'random ones can be looked at, others are absent' "$PYTHON" -c '
import os, random, sys
for i in random.Random(1).sample(range(int(sys.argv[2])), 100):
    assert os.stat(f"{sys.argv[1]}/entry{i:06}").st_size == 0
    assert not os.path.exists(f"{sys.argv[1]}/entry{i}x")' "$mnt" "$names"
is 'the directory is not read again for that' "$(node_stat 0 origin.lists)" "$before"
ok 'telldir and seekdir' contract telldir "$mnt"
ok 'the tree stops' without_tree
