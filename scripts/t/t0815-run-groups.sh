#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Supplementary groups in the view of an ordinary user: with newgidmap, if /etc/subgid allows
# them, a command can give files to them; else copper run --check says that it cannot.
# covers: view
# modes: release
# limit: 60
# user: yes
# apart: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, to become an ordinary user'
plan 7

SRC=$T/src
small_tree "$SRC"
become_user
export XDG_RUNTIME_DIR=$W/run
own=$(id -g "$cop_user")
groups=$((own + 20000)),$((own + 20001))
cop_as=(setpriv --reuid "$cop_user" --regid "$cop_user" --groups "$own,$groups" "${cop_as[@]:6}")
changes() { # whether the user can give a file to the first group, in a view and as before
	as_user "$COPPER" run sh -c 'touch "$1/f" && chgrp "$2" "$1/f" && stat -c %g "$1/f"' \
		- "$W" "${groups%,*}" 2>&1
}
[ -e /etc/subgid ] || skip_all 'no /etc/subgid, so no newgidmap'
# All of /etc, since useradd, which other tests run, replaces such a file, and a mount on it ends.
cp -a /etc "$T/etc"
: >"$T/etc/subgid"
chmod 644 "$T/etc/subgid"
mount --bind "$T/etc" /etc || skip_all 'nothing can be mounted here'
is 'outside of a view, the user gives files to its groups' \
	"$(as_user sh -c 'touch "$1/e" && chgrp "$2" "$1/e" && stat -c %g "$1/e"' - "$W" \
		"${groups%,*}")" "${groups%,*}"
with_tree 1
matches 'without permission, chgrp fails' "$(changes)" 'chgrp: .*Invalid argument'
matches '--check says so, and what to do' "$(as_user "$COPPER" run --check)" \
	'^note +groups .*EINVAL.*--no-group.*/etc/subgid'
without_tree
if command -v newgidmap >/dev/null; then
	printf "$cop_user:%d:1\n" $((own + 20000)) $((own + 20001)) >"$T/etc/subgid"
	with_tree 1
	is 'with newgidmap and /etc/subgid, the command gives files to its groups' \
		"$(changes)" "${groups%,*}"
	is 'the command is still itself' "$(as_user "$COPPER" run id)" "$(as_user id)"
	is '--check has nothing to say about groups' \
		"$(as_user "$COPPER" run --check | grep -c ' groups ')" 0
	is 'two commands reach each other' "$(as_user "$COPPER" run sh -c '
		sleep 5 & readlink "/proc/$!/ns/user"; kill $!')" \
		"$(as_user "$COPPER" run readlink /proc/self/ns/user)"
	without_tree
else
	for why in chgrp itself check reach; do
		pass "$why # SKIP no newgidmap; the package uidmap has it"
	done
fi
