#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The mount compared with a read-only bind mount of the same source: every answer of a long list of
# system calls is the same.
# covers: fuse dirops
# modes: release asan
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'only root can make a bind mount'
plan 7

# A tmpfs keeps every time that the kernel knows. Reading a link changes its access time, also in
# the source.
SRC=$T/src
mkdir -p "$SRC" "$W/mnt/bind"
mount -t tmpfs -o size=256m,mode=755,noatime tmpfs "$SRC" || skip_all 'no tmpfs can be mounted'
"$PYTHON" "$cop_t/bind_mount.py" make "$SRC" || bail 'the source cannot be made'
with_tree 2 --allow-other
mnt=$W/mnt/1

ok 'no answer differs that is not meant to' timeout "$(patient 60)" "${cop_apart[@]}" sh -c '
	mount --bind "$0" "$1" && mount -o remount,ro,bind,nosuid,nodev "$1" && exec "$2" "$3" compare "$1" "$4"' \
	"$SRC" "$W/mnt/bind" "$PYTHON" "$cop_t/bind_mount.py" "$mnt"
note "$(cat "$T/.ok")"
for n in 64 65 1001 65537; do
	ino=$(stat -c %i "$SRC/sizes/$n/f7")
	is "find by the inode number, $n names" \
		"$(find "$W/mnt/0/sizes/$n" -inum "$ino" -printf %f)" f7
done
ok 'mounted for writing by root, every change is refused with EROFS' \
	timeout "$(patient 20)" "${cop_apart[@]}" "$PYTHON" "$cop_t/bind_mount.py" writable "$mnt"
without_tree
ok 'the source can be unmounted' umount "$SRC"
