#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node that does not know the secret is not let in; without any secret several nodes do not start.
# covers: wire node
# quick: yes
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 19

start_pair() { # SECONDS; the second node may have another secret
	prepare_tree 2
	cop_tree=2
	printf 'another secret of thirty-two bytes' >"$T/other"
	chmod 600 "$T/other"
	start_node 0 --ready-timeout "$1" &
	first=$!
	SECRET=${other_secret:-$SECRET} start_node 1 --ready-timeout "$1"
	status1=$?
	wait "$first"
	status0=$?
}

other_secret=$T/other start_pair 4
is 'with a wrong secret the first node fails' "$status0" 1
is 'with a wrong secret the second node fails' "$status1" 1
matches 'the missing host is named' "$(cat "$W/out.0")" '127\.0\.0\.12'
is 'the missing host is named in one line' "$(grep -c . "$W/out.0")" 1
is 'a refused start leaves no mount' "$(mounts_left)" 0
wait_for 5 eval '[ "$(nodes_running)" -eq 0 ]'
is 'a refused start leaves no process' "$(nodes_running)" 0
cop_tree=0

start_pair 120
is 'with the same secret both start' "$status0$status1" 00

# The provider's own port, to which an unverified peer could speak the provider's protocol.
connects() { # FROM RANK: says what becomes of a connection from this address
	"$PYTHON" - "$1" "$(sed -n "$(($2 + 1))s/.*ofi+tcp:..//p" "$JOB/logs/copper_address_book.txt")" <<'PY'
import socket, sys
s = socket.socket()
s.bind((sys.argv[1], 0))
host, port = sys.argv[2].rsplit(":", 1)
try:
    s.connect((host, int(port)))
    s.settimeout(20 if sys.argv[1] == "127.0.0.99" else 0.3)
    print("closed" if s.recv(1) == b"" else "answered")
except ConnectionError:
    print("closed")
except TimeoutError:
    print("open")
PY
}
is 'a host of the job is asked for the secret by the fabric of the root' \
	"$(connects "$(address_of 1)" 0)" answered
is 'the root is asked for the secret by a host of the job' \
	"$(connects "$(address_of 0)" 1)" answered
is 'a host that is not of the job does not' "$(connects 127.0.0.99 0)" closed
is 'a host of another node does not get the secret' "$(connects 127.0.0.99 1)" closed
is 'the refusal has other reasons than silence' "$(grep -l 'it said nothing' "$JOB"/logs/*.log)" ''
ok 'the tree reads all the same' diff -r "$SRC" "$W/mnt/1"
without_tree

prepare_tree 2
mount_words=("$COPPER" mount --hosts "$HOSTS" --rank 0 --source "$SRC" --ready-timeout 3)
fails_with any secret "${mount_words[@]}" "$W/mnt/0"
cp "$SECRET" "$T/open"
chmod 644 "$T/open"
fails_with any "$T/open" "${mount_words[@]}" --secret-file "$T/open" "$W/mnt/0"
fails_with any 'none' "${mount_words[@]}" --secret-file "$T/none" "$W/mnt/0"
printf x >"$T/short"
chmod 600 "$T/short"
fails_with any 'secret' "${mount_words[@]}" --secret-file "$T/short" "$W/mnt/0"

# A job directory alone is enough: rank 0 makes the secret there.
cop_tree=2
"$COPPER" mount --hosts "$HOSTS" --rank 1 --source "$SRC" -d "$JOB" "$W/mnt/1" >"$W/out.1" 2>&1 &
"$COPPER" mount --hosts "$HOSTS" --rank 0 --source "$SRC" -d "$JOB" "$W/mnt/0" >"$W/out.0" 2>&1
wait
is 'a job directory is enough' "$(mounts_left)" 2
is 'the secret in the job directory is readable by its user only' "$(stat -c %a "$JOB/secret")" 600
