#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Everything that is unusual but legal is the same through two nodes as at the source, including
# attributes.
# covers: fuse wire origin
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

SRC=$T/src
many=2000
[ "$cop_mode" = release ] || many=300
bash "$cop_t/make-tree.sh" --many "$many" "$SRC"
# Sparse, and read separately below: reading four gigabytes of zeros six times proves nothing more.
large=big/over-4-gib

attributes() { # DIR: all but the time of the last access
	(cd "$1" && find . -printf '%p\1%y\1%m\1%U\1%G\1%s\1%b\1%n\1%i\1%l\1%T@\1%C@\0' |
			sed -z $'s/^\\(.*\\/fifo\001\\)p\001/\\1s\001/' | LC_ALL=C sort -z | sha256sum)
}
archive() { # DIR
	(cd "$1" && tar --sort=name --exclude="$large" --exclude=fifo -cf - . 2>/dev/null |
			sha256sum)
}
written "$SRC"
want_attributes=$(attributes "$SRC")
want_archive=$(archive "$SRC")

with_tree 2 --keep-symlinks
for rank in 1 0; do
	mnt=$W/mnt/$rank
	ok "node $rank: diff -r finds no difference" diff -r --no-dereference \
		-x over-4-gib -x fifo -x socket "$SRC" "$mnt"
	is "node $rank: all attributes" "$(attributes "$mnt")" "$want_attributes"
	is "node $rank: rsync would change nothing" \
		"$(rsync -nac --delete --itemize-changes --exclude="$large" --exclude=fifo \
			"$SRC/" "$mnt/" 2>&1)" ''
	is "node $rank: tar makes the same archive" "$(archive "$mnt")" "$want_archive"
done
mnt=$W/mnt/1
is 'a file over 4 GiB: what lies past 4 GiB' \
	"$(dd if="$mnt/$large" bs=1 skip=4300000000 count=4 status=none)" past
is 'a file over 4 GiB: its end' "$(tail -c 4 "$mnt/$large")" tail
is 'a hole in it reads as zeros' \
	"$(dd if="$mnt/$large" bs=1M skip=2000 count=2 status=none | tr -d '\0' | wc -c)" 0
is 'a read past the end gives nothing' \
	"$(dd if="$mnt/$large" bs=1M skip=4500 count=1 status=none | wc -c)" 0
is 'a loop of links is said to be one' \
	"$(cat "$mnt/links/loop-a" 2>&1 | sed 's/.*: //')" 'Too many levels of symbolic links'
is 'hard links are one inode' \
	"$(stat -c %i "$mnt/links/hard1")" "$(stat -c %i "$mnt/links/dir/hard2")"
ok 'the trees with kept links stop' without_tree

with_tree 2
mnt=$W/mnt/1
is 'an absolute link under the source stays inside the mount' \
	"$(readlink -f "$mnt/links/absolute-inside")" "$mnt/links/target"
is 'an absolute link to a directory stays inside, too' \
	"$(cat "$mnt/links/absolute-inside-dir/file")" through
is 'an absolute link to elsewhere is left alone' \
	"$(readlink "$mnt/links/absolute-outside")" /etc/hostname
