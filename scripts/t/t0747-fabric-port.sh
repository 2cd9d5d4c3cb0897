#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The port on which the fabric listens: chosen by the user, taken by another program, reserved for
# root, and blocked by a firewall that lets the rendezvous through.
# covers: node endpoint reach start conf
# modes: release asan
# limit: 180
# takes: 50
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=networks.sh
. "$(dirname "$0")/networks.sh"

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
plan 17
wire_hosts 2

check() { # I OPTION…
	on "$1" timeout "$(patient 30)" "$COPPER" serve --check --hosts n1,n2 --insecure \
		--source "$T/src" --runtime-dir "$T/run.$1" "${@:2}" >"$T/check" 2>&1
}

both() { # SECONDS OPTION…: starts two nodes; their exit statuses and output go to $T/said.I
	local i ready=$1
	shift
	# Where a port is silent, all of this passes: a moment of high load must not make it
	# longer than the test may take.
	[ "$ready" -le 40 ] || ready=40
	rm -rf "$T/job"
	for i in 1 2; do
		{
			on "$i" timeout "$(patient 90)" "$COPPER" mount --hosts n1,n2 \
				--secret-file "$T/secret" --source "$T/src" -d "$T/job" \
				--runtime-dir "$T/run.$i" --ready-timeout "$ready" "$@" "$T/mnt.$i" \
				>"$T/out.$i" 2>&1
			echo "$? $(cat "$T/out.$i")" >"$T/said.$i"
		} &
		starts[i]=$!
	done
	wait "${starts[@]}"
}

listening() { # I: where the log says that the fabric listens
	sed -n 's/.*fabric address=\([^ ]*\) .*/\1/p' "$T/job/logs/n$1"-*
}

# ---- chosen

both "$(patient 20)" --fabric-port 21000-21003
is 'both nodes start' "$(cat "$T"/said.?)" '0 
0 '
is 'the first listens on the first port' "$(listening 1)" ofi+tcp://10.78.1.1:21000
is 'the other on its own' "$(listening 2)" ofi+tcp://10.78.1.2:21000
ok 'a file comes through' on 2 cmp "$T/src/dir/deeper/random" "$T/mnt.2/dir/deeper/random"
is 'the tree stops' "$(on 1 "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" 2>&1)" \
	'stopped 2/2 nodes'

# ---- taken, and reserved

on 1 "$PYTHON" -c '
import os, socket, sys, time
s = socket.create_server(("10.78.1.1", 21000))
with open(sys.argv[1], "w") as f:
    print(os.getpid(), file=f)
time.sleep(600)' "$T/taken" &
wait_for 10 test -s "$T/taken"
check 1 --fabric-port 21000
is 'a port that is taken fails' "$?" 1
matches 'the message names the port and the way out' "$(cat "$T/check")" \
	'10\.78\.1\.1 port 21000 .*another program has it.*--fabric-port 21000-21015'
ok 'of a range the next is used' check 1 --fabric-port 21000-21001
matches 'which the check names' "$(cat "$T/check")" \
	'ok +network .*address ofi\+tcp://10\.78\.1\.1:21001;'
kill "$(cat "$T/taken")"

cp "$COPPER" "$T/copper"
chmod 755 "$T" "$T/copper"
mkdir -m 700 "$T/run.user"
chown 65534 "$T/run.user"
on 1 timeout "$(patient 30)" setpriv --reuid 65534 --regid 65534 --clear-groups "$T/copper" serve \
	--check --hosts n1,n2 --insecure --source "$T/src" --runtime-dir "$T/run.user" \
	--fabric-port 80 >"$T/check" 2>&1
is 'a port that is reserved fails' "$?" 1
matches 'the message names the first port that users have' "$(cat "$T/check")" \
	'10\.78\.1\.1 port 80 .*only root .*1024 or above'

# ---- blocked in both directions, for a connection that one node opens serves the other as well

blocked='n1 \(rank 0, this node.s parent and the root\): its rendezvous answered, but its fabric address ofi\+tcp://10\.78\.1\.1:21000 did not; .*--fabric-port'

block 1 21000 blackhole
block 2 21000 blackhole
both "$(patient 6)" --fabric-port 21000
matches 'nothing comes back: the node fails' "$(cat "$T/said.2")" '^1 '
matches 'and names the address and the rank' "$(cat "$T/said.2")" "$blocked"
matches 'the log named the address early' "$(cat "$T/job/logs/n2"-*)" \
	'parent not ready yet: no answer yet from its fabric address ofi\+tcp://10\.78\.1\.1:21000'

block 1 21000 prohibit
block 2 21000 prohibit
both 20 --fabric-port 21000 --peer-timeout 1
matches 'the connection is refused: the root names the node that is missing' \
	"$(cat "$T/said.1")" '^1 .*1 of 2 nodes not ready after [0-9]+ s: n2'
matches 'the other node fails' "$(cat "$T/said.2")" '^1 '
matches 'and names the address and the rank here, too' "$(cat "$T/said.2")" "$blocked"
kill "${hosts[@]}"
