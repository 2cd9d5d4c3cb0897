#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A named mount point that is missing is created, with the directories above it, and removed with
# the mount; an existing one stays.
# covers: mountdir
# modes: release asan
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 67

SRC=$T/src
small_tree "$SRC"
mounts() { # MOUNTPOINT [OPTION…]
	local at=$1
	shift
	as_user timeout "$(patient 60)" "$COPPER" mount --source "$SRC" "$@" "$at" </dev/null \
		>"$W/out" 2>&1 || {
		cat "$W/out"
		return 1
	}
}
stops() { # [MOUNTPOINT]
	as_user timeout "$(patient 60)" "$COPPER" stop "$@" >/dev/null 2>&1
}
kill_at() { # MOUNTPOINT
	local pid
	pid=$(as_user "$COPPER" cache-stats --json "$1" | json_value pid)
	is_ours "$pid" || bail "pid $pid is not of this test"
	kill -KILL "$pid"
	wait_for 5 is_gone "$pid"
}
guards_end() {
	local pid
	while read -r pid; do
		! is_ours "$pid" || kill "$pid"
	done < <(pgrep --exact cop-guard)
}
nothing_left() {
	[ -z "$(ls "$W/made/by")" ]
}

ways() { # WHO
	local who=$1 at=$W/made/by/node
	ok "$who: one that is missing is made" mounts "$at"
	is "$who: with what is above it, for the user alone" \
		"$(stat -c %a "$W/made" "$W/made/by" | tr '\n' ' ')" '700 700 '
	is "$who: programs read there" "$(as_user cat "$at/hello")" hello
	ok "$who: stop finds it by its name" stops "$at"
	is "$who: nothing of the node is left" "$([ ! -e "$W/made" ] && echo gone)" gone
	ok "$who: stopping it again is no failure" stops "$at"

	as_user mkdir -p "$W/made/by"
	ok "$who: what was above it" mounts "$at"
	stops "$at"
	is "$who: stays" "$(find "$W/made")" "$W/made
$W/made/by"
	as_user mkdir "$at"
	mounts "$at"
	stops "$at"
	is "$who: one that was there stays" "$(ls -d "$at")" "$at"
	rmdir "$at"
	(cd "$W" && mounts ./made/by/../by/node/) >/dev/null
	is "$who: the node can be read by another name of the directory" \
		"$(as_user cat "$at/hello")" hello
	stops "$at"
	is "$who: it goes as well" "$(ls "$W/made/by")" ''

	mounts "$at"
	kill_at "$at"
	is "$who: while its node is dead it stays" \
		"$(as_user cat "$at/dir/numbers" 2>&1 >/dev/null | sed 's/.*: //')" \
		'Transport endpoint is not connected'
	ok "$who: the next node takes it over" mounts "$at"
	is "$who: the next node reads" "$(as_user cat "$at/hello")" hello
	stops "$at"
	is "$who: the next node removes the directory at the end" "$(ls "$W/made/by")" ''
	mounts "$at"
	kill_at "$at"
	guards_end
	ok "$who: a guard removes it, too" wait_for 10 nothing_left
	for round in 1 2 3; do
		mounts "$at"
		kill_at "$at"
		guards_end
		ok "$who: the next node may come while it does ($round)" mounts "$at"
		is "$who: the next node has the directory ($round)" \
			"$(as_user cat "$at/hello")" hello
		stops "$at"
		ok "$who: the directory goes with the node ($round)" wait_for 5 nothing_left
	done
	mounts "$at"
	kill_at "$at"
	stops "$at"
	ok "$who: nothing is left when it is stopped" wait_for 5 nothing_left
	is "$who: the socket is gone" "$(find "$run/copper" -type s)" ''

	fails_with 1 "no/where: No such file" \
		"${cop_as[@]}" "$COPPER" mount --source "$W/no/where" "$at"
	is "$who: who does not start leaves nothing" "$(ls "$W/made/by")" ''
	matches "$who: --check says that it will be made" \
		"$(as_user "$COPPER" mount --check --source "$SRC" "$at")" \
		"^ok +mountpoint +$at will be created, and removed at the end"
	matches "$who: --check says where it will be made" \
		"$(as_user "$COPPER" mount --check --source "$SRC")" \
		"^ok +mountpoint +none is given: $run/copper/mnt-[0-9a-f]+/src will be created"
	is "$who: --check makes nothing" "$(find "$W/made" "$run/copper" | wc -l)" 3
	rmdir "$W/made/by" "$W/made"
}

run=$XDG_RUNTIME_DIR
ways root
become_user
run=$W/run
ways user
mkdir -m 755 "$T/of-root"
fails_with 1 "$T/of-root/a/b: there is no such directory, and it cannot be created: Permission denied; name a mount point below a directory that you may write to, or none" \
	"${cop_as[@]}" "$COPPER" mount --source "$SRC" "$T/of-root/a/b"
fails_with 2 '--allow-other needs a MOUNTPOINT' "$COPPER" mount --source "$SRC" --allow-other
fails_with 2 'without a MOUNTPOINT, give a --source other than' "$COPPER" mount
