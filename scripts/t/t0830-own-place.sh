#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A mount without MOUNTPOINT makes one in a directory of the user's own, is found without being
# named, and leaves nothing behind, even if it is killed.
# covers: mountdir
# modes: release asan
# limit: 180
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 76

SRC=$T/src
small_tree "$SRC"

here() { # COMMAND…: with the runtime directory of this test
	as_user timeout "$(patient 60)" "$@" </dev/null
}
mounts() {
	here "$COPPER" mount --source "$SRC" >"$W/out" 2>&1 || { cat "$W/out"; return 1; }
}
place() { # of the only node
	here "$COPPER" cache-stats --json | json_value mountpoint
}
left() { # what is below the runtime directory, and runs
	echo "$(find "$run/copper" -mindepth 1 2>/dev/null | tr '\n' ' ')$(nodes_running)"
}
all_hello() {
	as_user sh -c 'cat "$1"/mnt-*/src/hello' - "$run/copper"
}
none_left() {
	[ "$(left)" = 0 ]
}
pid_of() { # MOUNTPOINT
	here "$COPPER" cache-stats --json "$1" | json_value pid
}
kill_at() { # MOUNTPOINT
	local pid
	pid=$(pid_of "$1")
	is_ours "$pid" || bail "pid $pid is not of this test"
	kill -KILL "$pid"
	wait_for 5 is_gone "$pid"
}
why_not() { # FILE: why it cannot be read
	as_user cat "$1" 2>&1 >/dev/null | sed 's/.*: //'
}
guards() { # SIGNAL
	local pid
	while read -r pid; do
		! is_ours "$pid" || kill "$1" "$pid"
	done < <(pgrep --exact cop-guard)
}
dead='Transport endpoint is not connected'

ways() { # WHO
	local who=$1 one two port pid
	# ---- alone
	ok "$who: it needs no mount point" mounts
	one=$(place)
	matches "$who: the node makes a mount point of its own" \
		"$one" "^$run/copper/mnt-[0-9a-f]{16}/src\$"
	is "$who: in a directory that is the user's alone" \
		"$(stat -c '%a %U' "${one%/*}")" "700 ${cop_user:-root}"
	is "$who: programs read there" "$(as_user cat "$one/hello")" hello
	matches "$who: cache-stats finds it unnamed" "$(here "$COPPER" cache-stats 2>&1)" '^budget '
	ok "$who: stop finds it unnamed" here "$COPPER" stop
	is "$who: stop leaves nothing" "$(left)" 0

	# ---- two
	mounts
	ok "$who: a second one finds another place" mounts
	two=$(cd "$run/copper" && echo mnt-*)
	is "$who: beside the first" "$(wc -w <<<"$two") $(all_hello | tr '\n' ' ')" '2 hello hello '
	fails_with 2 "copper stop: several copper nodes run here; name one of: $run/copper/mnt-[^ ]*/src, $run/copper/mnt-[^ ]*/src" "${cop_as[@]}" "$COPPER" stop
	ok "$who: a named one stops" here "$COPPER" stop "$one.1" # no such
	ok "$who: the first" here "$COPPER" stop "$one"
	ok "$who: the only one left is found" here "$COPPER" stop
	is "$who: nothing is left of two" "$(left)" 0

	# ---- a tree of three on one machine
	prepare_tree 3
	for rank in 0 1 2; do
		here "$COPPER" mount --hosts "$HOSTS" --rank "$rank" --secret-file "$SECRET" \
			-d "$JOB" --source "$SRC" >"$W/out.$rank" 2>&1 &
	done
	wait
	is "$who: three nodes of a tree have three places" \
		"$(all_hello | sort | uniq -c | tr -s ' ')" ' 3 hello'
	is "$who: the three places have one name" \
		"$(cd "$run/copper" && printf '%s\n' mnt-* | sed 's/\..*//' | sort -u | wc -l)" 1
	matches "$who: stop -d stops them" \
		"$(here "$COPPER" stop -d "$JOB" 2>&1)" '^stopped 3/3 nodes'
	is "$who: nothing is left of the tree" "$(left)" 0

	# ---- in the foreground
	"${cop_as[@]}" "$COPPER" mount -f --source "$SRC" >"$W/out" 2>&1 </dev/null &
	pid=$!
	wait_for 10 eval 'place >/dev/null 2>&1'
	is "$who: in the foreground as well" "$(as_user cat "$(place)/hello")" hello
	kill "$pid"
	wait "$pid"
	is "$who: a signal ends it" "$? $(left)" '0 0'

	# ---- two jobs of a scheduler share the machine
	PBS_JOBID=1.a PBS_NODEFILE='' here "$COPPER" mount --hosts localhost --source "$SRC" \
		>"$W/out" 2>&1
	PBS_JOBID=2.a PBS_NODEFILE='' here "$COPPER" mount --hosts localhost --source "$SRC" \
		>"$W/out" 2>&1
	is "$who: each job has its own" \
		"$(cd "$run/copper" && printf '%s\n' mnt-* | grep -vc '\.')" 2
	one=$(PBS_JOBID=1.a place)
	two=$(PBS_JOBID=2.a place)
	isnt=$([ -n "$one" ] && [ "$one" != "$two" ] && echo two)
	is "$who: each job finds its own" "$isnt" two
	PBS_JOBID=2.a here "$COPPER" stop >/dev/null
	is "$who: stop in a job stops that job" \
		"$(as_user cat "$one/hello") $([ ! -e "$two" ] && echo gone)" 'hello gone'
	here "$COPPER" stop >/dev/null
	is "$who: nothing is left of both" "$(left)" 0

	# ---- killed
	mounts
	one=$(place)
	kill_at "$one"
	is "$who: a killed node's place says so" "$(why_not "$one/dir/numbers")" "$dead"
	ok "$who: a node that is started again" mounts
	is "$who: has the same place" "$(place) $(as_user cat "$one/hello")" "$one hello"
	mounts
	kill_at "$one"
	is "$who: who is dead is not meant" "$(place)" "${one%/src}.1/src"
	here "$COPPER" stop >/dev/null 2>&1
	ok "$who: stop takes a dead one away" here "$COPPER" stop
	ok "$who: the place of the dead node goes, too" wait_for 20 none_left
	mounts
	kill_at "$(place)"
	guards -TERM
	ok "$who: the guard takes it away with the mount" wait_for 10 none_left
	mounts
	one=$(place)
	pid=$(pid_of "$one")
	guards -KILL
	kill -KILL "$pid"
	wait_for 5 is_gone "$pid"
	here "$COPPER" stop >/dev/null 2>&1
	is "$who: without a guard stop does" "$(left)" 0
	mounts
	one=$(place)
	pid=$(pid_of "$one")
	guards -KILL
	kill -KILL "$pid"
	wait_for 5 is_gone "$pid"
	umount -l "$one"
	here "$COPPER" stop >/dev/null 2>&1
	is "$who: stop removes it though the guard was killed right after it had unmounted" \
		"$(left)" 0

	# ---- what is there already
	mounts
	one=$(place)
	here "$COPPER" stop >/dev/null
	as_user mkdir "$W/elsewhere"
	as_user ln -s "$W/elsewhere" "${one%/src}"
	fails_with 1 "cannot open the directory $run/copper/mnt-.*(Not a directory|symbolic links)" "${cop_as[@]}" "$COPPER" mount --source "$SRC"
	is "$who: nothing is made through a link" "$(ls "$W/elsewhere")" ''
	rm "${one%/src}"
	as_user mkdir -m 777 "${one%/src}"
	chmod 777 "${one%/src}"
	fails_with 1 "mnt-[0-9a-f]* is not yours alone \(user [0-9]*, mode 777\): remove it" \
		"${cop_as[@]}" "$COPPER" mount --source "$SRC"
	rmdir "${one%/src}" "$W/elsewhere"
	as_user mkdir -m 700 "${one%/src}"
	as_user mkdir -p "$one/full"
	fails_with 1 "$one: is not empty" "${cop_as[@]}" "$COPPER" mount --source "$SRC"
	rm -r "${one%/src}"
	is "$who: nothing is left of what failed" "$(left)" 0
}

run=$XDG_RUNTIME_DIR
ways root
become_user
run=$W/run
ways user
