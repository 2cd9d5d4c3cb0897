#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Names that the storage has and its directories do not list: they are found whatever was asked for
# before, and what that costs the storage.
# covers: fuse fetch origin
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

SRC=$T/src
for dir in first later none; do
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

with_tree 2 --hidden Secret --enoent-ttl-ms 600000
for rank in 1 0; do
	mnt=$W/mnt/$rank
	is "node $rank: as the first name in a directory" \
		"$(cat "$mnt/first/.snapshot/file" "$mnt/first/Secret")" $'old\ntold'
	is "node $rank: after other names, and its listing" \
		"$(ls -A "$mnt/later"; cat "$mnt/later/file" "$mnt/later/Secret" "$mnt/later/.snapshot/file")" \
		$'file\nlater\ntold\nold'
	is "node $rank: in the top directory" "$(ls -A "$mnt"; cat "$mnt/.snapshot/file" "$mnt/Secret")" \
		$'first\nlater\nnone\nold\ntold'
done
# What they hold is listed as usual.
is 'what is below them' "$(ls -A "$W/mnt/1/later/.snapshot")" file

# Each of these is one question at the storage at most, whoever asks and however often.
asked() {
	tree_sum origin.operations
}
look_for() { # NAME
	local rank i
	for rank in 1 0; do
		for i in 1 2 3; do
			[ ! -e "$W/mnt/$rank/none/$1" ] || note "$1 exists"
		done
	done
}
ls "$W/mnt/1/none" "$W/mnt/0/none" >/dev/null
before=$(asked)
look_for absent
is 'an absent name that is not known to be hidden is no question' "$(($(asked) - before))" 0
before=$(asked)
look_for .snapshot
is_at_most 'one that may be hidden is one' "$(($(asked) - before))" 1
before=$(asked)
look_for Secret
is_at_most 'so is one that --hidden names' "$(($(asked) - before))" 1
before=$(asked)
look_for Secret
is 'and none while the absence is kept' "$(($(asked) - before))" 0
ok 'the tree stops' without_tree

with_tree 1 --hidden '*'
is 'any name: after other names' "$(ls -A "$W/mnt/0/later"; cat "$W/mnt/0/later/other")" $'file\ntold'
fails_with 1 'No such file' cat "$W/mnt/0/later/absent"
is 'copper run knows the option' "$("$COPPER" run --job-dir "$W/run" --source "$SRC" --hidden other -- \
	sh -c "ls '$SRC/later'; cat '$SRC/later/other'")" $'file\ntold'
ok 'the tree stops again' without_tree
without_slowfs
