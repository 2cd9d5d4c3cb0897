#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The kernel's capabilities that Copper uses are switched off, one at a time and all at once:
# programs see the same, and the node gets more requests.
# covers: fuse
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

all=(async_read readdirplus parallel_dirops cache_symlinks explicit_inval_data no_open no_opendir
	absent_entries)
plan $((8 + 5 * (${#all[@]} + 1) + 5))

SRC=$T/src
small_tree "$SRC"
bash "$cop_t/make-tree.sh" --many 500 "$SRC/odd"
# diff does not compare special files and is slow for sparse ones.
rm -rf "$SRC/odd/special" "$SRC/odd/big/over-4-gib"
mnt=$W/mnt/0

in_use() {
	# A program that looks at the root waits until the kernel and the node have negotiated.
	stat "$mnt" >"$T/.root"
	node_json 0 | "$PYTHON" -c 'import json, sys; print(*json.load(sys.stdin)["kernel"]["capabilities"])'
}
without() { # LIST: those of this kernel that remain
	local name
	for name in $capable; do
		[[ ",$1," == *",$name,"* ]] || printf '%s\n' "$name"
	done | xargs
}
contract() {
	"$PYTHON" "$cop_t/contract.py" "$@"
}
# What programs rely on (t0130), as far as a capability could matter.
holds() {
	contract isatty "$mnt/hello" && contract erofs "$mnt" hello &&
		contract statfs "$SRC" "$mnt" &&
		contract shared_map "$SRC/dir/numbers" "$mnt/dir/numbers" &&
		contract telldir "$mnt/odd/many" &&
		contract flock_excludes "$mnt/hello" && contract posix_locks "$mnt/hello" &&
		contract same_holes "$SRC/odd/big/hole-middle" "$mnt/odd/big/hole-middle"
}
same_tree() {
	diff -r --no-dereference "$SRC" "$mnt"
}
# A file changes in place, one is new, one is removed, a link points elsewhere; the kernel knew all
# four names.
as_now() {
	cmp "$SRC/changes" "$mnt/changes" && [ ! -e "$mnt/goes" ] && [ -e "$mnt/new" ] &&
		[ "$(readlink "$mnt/points")" = dir ]
}
fresh() {
	local status
	cat "$mnt/changes" "$mnt/goes" >/dev/null
	[ ! -e "$mnt/new" ] && [ "$(readlink "$mnt/points")" = hello ] || return 1
	echo 'and longer than before' >>"$SRC/changes"
	mv "$SRC/goes" "$SRC/new"
	ln -sfn dir "$SRC/points"
	"$COPPER" cache-stats --invalidate "$mnt" >/dev/null
	# The kernel is told right after the node.
	wait_for 3 as_now
	status=$?
	mv "$SRC/new" "$SRC/goes"
	ln -sfn hello "$SRC/points"
	return "$status"
}
# How many requests that a capability avoids the node gets: only things done five times or more
# count, since the kernel may have reason to ask once or twice more.
requests() { # CAPABILITY
	local key=lookup before
	case $1 in
	no_open) key=open ;;
	no_opendir) key=opendir ;;
	cache_symlinks) key=readlink ;;
	readdirplus) [ -d "$mnt/odd/many" ] ;;
	esac
	before=$(node_stat 0 "fuse.$key")
	case $1 in
	no_open) cat "$mnt/hello" "$mnt/hello" "$mnt/hello" "$mnt/hello" "$mnt/hello" ;;
	no_opendir) for _ in 1 2 3 4 5; do ls "$mnt"; done ;;
	cache_symlinks) for _ in 1 2 3 4 5; do readlink "$mnt/link"; done ;;
	absent_entries) for _ in 1 2 3 4 5; do [ ! -e "$mnt/absent" ]; done ;;
	readdirplus) find "$mnt/odd/many" -printf '%s' ;;
	esac >/dev/null
	echo $(($(node_stat 0 "fuse.$key") - before))
}
counted=(readdirplus cache_symlinks no_open no_opendir absent_entries)
shows_by_count() { # CAPABILITY
	[[ " ${counted[*]} " == *" $1 "* ]]
}

echo changes >"$SRC/changes"
echo goes >"$SRC/goes"
ln -s hello "$SRC/points"
with_tree 1 --enoent-ttl-ms 60000 --keep-symlinks
capable=$(in_use)
is 'this kernel has all capabilities' "$capable" "${all[*]}"
declare -A usual
for cap in "${counted[@]}"; do
	usual[$cap]=$(least 3 requests "$cap")
	is_at_most "the kernel spares the node requests by $cap" "${usual[$cap]}" 3
done
ok 'the tree stops' without_tree

check_without() { # LIST
	export COPPER_DISABLE_CAPS=$1
	with_tree 1 --enoent-ttl-ms 60000 --keep-symlinks
	unset COPPER_DISABLE_CAPS
	is "without $1: it is not in use, the others are" "$(in_use)" "$(without "$1")"
	! shows_by_count "$1" || ok "without $1: the node is asked each time" \
		[ "$(requests "$1")" -ge 5 ]
	ok "without $1: what programs rely on" holds
	ok "without $1: the same tree" same_tree
	ok "without $1: what changed is seen" fresh
	ok "without $1: the tree stops" without_tree
}
for cap in "${all[@]}"; do
	check_without "$cap"
done
check_without "$(IFS=, && echo "${all[*]}")"
fails_with 1 'COPPER_DISABLE_CAPS: there is no capability "fast_open"; the capabilities are async_read, ' \
	env COPPER_DISABLE_CAPS=no_open,fast_open "$COPPER" mount --source "$SRC" "$mnt"
