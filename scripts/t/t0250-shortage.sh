#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node that runs out of descriptors or memory reports it: those below it ask elsewhere, and only
# its own programs see the error.
# covers: origin cache rpc
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 21

SRC=$T/src
numbered_files "$SRC/many" 60 100000
numbered_files "$SRC/more" 60 100000
numbered_files "$SRC/rest" 60 100000
numbered_files "$SRC/large" 8 3000000
checksums "$SRC" >"$T/want"

# Sets limits of a running node; what it already has open or mapped stays.
no_descriptors() { # RANK
	prlimit --pid "$(pid_of "$1")" --nofile="$(lowest_free "$1"):"
}
lowest_free() { # RANK
	local fd=0
	while [ -e "/proc/$(pid_of "$1")/fd/$fd" ]; do
		fd=$((fd + 1))
	done
	echo "$fd"
}
no_memory() { # RANK
	prlimit --pid "$(pid_of "$1")" \
		--data="$(awk '/^VmData/ { print $2 * 1024 }' "/proc/$(pid_of "$1")/status"):"
}
all_again() { # RANK
	prlimit --pid "$(pid_of "$1")" --nofile="${files[$1]}:" --data=unlimited
}
pid_of() { # RANK
	echo "${pids[$1]}"
}
part() { # DIR: of the sums
	grep " ./$1/" "$T/want"
}
reads() { # RANK DIR: what is wrong there, or nothing
	(cd "$W/mnt/$1" && find "./$2" -type f -print0 | LC_ALL=C sort -z | xargs -0 -r b2sum) \
		2>&1 | diff - <(part "$2") | head -3
}
takes_again() { # RANK PARENT NAME: reads names that it never asked for, until it asks that parent
	ls "$W/mnt/$1/rest/none-$RANDOM$RANDOM" "$W/mnt/$1/empty-$RANDOM" >/dev/null 2>&1
	cat "$W/mnt/$1/$3" >/dev/null 2>&1
	[ "$(node_stat "$1" parent)" = "$2" ]
}

passes_over() { # RANK: reads a name that it never asked for; a parent rests for a second at first
	ls "$W/mnt/$1/rest/none-$RANDOM$RANDOM" >/dev/null 2>&1
	[ "$(node_stat "$1" parent)" = None ]
}

# Each node is the child of the one before.
with_tree 4 --trees 1 --fanout 1 --enoent-ttl-ms 1
pids=()
files=()
for rank in 0 1 2 3; do
	pids[rank]=$(node_stat "$rank" pid)
	files[rank]=$(awk '/^Max open files/ { print $4 }' "/proc/${pids[rank]}/limits")
done
is 'the tree is a chain' "$(node_stat 3 parent) $(node_stat 2 parent) $(node_stat 1 parent)" '2 1 0'

no_descriptors 0
matches 'a program on a root without descriptors sees that' \
	"$(cat "$W/mnt/0/many/file00000" 2>&1 >/dev/null)" 'Too many open files'
is 'a node three levels below reads everything right' "$(reads 3 many)" ''
is 'the node below it reads everything right' "$(reads 1 many)" ''
ok 'the first below it took its place' test "$(node_stat 1 origin.operations)" -ge 60
ok 'it says so' wait_for 20 passes_over 1
is 'the other nodes did not ask the storage' \
	"$(node_stat 2 origin.operations) $(node_stat 3 origin.operations)" '0 0'
all_again 0
is 'a shortage on a node does not count as an error of the storage' "$(tree_sum origin.errors)" 0
ok 'with descriptors it is asked again' wait_for 20 takes_again 1 0 rest/file00000
is 'programs on the node with descriptors read' "$(reads 0 many)" ''

no_memory 1
is 'below a relay without memory everything is read right' "$(reads 3 large)" ''
is 'small files are read below a relay without memory' "$(reads 3 more)" ''
is 'the storage was asked by the root and no other' \
	"$(node_stat 2 origin.operations) $(node_stat 3 origin.operations)" '0 0'
is_at_most 'the relay was passed over' 1 "$(node_stat 2 fabric.failovers)"
is 'a node short of memory is not taken for dead' "$(cat "$JOB"/logs/*-output.log | grep -c 'peer is dead')" 0
all_again 1
ok 'the relay still lives' kill -0 "$(pid_of 1)"
is 'with memory its own programs read' "$(reads 1 large)" ''

no_descriptors 0
no_descriptors 1
is 'without descriptors at the two above, the next one reads the storage' "$(reads 3 rest)" ''
is 'the last node does not ask the storage' "$(node_stat 3 origin.operations)" 0
all_again 0
all_again 1
is 'everything is right everywhere' \
	"$(for rank in 0 1 2 3; do checksums "$W/mnt/$rank" | diff - "$T/want" | head -3; done)" ''
ok 'the tree stops' without_tree
