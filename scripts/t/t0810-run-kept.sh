#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: a command of an ordinary user enters the view that an earlier one has made, if it
# would make the same one; what ends such a view, and who gets one of their own.
# covers: view spare
# modes: release asan
# user: yes
# apart: yes
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 50

SRC=$T/src
small_tree "$SRC"
mkdir "$SRC/out" "$SRC/pkg" "$T/here" "$T/jail" "$T/other"
cp "$cop_t/process.py" "$T/process.py"
echo outside >"$T/here/text"
chmod -R a+rX "$SRC" "$T/here" "$T/process.py"

# Whether a command has said at log level info that its view is another's: yes, no, or what it said
# instead.
of_log() { # FILE
	case $(grep -o 'view=.*' "$1") in
	'view=overlay '*' shared=yes') echo yes ;;
	'view='*) echo no ;;
	*) cat "$1" ;;
	esac
}
as=(env)
shared() { # [WORD…]: of copper run
	"${as[@]}" "$COPPER" run -l 4 "$@" true 2>"$T/err.shared"
	of_log "$T/err.shared"
}
is_shared() {
	[ "$(shared)" = yes ]
}
# From now on, for some seconds, there is a view to share, unless something ends it.
keep() {
	wait_for 30 is_shared || note "no view is kept: $(cat "$T/err.shared")"
}
run() {
	"${cop_as[@]}" "$COPPER" run "$@"
}
# What was shared and then is not: DESCRIPTION WORD…, of copper run.
has_its_own() {
	local what=$1
	shift
	keep
	is "$what" "$(shared "$@") $(shared "$@")" 'no no'
}

# ---- root, who could mount something in the view of others

with_tree 1 --enoent-ttl-ms 60000
is "root's commands have views of their own" "$(shared) $(shared)" 'no no'
ok "root's tree stops" without_tree

# ---- the same view

become_user
as=("${cop_as[@]}")
export XDG_RUNTIME_DIR=$W/run
chown "$cop_user" "$SRC" "$SRC/out" "$SRC/pkg" "$T/other"
with_tree 1 --enoent-ttl-ms 60000
matches '--check says that a view would be kept' "$(run --check | tail -n 1)" \
	'^ok +shared +the next commands would use'
ok 'a later command uses the view of an earlier one' wait_for 30 is_shared
matches '--check says that a view is kept' "$(keep; run --check | tail -n 1)" \
	'^ok +shared +a command would use the view of an earlier one'
# A namespace that somebody is in keeps its number.
as_user mkfifo "$W/to" "$W/from"
hold() {
	keep
	run -l 4 sh -c 'readlink /proc/self/ns/mnt; echo $$; read -r _' <"$W/to" >"$W/from" \
		2>"$T/err.held" &
	exec 8>"$W/to" 9<"$W/from"
	read -r held_ns <&9
	read -r held_pid <&9
}
let_hold() {
	exec 8>&- 9<&-
	wait "$!"
}
in_the_same() {
	hold
	other_ns=$(run readlink /proc/self/ns/mnt)
	let_hold
	[ "$held_ns" = "$other_ns" ]
}
ok 'both are in one mount namespace' wait_for 30 in_the_same
is 'which is not that of the shell' \
	"$([ "$held_ns" = "$(readlink /proc/self/ns/mnt)" ] && echo the same)" ''

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
	same_and_shared() {
		as_given "$dir" "$COPPER" run -l 4 -- >"$T/out.given"
		mv "$T/out.given" "$T/with"
		[ "$(of_log "$T/err.given")" = yes ]
	}
	keep
	wait_for 30 same_and_shared
	ok "all is as without it, from ${dir#"$T"}" diff "$T/without" "$T/with"
	is "and it is another's view, from ${dir#"$T"}" "$(of_log "$T/err.given")" yes
done
keep
is 'the working directory below the source' \
	"$(cd "$SRC/dir" && run sh -c 'pwd; head -n 1 numbers; touch here 2>&1')" \
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
is 'a command inside stays in the view' \
	"$(run sh -c "readlink /proc/self/ns/mnt; '$COPPER' run readlink /proc/self/ns/mnt" |
		uniq | wc -l)" 1
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

# ---- who gets their own

has_its_own '--view bind' --view bind
has_its_own '--direct' --direct "$SRC/out"
has_its_own '--writable' --writable
has_its_own '--below' --below "$SRC/dir"
ok 'after these the kept view is still there' wait_for 30 is_shared
as=(setpriv --reuid "$cop_user" --regid "$cop_user" --groups 54321 env HOME="$W")
keep_as_user() {
	local as=("${cop_as[@]}")
	keep
}
keep_as_user
is 'other supplementary groups' "$(shared)" no
mount --rbind / "$T/jail"
as=(chroot --userspec "$cop_user:$cop_user" "$T/jail" env HOME="$W")
is 'another root directory' "$(shared) $(shared)" 'no no'
as=("${cop_as[@]}")
umount -l "$T/jail"
keep
is 'a source that is not there is refused as without a kept view' \
	"$(mv "$SRC" "$T/away" && run true 2>&1; echo "$?"; mv "$T/away" "$SRC")" \
	"copper run: $SRC, which the tree is to replace, cannot be reached on this machine: No such file or directory"$'\n125'

# ---- what ends it

keep
mount -t tmpfs copper-test "$T/other"
echo mounted >"$T/other/file"
is 'a mount beside it' "$(shared) $(run cat "$T/other/file")" 'no mounted'
keep
umount "$T/other"
is 'the end of a mount beside it' "$(shared) $(run ls "$T/other")" 'no '
# The user enters the namespaces of the view, as a debugger could, and mounts something there.
hold
as_user "$PYTHON" - "$held_pid" "$T/other" <<'PY' || note 'nothing is mounted in the view'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fds = [os.open(f"/proc/{sys.argv[1]}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
for fd in fds:
    if libc.setns(fd, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
if libc.mount(b"inside", sys.argv[2].encode(), b"tmpfs", 0, None):
    sys.exit(os.strerror(ctypes.get_errno()))
PY
is 'a mount inside of it' "$(grep -c " $T/other " "/proc/$held_pid/mountinfo") $(shared)" '1 no'
let_hold
keep
# A file is young for a moment, and then no view is kept.
change() { # WHAT FILE
	echo "$1" >"$SRC/pkg/tmp" && mv "$SRC/pkg/tmp" "$SRC/pkg/$2" && sleep 0.2
}
change one file
as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
looks() {
	run sh -c "cat '$SRC/pkg/file' '$SRC/pkg/new' 2>/dev/null"
}
wait_for 30 is_shared
is 'a name that is absent' "$(looks)" one
keep
is 'it stays so for the time that the user has set' "$(change new new; looks)" one
keep
change two file
ok '--invalidate' as_user "$COPPER" cache-stats --invalidate "$W/mnt/0"
is '--invalidate ends it, and everything is new' "$(looks)" $'two\nnew'

# ---- where it cannot be entered

if [ "$cop_mode" = release ] && command -v strace >/dev/null; then
	refused() {
		as_user strace -qq -o "$W/refused" -e trace=setns -e inject=setns:error=EPERM:when=2 \
			"$COPPER" run -l 4 cat "$SRC/hello" >"$T/out.refused" 2>"$T/err.refused"
		[ "$(grep -c INJECTED "$W/refused")" = 1 ]
	}
	keep
	wait_for 30 refused
	is 'a view that cannot be entered is no failure: the command makes its own' \
		"$(cat "$T/out.refused") $(of_log "$T/err.refused")" 'hello no'
else
	pass 'a view that cannot be entered # SKIP needs strace, and a program that may be traced'
fi

# ---- the end of the node

keep
ok 'the tree stops while a view is kept' without_tree
is 'nothing is left' "$(nodes_running) $(mounts_left)" '0 0'
with_tree 1 --enoent-ttl-ms 60000
keep
kill_node 0
fails_with 125 'the node at .*/mnt/0 has died: remove its mount with .copper stop ' \
	"${cop_as[@]}" "$COPPER" run true
as_user "$COPPER" stop "$W/mnt/0" >/dev/null 2>&1
cop_tree=0
is 'no mount remains of a node that was killed' "$(mounts_left)" 0

with_tree 1 --enoent-ttl-ms 60000
keep
as_user fusermount3 -u "$W/mnt/0"
is_over() {
	[ "$(nodes_running)" = 0 ]
}
ok 'a node ends soon if its mount is unmounted by hand' wait_for 5 is_over
cop_tree=0

# ---- how long

with_tree 1 --enoent-ttl-ms 500
appeared() { # NAME
	run test -e "$SRC/pkg/$1"
}
# A machine that is slower than this time shares nothing here, and the name must appear even so.
wait_for 2 is_shared
appeared later
touch "$SRC/pkg/later"
ok 'a name that appears is seen, since no view is kept for long' wait_for 30 appeared later
ok 'the tree stops' without_tree
with_tree 1 --enoent-ttl-ms 0
is 'with --enoent-ttl-ms 0 each command has its own' "$(shared) $(shared)" 'no no'
ok 'its tree stops' without_tree
with_tree 1 --enoent-ttl-ms 60000 -A
is 'with a profile of paths, too' "$(shared) $(shared)" 'no no'
ok 'this tree stops' without_tree
