#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A node's own address disappears for a while, as when its link is down. A connection that was
# closed meanwhile cannot be made again, not even attempted; the node lives on, reads the storage
# itself, and asks its parent again when the address is back.
# covers: endpoint rpc
# modes: asan
[ -n "${COP_OWN_NET:-}" ] || ! unshare --net true 2>/dev/null ||
	COP_OWN_NET=1 exec unshare --net bash "$0" "$@"
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ -n "${COP_OWN_NET:-}" ] || skip_all 'no network namespaces here'
ip link set lo up || skip_all 'no loopback here'
plan 6

SRC=$T/src
for ((i = 0; i < 400; i++)); do
	mkdir -p "$SRC/d$i"
	echo "$i" >"$SRC/d$i/file"
done
with_tree 4 --fanout 1 --peer-timeout 1
next=0
is_read() { # WHAT: the leaf reads what no node has
	is "$1" "$(timeout "$(patient 60)" cat "$W/mnt/3/d$next/file" 2>&1)" "$next"
	next=$((next + 1))
}

is_read 'the leaf reads through its parent'
parent=$(node_stat 2 pid)
kill -STOP "$parent"
is_read 'through its grandparent while the parent stands still'
kill -CONT "$parent"
kill_node 1
umount -l "$W/mnt/1"
# The connection to the grandparent is closed, and the leaf has noticed.
sleep 3
ip route add blackhole "$(address_of 3)/32" table local
is_read 'by itself while its address is gone'
ok 'the node lives on' node_stat 3 pid
ip route del blackhole "$(address_of 3)/32" table local
asked=$(node_stat 3 fabric.requests_sent)
is_read 'and reads when the address is back'
asks_again() { # by what no node has
	cat "$W/mnt/3/d$next/file"
	next=$((next + 1))
	[ "$(node_stat 3 fabric.requests_sent)" -gt "$asked" ]
}
ok 'before long from the tree' wait_for 30 asks_again
