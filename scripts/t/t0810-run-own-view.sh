#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: each command of an ordinary user has a view of its own, which ends with it, and is
# otherwise as without it: from any working directory, several at once, and whatever is mounted.
# modes: release asan
# user: yes
# apart: yes
# limit: 180
# covers: view
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 26

SRC=$T/src
small_tree "$SRC"
mkdir "$SRC/pkg" "$T/here" "$T/other"
cp "$cop_t/process.py" "$T/process.py"
echo outside >"$T/here/text"
chmod -R a+rX "$SRC" "$T/here" "$T/process.py"
become_user
export XDG_RUNTIME_DIR=$W/run
chown "$cop_user" "$SRC" "$SRC/pkg" "$T/other"
run() {
	"${cop_as[@]}" "$COPPER" run "$@"
}
with_tree 1 --enoent-ttl-ms 60000

# ---- its own, and the node's user namespace

# A namespace that somebody is in keeps its number.
as_user mkfifo "$W/to" "$W/from"
hold() {
	run sh -c 'readlink /proc/self/ns/mnt /proc/self/ns/user | xargs; read -r _' \
		<"$W/to" >"$W/from" &
	exec 8>"$W/to" 9<"$W/from"
	read -r mounts user <&9
}
let_hold() {
	exec 8>&- 9<&-
	wait "$!"
}
hold
read -r mounts_2 user_2 < <(run sh -c 'readlink /proc/self/ns/mnt /proc/self/ns/user | xargs')
let_hold
ok 'two commands are in two mount namespaces' test "$mounts" != "$mounts_2"
is 'and in one user namespace' "$user" "$user_2"
is 'which are not those of the shell' \
	"$(readlink /proc/self/ns/mnt /proc/self/ns/user | grep -cxF -e "$mounts" -e "$user")" 0
is 'a command inside stays in the view' \
	"$(run sh -c "readlink /proc/self/ns/mnt; '$COPPER' run readlink /proc/self/ns/mnt" |
		uniq | wc -l)" 1

# ---- nothing else is different

who=(--reuid "$cop_user" --regid "$cop_user" --clear-groups)
as_given() { # DIRECTORY WORD…
	local dir=$1
	shift
	(
		cd "$dir" || exit
		trap '' USR1
		umask 027
		ulimit -S -c 0
		exec 7<"$T/process.py" 9>>/dev/null </dev/null 2>"$T/err.given"
		exec nice -n 3 setpriv "${who[@]}" --pdeathsig USR2 "$@" "$PYTHON" "$T/process.py" \
			show a 'b c' -- ''
	)
}
for dir in "$SRC/dir" "$T/here" /; do
	as_given "$dir" >"$T/out.given"
	mv "$T/out.given" "$T/without"
	as_given "$dir" "$COPPER" run -- >"$T/out.given"
	ok "all is as without it, from ${dir#"$T"}" diff "$T/without" "$T/out.given"
done
is 'the working directory below the source' \
	"$(cd "$SRC/dir" && run -l 2 sh -c 'pwd; head -n 1 numbers; touch here 2>&1')" \
	"$SRC/dir"$'\n1\n'"touch: cannot touch 'here': Read-only file system"
is 'the working directory elsewhere' "$(cd "$T/here" && run sh -c 'pwd; cat text')" \
	"$T/here"$'\noutside'
mkdir "$T/here/gone"
is 'a working directory that was removed is no failure' \
	"$(cd "$T/here/gone" && rmdir "$T/here/gone" && run cat "$SRC/hello" 2>&1)" hello
run sh -c 'exit 42'
is 'exit status' "$?" 42
is 'capabilities, and no_new_privs' "$(run grep -E '^(Cap|NoNewPrivs)' /proc/self/status)" \
	"$(as_user grep -E '^(Cap|NoNewPrivs)' /proc/self/status)"
is 'who it is' "$(run id)" "$(as_user id)"
fails_with 127 'no-such-command: no such command' "${cop_as[@]}" "$COPPER" run no-such-command

# ---- several at once

sum=$(sha256sum <"$SRC/dir/deeper/random")
one_of_many() { # NUMBER
	cd "$SRC/dir" && run sh -c 'cat ../hello; sha256sum <deeper/random; pwd' \
		>"$T/many.$1" 2>&1
}
for round in 1 2 3; do
	pids=()
	for i in {1..8}; do
		one_of_many "$round.$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
done
is '8 at once are right' "$(cat "$T"/many.* | sort | uniq -c | awk '{ print $1 }' | xargs)" '24 24 24'
is 'each of them' "$(cat "$T"/many.* | sort -u)" \
	"$(printf '%s\n' hello "$sum" "$SRC/dir" | sort -u)"

# ---- what has changed since the last command

mount -t tmpfs copper-test "$T/other"
echo mounted >"$T/other/file"
is 'a mount beside it' "$(run cat "$T/other/file")" mounted
umount "$T/other"
is 'the end of a mount beside it' "$(run ls "$T/other")" ''
is 'a source that is not there is refused' \
	"$(mv "$SRC" "$T/away" && run true 2>&1; echo "$?"; mv "$T/away" "$SRC")" \
	"copper run: $SRC, which the tree is to replace, cannot be reached on this machine: No such file or directory"$'\n125'
change() { # WHAT FILE
	echo "$1" >"$SRC/pkg/tmp" && mv "$SRC/pkg/tmp" "$SRC/pkg/$2" && sleep 0.2
}
looks() {
	run sh -c "cat '$SRC/pkg/file' '$SRC/pkg/new' 2>/dev/null"
}
change one file
as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
is 'a name that is absent' "$(looks)" one
change new new
change two file
as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
is 'after --invalidate the next command sees all that is new' "$(looks)" $'two\nnew'

# ---- the end of the node

ok 'the tree stops' without_tree
is 'nothing is left' "$(nodes_running) $(mounts_left)" '0 0'
with_tree 1
run true
kill_node 0
fails_with 125 'the node at .*/mnt/0 has died: remove its mount with .copper stop ' \
	"${cop_as[@]}" "$COPPER" run true
as_user "$COPPER" stop "$W/mnt/0" >/dev/null 2>&1
cop_tree=0
is 'no mount remains of a node that was killed' "$(mounts_left)" 0
with_tree 1
run true
# It wants an /etc/mtab.
as_user fusermount3 -u "$W/mnt/0" 2>/dev/null || umount "$W/mnt/0"
is_over() {
	[ "$(nodes_running)" = 0 ]
}
ok 'a node ends soon if its mount is unmounted by hand' wait_for 5 is_over
cop_tree=0
