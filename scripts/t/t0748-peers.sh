#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Firewalls in front of other hosts: copper mount --check tries their ports and names those that do
# not let connections through, and how; a start names a node whose own port is blocked, although the
# connection that it opened serves.
# covers: check start base/base
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=networks.sh
. "$(dirname "$0")/networks.sh"

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
plan 18
wire_hosts 3

check() { # OPTION…
	on 1 timeout "$(patient 60)" "$COPPER" serve --check --hosts n1,n2,n3 --rank 0 --insecure \
		--source "$T/src" --runtime-dir "$T/run.1" "$@" >"$T/check" 2>&1
}
peers() { # OPTION…: what it says of them
	check "$@"
	echo "$? $(sed -n 's/^\([a-z]*\) *peers *\(.*\)/\1: \2/p' "$T/check" | sort)"
}

# ---- before the start

is 'hosts on which nothing runs can be reached' "$(peers --fabric-port 21000)" \
	'0 ok: of 4 TCP ports of 2 other hosts, 4 can be reached (0 answer, and on 4 nothing runs yet)'
matches 'without --fabric-port the check says what it cannot try' "$(peers)" \
	'^0 ok: of 2 TCP ports .* the kernel chooses them: firewalls need --fabric-port$'
on 3 "$PYTHON" -c '
import os, socket, sys, time
s = socket.create_server(("10.78.1.3", 21000))
with open(sys.argv[1], "w") as f:
    print(os.getpid(), file=f)
time.sleep(600)' "$T/listens" &
wait_for 10 test -s "$T/listens"
matches 'a port that answers counts as such' "$(peers --fabric-port 21000)" '\(1 answer, and on 3 '
kill "$(cat "$T/listens")"
matches 'a range is tried as a whole, up to sixteen ports' "$(peers --fabric-port 21000-21040)" \
	'^0 ok: of 34 TCP ports of 2 other hosts, 34 '

block 2 21000 blackhole
said=$(peers --fabric-port 21000)
matches 'a dropped port fails the check' "$said" '^1 '
matches 'and is named with its host, use and kind' "$said" \
	'failed: n2 \(rank 1\), 10\.78\.1\.2 TCP port 21000 \(fabric\): silent: a firewall drops'
matches 'the others are counted' "$said" 'warning: of 4 TCP ports .* 3 can be reached'
is 'and not named' "$(grep -c '^failed' "$T/check")" 1
on 3 "$PYTHON" "$cop_t/refuse.py" eth0 7720 "$T/refuses" &
wait_for 10 test -s "$T/refuses"
block 3 7720 blackhole
matches 'a port that a firewall refuses is no port where nothing runs' \
	"$(peers --fabric-port 21000)" \
	'failed: n3 \(rank 2\), 10\.78\.1\.3 TCP port 7720 \(rendezvous\): refused on the way: a firewall'
kill "$(cat "$T/refuses")"
on 3 bash -c 'echo 1 >/proc/sys/net/ipv4/conf/all/forwarding'
block 3 7720 prohibit
matches 'nor one that it prohibits' "$(peers)" 'failed: n3 .* no route to the host: a firewall '
check --json --fabric-port 21000
is 'scripts get the same' "$("$PYTHON" -c 'import json, sys
print(*(c["state"] for c in json.load(sys.stdin)["checks"] if c["name"] == "peers"))' \
	<"$T/check")" 'failed failed warning'
block 3 7720 none

printf '10.78.1.%d\n' 1 $(seq 30 149) >"$T/many"
on 1 timeout "$(patient 60)" "$COPPER" serve --check --hosts "$T/many" --rank 0 --insecure \
	--source "$T/src" --runtime-dir "$T/run.1" >"$T/check" 2>&1
is 'of many hosts that are down, the first are named' \
	"$(grep -c '^failed *peers *10.78.1.*: \(no route\|silent\)' "$T/check")" 16
matches 'and the rest is counted' "$(cat "$T/check")" '^failed +peers +and 104 more ports'

# ---- at the start

with_hosts n1,n2,n3 --fabric-port 21000
is 'the tree is ready: the connections that the nodes open serve both ways' \
	"$(cut -c 1-2 "$T/said" | xargs)" '0 0 0'
matches 'the mount of the node above names the port that is blocked' "$(cat "$T/out.1")" \
	'note: n2 \(rank 1\): new connections to its fabric address ofi\+tcp://10\.78\.1\.2:21000 do not get through \(silent'
is 'once, and no other' "$(cat "$T"/out.? | wc -l)" 1
on 1 "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" >/dev/null 2>&1
block 2 21000 none
with_hosts n1,n2,n3 --fabric-port 21000
is 'without a firewall nothing is said' "$(cat "$T/said")" $'0 \n0 \n0 '
is 'the tree stops' "$(on 1 "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" 2>&1)" \
	'stopped 3/3 nodes'
kill "${hosts[@]}"
