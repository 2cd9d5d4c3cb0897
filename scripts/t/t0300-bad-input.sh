#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every mistake gets one sentence and leaves nothing behind.
# covers: opt conf launch log
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 52

SRC=$T/src
small_tree "$SRC"
mnt=$T/mnt/0
mkdir -p "$mnt"
mount_here=("$COPPER" mount --source "$SRC")

"$COPPER" >"$T/.out" 2>"$T/.err"
is 'without a subcommand: misuse' $? 2
matches 'without a subcommand the usage is shown' "$(cat "$T/.err")" 'usage: copper'
fails_with 2 'unknown.*mout.*mount' "$COPPER" mout
fails_with 2 '' "$COPPER" mount
fails_with 2 'no-such-option' "${mount_here[@]}" --no-such-option "$mnt"
fails_with 2 'cache-size.*lots|lots.*cache-size' "${mount_here[@]}" --cache-size lots "$mnt"
fails_with 2 'log-level|0-5|9' "${mount_here[@]}" -l 9 "$mnt"
fails_with 2 'chunk' "${mount_here[@]}" --chunk 12345 "$mnt"
fails_with 2 '' "${mount_here[@]}" "$mnt" "$T/another"

fails_with any "/proc/none.*cannot be created" "${mount_here[@]}" /proc/none
echo text >"$T/file"
fails_with any "$T/file.*director" "${mount_here[@]}" "$T/file"
mkdir "$T/full"
echo precious >"$T/full/data"
fails_with any "$T/full.*not empty" "${mount_here[@]}" "$T/full"
fails_with any 'source.*none' "$COPPER" mount --source "$T/none" "$mnt"
fails_with any 'source.*file' "$COPPER" mount --source "$T/file" "$mnt"

"${mount_here[@]}" "$mnt"
fails_with any "$mnt.*already" "${mount_here[@]}" "$mnt"
fails_with any 'already' sh -c 'cd "${1%/*}" && shift && "$@"' - "$mnt" \
	"${mount_here[@]}" "${mnt##*/}"
fails_with 1 "no copper node .*there are: $mnt" "$COPPER" cache-stats "$mnt/dir"
is 'the mount there continues' "$(cat "$mnt/hello")" hello
"$COPPER" stop "$mnt" >/dev/null

# Two nodes that were killed with their guards, and whose directories were removed.
mkdir "$T/gone"
for name in a b; do
	"${mount_here[@]}" "$T/gone/$name"
	pid=$("$COPPER" cache-stats --json "$T/gone/$name" | json_value pid)
	kill -KILL "$(pgrep --parent "$pid" --exact cop-guard)" "$pid"
	wait_for 20 is_gone "$pid"
	umount "$T/gone/$name"
done
rm -r "$T/gone"
fails_with 2 "several copper nodes were killed here.*$T/gone/[ab], $T/gone/[ab]" "$COPPER" cache-stats
fails_with 1 'or was stopped$' "$COPPER" cache-stats "$mnt"
ok 'what one left is removed' "$COPPER" stop "$T/gone/a"
ok 'so is what the other left' "$COPPER" stop "$T/gone/b"
fails_with 1 'no copper node of this user runs here$' "$COPPER" cache-stats

prepare_tree 2
several=("$COPPER" mount --source "$SRC" --secret-file "$SECRET" --ready-timeout 2)
fails_with any "$T/no/hosts" "${several[@]}" --hosts "$T/no/hosts" "$mnt"
: >"$T/hosts-empty"
fails_with any 'hosts-empty' "${several[@]}" --hosts "$T/hosts-empty" "$mnt"
printf '127.0.0.11:%s\n127.0.0.12:port\n' "$cop_port" >"$T/hosts-bad"
fails_with any 'hosts-bad.*(line )?2' "${several[@]}" --hosts "$T/hosts-bad" "$mnt"
printf '127.0.0.11:%s\n\0\1\2 garbage\n' "$cop_port" >"$T/hosts-binary"
fails_with any 'hosts-binary.*(line )?2' "${several[@]}" --hosts "$T/hosts-binary" "$mnt"
printf 'elsewhere-1\nelsewhere-2\n' >"$T/hosts-other"
fails_with any 'not among the 2 hosts|rank' "${several[@]}" --hosts "$T/hosts-other" "$mnt"
fails_with 1 'hosts.txt [(]there is no such file' "${several[@]}" --hosts hosts.txt "$mnt"
fails_with any 'rank.*(2|range)' "${several[@]}" --hosts "$HOSTS" --rank 2 "$mnt"
fails_with any 'rank' "${several[@]}" --hosts "$HOSTS" --rank -1 "$mnt"
fails_with 2 'port' "${several[@]}" --hosts "$HOSTS" --rank 0 --port 70000 "$mnt"
fails_with any '127\.0\.0\.12' "${several[@]}" --hosts "$HOSTS" --rank 0 "$mnt"

"$PYTHON" -c '
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.11", int(sys.argv[1])))
s.listen()
open(sys.argv[2], "w").close()
time.sleep(1000)' "$cop_port" "$T/listening" &
listener=$!
wait_for 5 test -e "$T/listening"
fails_with any "127\.0\.0\.11.*$cop_port|port $cop_port" \
	"${several[@]}" --hosts "$HOSTS" --rank 0 "$mnt"
kill "$listener"

fails_with any 'carrier-pigeon.*tcp' \
	"${several[@]}" --hosts "$HOSTS" --rank 0 -n carrier-pigeon "$mnt"

# No FUSE, in a mount namespace of its own.
fails_with any '/dev/fuse' "${cop_apart[@]}" sh -c \
	'mkdir "$0" && mount --bind "$0" /dev && exec "$@"' "$T/dev" "${mount_here[@]}" "$mnt"

fails_with any 'node|stop' "$COPPER" cache-stats "$T/full"
fails_with any '' "$COPPER" cache-stats --json "$mnt"
is 'a full directory was left alone' "$(cat "$T/full/data")" precious
is 'a refused command leaves no mount' "$(mounts_left)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'a refused command leaves no process' "$(nodes_running)" 0

# Even without its guard, the dead mount of a killed node, whose attributes the kernel still knows,
# stays until stop or the next mount in its place removes it. (With the guard: t0185.)
kill_guard() {
	local pid
	pid=$(pgrep --parent "$(node_stat 0 pid)" --exact cop-guard) && is_ours "$pid" &&
		kill -KILL "$pid" && ls -la "$mnt" >/dev/null
}
with_tree 1
kill_guard
kill_node 0
is 'a node that is killed leaves its mount' "$(mounts_left)" 1
matches 'stop takes a dead mount away' "$("$COPPER" stop "$mnt" 2>&1)" 'the node there was dead'
is 'the dead mount is gone' "$(mounts_left)" 0
is 'the control socket of the dead mount is gone' "$(find "$XDG_RUNTIME_DIR" -type s | wc -l)" 0
with_tree 1
kill_node 0
umount -l "$mnt"
matches 'a control socket without a mount is taken away, too' \
	"$("$COPPER" stop "$mnt" 2>&1)" 'the node here was killed; its control socket .*removed'
is 'the control socket without a mount is gone' "$(find "$XDG_RUNTIME_DIR" -type s | wc -l)" 0
with_tree 1
kill_guard
kill_node 0
matches 'a socket without a mount is no obstacle where the only node is meant' \
	"$("$COPPER" stop 2>&1)" 'the node there was dead'
with_tree 1
kill_guard
kill_node 0
"${mount_here[@]}" "$mnt" 2>/dev/null
is 'a new node may take the place of a dead one' "$(cat "$mnt/hello")" hello
"$COPPER" stop "$mnt" >/dev/null
is 'with one mount there, not two' "$(mounts_left)" 0

# A log that may not grow any more.
(
	ulimit -f 1
	"${mount_here[@]}" -l 5 -d "$T/job.full" "$mnt"
)
cat "$mnt"/*/numbers >/dev/null
"$COPPER" cache-stats --json "$mnt" >/dev/null
cat "$mnt/dir/deeper/random" >"$T/copy"
ok 'a node whose log has reached ulimit -f continues' cmp "$T/copy" "$SRC/dir/deeper/random"
matches 'a node without room for its log continues until it is stopped' \
	"$("$COPPER" stop "$mnt" 2>&1)" '^stopped 1/1 nodes$'
cop_tree=0
