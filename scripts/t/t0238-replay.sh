#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An eavesdropper replays recorded messages to the same node, to another one, to its successor, or
# in the place of a node that has ended: it is refused and counted, and the tree goes on.
# covers: wire rpc
# modes: release asan tsan
# limit: 180
[ -n "${COP_OWN_NET:-}" ] || ! unshare --net true 2>/dev/null ||
	COP_OWN_NET=1 exec unshare --net bash "$0" "$@"
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ -n "${COP_OWN_NET:-}" ] || skip_all 'no network of its own here, to listen to'
ip link set lo up || skip_all 'no loopback here'
plan 21

# Writes the first bytes that each side of each connection sent into a directory, as
# FROM:PORT-TO:PORT; ends at a signal.
cat >"$T/listen.py" <<'PY'
import os, signal, socket, struct, sys
KEPT = 16384
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
s.bind(("lo", 0))
streams = {}
def save(*_):
    for name, (_, parts) in streams.items():
        said = b""
        for at in sorted(parts):
            if at > len(said):
                break
            said = said[:at] + parts[at]
        if said:
            with open(os.path.join(sys.argv[1], name), "wb") as f:
                f.write(said[:KEPT])
    os._exit(0)
signal.signal(signal.SIGTERM, save)
open(sys.argv[2], "w").close()
while True:
    data, (_, _, kind, _, _) = s.recvfrom(1 << 17)
    if kind == 4 or data[9] != 6:  # what comes in; TCP
        continue
    head = (data[0] & 15) * 4
    length = struct.unpack(">H", data[2:4])[0] or len(data)
    ports = struct.unpack(">HH", data[head:head + 4])
    number = struct.unpack(">I", data[head + 4:head + 8])[0]
    name = "%s:%d-%s:%d" % (socket.inet_ntoa(data[12:16]), ports[0], socket.inet_ntoa(data[16:20]), ports[1])
    if data[head + 13] & 2:
        streams[name] = ((number + 1) & 0xffffffff, {})
        continue
    payload = data[head + (data[head + 12] >> 4) * 4:length]
    if name in streams and payload:
        start, parts = streams[name]
        at = (number - start) & 0xffffffff
        if at < KEPT:
            parts[at] = payload
PY

# Sends the contents of a file to ADDRESS:PORT, from another address; prints whether more came back
# than the challenge that everyone gets.
cat >"$T/play.py" <<'PY'
import socket, sys
words, source, (host, port) = open(sys.argv[1], "rb").read(), sys.argv[2], sys.argv[3].rsplit(":", 1)
s = socket.socket()
s.settimeout(60)
s.bind((source, 0))
heard = b""
try:
    s.connect((host, int(port)))
    s.sendall(words)
    while True:
        more = s.recv(4096)
        if not more:
            break
        heard += more
except ConnectionError:
    pass
rest = heard[40:] if heard.startswith(b"COPG\x01\x01") else heard
print("answered" if rest else "refused")
PY

# Takes the place of the listener at ADDRESS:PORT: everyone who connects gets the bytes that the
# first one got there.
cat >"$T/pose.py" <<'PY'
import socket, sys, threading
words, (host, port) = open(sys.argv[1], "rb").read(), sys.argv[2].rsplit(":", 1)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((host, int(port)))
s.listen(50)
open(sys.argv[3], "w").close()
def serve(c):
    try:
        c.sendall(words)
        while c.recv(4096):
            pass
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
PY

mkdir "$T/heard"
"$PYTHON" "$T/listen.py" "$T/heard" "$T/listening" &
listener=$!
wait_for 20 test -e "$T/listening"
with_tree 3
read_everything 0 1 2
kill -TERM "$listener"
wait "$listener"

fabric_of() { # RANK
	sed -n "$(($1 + 1))s/.*ofi+tcp:..//p" "$JOB/logs/copper_address_book.txt"
}
# Counts the messages of the process that runs now.
fabric_of_process() { # RANK
	sed -n 's/.*server running at address: ofi+tcp:..//p' \
		"$JOB/logs/$(address_of "$1")-$(node_stat "$1" pid)-output.log"
}
# Prints what RANK sent to ADDRESS, or what came there first.
said_to() { # ADDRESS [RANK]
	find "$T/heard" -name "${2:+$(address_of "$2")}*-$1" -size +0 | sort | head -n 1
}
# What the listener sent on the same connection.
told() { # FILE
	local name=${1##*/}
	echo "$T/heard/${name#*-}-${name%-*}"
}
rejected() { # RANK KIND
	node_stat "$1" "fabric.rejected_$2"
}
play() { # WORDS RANK ADDRESS
	"$PYTHON" "$T/play.py" "$1" "$(address_of "$2")" "$3"
}

root=$(address_of 0):$cop_port
ask=$(said_to "$root" 1)
matches 'the ask of a node was overheard' \
	"$(head -c 4 "$ask")$(head -c 4 "$(told "$ask")")" '^COPRCOPR$'
# Of two nodes, either may have connected first.
for listens in 0 1 2; do
	greeting=$(said_to "$(fabric_of "$listens")")
	[ -z "$greeting" ] || break
done
speaks=$(($(basename "$greeting" | cut -d : -f 1 | cut -d . -f 4) - 11))
other=$((3 - listens - speaks))
matches 'a greeting was overheard, with what came behind it' \
	"$(head -c 4 "$greeting")$(grep -ac COP1 "$greeting")$(head -c 4 "$(told "$greeting")")" \
	'^COPG[1-9][0-9]*COPG$'

is 'the greeting opens nothing a second time' \
	"$(play "$greeting" "$speaks" "$(fabric_of "$listens")")" refused
is 'a greeting that comes again is counted' "$(rejected "$listens" secret)" 1
is 'the greeting opens nothing at another node' \
	"$(play "$greeting" "$speaks" "$(fabric_of "$other")")" refused
# It may not know the host, and then closes the connection before it reads anything.
is 'another node counts the greeting, too' "$(node_stat "$other" fabric.rejected)" 1
is 'the ask is not answered as from another node' \
	"$(play "$greeting" "$other" "$(fabric_of "$listens")")" refused
is 'the ask is not answered a second time' "$(play "$ask" 1 "$root")" refused
is 'the ask is not answered from elsewhere' "$(play "$ask" 2 "$root")" refused
is 'each repeated ask is counted' "$(rejected 0 replay)" 2
before=$(rejected 2 secret)
is 'another node does not answer a replayed ask' "$(play "$ask" 1 "$(address_of 2):$cop_port")" refused
is 'another node counts the replayed ask as a wrong proof' "$(($(rejected 2 secret) - before))" 1
is 'the greeting is nothing for the rendezvous' "$(play "$greeting" "$speaks" "$root")" refused
ok 'the tree reads all the same' diff -r "$SRC" "$W/mnt/1"

# The process that received it has ended, and another one is in its place.
kill_node "$listens"
unmount_killed
cop_killed=()
ok 'a node is started again' start_node "$listens"
is 'a restarted node accepts nothing that was sent to its predecessor' \
	"$(play "$greeting" "$speaks" "$(fabric_of_process "$listens")")" refused
is 'the new node counts what was said to the one before' "$(node_stat "$listens" fabric.rejected)" 1

# The root has ended, and the eavesdropper takes its place: it listens on both ports that the others
# know.
fabric=$(fabric_of_process 0)
before=$(rejected 1 secret)
kill_node 0
"$PYTHON" "$T/pose.py" "$(told "$ask")" "$root" "$T/posing.1" &
posing=($!)
"$PYTHON" "$T/pose.py" "$(told "$greeting")" "$fabric" "$T/posing.2" &
posing+=($!)
wait_for 20 test -e "$T/posing.1" -a -e "$T/posing.2"
echo new >"$SRC/new"
# A name that was absent a moment ago stays absent for the ENOENT TTL.
wait_for 30 test -e "$W/mnt/1/new"
is 'the false root gets no request' "$(cat "$W/mnt/1/new")" new
wait_for 30 eval '[ "$(rejected 1 secret)" -gt "$before" ]'
ok 'the false root is counted' test "$(rejected 1 secret)" -gt "$before"
ok 'the tree reads all the same' diff -r "$SRC/dir" "$W/mnt/2/dir"
kill "${posing[@]}"
ok 'the tree stops' without_tree
