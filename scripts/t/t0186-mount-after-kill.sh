#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node that is killed while it has much memory takes a while to end. A mount in its place waits
# for that.
# covers: mountguard mountdir
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 3

SRC=$T/src
small_tree "$SRC"
head -c 60000000 /dev/zero | tr '\0' x >"$SRC/large"
chmod a+r "$SRC/large"
rounds=${COP_ROUNDS:-12}

prepare_tree 1
mnt=$W/mnt/0
mount_here() {
	timeout "$(patient 60)" "$COPPER" mount --source "$SRC" --cache-size 128M \
		"$mnt" </dev/null >"$W/out.0" 2>&1
}
cop_tree=1
mount_here || bail "$(cat "$W/out.0")"
failed=0 wrong=0 notes=0
for ((i = 0; i < rounds; i++)); do
	cat "$mnt/large" >/dev/null
	pid=$(node_stat 0 pid) && is_ours "$pid" || bail "no pid in round $i"
	kill -KILL "$pid"
	mount_here || {
		failed=$((failed + 1))
		note "round $i: $(cat "$W/out.0")"
		wait_for 10 mount_here || bail 'it does not start at all'
	}
	notes=$((notes + $(grep -c 'removed the dead mount of an earlier node' "$W/out.0")))
	[ "$(cat "$mnt/hello")" = hello ] && [ "$(grep -c " $mnt " /proc/self/mountinfo)" -eq 1 ] ||
		wrong=$((wrong + 1))
done
note "$notes of $rounds met the dead mount"
is "a mount in the place of a node that was just killed works, $rounds times of $rounds" "$failed" 0
is 'the new mount shows the right files, and is the only one there' "$wrong" 0
ok 'the new mount stops' without_tree
