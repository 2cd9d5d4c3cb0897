#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A disk that is full while the tree runs: every file is written completely or stays as it was, the
# command says what could not be written and fails, and no count is lost.
# covers: profile node rank
# modes: release asan
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system of its own'
plan 35

mkdir "$T/full"
mount -t tmpfs -o size=6m,mode=755 tmpfs "$T/full" || skip_all 'no tmpfs here'
SRC=$T/full/src
long_names "$SRC" 100
export HOME=$T/full/home
mkdir "$HOME"
unset XDG_CACHE_HOME

fill() { # BYTES: what is left then
	head -c 100000000 /dev/zero >"$T/full/fill" 2>/dev/null
	truncate -s "-$1" "$T/full/fill"
}
make_room() {
	rm "$T/full/fill"
}
start_tree() { # [OPTION…]: two nodes with their job directory on that disk
	local rank pids=()
	prepare_tree 2
	JOB=$T/full/job.$cop_tree_number
	cop_tree=2
	for rank in 0 1; do
		start_node "$rank" "$@" &
		pids+=($!)
	done
	wait "${pids[@]}"
}
run() { # COMMAND…
	timeout "$(patient 60)" "$@" >"$T/.out" 2>"$T/.err"
	status=$?
}
# Temporary files, and tables whose last line is cut.
half_written() { # DIR
	find "$1" \( -name '*.tmp*' -o -regextype posix-extended \
		-regex '.*[.][0-9]+[.][a-z0-5]{6}' \) -type f
	find "$1" -name '*.csv' -type f | while read -r file; do
		[ -s "$file" ] && [ -z "$(tail -c 1 "$file")" ] || echo "$file"
	done
}
served() { # RANK: what the node has counted
	node_stat "$1" fuse.read
}
kept() { # RANK: the same, wherever it is now
	local now
	now=$(served "$1")
	if [ "$now" -eq 0 ]; then
		sed -n 's/^read,\([0-9]*\),.*/\1/p' \
			"$JOB/profiling/pre-reset/$(address_of "$1")"-*-profiling_operations.csv
	else
		echo "$now"
	fi
}
refused() { # WHAT REGEX
	is "$1: the command fails" "$status" 1
	matches "$1: it says what could not be written" "$(cat "$T/.out" "$T/.err")" "$2"
	is "$1: nothing is half written" "$(half_written "$T/full")" ''
}

# ---- snapshots

start_tree -A
read_everything 0 1
ask=("$COPPER" cache-stats --snapshot "$W/mnt/0")
run "${ask[@]}"
is 'with room a snapshot is written' "$status" 0
files=$(find "$JOB/profiling/ioctl-snapshot" -type f | wc -l)
for room in 4096 60000; do
	fill "$room"
	run "${ask[@]}"
	refused "a snapshot with $room bytes left" "cannot write $JOB/.*: No space left on device"
	is 'every file is complete, the old or the new one' \
		"$(find "$JOB/profiling/ioctl-snapshot" -type f | wc -l)" "$files"
	make_room
done
run "${ask[@]}"
is 'once there is room again it is written' "$status" 0

# ---- counting from zero

before=$(served 1)
fill 4096
run "$COPPER" cache-stats --reset --all "$W/mnt/0"
refused 'a reset' "cannot write $JOB/.*: No space left on device"
matches 'a reset: no node counts from zero' \
	"$(cat "$T/.out" "$T/.err")" 'counters of 0/2 nodes set to zero'
is 'a reset: counting continues' "$(served 0) $(served 1)" "$before $before"
make_room
fill 60000
run "$COPPER" cache-stats --reset --all "$W/mnt/0"
refused 'a reset that fails in the middle' "cannot write $JOB/.*: No space left on device"
make_room
is 'each node has its counts, or its reports have them' "$(kept 0) $(kept 1)" "$before $before"
run "$COPPER" cache-stats --reset --all "$W/mnt/0"
is 'with room it is done' "$status $(served 0) $(served 1)" '0 0 0'

# ---- what a command writes itself

mkdir "$T/full/out"
fill 4096
run "$COPPER" cache-stats --output-dir "$T/full/out" "$W/mnt/0"
refused 'a list of the cache' "cannot write $T/full/out.*: No space left on device"
make_room
ok 'the tree stops' without_tree

start_tree -A
read_everything 0 1
ok 'the tree with snapshots stops' without_tree
run "$COPPER" paths "$JOB" --manifest "$T/full/manifest"
is 'a manifest is made of the job' "$status" 0
cp "$T/full/manifest" "$T/given"
fill 4096
run "$COPPER" paths "$JOB" --manifest "$T/full/manifest"
refused 'a manifest' "$T/full/manifest.*No space left on device"
ok 'a manifest: the old one is whole' cmp "$T/given" "$T/full/manifest"
make_room

# ---- the manifest that a tree leaves for the next one

beside=$T/full/.src.copper-manifest
start_tree --prefetch auto
read_everything 0
ok 'the tree stops' without_tree
ok 'the tree leaves a manifest' test -s "$beside"
cp "$beside" "$T/given"
start_tree --prefetch auto
read_everything 0
fill 4096
ok 'a tree stops well where it cannot leave one' without_tree
ok 'the one of before is whole' cmp "$T/given" "$beside"
is 'no file is half written' "$(half_written "$T/full")$(find "$HOME" -type f)" ''
make_room
wait_for 5 umount "$T/full"
