#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Attempts to get in leave a trace: counted by kind, and logged with the address, however many there
# were.
# covers: rpc wire node
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16

with_tree 3
rdv=$(address_of 0):$cop_port

# Connects to ADDRESS:PORT from FROM, again and again; sends what the name says and waits for the
# end.
attempts() { # KIND COUNT FROM ADDRESS
	"$PYTHON" - "$@" <<'PY'
import os, socket, sys
kind, count, source, (host, port) = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].rsplit(":", 1)
address = b"ofi+tcp://127.0.0.99:7720"
words = {
    "noise": lambda: b"\x00" + os.urandom(63),
    "short": lambda: b"COPR",
    "silent": lambda: b"",
    "wrong": lambda: b"COPR\x02\x01" + bytes([len(address), 0]) + os.urandom(64) + address,
}
for i in range(count):
    with socket.socket() as s:
        s.settimeout(30)
        s.bind((source, 0))
        try:
            s.connect((host, int(port)))
            s.sendall(words[kind]())
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        except OSError:
            pass
PY
}
rejected() { # [KIND] RANK
	node_stat "${2:-$1}" "fabric.rejected${2:+_$1}"
}

is 'a tree on its own counts nothing' "$(tree_sum fabric.rejected)" 0
attempts noise 800 127.0.0.77 "$rdv"
is '800 connections of noise are counted' "$(rejected form 0)" 800
attempts short 75 127.0.0.77 "$rdv"
attempts wrong 75 127.0.0.78 "$rdv"
is 'asks that are cut off are counted' "$(rejected form 0)" 875
is 'asks with a wrong tag are counted' "$(rejected secret 0)" 75
attempts silent 10 127.0.0.79 "$rdv"
is 'connections that say nothing are counted' "$(rejected silent 0)" 10
is 'the refusals add up' "$(rejected 0)" 960
fabric=$(sed -n '1s/.*ofi+tcp:..//p' "$JOB/logs/copper_address_book.txt")
attempts noise 20 127.0.0.80 "$fabric"
wait_for 20 eval '[ "$(rejected host 0)" -eq 20 ]'
is 'fabric connections of hosts outside the job are counted' "$(rejected host 0)" 20
is 'the other nodes saw none of these connections' "$(rejected 1)$(rejected 2)" 00
for from in 77 78 79 80; do
	matches "the log has 127.0.0.$from" \
		"$(cat "$JOB"/logs/*.log)" "refused what=[a-z]* from=127\\.0\\.0\\.$from why="
done
ok 'the tree stops' without_tree
is 'the log says how often each was refused' \
	"$(sed -n 's/.*refused what=.* from=127.0.0.77 .*more=//p' "$JOB"/logs/*.log |
		awk '{ sum += $1 } END { print sum }')" 874

# A node with another secret, and one without any.
printf 'another secret of thirty-two bytes' >"$T/other"
chmod 600 "$T/other"
without_it() { # NAME [OPTION…]: rank 0 with the secret, rank 1 with what the options say
	local name=$1
	shift
	prepare_tree 2
	start_node 0 --ready-timeout 5 &
	timeout "$(patient 60)" "$COPPER" mount --hosts "$HOSTS" --rank 1 --job-dir "$JOB" \
		--source "$SRC" --ready-timeout 3 "$@" \
		"$W/mnt/1" </dev/null >"$W/out.1" 2>&1
	wait "$!"
	matches "$name is in the log of the other" "$(cat "$JOB"/logs/"$(address_of 0)"-*.log)" \
		"refused what=ask from=$(address_of 1) why=\"it does not prove the job's secret\""
}
without_it 'a node with the wrong secret' --secret-file "$T/other"
without_it 'a node without one' --insecure
