#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The storage does not answer for some names: programs that ask for them wait, and no others do.
# covers: origin fetch
# modes: release asan tsan
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16

SRC=$T/src
mkdir -p "$SRC"/{one,many,other}
for i in {1..30}; do
	echo "$i" | tee "$SRC/one/f$i" "$SRC/many/f$i" >"$SRC/other/f$i"
done
echo late >"$SRC/one/hung"
for i in {1..12}; do
	mkdir "$SRC/many/hung$i"
	echo late >"$SRC/many/hung$i/file"
done
with_slowfs --cache-s 0

# A reader may take no longer than on a slightly slow storage. Alone it takes a second.
answered() { # COMMAND…
	timeout "$(patient 10)" "$@" 2>&1
}
names() { # DIR: as a program that wants no attributes
	answered "$PYTHON" -c 'import os, sys; print(*sorted(os.listdir(sys.argv[1])))' "$1"
}

# ---- one name

slow_fault hang=one/hung
is 'straight on the storage its sibling is read' "$(answered cat "$SRC/one/f7")" 7
with_tree 2 --fanout 1
for rank in 1 0; do
	is "node $rank reads the sibling" "$(answered cat "$W/mnt/$rank/one/f7")" 7
	is "node $rank lists the directory of the sibling" \
		"$(names "$W/mnt/$rank/one")" "$(names "$ORIGIN/one")"
	is "a name is absent there on node $rank" \
		"$(answered cat "$W/mnt/$rank/one/none" | grep -c 'No such file')" 1
done
"$COPPER" cache-stats --invalidate "$W/mnt/1" >"$T/.out" 2>&1
is 'the directory of the name can be read again' "$(answered cat "$W/mnt/1"/one/f*)" "$(cat "$ORIGIN"/one/f*)"
cat "$W/mnt/1/one/hung" >"$T/hung" 2>&1 &
reader=$!
is 'other names are found while a program waits for this one' \
	"$(answered cat "$W/mnt/1"/one/f*)" "$(cat "$ORIGIN"/one/f*)"
ok 'a program that waits for it keeps waiting' is_ours "$reader"
slow_fault clear
ok 'the program ends when the storage answers' wait_for 20 eval '! kill -0 "$reader"'
is 'the waiting program gets what the file holds' "$(cat "$T/hung")" late
ok 'the tree stops' without_tree

# ---- more names than workers

# These take 12 of at most 16 threads, however late each of them begins, and three readers below
# take three more.
for i in {1..12}; do
	slow_fault "hang=many/hung$i"
done
with_tree 1 --origin-ops 8
is 'siblings of many unanswered names are found' \
	"$(answered cat "$W/mnt/0"/many/f{1..30})" "$(cat "$ORIGIN"/many/f{1..30})"
readers=()
for i in {1..3}; do
	cat "$W/mnt/0/many/hung$i/file" >"$T/many.$i" 2>&1 &
	readers+=($!)
done
is 'other directories are answered' \
	"$(answered cat "$W/mnt/0"/other/f*)" "$(cat "$ORIGIN"/other/f*)"
slow_fault clear
for pid in "${readers[@]}"; do
	wait_for 20 eval '! kill -0 "$pid"' || fail 'a reader is answered'
done
is 'when it is over all are answered' "$(cat "$T"/many.?)" $'late\nlate\nlate'
