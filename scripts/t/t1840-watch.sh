#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cache-stats --watch on a terminal: a page of all nodes that obeys keys, sizes and signals, and
# leaves the terminal as it was.
# covers: watch op
# modes: release asan
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
command -v tmux >/dev/null ||
	skip_all 'there is no tmux, in whose window the page would be looked at'
plan 47

SRC=$T/src
small_tree "$SRC"
with_slowfs --direct-io
with_tree 3 -k 2 --peer-timeout 1
M=$W/mnt/2

# ---- a terminal

unset TMUX TMUX_PANE
tm() {
	TMUX_TMPDIR=$T tmux -L watch -f /dev/null -u "$@"
}
# Words are for the environment: LC_ALL=C. Leaves the state of the terminal from before and after,
# and the exit status.
cat >"$T/rc" <<EOF
PS1='$ '
state() { # but for the size
	stty -a | sed 's/rows [0-9]*; columns [0-9]*; //'
}
ended() {
	echo \$? >"$T/status"
	state >"$T/after"
}
look() {
	rm -f "$T/after" "$T/status"
	state >"$T/before"
	env "\$@" sh -c 'echo \$\$ >"$T/pid" && exec "$COPPER" cache-stats --watch 1 "$M"' 2>"$T/said"
	ended
}
EOF
tm new-session -d -x 80 -y 24 "bash --rcfile $T/rc -i" || bail 'tmux does not start'

page() {
	tm capture-pane -p
}
page_has() { # REGEX
	page | grep -Eq -- "$1"
}
page_lacks() { # REGEX
	! page_has "$1"
}
# One point: the page has it, sooner or later.
shows() { # DESCRIPTION REGEX
	if wait_for 40 page_has "$2"; then
		pass "$1"
	else
		fail "$1" "wanted: /$2/" "$(page)"
	fi
}
press() { # KEY…
	tm send-keys "$@"
}
watched() { # [WORD…]
	press "look $*" Enter
	wait_for 40 page_has '^rank host' || fail 'the page is there' "$(page)"
}
is_left() {
	[ -s "$T/after" ]
}
# Two points: it ends with that status, and the terminal is as it was.
leaves() { # HOW STATUS
	wait_for 40 is_left
	is "$1 ends it with $2" "$(cat "$T/status")" "$2"
	is "$1: the terminal is as it was" "$(cat "$T/after")" "$(cat "$T/before")"
}
# The ranks on the page, from top to bottom.
ranks() {
	page | awk '/^rank host/ { nodes = 1; next } nodes && $1 ~ /^[0-9]+$/ { printf "%s ", $1 }'
}
ranks_are() { # RANKS
	[ "$(ranks)" = "$1" ]
}
begins_with() { # RANK
	[[ "$(ranks)" == "$1 "* ]]
}
stands_first() { # DESCRIPTION RANK
	wait_for 40 begins_with "$2"
	is "$1" "$(ranks | cut -d ' ' -f 1)" "$2"
}

# ---- load: a read on node 1 that waits for the storage, and lookups on node 2

slow_fault hang=hello
cat "$W/mnt/1/hello" >/dev/null 2>&1 &
reader=$!
"$PYTHON" -c '
import os, sys, time
i = 0
while not os.path.exists(sys.argv[2]):
    os.path.exists(f"{sys.argv[1]}/absent{i}")
    i += 1
    time.sleep(0.02)' "$M" "$T/enough" &
busy=$!

watched
shows 'a title counts the nodes' '^copper  3 nodes .* by wait, every 1 s$'
is 'the columns are named' "$(page | grep '^rank')" \
	'rank host         wait  req/s   bytes/s stor/s   now    cached  full served/s'
stands_first 'who waits most stands first' 1
shows 'with what it waits' '^   1 127\.0\.0\.12 +([1-9]\.[0-9]+|0\.9[0-9]) .* [1-9] '
shows 'and the sum of it' '^wait +[0-9.]+ requests on average, [1-9][0-9]* now on 1 nodes$'
shows 'requests have a chart' '^requests +[0-9.]+/s .*(▃|▄|▅|▆|▇|█)'
press r
stands_first 'r: who has most requests' 2
shows 'which is said' ' by requests, every 1 s$'
press r
stands_first 'r again: who has fewest' 0
press n
wait_for 40 ranks_are '0 1 2 '
is 'n: in order of rank' "$(ranks)" '0 1 2 '
press +
shows '+: a longer interval' ' every 2 s$'
press -
press p
shows 'p: a pause' ' PAUSED, by rank, every 1 s$'
still=$(page)
sleep 2
is 'p: nothing moves during a pause' "$(page)" "$still"
press p '?'
shows '?: help' '  q, Ctrl-C: leave$'
press x
wait_for 40 page_has '^rank host'

tm resize-window -x 40 -y 10
shows 'a narrow window has fewer columns' '^rank host +wait  req/s   bytes/s$'
shows 'and sums' '^wait +[0-9.]+, [0-9]+ now on [0-9]+ nodes$'
is 'the page fits ten lines' "$(page | wc -l)" 10
tm resize-window -x 40 -y 5
shows 'a low one has no sums and fewer nodes' '^\? help  q leave +1-2 of 3$'
press Down
shows 'which arrows scroll' ' 2-3 of 3$'
press Home
shows 'and Home takes to the first' ' 1-2 of 3$'
tm resize-window -x 132 -y 24
shows 'a wide one has a chart of each node' '^rank host .* served/s +requests$'
tm resize-window -x 80 -y 24

press C-z
shows 'Ctrl-Z stops it' 'Stopped'
wait_for 40 is_left
is 'the small terminal is as it was' "$(cat "$T/after")" "$(cat "$T/before")"
rm "$T/after"
press 'fg; ended' Enter
shows 'and fg brings the page back' '^rank host +wait'
node=$(node_stat 2 pid)
kill -STOP "$node"
shows 'an answer that is late is said to be' ' LATE [0-9]+ s, by rank'
kill -CONT "$node"
wait_for 40 page_lacks LATE
ok 'the page waits until the tree comes' page_lacks LATE
press q
leaves q 0
is 'the page says nothing meanwhile' "$(cat "$T/said")" ''

watched LC_ALL=C
shows 'without UTF-8 the chart is of ASCII' '^requests +[0-9.]+/s .*[-=+*%#]'
is 'without UTF-8 the whole page is ASCII' "$(page | LC_ALL=C grep -c '[^ -~]')" 0
press C-c
leaves Ctrl-C 0
watched
kill -TERM "$(cat "$T/pid")"
leaves SIGTERM 143
watched
kill -HUP "$(cat "$T/pid")"
leaves SIGHUP 129

# ---- no page

# Prints the output of a page that is drawn elsewhere, until it has had two rounds.
plainly() { # COMMAND…
	rm -f "$T/plain"
	"$@" >"$T/plain" 2>&1 &
	wait_for 40 eval '[ "$(grep -c "^rank 2 of 3" "$T/plain")" -ge 2 ]'
	kill "$!"
	wait "$!" 2>/dev/null
	grep -c $'\033' "$T/plain"
}
is 'a file gets lines' "$(plainly "$COPPER" cache-stats --watch 1 "$M")" 0
press "clear; $COPPER cache-stats --watch 1 $M | grep --line-buffered -E 'rank|lookup' | cat -v" \
	Enter
shows 'and so does a pipe' '^rank 2 of 3'
press C-c
TERM=dumb "$PYTHON" - "$T/dumb" "$(patient 20)" "$COPPER" cache-stats --watch 1 "$M" <<'PY'
import os, pty, select, signal, sys, time
out, end, command = b"", time.monotonic() + float(sys.argv[2]), sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(command[0], command)
while time.monotonic() < end and out.count(b"rank 2 of 3") < 2:
    if select.select([fd], [], [], 0.1)[0]:
        out += os.read(fd, 65536)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
open(sys.argv[1], "wb").write(out)
PY
is 'a terminal that can do nothing gets lines' \
	"$(grep -c '^rank 2 of 3' "$T/dumb"), $(grep -c $'\033' "$T/dumb") sequences" \
	'2, 0 sequences'

# ---- ends

watched
kill_node 1
wait "$reader"
shows 'a dead node is counted' '^copper  3 nodes, 1 dead '
shows 'and said to be dead' '^   1 127\.0\.0\.12 dead$'
stands_first 'before those that live' 1
touch "$T/enough"
wait "$busy"
slow_fault clear
ok 'the tree stops' without_tree
leaves 'the end of the tree' 1
matches 'the page says that the tree stopped, with what was last known' "$(cat "$T/said")" \
	'^copper cache-stats: the node here (has ended: |is ending).*; last known: 3 nodes, 1 dead, '
tm kill-server
