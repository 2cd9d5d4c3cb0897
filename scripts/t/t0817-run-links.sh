#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: links in a view are as they are in the source; on the bare mount they stay inside of
# it.
# covers: view fuse
# modes: release asan
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 36

# An absolute link, a wrapper that finds itself by one, a relative link, one to the source itself,
# one that leads out, and one that leads nowhere.
SRC=$T/src
mkdir -p "$SRC/pkg/1.0/bin" "$SRC/bin" "$SRC/repo"
printf '#!/bin/sh\ncat "$(dirname "$(readlink "$0")")/../name"\n' >"$SRC/pkg/1.0/bin/tool"
chmod 755 "$SRC/pkg/1.0/bin/tool"
echo tool >"$SRC/pkg/1.0/name"
ln -s "$SRC/pkg/1.0/bin/tool" "$SRC/bin/tool"
ln -s "$SRC/pkg" "$SRC/bin/pkg"
ln -s ../pkg/1.0 "$SRC/bin/relative"
ln -s "$SRC" "$SRC/bin/top"
ln -s /etc/passwd "$SRC/bin/out"
ln -s "$SRC/none" "$SRC/bin/nowhere"
ln -s "$SRC/bin" "$SRC/first"
if command -v git >/dev/null; then
	git -C "$SRC/repo" init -q
	echo text >"$SRC/repo/file"
	ln -s "$SRC/repo/file" "$SRC/repo/link"
	git -C "$SRC/repo" add file link
	git -C "$SRC/repo" -c user.name=a -c user.email=a@b commit -qm first
fi
chmod -R a+rX "$SRC"

run() {
	as_user "$COPPER" run "$@"
}
links() { # DIR
	(cd "$1" && find . -type l -printf '%p %l %s\n' | sort)
}
tar_names() { # DIR
	tar -C "$1" --sort=name -cf - . | tar -tvf - | sed -n 's/.* \(\.\/.* -> \)/\1/p'
}
links "$SRC" >"$T/links"
tar_names "$SRC" >"$T/names"
reads_after_view() {
	local before
	run cat "$SRC/pkg/1.0/name" >/dev/null
	before=$(node_stat 0 fuse.read)
	as_user cat "$W/mnt/0/pkg/1.0/name" >/dev/null
	echo $(($(node_stat 0 fuse.read) - before))
}
# Each with the links asked for first on the bare mount, and then first in the view.
all_views() { # WHO
	local view
	with_tree 1
	for view in overlay bind; do
		is "$1, $view: targets and sizes" \
			"$(run --view "$view" bash -c "$(declare -f links); links '$SRC'")" "$(cat "$T/links")"
		is "$1, $view: a wrapper that finds itself" "$(run --view "$view" "$SRC/bin/tool")" tool
		is "$1, $view: tar" "$(run --view "$view" bash -c "$(declare -f tar_names); tar_names '$SRC'")" \
			"$(cat "$T/names")"
		rm -rf "$W/copy"
		run --view "$view" cp -a "$SRC/." "$W/copy"
		is "$1, $view: cp -a" "$(links "$W/copy")" "$(cat "$T/links")"
		if [ -d "$SRC/repo/.git" ]; then
			is "$1, $view: git status" "$(run --view "$view" git -c safe.directory='*' \
				-C "$SRC/repo" --no-optional-locks status --porcelain 2>&1)" ''
		else
			pass "$1, $view: git status # SKIP no git"
		fi
		is "$1, $view: the mount" "$(as_user readlink "$W/mnt/0/bin/tool") $(as_user readlink "$W/mnt/0/bin/top") $(
			as_user readlink "$W/mnt/0/first") $(as_user stat -c %s "$W/mnt/0/first") $(as_user readlink "$W/mnt/0/bin/out")" \
			'../pkg/1.0/bin/tool ../. ./bin 5 /etc/passwd'
	done
	is "$1: the mount does not list the name of the views' side" \
		"$(as_user find "$W/mnt/0" -maxdepth 1 | wc -l)" "$(find "$SRC" -maxdepth 1 | wc -l)"
	is "$1: a file has one number" "$(run stat -c %i "$SRC/pkg/1.0/name")" \
		"$(as_user stat -c %i "$W/mnt/0/pkg/1.0/name")"
	is "$1: and one set of pages" "$(least 0 reads_after_view)" 0
	ln -sfn "$SRC/pkg/1.0/name" "$SRC/bin/top"
	run sh -c "readlink '$SRC/bin/top'" >/dev/null
	as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
	is "$1: a changed link is the new one on both sides" \
		"$(run readlink "$SRC/bin/top") $(as_user readlink "$W/mnt/0/bin/top")" \
		"$SRC/pkg/1.0/name ../pkg/1.0/name"
	ln -sfn "$SRC" "$SRC/bin/top"
	ok "$1: the tree stops" without_tree
}
all_views root
become_user
all_views 'an ordinary user'
is 'nothing is left' "$(nodes_running) $(mounts_left)" '0 0'
is 'no file is left' "$(find "$W/mnt" -mindepth 2 | wc -l)" 0
