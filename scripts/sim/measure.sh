#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures the rows that copper-sim must reproduce: a first import of numpy on 1 to 16 nodes of this
# machine at once, over storage that takes META_US for each metadata operation and each read. One
# line for each round; reduce.py makes testdata/sim/rows.csv of them. The time is the one that
# bench/together calls waiting: wall less CPU less the time in a run queue, of the reader that
# waited longest.
#
#   scripts/sim/measure.sh >ROUNDS
#   META_US=5000 COUNTS="1 2 4 8 16" ROUNDS=3 TREES="1 4" BUNDLES="off auto"
# limit: 1800
# shellcheck source=../bench/lib.sh
. "$(dirname "$0")/../bench/lib.sh"

meta_us=${META_US:-5000}
module=numpy
SRC=/usr
import_wall /usr >/dev/null

# The sum of a value of cache-stats over all nodes.
sum_of() { # N GROUP NAME
	local rank
	for ((rank = 0; rank < $1; rank++)); do
		node_json "$rank" | json_value "$2" |
			"$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' \
				"$3"
	done | awk '{ s += $1 } END { print s }'
}

# User and system milliseconds of the processes of all nodes.
cpu_ms() { # N
	local rank
	for ((rank = 0; rank < $1; rank++)); do
		awk '{ print $14 + $15 }' "/proc/$(pid_of "$rank")/stat"
	done | awk -v hz="$(getconf CLK_TCK)" '{ s += $1 } END { printf "%d\n", s * 1000 / hz }'
}

round() { # N TREES BUNDLE
	local before
	SRC=/usr
	with_slowfs --meta-us "$meta_us" --read-us "$meta_us" --cache-s 3600
	with_tree "$1" -T "$2" --compress off --bundle "$3" --cache-size 512M
	before=$(cpu_ms "$1")
	import_wall "$W/mnt/{}" "$1" >"$T/wall"
	printf '%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n' "$1" "$2" "$3" "$meta_us" \
		"$(cat "$T/wall")" "$(waiting)" \
		"$(sum_of "$1" origin operations)" "$(sum_of "$1" origin bytes)" \
		"$(sum_of "$1" fabric requests_sent)" "$(sum_of "$1" fabric request_messages)" \
		"$(sum_of "$1" fabric bytes_out)" "$(($(cpu_ms "$1") - before))"
	without_tree
	without_slowfs
}

# Microseconds of one operation as its caller sees it: the median of names, opens and reads that
# nobody has asked for. And KiB that a root's read of a large file brings in that time, since the
# kernel asks slowfs for several pieces at once.
operation_us() {
	SRC=/usr
	with_slowfs --meta-us "$meta_us" --read-us "$meta_us" --cache-s 3600
	"$PYTHON" - "$SRC/bin" <<'PY'
import os, statistics, sys, time
took = []
PIECE = 4 << 20
def timed(call, *args):
    begin = time.monotonic()
    result = call(*args)
    took.append(time.monotonic() - begin)
    return result
os.stat(sys.argv[1])
for name in sorted(os.listdir(sys.argv[1]))[:200]:
    path = os.path.join(sys.argv[1], name)
    timed(os.lstat, path)
    if os.path.isfile(path) and not os.path.islink(path):
        fd = timed(os.open, path, os.O_RDONLY)
        timed(os.pread, fd, 4096, 0)
        os.close(fd)
op_s = statistics.median(took)
print(f"# storage_op_us={op_s * 1e6:.0f}")
took = []
for name in os.listdir(sys.argv[1]):
    path = os.path.join(sys.argv[1], name)
    if os.path.islink(path) or not os.path.isfile(path):
        continue
    if os.stat(path).st_size < PIECE + (1 << 20):
        continue
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    timed(os.preadv, fd, [bytearray(PIECE)], 1 << 20)
    os.close(fd)
print(f"# storage_read_kib={PIECE / 1024 * op_s / statistics.median(took):.0f}")
PY
	without_slowfs
}

operation_us
echo nodes,trees,bundle,meta_us,wall_s,waiting_s,origin_operations,origin_bytes,requests,\
messages,bytes_out,cpu_ms
for ((i = 0; i < ${ROUNDS:-3}; i++)); do
	for n in ${COUNTS:-1 2 4 8 16}; do
		for t in ${TREES:-1 4}; do
			for b in ${BUNDLES:-off auto}; do
				[ "$t" -gt "$n" ] || round "$n" "$t" "$b"
			done
		done
	done
done
