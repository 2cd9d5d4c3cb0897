#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A package is replaced while nodes use it, as pip, conda, rsync and mv do it. A program gets the
# complete old one, the complete new one, or a stale file once, and never modules of both; after
# --invalidate it gets the new one.
# covers: fetch fuse
# modes: release asan tsan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

ways=(pip conda rsync mv)
plan $((10 + 10 * ${#ways[@]}))

upgrade() {
	"$PYTHON" -I -S -B "$cop_t/t05_upgrade.py" "$@"
}
import_on() { # RANK PACKAGE
	timeout "$(patient 30)" "$PYTHON" -I -S -B "$cop_t/t05_upgrade.py" import \
		"$W/mnt/$1/site" "$2" 2>&1
}
invalidate() {
	"$COPPER" cache-stats --invalidate "$W/mnt/0" >"$T/out.invalidate" 2>&1
}
# How long the kernel and each node on the way keep an absence.
past_ttl() {
	sleep "$(awk -v ms="$ttl_ms" 'BEGIN { print 2 * ms / 1000 + 0.2 }')"
}

ttl_ms=200
SRC=$T/src
mkdir -p "$SRC/site" "$T/new"
for way in "${ways[@]}"; do
	upgrade make "$SRC/site/$way" v1
	upgrade make "$T/new/$way" v2
done

# Node 0 is the root, each other one is the child of the one before. Node 1 imports everything, node
# 2 reads some modules, node 0 has only the names, node 3 has nothing.
with_tree 4 --fanout 1 --enoent-ttl-ms $ttl_ms
for way in "${ways[@]}"; do
	is "$way: node 1 imports the package" "$(import_on 1 "$way")" v1
	cat "$W/mnt/2/site/$way"/{__init__,m00,m01,m02}.py >/dev/null
	ls -l "$W/mnt/0/site/$way" >/dev/null
	mkfifo "$T/said.$way"
	upgrade start "$W/mnt/2/site" "$way" "$T/go.$way" >"$T/said.$way" &
	exec {said}<"$T/said.$way"
	read -r -u "$said" half
	is "$way: a program on node 2 has imported half of it" "$half" half
	upgrade replace "$way" "$SRC/site/$way" "$T/new/$way" || bail "$way does not replace it"
	past_ttl
	for rank in 1 2 0 3; do
		is "$way: what was read in the tree is the old one whole on node $rank" \
			"$(import_on "$rank" "$way")" v1
	done
	: >"$T/go.$way"
	read -r -u "$said" rest
	is "$way: the program on node 2 has all of the old one" "$rest" v1
	exec {said}<&-
	past_ttl
	ok "$way: a name that only the new one has appears" test -e "$W/mnt/1/site/$way/only_v2.py"
	ok "$way: a name that only the old directory has stays" \
		test -e "$W/mnt/1/site/$way/only_v1.py"
	ls "$W"/mnt/{0,1,2,3}/"site/$way" >/dev/null
done
invalidate
for way in "${ways[@]}"; do
	versions=
	for rank in 0 1 2 3; do
		wait_for 3 eval '[ "$(import_on "$rank" "$way")" = v2 ]'
		versions+=" $(import_on "$rank" "$way")"
	done
	is "$way: after --invalidate it is the new one on all nodes" "$versions" ' v2 v2 v2 v2'
done
ok 'the tree stops' without_tree

# ---- modules that nobody has read: their old bytes no longer exist anywhere

SRC=$T/unread
mkdir -p "$SRC/site"
for way in "${ways[@]}"; do
	upgrade make "$SRC/site/$way" v1
	rm -rf "$T/new/$way"
	upgrade make "$T/new/$way" v2
done
mkdir "$T/got"
for trees in 1 2; do
	with_tree 4 --fanout 1 --enoent-ttl-ms $ttl_ms --trees $trees
	for way in "${ways[@]}"; do
		for rank in 0 1 2; do
			cat "$W/mnt/$rank/site/$way"/{__init__,m00,m01,m02}.py >/dev/null
		done
		upgrade replace "$way" "$SRC/site/$way" "$T/new/$way" ||
			bail "$way does not replace it"
	done
	past_ttl
	mixed=
	for way in "${ways[@]}"; do
		for rank in 2 3 1 0; do
			for try in 1 2 3; do
				version=$(import_on "$rank" "$way")
				echo "trees $trees $way node $rank try $try: $version" \
					>>"$T/got/$trees"
				# The new one: a later program finds it as well.
				case $version in
				v1 | v2 | ESTALE) ;;
				*) mixed+=" $way/$rank: $version" ;;
				esac
			done
		done
	done
	is "with $trees tree(s): each import is whole, or says that a file is stale" "$mixed" ''
	note "$(sort "$T/got/$trees" | awk '{ print $NF }' | uniq -c)" \
		"$(awk '{ print $NF }' "$T/got/$trees" | sort | uniq -c)"
	settled=
	for way in "${ways[@]}"; do
		for rank in 0 1 2 3; do
			wait_for 5 eval '[ "$(import_on "$rank" "$way")" = v2 ]'
			settled+=" $(import_on "$rank" "$way")"
		done
	done
	is 'a program that got the error gets the complete new one afterwards' \
		"$(tr ' ' '\n' <<<"$settled" | sort | uniq -c | tr -s ' \n' ' ')" ' 1 16 v2 '
	ok 'the tree stops' without_tree
	for way in "${ways[@]}"; do
		rm -rf "$SRC/site/$way" "$SRC/site/$way.old" "$T/new/$way"
		upgrade make "$SRC/site/$way" v1
		upgrade make "$T/new/$way" v2
	done
done

# ---- a node that has no memory to keep the names while the kernel has some

way=rsync
head -c 64000000 /dev/urandom >"$SRC/large"
with_tree 1 --enoent-ttl-ms $ttl_ms --cache-size 16M --compress off
cat "$W/mnt/0/site/$way"/{__init__,m00,m01,m02}.py >/dev/null
upgrade replace "$way" "$SRC/site/$way" "$T/new/$way" || bail "$way does not replace it"
flooded() { # until nothing of the names is left in the node
	dd if="$W/mnt/0/large" of="$T/.large" bs=1M iflag=nocache 2>/dev/null
	[ "$(node_stat 0 tables.tree.entries)" -eq 0 ]
}
ok 'the node has had to forget all names' wait_for 20 flooded
cat "$W/mnt/0/site/$way/m20.py" >/dev/null
wait_for 3 eval '[ "$(import_on 0 "$way")" = v2 ]'
is 'once it has met another list the kernel asks for all of them again' "$(import_on 0 "$way")" v2
ok 'the tree stops' without_tree
