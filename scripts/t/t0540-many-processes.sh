#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 128 processes (48 in the release build) import a package at once, cold and warm: no error, and the
# source gets as many requests as from one.
# covers: fuse fetch
# modes: release shared
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

# They import little, since each takes its time from two processors. What goes through a
# parent is numpy's import, of which it is known how few messages it takes.
processes=128
[ "$cop_mode" != release ] || processes=48
module=json,email.mime.text
numpy=
if "$PYTHON" -c 'import numpy' 2>/dev/null &&
	[ "$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)" -gt 8000 ]; then
	numpy=numpy
fi

# The python of the mount, which finds everything below the mount.
importer() { # MOUNT
	local lib
	lib=$1/lib/$(uname -m)-linux-gnu
	env -i COP_TEST_DIR="$T" HOME="$T" PATH="$1/bin:/usr/bin:/bin" PYTHONHOME="$1" \
		PYTHONDONTWRITEBYTECODE=1 \
		OPENBLAS_NUM_THREADS=1 LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack:$1/lib" \
		python3 -c "import $module, sys
for name, m in sorted(sys.modules.items()):
    file = getattr(m, '__file__', None)
    assert not file or file.startswith(sys.argv[1]), file
print('right')" "$1"
}
# Runs all at once; errors are in $T/bad.
all_at_once() { # COUNT [RANK]
	local i pids=()
	rm -f "$T"/import.*
	for ((i = 0; i < $1; i++)); do
		importer "$W/mnt/${2:-0}" >"$T/import.$i" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	grep -Lx right "$T"/import.* >"$T/bad"
}
asked() { # KEY…
	local json key
	json=$(node_json 0)
	for key in "$@"; do
		printf '%s=%s ' "$key" "$(json_value "$key" <<<"$json")"
	done
}
# What the source was asked for, without what came ahead and was not used: that depends on what had
# come by when.
asked_source() { # RANK…: all that bring something
	local reads bytes rank
	reads=$(node_stat 0 origin.reads)
	bytes=$(node_stat 0 origin.bytes)
	for rank; do
		reads=$((reads - $(node_stat "$rank" bundle.files) + $(node_stat "$rank" bundle.used_files)))
		bytes=$((bytes - $(node_stat "$rank" bundle.bytes) + $(node_stat "$rank" bundle.used_bytes)))
	done
	echo "reads=$reads bytes=$bytes"
}
origin=(origin.lists origin.stats origin.reads origin.bytes)

SRC=/usr
with_tree 1 --enoent-ttl-ms 600000
all_at_once 1
is "a single process imports $module" "$(cat "$T/import.0")" right
one_lookups=$(node_stat 0 fuse.lookup)
one=$(asked_source 0)
one_lists=$(node_stat 0 origin.lists)
one_stats=$(node_stat 0 origin.stats)
note "one: $one $(asked "${origin[@]}" fuse.lookup fuse.read cache.misses cache.joins)"
ok 'the tree stops' without_tree

with_tree 1 --enoent-ttl-ms 600000
all_at_once $processes
is "$processes at once, cold: none fails" \
	"$(wc -l <"$T/bad") $(head -n 1 "$T/bad" | xargs -r tail -n 3)" '0 '
note "all: $(asked "${origin[@]}" fuse.lookup fuse.read cache.misses cache.joins)"
is 'the source was asked as for one' "$(asked_source 0)" "$one"
is_at_most 'also for listings' "$(node_stat 0 origin.lists)" $((one_lists + one_lists / 5))
is_at_most 'also for attributes' "$(node_stat 0 origin.stats)" $((one_stats + one_stats / 5))
all=$(asked "${origin[@]}")
is 'no request failed' "$(asked fuse.errors)" 'fuse.errors=0 '
# The kernel takes pages back while so many processes run, so they are pinned. Lists, links and
# absent names cannot be pinned. For lists and links there are few requests, however many processes
# there are. Names may be looked up again, each by a lookup and perhaps a request for its
# attributes, if another program made the kernel forget: by each process that comes while it
# forgets, which it does in up to five passes, but not by all processes.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	hold_what_was_read 0
	node_json 0 >"$T/before"
	all_at_once 1
	[ "$("$PYTHON" "$cop_t/t05_stats.py" delta fuse.read "$T/before" <(node_json 0))" -gt 0 ] ||
		break
done
note "held: $(cat "$T/held")"
for _ in 1 2 3; do
	forgotten=$(times_forgotten)
	node_json 0 >"$T/before"
	all_at_once $processes
	node_json 0 >"$T/after"
	sleep 1 # it is counted when it is done
	forgotten=$(($(times_forgotten) - forgotten))
	again=$((5 * forgotten * one_lookups))
	firm=$("$PYTHON" "$cop_t/t05_stats.py" firm "$T/before" "$T/after")
	requests=$("$PYTHON" "$cop_t/t05_stats.py" requests "$T/before" "$T/after")
	note "warm: $("$PYTHON" "$cop_t/t05_stats.py" names "$T/before" \
			"$T/after"), forgotten $forgotten times"
	[ -s "$T/bad" ] || [ "$firm" -gt $((10 + again)) ] ||
		[ "$requests" -gt $((10 + again + processes)) ] || break
done
is "$processes at once, warm: none fails" \
	"$(wc -l <"$T/bad") $(head -n 1 "$T/bad" | xargs -r tail -n 3)" '0 '
is 'the source is asked for nothing more' "$(asked "${origin[@]}")" "$all"
is_at_most 'nor is the node, but for what the first may have skipped' "$firm" $((10 + again))
is_at_most 'both counts for lists and links are small' "$requests" $((10 + again + processes))
let_go
ok 'the tree stops' without_tree

# What one process alone asks for, if it imports another module.
if [ -n "$numpy" ]; then
	module=$numpy
	with_tree 1 --enoent-ttl-ms 600000
	all_at_once 1
	one=$(asked_source 0)
	one_lists=$(node_stat 0 origin.lists)
	one_stats=$(node_stat 0 origin.stats)
	without_tree || bail 'the tree does not stop'
fi

# The same through a parent: one request for each object, however many wait for it, and fewer
# messages: numpy sent 250 when each file and each directory was asked for by itself.
most_messages=170
[ "$module" = numpy ] || most_messages=$one_lookups
# A file that comes beside another one, and that a program catches up with on a busy machine, costs
# a second request, which only says that somebody waits; so the best of several trees counts.
for ((round = 0; round < 5; round++)); do
	with_tree 2 --enoent-ttl-ms 600000
	all_at_once 16 1
	sent=$(node_stat 1 fabric.requests_sent)
	[ -s "$T/bad" ] || [ "$round" -eq 4 ] && break
	[ "$sent" -gt $(($(node_stat 1 cache.misses) + 4)) ] ||
		[ "$(node_stat 1 fabric.request_messages)" -gt "$most_messages" ] || break
	note "once more: $sent requests for $(node_stat 1 cache.misses) objects"
	without_tree || bail 'the tree does not stop'
done
is '16 at once on a leaf: none fails' \
	"$(wc -l <"$T/bad") $(head -n 1 "$T/bad" | xargs -r tail -n 3)" '0 '
is 'the source was asked as for one' "$(asked_source 1)" "$one"
is_at_most 'also for listings' "$(node_stat 0 origin.lists)" $((one_lists + one_lists / 5))
is_at_most 'also for attributes' "$(node_stat 0 origin.stats)" $((one_stats + one_stats / 5))
note "the leaf sent $sent requests for $(node_stat 1 cache.misses) objects"
is_at_most 'the leaf asked its parent once for each object' \
	"$sent" $(($(node_stat 1 cache.misses) + 4))
is_at_most 'in few messages' "$(node_stat 1 fabric.request_messages)" "$most_messages"
is 'no request failed' "$(node_stat 0 fuse.errors) $(node_stat 1 fuse.errors)" '0 0'
ok 'the tree stops' without_tree
