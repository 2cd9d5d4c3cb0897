#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A mount that other users may use, of a source with a proc below it: only the user of the node,
# whose view it is, sees its contents.
# covers: fuse view
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'only root can be two users'
SRC=$T/src
small_tree "$SRC"
mkdir "$SRC/proc"
mount -t proc proc "$SRC/proc" 2>/dev/null || skip_all 'proc cannot be mounted here'
trap 'status=$?; umount -l "$SRC/proc"; (exit "$status"); finish' EXIT
plan 20

other() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
error_of() { # COMMAND…: what it says is wrong, "" if nothing
	"$@" 2>&1 >/dev/null | sed 's/.*: //'
}
denied='Permission denied'

with_tree 1 --allow-other
mnt=$W/mnt/0
own=$mnt/proc/$$
is 'the owner reads of a process' \
	"$(tr '\0' ' ' <"$own/cmdline")" "$(tr '\0' ' ' <"/proc/$$/cmdline")"
is 'the owner follows the directory of a process' \
	"$(readlink "$own/cwd")" "$(readlink "/proc/$$/cwd")"
ok 'the owner lists processes' test -n "$(ls "$mnt/proc")"
is 'another user can read the files of the source' "$(other cat "$mnt/hello")" hello
is 'another user can see that a proc exists' "$(other stat -c %F "$mnt/proc")" directory
exec 8<"$own/maps"
for name in maps environ cmdline status; do
	is "$name of a process, which the owner has just read: not for another" \
		"$(cat "$own/$name" >/dev/null; error_of other cat "$own/$name")" "$denied"
done
exec 8<&-
for name in cwd root exe; do
	is "another user cannot read $name" \
		"$(readlink "$own/$name" >/dev/null; other readlink "$own/$name"; echo $?)" 1
done
is 'another user cannot see that a process exists' "$(error_of other stat "$own")" "$denied"
is 'another user cannot list the processes' \
	"$(error_of other ls "$mnt/proc")" "$denied"
is 'another user cannot read what proc says about the machine' \
	"$(error_of other cat "$mnt/proc/meminfo")" "$denied"
is 'another user cannot read the link self' "$(other readlink "$mnt/proc/self"; echo $?)" 1
is 'another user cannot read anything about a process' \
	"$(cd "$own" && other sh -c 'cat maps; ls fd; readlink exe; ls .' 2>/dev/null)" ''

# The kernel knows all of it while the owner looks at it.
while [ ! -e "$T/enough" ]; do
	cat "$own/maps" "$own/environ" && readlink "$own/cwd" && ls "$own"
done >/dev/null 2>"$T/wrong" &
owner=$!
other "$PYTHON" - "$own" >"$T/got" <<'PY'
import os, sys
got = []
def attempt(what, *args):
    try:
        got.append(what(*args))
    except PermissionError:
        pass
for i in range(300):
    attempt(open, sys.argv[1] + "/maps")
    attempt(os.readlink, sys.argv[1] + "/cwd")
    attempt(os.listdir, sys.argv[1])
    attempt(os.stat, sys.argv[1] + "/fd")
print(len(got))
PY
touch "$T/enough"
wait "$owner"
is 'another user sees nothing of it while the owner looks again and again' "$(cat "$T/got")" 0
is 'the owner does not notice the other user' "$(cat "$T/wrong")" ''
without_tree

fails_with 1 'is on a proc file system, .*--allow-other' \
	"$COPPER" mount --allow-other --source /proc "$mnt"
