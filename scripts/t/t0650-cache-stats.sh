#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cache-stats for people: every node in a line, repeatedly, on a terminal and elsewhere; and its
# refusals.
# covers: ctl op
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

with_tree 4 -k 2 --peer-timeout 1
M=$W/mnt/3
cat "$M/hello" "$W/mnt/2/dir/numbers" >/dev/null

"$COPPER" cache-stats --all --table "$M" >"$T/table"
is 'every node has a line, in order of rank' \
	"$(awk '$1 != "rank" { print $1, $2 }' "$T/table" | tr '\n' ' ')" \
	'0 127.0.0.11 1 127.0.0.12 2 127.0.0.13 3 127.0.0.14 total 4 '
is 'no line is wider than a terminal may be' "$(awk 'length > 132' "$T/table")" ''
# requests: the sixth column of a node (1.5 MiB is two), the eighth of the total (4 nodes are two
# more)
is 'the total is their sum' "$(awk '$1 == "total" { print $7 }' "$T/table")" \
	"$(awk '$1 ~ /^[0-9]+$/ { n += $6 } END { print n }' "$T/table")"
matches 'elsewhere --all is JSON' "$("$COPPER" cache-stats --all "$M")" '^{"nodes":'

# Runs a command on a terminal until that word has come twice, or for this many seconds, and prints
# the output.
on_terminal() { # SECONDS WORD COMMAND…
	"$PYTHON" - "$(patient "$1")" "${@:2}" <<'PY'
import os, pty, select, signal, sys, time
seconds, word, command = float(sys.argv[1]), sys.argv[2].encode(), sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(command[0], command)
out, end = b"", time.monotonic() + seconds
while time.monotonic() < end and out.count(word) < 3:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
try:
    os.kill(pid, signal.SIGKILL)
except ProcessLookupError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(out.replace(b"\r\n", b"\n"))
PY
}
matches 'on a terminal --all is a table' \
	"$(on_terminal 20 'no such word' "$COPPER" cache-stats --all "$M" | head -n 1)" \
	'^ *rank +host'
TERM=xterm on_terminal 20 'rank 3 of 4' "$COPPER" cache-stats --table --watch 1 "$M" >"$T/redrawn"
ok 'with --table a terminal is cleared before each round' \
	test "$(grep -c $'^\033\\[H\033\\[2Jrank 3 of 4' "$T/redrawn")" -ge 2

# Looks up absent names, 100 per second at most, until it is told to end.
"$PYTHON" -c '
import os, sys, time
i = 0
while not os.path.exists(sys.argv[2]):
    assert not os.path.exists(f"{sys.argv[1]}/absent{i}")
    i += 1
    time.sleep(0.01)' "$M" "$T/enough" &
busy=$!
watch() { # OPTION…: four rounds of it
	rm -f "$T/watched"
	"$COPPER" cache-stats --watch 1 "$@" "$M" >"$T/watched" &
	wait_for 30 eval '[ "$(grep -c "^ *rank" "$T/watched")" -ge 4 ]'
	kill $!
	wait $!
}
watch
is 'elsewhere nothing is cleared' "$(grep -c $'\033' "$T/watched")" 0
rates() {
	awk '$1 == "lookup" && $3 ~ "/s$" { print $3 + 0 }' "$1"
}
is 'the first round has no rates' \
	"$(awk '/^rank/ { round++ } round == 1 && /\/s /' "$T/watched")" ''
ok 'later ones say what a counter grew by' \
	test "$(rates "$T/watched" | sort -g | tail -n 1 | cut -d . -f 1)" -ge 5
is_at_most 'no counter grows by more than was done' \
	"$(rates "$T/watched" | sort -g | tail -n 1)" 300
watch --all --table
touch "$T/enough"
wait "$busy"
matches 'all nodes together, too' "$(cat "$T/watched")" '^ *per s  +[0-9]+\.[0-9] '

kill_node 1
wait_for 10 eval '"$COPPER" cache-stats --all --table "$M" | grep -q dead'
matches 'a dead node is said to be' \
	"$("$COPPER" cache-stats --all --table "$M")" '^ *1  127.0.0.12 +dead$'
matches 'and counted' "$("$COPPER" cache-stats --all --table "$M")" '^ *total  3 nodes, 1 dead '
unmount_killed

fails_with 1 'cannot write to standard output' \
	sh -c 'exec "$@" >/dev/full' - "$COPPER" cache-stats --json "$M"
fails_with 2 'cannot be combined' "$COPPER" cache-stats --snapshot --invalidate "$M"
fails_with 2 'cannot be combined' "$COPPER" cache-stats --json --table "$M"
fails_with 2 'leave MOUNTPOINT out' "$COPPER" cache-stats --from "$T" "$M"
fails_with 1 'no \*_cache_size.output files in ' "$COPPER" cache-stats --from "$T"
fails_with 1 'cannot (create|write) /proc/nothing' \
	"$COPPER" cache-stats --output-dir /proc/nothing "$M"
ok 'the tree stops' without_tree
