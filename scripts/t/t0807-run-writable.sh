#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --writable: what a program changes in its tree is its own, in memory or in a directory;
# nobody else sees it.
# covers: view
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 44

SRC=$T/src
small_tree "$SRC"
mkdir -p "$SRC/mine/lib" "$SRC/others" "$SRC/project"
echo 'answer = 42' >"$SRC/mine/lib/module.py"
echo data >"$SRC/mine/data"
echo theirs >"$SRC/others/file"
seq 1 1000 >"$SRC/mine/big"

run() {
	as_user "$COPPER" run "$@"
}
changes='
	echo changed >data && echo more >>big && rm lib/module.py.gone 2>/dev/null
	mv data moved; mkdir -p new/deep && echo x >new/deep/file; ln -s moved link
	rm -r lib/sub 2>/dev/null; chmod 600 moved; cat link new/deep/file; tail -n 2 big'
writes() { # WHO
	with_tree 1
	find "$SRC" -printf '%P %y %m %s %T@ %l\n' | LC_ALL=C sort >"$T/before"
	is "$1: a program changes its tree" \
		"$(cd "$SRC/mine" && run --writable sh -c "$changes" 2>&1)" \
		$'changed\nx\n1000\nmore'
	is "$1: there is no warning" "$(cd "$SRC/mine" && run --writable true 2>&1)" ''
	is "$1: __pycache__ is written" \
		"$(cd "$SRC/mine" && as_user env -u PYTHONDONTWRITEBYTECODE \
			"$COPPER" run --writable \
		sh -c "$PYTHON -c 'import sys; sys.path.insert(0, \"lib\"); import module; print(module.answer)' && ls lib/__pycache__ | wc -l" 2>&1)" $'42\n1'
	is "$1: the source is as it was" \
		"$(find "$SRC" -printf '%P %y %m %s %T@ %l\n' | LC_ALL=C sort |
			cmp - "$T/before" 2>&1)" ''
	is "$1: the next command sees nothing of it" \
		"$(run --writable sh -c "ls '$SRC/mine' | tr '\n' ' '; cat '$SRC/mine/data'")" \
		'big data lib data'
	is "$1: children share it" \
		"$(cd "$SRC/mine" && run --writable sh -c 'echo child >from && sh -c "cat from; '"$COPPER"' run cat from"' 2>&1)" $'child\nchild'
	is "$1: it is bounded, and df tells" \
		"$(cd "$SRC/mine" && run --writable sh -c 'df --output=size -k . | tail -n 1' | awk -v ram="$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" '{ print ($1 > 1000 && $1 <= ram / 4 + 8 ? "bounded" : $1) }')" bounded
	as_user mkdir "$W/changes"
	is "$1: a program changes its tree in a directory" \
		"$(cd "$SRC/mine" && run --writable="$W/changes" sh -c "$changes" 2>&1)" \
		$'changed\nx\n1000\nmore'
	is "$1: where it stays for the next" \
		"$(cd "$SRC/mine" && run --writable="$W/changes" \
			sh -c 'cat moved new/deep/file; ls data 2>&1')" \
		$'changed\nx\n'"ls: cannot access 'data': No such file or directory"
	ok "$1: others see nothing of that either" test "$(run cat "$SRC/mine/data")" = data
	is "$1: the source is as it was, with a directory" \
		"$(find "$SRC" -printf '%P %y %m %s %T@ %l\n' | LC_ALL=C sort |
			cmp - "$T/before" 2>&1)" ''
	fails_with 125 'writable=.*nowhere: No such file' \
		"${cop_as[@]}" "$COPPER" run --writable="$W/nowhere" true
	fails_with 125 'writable=.*hello: Not a directory' \
		"${cop_as[@]}" "$COPPER" run --writable="$SRC/hello" true
	as_user mkfifo "$W/hold"
	run --writable="$W/changes" sh -c "cat '$W/hold'" &
	holder=$!
	exec 8>"$W/hold"
	fails_with 125 'writable=.*changes: another command uses it' \
		"${cop_as[@]}" "$COPPER" run --writable="$W/changes" true
	exec 8>&-
	wait "$holder"
	ok "$1: the directory is free for the next command" run --writable="$W/changes" true
	rm "$W/hold"
	chmod -R u+rwx "$W/changes" && rm -rf "$W/changes"
	ok "$1: the tree stops" without_tree
}
writes root
become_user
run=("${cop_as[@]}" "$COPPER" run)
mkdir -m 755 "$T/away"
export XDG_RUNTIME_DIR=$W/run
chown -R "$cop_user:$cop_user" "$SRC/mine"
chown "$cop_user:54321" "$SRC/project" && chmod 2770 "$SRC/project"
echo text >"$SRC/project/file" && chown "$cop_user:54321" "$SRC/project/file"
writes user
with_tree 1
is 'what the modes forbid stays forbidden' \
	"$(run --writable sh -c "echo x >'$SRC/others/file'" 2>&1 | sed 's/.*: //')" \
	'Permission denied'
fails_with 125 'writable=.*away: Permission denied' "${run[@]}" --writable="$T/away" true

# ---- directories of a project's group, which the user namespace does not know

if [ -n "$cop_user" ]; then
	matches 'that their files cannot be changed is said' \
		"$(cd "$SRC/project" && run --writable true 2>&1)" \
		"^copper run: warning: .*$SRC/project belongs to the group 54321, .*sg\\(1\\)"
	is 'in memory, and in a directory' \
		"$(cd "$SRC/project" && run -l 2 --writable sh -c 'echo x >file' 2>&1 |
			sed 's/.*: //')" 'Value too large for defined data type'
	grouped=(setpriv --reuid "$cop_user" --regid 54321 --clear-groups env HOME="$W"
		XDG_RUNTIME_DIR="$W/run" TMPDIR="$W")
	fails_with 125 'Permission denied: .*the user and the group of its node' \
		"${grouped[@]}" "$COPPER" run true
	as_user mkdir "$W/grouped"
	chown "$cop_user:54321" "$W/grouped"
	"${grouped[@]}" timeout "$(patient 60)" "$COPPER" mount --hosts localhost --source "$SRC" \
		"$W/grouped" >/dev/null 2>&1
	is 'with that group the node and the command can change them' \
		"$(cd "$SRC/project" && "${grouped[@]}" "$COPPER" run --mount "$W/grouped" \
			--writable sh -c 'echo x >>file; cat file; stat -c %g file' 2>&1)" \
		$'text\nx\n54321'
	"${grouped[@]}" "$COPPER" stop "$W/grouped" >/dev/null
else
	for how in said refused node changed; do
		pass "the group of a project, $how # SKIP needs root, to become an ordinary user"
	done
fi

# ---- an environment into which pip installs, whose owner is this user

if { "$PYTHON" -m venv --without-pip "$T/probe" && "$PYTHON" -m pip --version; } >/dev/null 2>&1; then
	as_user "$COPPER" stop "$W/mnt/0" >/dev/null
	"$PYTHON" -m venv "$SRC/mine/venv" >/dev/null 2>&1 ||
		"$PYTHON" -m venv --without-pip --system-site-packages "$SRC/mine/venv"
	chown -R "$cop_user:$cop_user" "$SRC/mine/venv"
	mkdir -p "$T/wheel/added" "$T/wheel/added-1.0.dist-info"
	echo 'value = "installed"' >"$T/wheel/added/__init__.py"
	printf 'Metadata-Version: 2.1\nName: added\nVersion: 1.0\n' \
		>"$T/wheel/added-1.0.dist-info/METADATA"
	printf 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n' \
		>"$T/wheel/added-1.0.dist-info/WHEEL"
	printf 'added/__init__.py,,\nadded-1.0.dist-info/METADATA,,\nadded-1.0.dist-info/WHEEL,,\nadded-1.0.dist-info/RECORD,,\n' >"$T/wheel/added-1.0.dist-info/RECORD"
	(cd "$T/wheel" && "$PYTHON" -m zipfile -c "$T/added-1.0-py3-none-any.whl" added \
			added-1.0.dist-info)
	chmod 644 "$T/added-1.0-py3-none-any.whl"
	with_tree 1
	is 'pip installs into it' \
		"$(run --writable sh -c "'$SRC/mine/venv/bin/python' -m pip install --no-index --quiet --disable-pip-version-check '$T/added-1.0-py3-none-any.whl' 2>&1 &&
		'$SRC/mine/venv/bin/python' -c 'import added; print(added.value)'")" installed
	is 'pip changes nothing else' "$(find "$SRC/mine/venv" -name 'added*')" ''
else
	pass 'pip # SKIP no venv, or no pip'
	pass 'pip # SKIP no venv, or no pip'
fi

# ---- full

is 'a full one is ENOSPC, and what is there stays readable' "$(run --writable sh -c "
	size=\$(df --output=avail -k '$SRC/mine' | tail -n 1)
	fallocate -l \$((size / 2))K '$SRC/mine/one' && fallocate -l \$size'K' '$SRC/mine/two' 2>&1 | sed 's/.*: //'; cat '$SRC/mine/data'")" $'No space left on device\ndata'
ok 'the tree stops' without_tree
is 'no mount remains' "$(mounts_left)" 0
is 'no node runs any more' "$(nodes_running)" 0
