#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: a command finds the tree at the place of its source, as root and as an ordinary user,
# with each view.
# covers: view mountdir
# quick: yes
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 64

SRC=$T/src
small_tree "$SRC"
mkdir "$SRC/tools" "$SRC/old" "$SRC/out"
ln -s "$PYTHON" "$SRC/tools/python"
printf '#!%s/tools/python\nimport sys\nprint(sys.executable, sys.argv[1:])\n' \
	"$SRC" >"$SRC/tools/script"
chmod 755 "$SRC/tools/script"
chmod -R a+rX "$SRC"

run() {
	as_user "$COPPER" run "$@"
}
# What is below the source comes from the tree: the storage has a name that the node has not looked
# up yet.
requests() {
	node_json 0 | "$PYTHON" -c 'import json, sys; print(sum(v for k, v in json.load(sys.stdin)["fuse"].items() if k in ("lookup", "getattr", "readdir", "readdirplus", "read", "readlink")))'
}
# The directory for results is there, and the user's, before the node is: one that has found the
# source unchanged for some seconds need not know a new name yet.
all_views() { # WHO
	local view before
	[ -z "$cop_user" ] || chown "$cop_user" "$SRC/out"
	with_tree 1
	matches "$1: --check tells the view" "$(run --check)" '^ok +view +overlay$'
	for view in overlay bind; do
		is "$1, $view: a file" "$(run --view "$view" -- cat "$SRC/hello")" hello
		is "$1, $view: changes are refused" "$(run --view "$view" touch "$SRC/new" 2>&1)" \
			"touch: cannot touch '$SRC/new': Read-only file system"
		is "$1, $view: an absolute shebang" \
			"$(run --view "$view" "$SRC/tools/script" -x y)" \
			"$SRC/tools/python ['-x', 'y']"
		is "$1, $view: the working directory below the source" \
			"$(cd "$SRC/dir" && run -l 2 --view "$view" sh -c 'pwd; head -n 1 numbers; touch here 2>&1')" \
			"$SRC/dir"$'\n1\n'"touch: cannot touch 'here': Read-only file system"
		matches "$1, $view: what it is" \
			"$(run --view "$view" cat /proc/self/mountinfo |
				awk -v at="$SRC" '$5 == at' | tail -n 1)" \
			"$([ "$view" = overlay ] && echo ' - overlay copper:' ||
				echo ' - fuse.copper ')"
		before=$(requests)
		run --view "$view" sh -c "cat '$SRC/dir/deeper/random' | sha256sum" |
			cmp -s - <(sha256sum <"$SRC/dir/deeper/random") || note 'wrong bytes'
		ok "$1, $view: it comes through the node" \
			test "$(requests)" -gt "$before" -o "$view" = bind
		matches "$1, $view: the log says so" "$(run -l 4 --view "$view" true 2>&1)" \
			"view=$view source=$SRC mountpoint=$W/mnt/0"
	done
	is "$1: other processes see the storage" "$(grep -c " $SRC " /proc/self/mountinfo)" 0
	is "$1, env: variables" \
		"$(as_user env PATH="$SRC/tools:/usr/bin:$SRC/not-there" \
			LD_LIBRARY_PATH="/lib:$SRC" "$COPPER" run \
			--view env sh -c 'echo $PATH $LD_LIBRARY_PATH')" \
		"$W/mnt/0/tools:/usr/bin:$W/mnt/0/not-there /lib:$W/mnt/0"
	is "$1, env: the command itself" \
		"$(run --view env "$SRC/tools/python" -c 'import sys; print(sys.executable)')" \
		"$W/mnt/0/tools/python"
	is "$1: a command inside of a view stays in it" \
		"$(run "$COPPER" run sh -c "grep -c ' - overlay copper:' /proc/self/mountinfo")" 1
	is "$1: the same user namespace for all" \
		"$(run readlink /proc/self/ns/user)" "$(run readlink /proc/self/ns/user)"
	is "$1: views inside of each other share the user namespace" \
		"$(run sh -c "readlink /proc/self/ns/user; '$COPPER' run readlink /proc/self/ns/user" | uniq | wc -l)" 1
	is "$1: capabilities, and no_new_privs" \
		"$(run grep -E '^(Cap|NoNewPrivs)' /proc/self/status)" \
		"$(as_user grep -E '^(Cap|NoNewPrivs)' /proc/self/status)"
	is "$1: who it is" "$(run id)" "$(as_user id)"

	# ---- what the user has below the source
	matches "$1: a working directory that will be read-only is named" \
		"$(cd "$SRC/out" && run true 2>&1)" \
		"^copper run: warning: the working directory $SRC/out is read-only .*--direct $SRC/out"
	is "$1: once, not by each task" \
		"$(cd "$SRC/out" && as_user env SLURM_PROCID=3 "$COPPER" run true 2>&1)" ''
	is "$1: --direct keeps the storage's" \
		"$(cd "$SRC/out" && run --direct . sh -c "echo result >'$SRC/out/file.$1'; cat file.$1; cat ../hello; touch ../no 2>&1")" \
		$'result\nhello\n'"touch: cannot touch '../no': Read-only file system"
	fails_with 125 "--direct $SRC/out: .*inside of a view.* outer copper run" \
		"${cop_as[@]}" "$COPPER" run "$COPPER" run --direct "$SRC/out" true
	is "$1: what --direct writes is on the storage" "$(cat "$SRC/out/file.$1")" result
	ok "$1: the tree stops" without_tree
}
all_views root
become_user
as_user mkdir -p "$W/run"
all_views user
# Such a table is long on large machines, and reading it takes longer than everything else.
if command -v strace >/dev/null; then
	with_tree 1
	as_user strace -f -y -e trace=read,pread64,readv -o "$W/read" "$COPPER" run true
	is 'user: a view is made without reading the table of mounts' \
		"$? $(grep -c 'mountinfo>' "$W/read")" '0 0'
	ok 'user: the tree stops again' without_tree
else
	pass 'user: the table of mounts # SKIP needs strace'
	pass 'user: the tree # SKIP needs strace'
fi
# The kernel writes such a name in another way into its table of mounts.
SRC="$T/a source"
small_tree "$SRC"
chmod -R a+rX "$SRC"
with_tree 1
is 'user: a source with a space in its name' "$(run cat "$SRC/hello")" hello
is 'user: a command inside of its view stays in it' \
	"$(run "$COPPER" run sh -c "grep -c ' - overlay copper:' /proc/self/mountinfo")" 1
ok 'user: its tree stops' without_tree
is 'no mount remains' "$(mounts_left)" 0
