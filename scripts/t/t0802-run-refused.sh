#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: what is impossible is refused with a sentence and the right exit status, and leaves
# nothing behind; where this machine refuses a view, the next one is used.
# covers: view check
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 40

SRC=$T/src
small_tree "$SRC"
mkdir "$SRC/bin" "$SRC/other"
printf '#!/not/there\n' >"$SRC/bin/lost"
chmod 755 "$SRC/bin/lost"
chmod -R a+rX "$SRC"
become_user
export XDG_RUNTIME_DIR=$W/run
run=("${cop_as[@]}" "$COPPER" run)

# ---- the command line, and no tree

fails_with 2 'COMMAND is missing' "${run[@]}"
fails_with 2 "unknown option '--veiw'" "${run[@]}" --veiw env true
fails_with 2 "'fuse' is not one of overlay, bind, env" "${run[@]}" --view fuse true
fails_with 2 'needs the view overlay' "${run[@]}" --view bind --writable true
fails_with 125 "no copper node of this user runs here: 'copper mount " "${run[@]}" true
fails_with 125 'no copper node of this user runs at /usr' "${run[@]}" --mount /usr true

# ---- the command

# Each command makes a view of its own.
with_tree 1 --enoent-ttl-ms 0
fails_with 127 'no-such-command: no such command' "${run[@]}" no-such-command
fails_with 127 '/no/such: no such command' "${run[@]}" /no/such
mkdir -m 0 "$T/locked"
[ -z "$cop_user" ] || chmod 700 "$T/locked"
fails_with 127 'no-such-command: no such command' \
	env PATH="$T/locked:$PATH" "${run[@]}" no-such-command
fails_with 126 'hello: Permission denied' env PATH="$PATH:$SRC:$T/locked" "${run[@]}" hello
fails_with 127 'lost: its interpreter does not exist' "${run[@]}" "$SRC/bin/lost"
fails_with 126 'hello: Permission denied' "${run[@]}" "$SRC/hello"
fails_with 126 'dir: Permission denied' "${run[@]}" "$SRC/dir"
fails_with 125 'Too many open files' bash -c 'ulimit -n 4; exec "$@"' - "${run[@]}" true
fails_with 125 '--direct .*/nowhere: No such file' "${run[@]}" --direct "$SRC/nowhere" true
fails_with 125 '--below /usr: that is not below' "${run[@]}" --below /usr true

# ---- the source here differs from the one elsewhere

mkdir "$T/empty" "$T/away"
fails_with 125 'hello, which the tree is to replace, is not a directory' \
	"${run[@]}" --below "$SRC/hello" true
fails_with 125 \
	'src, which the tree is to replace, cannot be reached on this machine: No such file' \
	bash -c 'mv "$1" "$2"; shift 2; "$@"; s=$?; mv "$0/away/src" "$0/src"; exit $s' "$T" \
	"$SRC" "$T/away/src" "${run[@]}" true
fails_with 125 'no tree is mounted at .* as this process sees it' \
	"${cop_apart[@]}" sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$T/empty" \
	"$W/mnt/0" "${run[@]}" true

# ---- what this machine refuses: by a limit, and by strace instead of a security module

# Its own user namespace has no further ones; root in it may not mount: setpriv.
without_namespaces() { # COMMAND…
	as_user unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "$@"' sh "$@"
}
is 'namespaces are off: variables are rewritten' \
	"$(PATH=$SRC/bin:$PATH without_namespaces "$COPPER" run sh -c 'echo "$PATH"' |
		cut -d : -f 1)" "$W/mnt/0/bin"
matches '--check says why namespaces are off' "$(without_namespaces "$COPPER" run --check)" \
	'^warning +view +env: .*user\.max_user_namespaces is 0'
matches 'mount --check says why, too' \
	"$(without_namespaces "$COPPER" mount --check --source "$SRC" "$W/run" | grep ' view ')" \
	'^warning +view .*env: .*user\.max_user_namespaces is 0'
matches 'the log says why, too' "$(without_namespaces "$COPPER" run -l 4 true 2>&1)" \
	'view=env .* why=.*user\.max_user_namespaces is 0'
is 'demanded, it is refused' \
	"$(without_namespaces "$COPPER" run --view overlay true 2>&1; echo $?)" \
	'copper run: this machine refuses user namespaces to ordinary users (user.max_user_namespaces is 0): ask its administrator'$'\n125'
is '--direct is refused' \
	"$(without_namespaces "$COPPER" run --direct "$SRC/other" true 2>&1 |
		wc -l; without_namespaces "$COPPER" run --direct "$SRC/other" \
			true 2>/dev/null; echo $?)" $'1\n125'

if [ "$cop_mode" = release ] && command -v strace >/dev/null; then
	inject() { # SYSTEM CALL, ERROR AND WHEN, COMMAND…
		local what=$1
		shift
		as_user strace -qq -o /dev/null -e "trace=${what%%:*}" -e "inject=$what" \
			"$COPPER" run "$@"
	}
	# The propagation, the file system in memory, the overlay.
	matches 'an overlay is refused: a bind' \
		"$(inject mount:error=EPERM:when=3 -l 4 cat "$SRC/hello" 2>&1 | tr '\n' ' ')" \
		'view=bind .*why=an overlay of .* since 5\.11.* hello $'
	is 'a demanded overlay fails' \
		"$(inject mount:error=EPERM:when=3 --view overlay true 2>/dev/null; echo $?)" 125
	matches 'without overlayfs the view is a bind' \
		"$(inject mount:error=ENODEV:when=3 -l 4 cat "$SRC/hello" 2>&1 | tr '\n' ' ')" \
		'view=bind .*no overlayfs.* hello $'
	matches 'without a namespace the view is variables' \
		"$(inject setns,unshare:error=EPERM -l 4 true 2>&1)" \
		'view=env .*a container or a security module'
	matches 'no further mount namespace: variables' \
		"$(inject unshare:error=ENOSPC -l 4 true 2>&1)" \
		'view=env .*no further mount namespace .*user\.max_mnt_namespaces'
	is 'where no mount is allowed, copper run fails' \
		"$(inject move_mount:error=EACCES --view bind true 2>/dev/null; echo $?)" 125
else
	for why in bind demanded module namespace further nothing; do
		pass "$why # SKIP needs strace, and a program that may be traced"
	done
fi

# ---- several trees

as_user mkdir -p "$W/second"
as_user timeout "$(patient 60)" "$COPPER" mount --hosts localhost --source "$SRC/other" \
	"$W/second" >/dev/null 2>&1 || note 'no second node'
fails_with 125 'several copper nodes run here.* --mount with one of: ' "${run[@]}" true
is 'the working directory tells which' \
	"$(cd "$SRC/other" && "${run[@]}" -l 4 true 2>&1 | grep -o 'mountpoint=.*')" \
	"mountpoint=$W/second"
is 'the command tells which node is meant' \
	"$(cd "$T" && "${run[@]}" -l 4 "$SRC/bin/../dir/../../src/bin/lost" 2>&1 |
		grep -o 'mountpoint=.*')" "mountpoint=$W/mnt/0"
is 'an option tells which node is meant' \
	"$("${run[@]}" -l 4 --mount "$W/second" true 2>&1 | grep -o 'mountpoint=.*')" \
	"mountpoint=$W/second"
# VARIABLE=VALUE…: a view of the second tree inside of one of the first, which has a namespace of
# its own.
within() {
	"${cop_as[@]}" env "$@" "$COPPER" run --mount "$W/mnt/0" "$COPPER" run \
		--mount "$W/second" true 2>&1
}
if [ -n "$cop_user" ]; then
	matches 'a second tree inside of a view: that tasks cannot reach each other is said' \
		"$(within A=b)" '^copper run: warning: .*cannot reach each other.* --below'
	is 'once, not by each task' "$(within SLURM_PROCID=3)" ''
else
	pass 'a second tree inside of a view # SKIP needs root, to become an ordinary user'
	pass 'once # SKIP needs root, to become an ordinary user'
fi
as_user "$COPPER" stop "$W/second" >/dev/null

# ---- a node inside of a view

if [ -n "$cop_user" ]; then
	matches 'a node cannot be started inside of a view' \
		"$("${run[@]}" "$COPPER" mount --hosts localhost --source "$SRC/other" 2>&1 |
			tail -n 1)" \
		'^copper mount: .*: mounting failed: Operation not permitted: .*user namespace.* outside'
else
	pass 'a node inside of a view # SKIP needs root, to become an ordinary user'
fi

# ---- a node that died

kill_node 0
fails_with 125 'the node at .*/mnt/0 has died: remove its mount with .copper stop ' "${run[@]}" true
as_user "$COPPER" stop "$W/mnt/0" >/dev/null 2>&1
cop_tree=0
is 'no mount remains' "$(mounts_left)" 0
