#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Names that the storage has and its directories do not list: they are found whatever was asked for
# before, on each node, and the storage is asked once for each absent name.
# covers: fuse fetch origin prefetch
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 48

SRC=$T/src
for dir in first later none second; do
	mkdir -p "$SRC/$dir"
	echo "$dir" >"$SRC/$dir/file"
done
for dir in "$SRC" "$SRC/first" "$SRC/later"; do
	mkdir "$dir/.snapshot"
	echo old >"$dir/.snapshot/file"
	echo told >"$dir/Secret"
	echo told >"$dir/other"
done
find "$SRC" -exec touch -d '1 hour ago' {} +
with_slowfs --hide .snapshot --hide Secret --hide other
is 'the storage does not list them' "$(ls -A "$SRC/first")" file
is 'and has them' "$(cat "$SRC/first/.snapshot/file" "$SRC/first/Secret")" $'old\ntold'

asked() {
	tree_sum origin.operations
}
look_for() { # DIR NAME RANK…
	local rank i
	for rank in "${@:3}"; do
		for i in 1 2 3; do
			[ ! -e "$W/mnt/$rank/$1/$2" ] || note "$1/$2 exists"
		done
	done
}

# ---- each node first, no name told

find_all() { # RANK…
	local rank mnt
	for rank; do
		mnt=$W/mnt/$rank
		is "order $*, node $rank: as the first name in a directory" \
			"$(cat "$mnt/first/.snapshot/file" "$mnt/first/Secret")" $'old\ntold'
		is "order $*, node $rank: after other names, and its listing" \
			"$(ls -A "$mnt/later"; cat "$mnt/later/absent" "$mnt/later/file" "$mnt/later/Secret" \
				"$mnt/later/.snapshot/file" 2>/dev/null)" $'file\nlater\ntold\nold'
		is "order $*, node $rank: in the top directory" \
			"$(ls -A "$mnt"; cat "$mnt/.snapshot/file" "$mnt/Secret")" \
			$'first\nlater\nnone\nsecond\nold\ntold'
		is "order $*, node $rank: what is below them" "$(ls -A "$mnt/later/.snapshot")" file
	done
}
with_tree 3 --enoent-ttl-ms 600000 --bundle off
find_all 2 1 0
ls "$W/mnt/2/none" "$W/mnt/1/none" "$W/mnt/0/none" >/dev/null
before=$(asked)
look_for none absent 2 1 0
is 'an absent name is one question at the storage, whoever asks and however often' "$(($(asked) - before))" 1
ok 'the tree stops' without_tree

with_tree 3 --enoent-ttl-ms 600000 --bundle off
find_all 0 1 2
ls "$W/mnt/2/none" "$W/mnt/1/none" "$W/mnt/0/none" >/dev/null
before=$(asked)
look_for none absent 0 1 2
is 'so it is in the other order' "$(($(asked) - before))" 1
ok 'the tree stops again' without_tree

# ---- an absence ends when the directory changes

with_tree 2 --enoent-ttl-ms 1
ls "$W/mnt/1/none" "$W/mnt/0/none" >/dev/null
look_for none gone 1 0
echo late >"$T/src/none/gone"
wait_for 20 test -e "$W/mnt/1/none/gone"
wait_for 20 test -e "$W/mnt/0/none/gone"
is 'when it is made it is seen' "$(cat "$W/mnt/1/none/gone" "$W/mnt/0/none/gone")" $'late\nlate'
echo hidden >"$T/src/second/Secret"
wait_for 20 test -e "$W/mnt/1/second/Secret"
is 'so is one that is not listed' "$(cat "$W/mnt/1/second/Secret" "$W/mnt/0/second/Secret")" \
	$'hidden\nhidden'
ok 'the tree stops once more' without_tree

# ---- what an earlier job did not find

job() { # writes a recording, or uses it
	COPPER_PREFETCH='' with_tree 1
	ls -A "$W/mnt/0/second"
	cat "$W/mnt/0/second/file" "$W/mnt/0/second/Secret" 2>&1 | sed 's/.*: //'
	without_tree >/dev/null
}
find "$T/src" -exec touch -d '1 hour ago' {} +
slow_fault enoent=second/Secret
is 'a job that does not find it' "$(job)" $'file\nsecond\nNo such file or directory'
ok 'records what it needed' grep -rqs second "$XDG_CACHE_HOME/copper"
slow_fault clear
is 'the next one finds it in the same directory' "$(job)" $'file\nsecond\nhidden'

# ---- --hidden

with_tree 2 --hidden none --hidden Secret --enoent-ttl-ms 600000 --bundle off
is 'none and a name: that one is found' "$(ls -A "$W/mnt/0/later"; cat "$W/mnt/0/later/Secret")" $'file\ntold'
fails_with 1 'No such file' cat "$W/mnt/0/later/other"
ls "$W/mnt/1/none" "$W/mnt/0/none" >/dev/null
before=$(asked)
look_for none absent 1 0
is 'others are no question' "$(($(asked) - before))" 0
before=$(asked)
look_for none .snapshot 1 0
is 'one that is usually hidden is one' "$(($(asked) - before))" 1
before=$(asked)
look_for none Secret 1 0
is 'so is the one that was told' "$(($(asked) - before))" 1
before=$(asked)
look_for none Secret 1 0
is 'and none while the absence is kept' "$(($(asked) - before))" 0
ok 'the tree of --hidden stops' without_tree
fails_with 2 'contradict' "$COPPER" mount --source "$SRC" --hidden none --hidden '*' "$W/mnt/0"
is 'copper run knows the option' "$("$COPPER" run --job-dir "$W/run" --source "$SRC" --hidden none --hidden other -- \
	sh -c "ls '$SRC/later'; cat '$SRC/later/other' '$SRC/later/Secret'" 2>/dev/null)" $'file\ntold'
is 'a view finds them without it' "$("$COPPER" run --job-dir "$W/run2" --source "$SRC" -- \
	sh -c "ls '$SRC/later'; cat '$SRC/later/other' '$SRC/later/Secret'")" $'file\ntold\ntold'
matches 'the check says what it found' "$("$COPPER" mount --check --source "$SRC")" \
	'ok +listings +the file system is fuse[^ ]*, which may have names that it does not list'
matches 'and what it was told' "$("$COPPER" mount --check --source "$SRC" --hidden none)" \
	'ok +listings +.* believed .*--hidden none'
without_slowfs
