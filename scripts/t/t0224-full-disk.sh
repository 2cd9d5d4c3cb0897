#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job directory that is full when the tree stops: the command says what could not be written and
# fails, no file is half written under its name, and what the nodes counted is kept where there is
# space.
# covers: rank cluster
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, for a file system of its own'
plan 22

SRC=$T/src
long_names "$SRC" 100
mkdir "$T/full" "$T/tmp" "$T/small"
export TMPDIR=$T/tmp

# Fills a file system except for this many bytes.
fill() { # DIR BYTES
	head -c 100000000 /dev/zero >"$1/fill" 2>/dev/null
	truncate -s "-$2" "$1/fill"
}

# Starts a tree of 3 nodes whose job directory has this much space left when it is told to stop.
stop_with_room() { # BYTES [OPTION…]
	local room=$1 rank pids=()
	shift
	mount -t tmpfs -o size=3m,mode=755 tmpfs "$T/full" || skip_all 'no tmpfs here'
	prepare_tree 3
	JOB=$T/full/job
	cop_tree=3
	for rank in 0 1 2; do
		start_node "$rank" -A -N 50 "$@" &
		pids+=($!)
	done
	wait "${pids[@]}"
	read_everything 0 1 2
	fill "$T/full" "$room"
	timeout "$(patient 60)" "$COPPER" stop "$W/mnt/0" >"$T/.out" 2>"$T/.err"
	status=$?
	cop_tree=0
}

# Names of temporary files, empty files, and tables whose last line is cut.
half_written() {
	find "$JOB" -name '*.tmp*' -o -name '.*' -type f -o -path '*profiling*' -type f -size 0
	find "$JOB/profiling" -name '*.csv' -type f 2>/dev/null | while read -r file; do
		[ -z "$(tail -c 1 "$file")" ] || echo "$file"
	done
}

check() { # WHAT
	is "$1: the command fails" "$status" 1
	is "$1: all nodes have stopped" "$(cat "$T/.out")" 'stopped 3/3 nodes'
	matches "$1: it says what could not be written" "$(head -n 1 "$T/.err")" \
		"^127[.0-9]*: cannot write $JOB/.*: No space left on device"
	is "$1: nothing is half written" "$(half_written)" ''
	is "$1: no node is left" \
		"$(wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'; nodes_running)" 0
}

kept() { # the folder where the sums are
	sed -n 's/.*; the sums of 3 nodes are kept in \([^ ]*\) on this host$/\1/p' "$T/.err"
}

for files in all root; do
	stop_with_room 60000 --rank-files "$files"
	check "files of $files"
	is "files of $files: the sums of all nodes are kept" \
		"$(awk -F, '$1 == "ranks_with_aggregate_files" { print $2 }' \
			"$(kept)"/*-profiling_aggregate.csv)" 3
	umount "$T/full"
done

# There is no space anywhere.
mount -t tmpfs -o size=64k,mode=755 tmpfs "$T/small"
fill "$T/small" 8192
TMPDIR=$T/small stop_with_room 60000
check 'no room at all'
is 'no room at all: nothing is left there' "$(ls "$T/small")" fill
umount "$T/full"

# A command that reads a finished job and has no space for its output.
TMPDIR=$T/tmp
stop_with_room 2000000
is 'with room enough the command ends well' "$status" 0
rm -f "$JOB"/profiling/cluster/*
fill "$T/full" 1
timeout "$(patient 60)" "$COPPER" aggregate "$JOB" >"$T/.out" 2>"$T/.err"
is 'aggregate without room fails' "$?" 1
matches 'aggregate without room says so' "$(cat "$T/.err")" 'cannot write .*No space left on device'
is 'aggregate without room leaves nothing half written' \
	"$(half_written)$(ls "$JOB/profiling/cluster")" ''
umount "$T/full" "$T/small"
