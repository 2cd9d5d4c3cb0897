#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes die while others read: readers wait, and never see an error, an empty file or a wrong byte.
# covers: rpc fetch reach
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 17

SRC=$T/src
numbered_files "$SRC/many" 400 100000
checksums "$SRC" >"$T/want"
with_slowfs --direct-io --meta-us 500 --read-us 1000 --slots 8

# Reads everything on the given nodes in the background; await_readers gets the verdict.
start_readers() { # RANK…
	local rank
	readers=()
	for rank in "$@"; do
		(checksums "$W/mnt/$rank" >"$T/got.$rank" 2>"$T/errors.$rank") &
		readers+=("$rank:$!")
	done
}
# The same until each of them waits for a file in the middle, which the source holds back.
half_read() { # RANK…
	local rank
	slow_fault hang=many/file00200
	start_readers "$@"
	for rank in "$@"; do
		wait_for 30 test -s "$T/got.$rank" || bail "node $rank reads nothing"
	done
}
await_readers() { # WHAT
	local reader
	for reader in "${readers[@]}"; do
		wait "${reader#*:}"
		is "$1: node ${reader%%:*} reads everything right" \
			"$(cat "$T/errors.${reader%%:*}"; cmp "$T/want" \
				"$T/got.${reader%%:*}" 2>&1)" ''
	done
}

# In a single tree of fan-out 2 some node is both parent and child; the nodes themselves report
# which.
inner_node() {
	local i parent
	for ((i = 0; i < cop_tree; i++)); do
		parent=$(node_stat "$i" parent)
		if [ "$parent" != None ] && [ "$(node_stat "$parent" parent)" != None ]; then
			echo "$parent"
			return
		fi
	done
}
root_node() {
	local i
	for ((i = 0; i < cop_tree; i++)); do
		[ "$(node_stat "$i" parent)" != None ] || { echo "$i"; return; }
	done
}
all_but() { # RANK…
	local i
	for ((i = 0; i < cop_tree; i++)); do
		case " $* " in
		*" $i "*) ;;
		*) echo "$i" ;;
		esac
	done
}

with_tree 7 --trees 1 --fanout 2 --peer-timeout 1
inner=$(inner_node)
mapfile -t others < <(all_but "$inner")
half_read "${others[@]}"
kill_node "$inner"
slow_fault clear
await_readers "inner node $inner killed"
is_at_most 'its children went to somebody else' 1 "$(tree_sum fabric.failovers)"
ok 'the remaining nodes stop' without_tree

with_tree 7 --trees 1 --fanout 2 --peer-timeout 1
root=$(root_node)
mapfile -t others < <(all_but "$root")
half_read "${others[0]}" "${others[3]}" "${others[5]}"
for child in "${others[@]}"; do
	[ "$(node_stat "$child" parent)" != "$root" ] || break
done
kill_node "$root"
slow_fault clear
await_readers "root $root killed"
kill_node "$child"
umount -l "$W/mnt/$child"
unset "cop_killed[$child]"
ok "child $child of the killed node starts again without it" \
	start_node "$child" --trees 1 --fanout 2 --peer-timeout 1 --ready-timeout "$(patient 20)"
ok 'the remaining nodes of the tree stop' without_tree

# A node that has not had a processor for that long looks dead, so it is longer on a busy machine.
timeout_s=$(patient 1)
timeout_s=$((timeout_s < 10 ? timeout_s : 10))
with_tree 4 --trees 1 --peer-timeout "$timeout_s"
ls -lR "$W/mnt/3" >/dev/null
# If the machine stands still for longer all the same, a node is taken for dead; then once more,
# with another file.
for hung in file00007 file00107 file00207; do
	failovers=$(tree_sum fabric.failovers)
	slow_fault "hang=many/$hung"
	timeout "$(patient 90)" cat "$W/mnt/3/many/$hung" >"$T/hung" &
	reader=$!
	sleep $((4 * timeout_s))
	[ "$(tree_sum fabric.failovers)" -ne "$failovers" ] || break
	note "$(grep -h 'peer is dead' "$JOB"/logs/*)"
	[ "$hung" != file00207 ] || break
	slow_fault clear
	wait "$reader"
done
ok 'while the source hangs the reader waits' is_ours "$reader"
is 'other files are served meanwhile' \
	"$(cmp "$W/mnt/3/many/file00008" "$ORIGIN/many/file00008" 2>&1)" ''
is 'no node was taken for dead' "$(tree_sum fabric.failovers)" "$failovers"
slow_fault clear
wait "$reader"
is 'the reader gets the file when the source goes on' \
	"$(cmp "$T/hung" "$ORIGIN/many/$hung" 2>&1)" ''
