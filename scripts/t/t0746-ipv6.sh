#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts that have IPv6 only, each in a network namespace of its own: a tree by their names and by
# their addresses, with ports and without, what it tells, an address book, a stop from another host,
# and what is refused.
# covers: node rendezvous
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=networks.sh
. "$(dirname "$0")/networks.sh"

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
plan 29
small_tree "$T/src"
# What Debian's installer writes about a host itself, and names that have an IPv4 address which no
# host can reach.
for i in 0 1 2 3 4; do
	{
		echo '127.0.0.1 localhost'
		echo "127.0.1.1 n$i-own"
		for j in 1 2 3 4; do
			echo "fd77::$j n$j"
			[ "$i" = "$j" ] || echo "fd77::$j n$j-own"
			echo "10.77.9.$j n$j-both"
			echo "fd77::$j n$j-both"
			echo "fe80::$j n$j-link"
		done
	} >"$T/hosts.$i"
done
set_up_hosts 4
add_switch lan
for i in 1 2 3 4; do
	plug_in "$i" lan eth0 "fd77::$i/64"
done
wait_for 10 is_reached 1 fd77::3
on 1 ip -6 route get fd77::3 >"$T/route" 2>&1 || bail 'no way from n1 to n3' "$(cat "$T/route")"
is 'the hosts have no IPv4 but their own loopback' "$(on 1 ip -4 -o address show scope global)" ''

with_hosts n1,n2,n3 -A
all_up 'by name'
is 'the fabric has their addresses' "$(addresses)" '[fd77::1] [fd77::2] [fd77::3]'
all=$(on 2 "$COPPER" cache-stats --all --json --runtime-dir "$T/run.2" "$T/mnt.2" 2>&1)
is 'cache-stats --all gets answers from all three' \
	"$(printf '%s' "$all" |
		python3 -c 'import json, sys; print(len(json.load(sys.stdin)["nodes"]))')" 3
cp "$T/job/logs/copper_address_book.txt" "$T/book"
matches 'the address book has them in brackets' \
	"$(cat "$T/book")" '^n1 ofi\+tcp://\[fd77::1\]:[0-9]+$'
look() { # OPTION…: from a host without a node
	on 4 "$COPPER" cache-stats -d "$T/job" --secret-file "$T/secret" "$@" 2>&1
}
is 'a host without a node sees all three' \
	"$(look --json | python3 -c 'import json, sys
for n in sorted(json.load(sys.stdin)["nodes"], key=lambda n: n["rank"]): print(n["host"], "waiting" in n)' | xargs)" \
	'n1 True n2 True n3 True'
matches 'and their table' "$(look)" '^ +2 +n3 +[0-9]'
ok 'which changes nothing' on 2 cmp "$T/src/hello" "$T/mnt.2/hello"
is 'a host without a node stops the tree' \
	"$(on 4 "$COPPER" stop -d "$T/job" --secret-file "$T/secret" --runtime-dir "$T/run.4" \
		2>&1)" 'stopped 3/3 nodes'
is 'no mount remains' \
	"$(for i in 1 2 3; do on "$i" grep -c "$T/mnt.$i" /proc/mounts; done | xargs)" '0 0 0'

with_hosts n1,n2,n3 -F "$T/book"
all_up 'by the address book'
stops 'by the address book'

with_hosts 'fd77::1,fd77:0:0::2,[fd77::3]:7799'
all_up 'by address'
matches 'the address book names them by their shortest form' \
	"$(cat "$T/job/logs/copper_address_book.txt")" '^fd77::2 ofi\+tcp://\[fd77::2\]:'
stops 'by address'

with_hosts 'fd77::[1-3]' -n tcp://eth0
all_up 'by a range and an interface'
stops 'by a range and an interface'

with_hosts n1-own,n2-own,n3-own
all_up 'own names that mean a loopback address'
stops 'own names that mean a loopback address'

with_hosts n1-both,n2-both,n3-both
all_up 'names whose address of IPv4 is not reached'
stops 'names whose address of IPv4 is not reached'

# ---- what cannot be

on_1=(nsenter --target "${hosts[1]}" --net --mount --uts)
fails_with 1 "'fe80::1%eth0': is a link-local address" "${on_1[@]}" "$COPPER" mount \
	--hosts fe80::1%eth0,fe80::2%eth0 --rank 0 --secret-file "$T/secret" \
	--source "$T/src" --runtime-dir "$T/run.1" "$T/mnt.1"
fails_with 1 'fe80::1 is a link-local address' \
	"${on_1[@]}" "$COPPER" mount --hosts n1-link,n2-link --rank 0 --secret-file "$T/secret" \
	--source "$T/src" --runtime-dir "$T/run.1" "$T/mnt.1"
kill "${hosts[@]}"
