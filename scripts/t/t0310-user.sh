#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An ordinary user mounts, reads, stops, and gets clear error messages.
# covers: launch mountdir
# quick: yes
# modes: release
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'only root can make the user'
plan 19

become_user
SRC=$T/src
small_tree "$SRC"
bash "$cop_t/make-tree.sh" "$SRC/odd"
with_tree 3 --keep-symlinks
mnt=$W/mnt/2
ok 'the tree is the same' as_user diff -r --no-dereference -x over-4-gib -x fifo -x socket \
	-x modes "$SRC" "$mnt"
is 'a file of mode 000 is refused' "$(as_user cat "$mnt/odd/modes/file000" 2>&1 | sed 's/.*: //')" \
	'Permission denied'
is 'a file for root alone is refused' \
	"$(as_user cat "$mnt/odd/modes/file400" 2>&1 | sed 's/.*: //')" 'Permission denied'
is 'a directory for root alone is refused' \
	"$(as_user ls "$mnt/odd/modes/closed" 2>&1 | sed 's/.*: //')" 'Permission denied'
is 'a directory that may be searched only: its file' \
	"$(as_user cat "$mnt/odd/modes/search-only/file")" seen
is 'a directory that may be searched only: its list is refused' \
	"$(as_user ls "$mnt/odd/modes/search-only" 2>&1 | sed 's/.*: //')" \
	'Permission denied'
is 'modes are those of the source' "$(as_user stat -c '%a %u' "$mnt/odd/modes/file4755")" \
	"$(stat -c '%a %u' "$SRC/odd/modes/file4755")"
ok 'the node runs as the user' test "$(stat -c %U "/proc/$(node_stat 0 pid)")" = "$cop_user"
is 'another user cannot look into the mount' \
	"$(setpriv --reuid nobody --clear-groups ls "$mnt" 2>&1 | sed 's/.*: //')" \
	'Permission denied'
sockets=$(find "$W/run" "$T/run" -type s 2>/dev/null)
is 'the control sockets are for the user alone' \
	"$(xargs -r stat -c '%a %U' <<<"$sockets" | sort -u)" "600 $cop_user"

foreign_host() { # says what becomes of a connection from a host that is not of the job
	"$PYTHON" - "$(sed -n '1s/.*ofi+tcp:..//p' "$JOB/logs/copper_address_book.txt")" <<'PY'
import socket, sys
s = socket.socket()
s.bind(("127.0.0.99", 0))
s.settimeout(1)
host, port = sys.argv[1].rsplit(":", 1)
try:
    s.connect((host, int(port)))
    s.settimeout(20)
    print("left out" if s.recv(1) == b"" else "answered")
except (TimeoutError, ConnectionError):
    print("left out")
PY
	grep -ho 'why="it said nothing"' "$JOB"/logs/*.log
}
is 'a host that is not of the job is left out' "$(foreign_host)" 'left out'
fails_with 1 "$mnt: a copper node is mounted there already; stop it" \
	"${cop_as[@]}" "$COPPER" mount --source "$SRC" "$mnt"
ok 'the tree stops' without_tree

as_user mkdir -p "$W/mnt/0"
here=("${cop_as[@]}" "$COPPER" mount --source "$SRC")
mkdir -m 755 "$T/of-root"
fails_with any "of-root/none.*cannot be created: Permission denied" "${here[@]}" "$T/of-root/none"
fails_with any 'of-root' "${here[@]}" "$T/of-root"
mkdir -m 700 "$T/private"
fails_with any 'private' "${cop_as[@]}" "$COPPER" mount --source "$T/private" "$W/mnt/0"
mkdir "$W/bin"
fails_with any 'fusermount3' "${cop_apart[@]}" sh -c \
	'mount --bind /dev/null "$(readlink -f "$(command -v fusermount3)")" && exec "$@"' \
	sh "${here[@]}" "$W/mnt/0"
is 'the user leaves no mount' "$(mounts_left)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'the user leaves no process' "$(nodes_running)" 0
