#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What programs rely on the kernel for: ioctls, holes, maps, locks, seekdir, EROFS, exec, df, pseudo
# file systems.
# covers: fuse dirops
# quick: yes
# modes: release asan tsan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 25

contract() {
	"$PYTHON" "$cop_t/contract.py" "$@"
}

SRC=$T/src
small_tree "$SRC"
bash "$cop_t/make-tree.sh" --many 3000 "$SRC/odd"
cp /bin/true "$SRC/true"
printf '#!/bin/sh\necho from a script\n' >"$SRC/script"
chmod 755 "$SRC/script"
with_tree 2
mnt=$W/mnt/1

ok 'a file is not a terminal' contract isatty "$mnt/hello"
ok 'an unknown ioctl gives ENOTTY' contract unknown_ioctl "$mnt/hello"
ok 'every change is refused with EROFS' contract erofs "$mnt" hello
ok 'SEEK_DATA and SEEK_HOLE are those of the source' contract same_holes \
	"$SRC/odd/big/hole-only" "$mnt/odd/big/hole-only" "$SRC/odd/big/hole-middle" \
	"$mnt/odd/big/hole-middle" \
	"$SRC/odd/big/data-then-hole" "$mnt/odd/big/data-then-hole" "$SRC/odd/big/over-4-gib" \
	"$mnt/odd/big/over-4-gib" \
	"$SRC/dir/numbers" "$mnt/dir/numbers"
written "$SRC/odd/big/"{hole-only,hole-middle,data-then-hole}
for file in hole-only hole-middle data-then-hole; do
	timeout "$(patient 20)" cp --sparse=auto "$mnt/odd/big/$file" "$T/copy"
	ok "cp copies $file" cmp "$T/copy" "$SRC/odd/big/$file"
	is_at_most "cp keeps the holes of $file" \
		"$(stat -c %b "$T/copy")" "$(stat -c %b "$SRC/odd/big/$file")"
done
ok 'a shared map reads' contract shared_map "$SRC/dir/numbers" "$mnt/dir/numbers"
ok 'exclusive flocks exclude each other' contract flock_excludes "$mnt/hello"
flock -x "$mnt/hello" sh -c 'touch "$0/locked"; while [ ! -e "$0/enough" ]; do sleep 0.1; done' \
	"$T" &
holder=$!
wait_for 10 test -e "$T/locked"
is 'flock -n of another process is refused' "$(flock -n -x "$mnt/hello" echo locked)" ''
touch "$T/enough"
wait "$holder"
ok 'fcntl locks' contract posix_locks "$mnt/hello"
ok 'df shows the size of the source' contract statfs "$SRC" "$mnt"
ok 'df runs' df -P "$mnt"
ok 'telldir and seekdir in a large directory' contract telldir "$mnt/odd/many"
ok 'telldir and seekdir in a small one' contract telldir "$mnt"
ok 'reading does not move the access time' contract no_atime "$mnt/hello"
ok 'a program is executed' "$mnt/true"
is 'a script is executed' "$("$mnt/script")" 'from a script'
ok 'the tree stops' without_tree

SRC=/
with_tree 2
mnt=$W/mnt/1
matches '/proc/meminfo through --source /' "$(cat "$mnt/proc/meminfo")" '^MemTotal: '
is 'a process sees itself' \
	"$(timeout "$(patient 10)" \
		sh -c 'read -r pid rest <"$0/proc/self/stat"; [ "$pid" -gt 0 ] && echo yes' \
		"$mnt")" yes
ok 'the mount inside the mount does not hang' \
	timeout "$(patient 10)" sh -c 'ls "$0$0" >/dev/null; true' "$mnt"
