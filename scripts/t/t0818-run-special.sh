#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# FIFOs and sockets of the source: in a view they are the storage's own; the bare mount refuses them
# at once.
# covers: view fuse
# modes: release asan
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 26

SRC=$T/src
mkdir -p "$SRC/a/b"
echo text >"$SRC/a/text"
chmod -R a+rX "$SRC"
mkfifo -m 666 "$SRC/fifo" "$SRC/a/b/fifo"
# A server for each of two sockets, and a socket that nobody serves.
cat >"$T/serve.py" <<'PY'
import os, select, socket, sys
os.umask(0)
served = []
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(path))
    s.bind(os.path.basename(path))
    if not path.endswith("stale"):
        s.listen(16)
        served.append(s)
print("ready", flush=True)
while True:
    for s in select.select(served, [], [])[0]:
        c = s.accept()[0]
        c.sendall(b"served\n")
        c.close()
PY
"$PYTHON" "$T/serve.py" "$SRC/socket" "$SRC/a/b/socket" "$SRC/a/b/stale" >"$T/served" &
server=$!
is_ready() {
	grep -q ready "$T/served"
}
wait_for 10 is_ready || bail 'no server'
# What each way to open or connect gives. One that blocks ends by an alarm.
cat >"$T/try.py" <<'PY'
import errno, os, signal, socket, stat, sys
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
def attempt(what, do):
    signal.alarm(20)
    try:
        got = do() or "done"
    except TimeoutError:
        got = "hangs"
    except OSError as e:
        got = errno.errorcode[e.errno]
    signal.alarm(0)
    print(what, got)
def connect(path):
    s = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(path))
    s.connect(os.path.basename(path))
    return s.recv(100).decode().strip()
for path in sys.argv[1:]:
    print(os.path.basename(path), stat.filemode(os.stat(path).st_mode)[0])
    for name in "RDONLY", "WRONLY", "RDWR":
        flags = getattr(os, "O_" + name)
        if not (len(sys.argv) == 2 and name != "RDWR"):
            attempt(name, lambda: os.close(os.open(path, flags)))
        attempt(name + "|NONBLOCK", lambda: os.close(os.open(path, flags | os.O_NONBLOCK)))
    attempt("connect", lambda: connect(path))
PY
try() {
	"$PYTHON" "$T/try.py" "$@"
}
run() {
	as_user "$COPPER" run "$@"
}
refusal() { # CONNECT
	printf '%s ENXIO\n' RDONLY 'RDONLY|NONBLOCK' WRONLY 'WRONLY|NONBLOCK' RDWR 'RDWR|NONBLOCK'
	echo 'connect ECONNREFUSED'
}
refusals=$(echo fifo s; refusal; echo socket s; refusal; echo stale s; refusal)
# Alone, a FIFO is not opened in the ways that wait.
fifo_alone=$(printf '%s\n' 'fifo p' 'RDONLY|NONBLOCK done' 'WRONLY|NONBLOCK ENXIO' 'RDWR done' 'RDWR|NONBLOCK done' 'connect ECONNREFUSED')
is 'what the storage gives' "$(try "$SRC/a/b/fifo")" "$fifo_alone"
through_fifo() { # NAME VIEW
	timeout "$(patient 20)" sh -c "echo written >'$1'" &
	run --view "$2" timeout "$(patient 20)" cat "$1"
	wait "$!"
}
all_views() { # WHO
	local view
	with_tree 1
	is "$1: the mount refuses all at once" \
		"$(cd / && as_user "$PYTHON" "$T/try.py" "$W"/mnt/0/a/b/{fifo,socket,stale})" "$refusals"
	is "$1: the mount lists them as sockets" \
		"$(as_user find "$W/mnt/0" -type s | wc -l) $(as_user find "$W/mnt/0" -type p | wc -l)" '5 0'
	for view in overlay bind; do
		is "$1, $view: a FIFO is the storage's" \
			"$(run --view "$view" "$PYTHON" "$T/try.py" "$SRC/a/b/fifo")" "$fifo_alone"
		is "$1, $view: what is written outside of it" \
			"$(through_fifo "$SRC/a/b/fifo" "$view")$(through_fifo "$SRC/fifo" "$view")" \
			"writtenwritten"
		is "$1, $view: sockets are the storage's" \
			"$(run --view "$view" "$PYTHON" "$T/try.py" "$SRC"/{socket,a/b/socket,a/b/stale} |
				grep -v ENXIO)" $'socket s\nconnect served\nsocket s\nconnect served\nstale s\nconnect ECONNREFUSED'
		is "$1, $view: what leads to them is not listed" "$(run --view "$view" sh -c "ls -A '$SRC'")" \
			"$(ls -A "$SRC")"
	done
	as_user "$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null
	is "$1: in a view of a part they are refused at once, too" \
		"$(run --below "$SRC/a" "$PYTHON" -c "import os
try: os.open('$SRC/a/b/fifo', os.O_RDONLY)
except OSError as e: print(e.strerror)")" 'No such file or directory'
	ok "$1: the tree stops" without_tree
}
all_views root
become_user
all_views 'an ordinary user'
kill "$server"
is 'nothing is left' "$(nodes_running) $(mounts_left)" '0 0'
