#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Which file systems are believed when a directory does not list a name: as many as this machine can
# mount, all below one source.
# covers: origin fuse fetch
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, to mount file systems'

SRC=$T/src
mounted=()
fill() { # DIR
	mkdir -p "$1/d"
	echo seen >"$1/d/file"
	echo told >"$1/d/Secret"
	touch -d '1 hour ago' "$1/d/file" "$1/d/Secret" "$1/d" "$1"
}
place() { # NAME MOUNT-ARGUMENT…: true if it could be mounted
	mkdir -p "$SRC/$1"
	if mount "${@:2}" "$SRC/$1" 2>/dev/null; then
		mounted=("$SRC/$1" "${mounted[@]}")
	else
		rmdir "$SRC/$1"
		note "no $1 can be mounted here"
		return 1
	fi
}
image() { # NAME MKFS…: a file system of its own in a file
	local name=$1
	shift
	command -v "$1" >/dev/null || return
	truncate -s 320M "$T/$name.img"
	"$@" "$T/$name.img" >/dev/null 2>&1 || return
	! place "$name" -o loop "$T/$name.img" || fill "$SRC/$name"
}
overlay() { # NAME LAYERS
	place "$1" -t overlay -o "lowerdir=$2" overlay
}

mkdir "$SRC"
place tmpfs -t tmpfs tmpfs || skip_all 'no tmpfs can be mounted'
fill "$SRC/tmpfs"
image ext4 mkfs.ext4 -q
image xfs mkfs.xfs -q
image xfs-ci mkfs.xfs -q -n version=ci
fill "$T/packed"
! command -v mksquashfs >/dev/null || ! mksquashfs "$T/packed" "$T/squashfs.img" -quiet >/dev/null 2>&1 ||
	place squashfs -o loop "$T/squashfs.img"
fill "$T/fuse" # slowfs is of any kind
mkdir "$SRC/fuse"
"$SLOWFS" --counters "$T/slow.state" --allow-other --hide Secret "$T/fuse" "$SRC/fuse" ||
	bail 'slowfs does not mount'
mounted=("$SRC/fuse" "${mounted[@]}")
place bind-of-tmpfs --bind "$SRC/tmpfs"
place bind-of-fuse --bind "$SRC/fuse"
fill "$T/lower"
overlay overlay "$SRC/tmpfs:$T/lower"
overlay overlay-of-fuse "$SRC/fuse:$SRC/tmpfs"
[ ! -d "$SRC/overlay" ] || overlay overlay-of-overlay "$SRC/overlay:$T/lower"
[ ! -d "$SRC/overlay-of-fuse" ] || overlay overlay-of-that "$SRC/overlay-of-fuse:$T/lower"
[ ! -d "$SRC/xfs-ci" ] || overlay overlay-of-xfs-ci "$SRC/xfs-ci:$T/lower"
# Whoever cannot see the layers cannot believe it.
mkdir "$T/gone" && fill "$T/gone"
if overlay overlay-of-gone "$SRC/tmpfs:$T/gone"; then
	mv "$T/gone" "$T/away"
fi

trusted=()
others=()
for dir in tmpfs ext4 xfs squashfs bind-of-tmpfs overlay overlay-of-overlay; do
	[ ! -d "$SRC/$dir" ] || trusted+=("$dir")
done
for dir in fuse bind-of-fuse xfs-ci overlay-of-fuse overlay-of-that overlay-of-xfs-ci \
	overlay-of-gone; do
	[ ! -d "$SRC/$dir" ] || others+=("$dir")
done
plan $((3 + 2 * ${#trusted[@]} + 2 * ${#others[@]} + $([ ! -d "$SRC/xfs-ci" ]; echo $?)))

# Nothing is fetched ahead, so that what is counted is what is asked for.
with_tree 2 --allow-other --enoent-ttl-ms 600000 --bundle off
asked() {
	tree_sum origin.operations
}
names() { # DIR: how many operations an absent name costs at each of two nodes, and again
	local before after
	ls "$W/mnt/1/$1/d" "$W/mnt/0/$1/d" >/dev/null
	before=$(asked)
	[ ! -e "$W/mnt/1/$1/d/absent" ] || note "$1/d/absent exists"
	after=$(asked)
	[ ! -e "$W/mnt/0/$1/d/absent" ] || note "$1/d/absent exists"
	[ ! -e "$W/mnt/1/$1/d/absent" ] || note "$1/d/absent exists"
	echo "$((after - before)) $(($(asked) - after))"
}
listed() { # NAME
	"$COPPER" mount --check --source "$SRC/$1" | sed -n 's/^ok *listings *//p'
}
for dir in "${trusted[@]}"; do
	is "$dir is believed" "$(names "$dir")" '0 0'
	matches "the check says so of $dir" "$(listed "$dir")" '^the file system is [a-z0-9]*, which lists all its names$'
done
for dir in "${others[@]}"; do
	is "$dir is asked once for an absent name" "$(names "$dir")" '1 0'
	matches "the check says so of $dir" "$(listed "$dir")" 'which may have names that it does not list'
done
for dir in fuse bind-of-fuse; do
	is "$dir: a name that it does not list is found" \
		"$(ls "$W/mnt/1/$dir/d"; cat "$W/mnt/1/$dir/d/Secret")" $'file\ntold'
done
if [ -d "$SRC/xfs-ci" ]; then
	is 'xfs-ci: a name in another case is found' \
		"$(ls "$W/mnt/1/xfs-ci/d"; cat "$W/mnt/1/xfs-ci/d/FILE")" $'Secret\nfile\nseen'
fi
ok 'the tree stops' without_tree
for dir in "${mounted[@]}"; do
	umount "$dir" || umount -l "$dir"
done
