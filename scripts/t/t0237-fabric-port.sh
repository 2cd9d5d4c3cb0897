#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process that reaches libfabric's port without the secret cannot talk to libfabric, not even
# another user of the same host, nor with an address book. libfabric cannot be crashed by what it
# does not receive.
# covers: endpoint wire
# modes: release asan shared
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, to play the other user'
plan 16
chmod 755 "$T"
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# Sends to ADDRESS from FROM and prints what came back: HOW says what is sent.
cat >"$T/speak.py" <<'PY'
import os, socket, struct, sys, time
how, source, (host, port), words = sys.argv[1], sys.argv[2], sys.argv[3].rsplit(":", 1), sys.argv[4]
s = socket.socket()
s.settimeout(20)
s.bind((source, 0))
s.connect((host, int(port)))
hello = open(words, "rb").read()
acknowledgement = struct.pack("=BBHBBBBQ", 3, 0, 0, 2, 0, 16, 0, 16)
try:
    if how == "unguarded":
        s.sendall(hello)
        s.recv(1000)
        s.sendall(acknowledgement)
        print("closed" if not s.recv(1000) else "answered")
        sys.exit()
    challenge = s.recv(40, socket.MSG_WAITALL)
    if challenge[:6] != b"COPG\x01\x01":
        sys.exit("no challenge: %r" % challenge)
    s.sendall({
        "packet": hello + acknowledgement,
        "greeting": b"COPG\x01\x02\0\0" + os.urandom(64) + hello + acknowledgement,
        "echo": b"COPG\x01\x02\0\0" + challenge[8:] + challenge[8:] + hello,
    }[how])
    print("closed" if not s.recv(1000) else "answered")
except ConnectionError:
    print("closed")
PY
speak() { # HOW FROM ADDRESS
	"${other[@]}" "$PYTHON" "$T/speak.py" "$@" "$T/hello"
}

# What a node without a secret first sends to a supposed peer is what an unverified peer may send,
# too.
prepare_tree 2
cat >"$T/listen.py" <<'PY'
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen(5)
s.settimeout(60)
c = s.accept()[0]
c.settimeout(60)
open(sys.argv[3], "wb").write(c.recv(1000))
PY
ports=("$(free_port)" "$(free_port)")
for rank in 0 1; do
	echo "$(address_of "$rank") ofi+tcp://$(address_of "$rank"):${ports[rank]}"
done >"$T/book"
"$PYTHON" "$T/listen.py" "$(address_of 0)" "${ports[0]}" "$T/hello" &
listener=$!
timeout 60 "$COPPER" mount --hosts "$HOSTS" --rank 1 --insecure --address-book "$T/book" \
	--source "$SRC" --ready-timeout 3 "$W/mnt/1" \
	>/dev/null 2>&1
wait "$listener"
ok 'the words of a node are had' test -s "$T/hello"
chmod 644 "$T/hello"

# Without a guard the bytes are received: the packet after them is what the guard protects against.
# A newer libfabric may survive it.
"$COPPER" mount --hosts "$HOSTS" --rank 0 --insecure --address-book "$T/book" --source "$SRC" \
	--ready-timeout 20 "$W/mnt/0" >"$W/out.0" 2>&1 &
first=$!
"$COPPER" mount --hosts "$HOSTS" --rank 1 --insecure --address-book "$T/book" --source "$SRC" \
	--ready-timeout 20 "$W/mnt/1" >"$W/out.1" 2>&1
wait "$first"
matches 'a node without a secret receives them' \
	"$(speak unguarded 127.0.0.99 "$(address_of 0):${ports[0]}")" 'closed|answered'
note "the node that was not guarded $(is_mounted "$W/mnt/0" && stat "$W/mnt/0" >/dev/null 2>&1 &&
		echo lives on || echo died of it)"
for rank in 0 1; do
	timeout 60 "$COPPER" stop "$W/mnt/$rank" >/dev/null 2>&1
	! is_mounted "$W/mnt/$rank" || umount -l "$W/mnt/$rank"
done
wait_for 20 eval '[ "$(nodes_running)" -eq 0 ]'

attacks() { # WHAT FROM ADDRESS
	is "$1: the packet of another user is not heard" "$(speak packet "$2" "$3")" closed
	is "$1: a greeting without the secret is not heard" "$(speak greeting "$2" "$3")" closed
	is "$1: the challenge sent back is not heard" "$(speak echo "$2" "$3")" closed
	is "$1: the refused packets are counted" \
		"$(node_stat 0 fabric.rejected_form)$(node_stat 0 fabric.rejected_secret)" 12
	matches "$1: refused packets are logged" "$(cat "$JOB"/logs/"$(address_of 0)"-*.log)" \
		"refused what=connection from=${2//./\\.} why=\"it does not prove the job's secret\""
}
with_tree 2
attacks 'the rendezvous' "$(address_of 1)" \
	"$(sed -n '1s/.*ofi+tcp:..//p' "$JOB/logs/copper_address_book.txt")"
ok 'the tree reads all the same' diff -r "$SRC" "$W/mnt/1"
ok 'the tree stops' without_tree
with_tree 2 --address-book "$T/book"
attacks 'an address book' 127.0.0.99 "$(address_of 0):${ports[0]}"
ok 'the tree reads all the same' diff -r "$SRC" "$W/mnt/1"
ok 'the tree stops' without_tree
