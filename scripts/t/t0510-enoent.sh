#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Absent names and their TTL: what is remembered, served, checked again and found, counted exactly.
# The node runs as an ordinary user, so that a directory of mode 711 has no list.
# covers: fetch cache stats
# modes: release asan
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 27

# Two looks at a new list must not take as long, however busy the machine is.
look_around
ttl_ms=$((1000 * cop_slower * (CROWD < 5 ? CROWD : 5)))
become_user
SRC=$T/src
mkdir -p "$SRC/listed" "$SRC/blind" "$SRC/large"
echo here >"$SRC/listed/file"
echo here >"$SRC/blind/file"
for i in $(seq 1 40); do
	echo "$i" >"$SRC/large/n$i"
done
chmod 711 "$SRC/blind"

# Reads the four counters of node 0 around a command; its exit status is in STATUS.
counted() { # COMMAND…
	node_json 0 >"$T/before"
	as_user "$@" >"$T/cmd.out" 2>"$T/cmd.err"
	STATUS=$?
	node_json 0 >"$T/after"
	COUNTS=$("$PYTHON" "$cop_t/t05_stats.py" group enoent "$T/before" "$T/after")
	LOOKUPS=$("$PYTHON" "$cop_t/t05_stats.py" delta fuse.lookup "$T/before" "$T/after")
}
past_ttl() { # TIMES
	sleep "$(awk -v n="$1" -v ms="$ttl_ms" 'BEGIN { print n * ms / 1000 + 0.1 }')"
}

with_tree 1 --enoent-ttl-ms $ttl_ms
mnt=$W/mnt/0

# ---- a directory with a list

counted test -e "$mnt/listed/none0"
is 'the first name in a directory is asked for by itself' "$COUNTS" 'stores=1'
counted test -e "$mnt/listed/none1"
is 'a name that a new list does not have is served' "$COUNTS" 'serves=1'
# The kernel may keep it for the TTL: one lookup per TTL.
lookups() { # those of a thousand looks, but for one for each TTL that they took
	counted "$PYTHON" -c '
import os, sys, time
begin = time.monotonic()
for _ in range(1000):
    assert not os.path.exists(sys.argv[1])
print(int((time.monotonic() - begin) * 1000 / float(sys.argv[2])))' "$mnt/listed/none2" $ttl_ms
	echo $((LOOKUPS - $(cat "$T/cmd.out")))
}
is_at_most 'the kernel asks once in a TTL, however often the program does' "$(least 1 lookups)" 1
past_ttl 1
counted "$PYTHON" -c 'import os, sys; sys.exit(any(os.path.exists(f"{sys.argv[1]}/{name}") for name in ("none3", "none4")))' "$mnt/listed"
is 'an old list is checked once, and believed again' "$STATUS $COUNTS" '0 serves=1 expires=1'
past_ttl 1
echo new >"$SRC/listed/none1"
counted "$PYTHON" -c '
import os, sys
print(open(f"{sys.argv[1]}/none1").read(), end="")
sys.exit(os.path.exists(f"{sys.argv[1]}/none5"))' "$mnt/listed"
is 'a name that appeared is found' "$STATUS $(cat "$T/cmd.out")" '0 new'
is 'by a check that found the directory changed, and the new list is believed' \
	"$COUNTS" 'serves=1 expires=1 clears=1'
past_ttl 1
counted cat "$mnt/listed/file" "$mnt/listed/none1"
is 'names that exist are never checked' "$STATUS $COUNTS" '0 nothing'

# ---- a directory that may be searched, but not read

counted cat "$mnt/blind/file"
is 'a name in a directory of mode 711 is found' \
	"$STATUS $(cat "$T/cmd.out") $COUNTS" '0 here nothing'
counted ls "$mnt/blind"
matches 'its list is refused' "$(cat "$T/cmd.err")" 'Permission denied'
counted test -e "$mnt/blind/none1"
is 'an absent name there is stored' "$COUNTS" 'stores=1'
past_ttl 1
counted test -e "$mnt/blind/none1"
is 'when it is too old it is asked again, and stored again' "$COUNTS" 'stores=1 expires=1'
past_ttl 1
echo new >"$SRC/blind/none1"
counted cat "$mnt/blind/none1"
is 'when it appeared it is found' "$STATUS $(cat "$T/cmd.out") $COUNTS" '0 new expires=1 clears=1'
past_ttl 1
counted cat "$mnt/blind/none1" "$mnt/blind/file"
is 'a name that was found is not asked for again' "$STATUS $COUNTS" '0 nothing'
is 'no other node was asked' "$(node_stat 0 fabric.requests_sent)" 0
ok 'the tree stops' without_tree

# ---- a directory beyond the limit of a list; a kernel without caching asks each time

with_tree 1 --enoent-ttl-ms 600000 --listing-max 10 --observe
mnt=$W/mnt/0
counted "$PYTHON" -c '
import os, sys
print(sum(os.path.exists(sys.argv[1]) for _ in range(100)))' "$mnt/large/none"
is 'asked 100 times, stored once and served 99 times' \
	"$(cat "$T/cmd.out") $COUNTS" '0 stores=1 serves=99'
counted "$PYTHON" -c '
import os, sys
print(sum(os.path.exists(sys.argv[1]) for _ in range(100)))' "$mnt/listed/none"
is 'a list serves all 100 but the first' "$(cat "$T/cmd.out") $COUNTS" '0 stores=1 serves=99'
ok 'the tree stops' without_tree

# ---- each time

with_tree 1 --enoent-ttl-ms 0
mnt=$W/mnt/0
is 'with a TTL of 0 a name is absent' \
	"$(as_user cat "$mnt/listed/zero" "$mnt/blind/zero" 2>&1 | grep -c 'No such file')" 2
sleep 0.02
echo zero >"$SRC/listed/zero"
echo zero >"$SRC/blind/zero"
is 'until it is there' "$(as_user cat "$mnt/listed/zero" "$mnt/blind/zero" 2>&1)" $'zero\nzero'
ok 'the tree stops' without_tree

# ---- a chain of three nodes

with_tree 3 --enoent-ttl-ms $ttl_ms --fanout 1
for name in listed/late blind/late; do
	for rank in 2 1 0; do
		as_user test ! -e "$W/mnt/$rank/$name" || note "$name is on node $rank already"
	done
done
echo late >"$SRC/listed/late"
echo late >"$SRC/blind/late"
# One TTL for the kernel and one for each node on the way.
past_ttl 4
for rank in 2 1 0; do
	is "what appeared is on node $rank" \
		"$(as_user cat "$W/mnt/$rank/listed/late" "$W/mnt/$rank/blind/late" 2>&1)" \
		$'late\nlate'
done
is 'nodes below the root never asked the source' \
	"$(node_stat 1 origin.operations) $(node_stat 2 origin.operations)" '0 0'
is_at_most 'lists were checked' 1 "$(tree_sum enoent.expires)"
ok 'the tree stops' without_tree
