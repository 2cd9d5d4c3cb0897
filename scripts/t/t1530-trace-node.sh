#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The nodes' own traces: every request and every file is in them, what leaves one node arrives at
# another, clocks, limits, and what is left of a killed node.
# covers: tracer sampler
# modes: release asan tsan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 61

in_trace() { # WHAT FILE…
	timeout "$(patient 60)" "$PYTHON" "$cop_t/node_trace.py" "$@"
}
requests_of() { # RANK: those that cache-stats counts and a trace has
	node_json "$1" | "$PYTHON" -c '
import json, sys
f = json.load(sys.stdin)["fuse"]
print(sum(f[k] for k in "lookup getattr readlink open read release opendir readdir releasedir statfs ioctl lseek getxattr listxattr refused".split()))'
}
# The trace of a rank, by the line that names it; hosts are addresses.
trace_of() { # RANK
	echo "$JOB/trace/$(address_of "$1")"-*.pfw.gz
}
say_lost() {
	[ -z "$(in_trace lost "$1")" ] || echo "lost: $(in_trace lost "$1")"
}

SRC=$T/src
small_tree "$SRC"
echo odd >"$SRC/a (b) 'c'"

# ---- options

fails_with 2 'give --job-dir' "$COPPER" mount --trace --source "$SRC" "$T/nowhere"
fails_with 2 'trace-limit' "$COPPER" mount --trace --trace-limit 1K -d "$T/job" \
	--source "$SRC" "$T/nowhere"

# ---- four nodes, the last two below the second

with_tree 4 --trace --trees 1 --fanout 1
for rank in 0 1 2 3; do
	read_everything "$rank"
	stat "$W/mnt/$rank/absent" >/dev/null 2>&1
	ls -l "$W/mnt/$rank/dir" >/dev/null
done
has_clock() { [ "$(in_trace clock "$(trace_of 3)" | cut -d ' ' -f 1)" = True ]; }
wait_for 20 has_clock
for rank in 0 1 2 3; do
	requests_of "$rank" >"$T/requests.$rank"
	node_stat "$rank" fuse.read_bytes >"$T/bytes.$rank"
done
ok 'the tree stops' without_tree
for rank in 0 1 2 3; do
	file=$(trace_of "$rank")
	ok "node $rank has a trace" test -s "$file"
	is "the form of the trace of node $rank is right" "$(in_trace form "$file")" ''
	is 'every request is in it' \
		"$(in_trace posix "$file") $(say_lost "$file")" "$(cat "$T/requests.$rank") "
	is 'every byte is in it' "$(in_trace bytes "$file")" "$(cat "$T/bytes.$rank")"
done
absent=$(in_trace names "$(trace_of 3)" | tee "$T/names" | comm -13 - <(
	(cd "$SRC" && find . -type f -size +0) | sed "s|^\.|$SRC|; s/[()']/ /g" | LC_ALL=C sort))
is 'every file that was read is in it' "$absent" ''
ok 'the file that is not there is in it' grep -qxF "$SRC/absent" "$T/names"
flows=$(in_trace flows "$JOB"/trace/*.pfw.gz)
ok 'requests left nodes' test "${flows% *}" -gt 0
is 'each request arrived at one other node' "${flows#* }" 0
is 'the last node knows how far its clock is ahead, over two others' \
	"$(in_trace clock "$(trace_of 3)")" 'True 0'
ok 'the root has what it asked of the storage' \
	test "$(in_trace has "$(trace_of 0)" origin_read)" -gt 0
ok 'copper trace summary reads all of it' "$COPPER" trace summary "$JOB/trace"
"$COPPER" trace table --csv --cat '^POSIX$' --by name --show count "$JOB/trace" >"$T/table"
is 'copper trace table counts the same' \
	"$(awk -F, 'NR > 1 { n += $2 } END { print n }' "$T/table")" \
	"$(awk '{ n += $1 } END { print n }' "$T"/requests.?)"

# ---- four trees, each with its own root, and a budget that is too small

numbered_files "$SRC/more" 40 600000
striped_file "$SRC/large"
with_tree 4 --trace --trees 4 --cache-size 16M
for rank in 1 2 3; do
	ok "node $rank reads everything" diff -r "$SRC" "$W/mnt/$rank"
done
for rank in 0 1 2 3; do
	requests_of "$rank" >"$T/requests.$rank"
done
evicted=$(node_stat 1 cache.evicted_bytes)
ok 'the four trees stop' without_tree
for rank in 0 1 2 3; do
	file=$(trace_of "$rank")
	is "node $rank: every request is in it, and its last counters have them" \
		"$(in_trace posix "$file") $(in_trace counter "$file" requests \
			programs) $(say_lost "$file")" \
		"$(cat "$T/requests.$rank") $(cat "$T/requests.$rank") "
	ok "node $rank asked the storage, as root of a tree" \
		test "$(in_trace has "$file" origin)" -gt 0
done
flows=$(in_trace flows "$JOB"/trace/*.pfw.gz)
ok 'requests left nodes' test "${flows% *}" -gt 0
is 'each request arrived at one other node' "${flows#* }" 0
matches 'a node was answered by several' \
	"$(in_trace values "$(trace_of 3)" wire rank)" '[0-9] [0-9]'
file=$(trace_of 1)
ok 'what was evicted is in it' test "$(in_trace has "$file" evict)" -gt 0
is_at_most 'with all the bytes that were counted' "$evicted" "$(in_trace sum "$file" evict bytes)"

# ---- prefetch

with_tree 1 --prefetch auto
cat "$W/mnt/0/dir/numbers" >"$T/out"
ok 'a tree leaves a manifest' without_tree
with_tree 2 --trace --prefetch auto
is_prefetched() { [ "$(node_stat 1 prefetching.state)" = 'done' ]; }
wait_for 20 is_prefetched
prefetched=$(node_stat 1 prefetching.files)
ok 'the next one stops' without_tree
file=$(trace_of 1)
is 'the prefetch is in the trace' \
	"$(in_trace has "$file" prefetch) $(in_trace values "$file" prefetch files)" "1 $prefetched"
ok 'flights of the prefetch are in the background' \
	test "$(in_trace sum "$file" flight background)" -ge "$prefetched"

# ---- shorter than a second

with_tree 1 --trace
cat "$W/mnt/0/hello" >"$T/out"
requests_of 0 >"$T/requests.0"
ok 'a tree that has just begun stops' without_tree
file=$(trace_of 0)
is 'the counters of a short run are those of its end' \
	"$(in_trace counter "$file" requests programs)" "$(cat "$T/requests.0")"
is 'the bytes are those of its end' "$(in_trace counter "$file" bytes programs)" 6
ok 'memory is in it, too' test "$(in_trace counter "$file" memory resident)" -gt 0

# ---- a limit

with_tree 1 --trace --trace-limit 64K
for ((i = 0; i < 3000; i++)); do
	echo "$W/mnt/0/dir/absent.$i"
done | xargs stat >/dev/null 2>&1
ok 'the tree with a limit stops' without_tree
is_at_most 'the limit holds' "$(stat -c %s "$(trace_of 0)")" 65536
matches 'the trace says what it left out' "$(in_trace lost "$(trace_of 0)")" 'limit=[1-9]'

# ---- a parent that dies, and comes back

with_tree 2 --trace --trees 1 --peer-timeout 1
cat "$W/mnt/1/hello" >"$T/out"
kill_node 0
cat "$W/mnt/1/dir/numbers" >"$T/out"
happened() { [ "$(in_trace has "$(trace_of 1)" "$1")" -gt 0 ]; }
ok "a parent's death is in the trace" wait_for 20 happened peer_died
unmount_killed
unset 'cop_killed[0]'
ok 'the node that died starts again' start_node 0 --trace --trees 1 --peer-timeout 1
returned() {
	stat "$W/mnt/1/dir/absent.$RANDOM.$RANDOM" >/dev/null 2>&1
	cat "$W/mnt/1/dir/deeper/random" >"$T/out"
	sleep 1
	happened peer_back
}
ok 'the second start is in the trace, too' wait_for 40 returned
ok 'the parent and its child stop' without_tree

# ---- killed

with_tree 1 --trace
cat "$W/mnt/0/dir/numbers" >"$T/out"
is_read() { [ "$(in_trace has "$(trace_of 0)" read)" -gt 0 ]; }
ok "a node's trace can be read while it runs" wait_for 20 is_read
kill_node 0
ok 'a trace of a node that was killed can be read' is_read
