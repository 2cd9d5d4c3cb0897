#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts with several networks: a slow one for logins and a fast one, each host in a network
# namespace of its own. Which interface the nodes use, given by name and by the names of the hosts;
# names that mean something on the fast network only; and names with addresses of both versions of
# IP.
# covers: node endpoint rendezvous
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=networks.sh
. "$(dirname "$0")/networks.sh"

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
plan 29
small_tree "$T/src"
{
	echo '127.0.0.1 localhost'
	for i in 1 2 3; do
		echo "10.77.1.$i n$i"
		echo "10.77.2.$i n$i-hsn"
		echo "10.77.2.$i n$i-both"
		echo "fd77::$i n$i-both"
		echo "fd77::$i n$i-v6"
	done
} >"$T/hosts"

# ---- three hosts and two switches

set_up_hosts 3
add_switch login
add_switch fast
for i in 1 2 3; do
	plug_in "$i" login eth0 "10.77.1.$i/24"
	plug_in "$i" fast hsn0 "10.77.2.$i/24" "fd77::$i/64"
done
wait_for 10 is_reached 1 10.77.2.3
on 1 ip route get 10.77.2.3 >"$T/route" 2>&1 || bail 'no way from n1 to n3' "$(cat "$T/route")"

received() { # INTERFACE: KiB that n3 got there
	on 3 cat "/sys/class/net/$1/statistics/rx_bytes" 2>/dev/null ||
		on 3 awk -v name="$1:" '$1 == name { print $2 }' /proc/net/dev
}

with_hosts n1,n2,n3
all_up 'hosts by their names'
is 'the nodes use the network that the host names mean' "$(addresses)" '10.77.1.1 10.77.1.2 10.77.1.3'
stops 'hosts by their names'

with_hosts n1,n2,n3 -n tcp://hsn0
slow=$(received eth0)
fast=$(received hsn0)
all_up 'an interface by its name'
is 'all use that' "$(addresses)" '10.77.2.1 10.77.2.2 10.77.2.3'
is_at_most '3 MB come over the version of IP that all use' 3000000 $(($(received hsn0) - fast))
is_at_most 'not over the other one' $(($(received eth0) - slow)) 100000
stops 'an interface by its name'

with_hosts n1-hsn,n2-hsn,n3-hsn
all_up 'names of the fast network only'
is 'all hosts use the fast network' "$(addresses)" '10.77.2.1 10.77.2.2 10.77.2.3'
stops 'names of the fast network only'

with_hosts n1-both,n2-both,n3-both
all_up 'names with addresses of both versions of IP'
is 'all hosts use IPv4' "$(addresses)" '10.77.2.1 10.77.2.2 10.77.2.3'
stops 'names with addresses of both versions of IP'

with_hosts n1-v6,n2-v6,n3-v6
all_up 'names with IPv6 only'
is 'all hosts use IPv6' "$(addresses)" '[fd77::1] [fd77::2] [fd77::3]'
stops 'names with IPv6 only'

on 1 bash -c 'for to in /proc/sys/net/ipv6/conf/{all,default,lo,eth0,hsn0}/disable_ipv6; do echo 1 >"$to" || exit 1; done' 2>/dev/null
with_hosts n1,n2,n3
all_up 'a host whose IPv6 is switched off'
stops 'a host whose IPv6 is switched off'

# ---- what cannot be

on 1 timeout "$(patient 30)" "$COPPER" mount --check --hosts n1,n2 --secret-file "$T/secret" \
	--source "$T/src" -n tcp://ib0 "$T/mnt.1" >"$T/check" 2>&1
is 'an interface that is not there fails' "$?" 1
matches 'the missing interface is named' "$(cat "$T/check")" 'no interface ib0 .*ip address'

with_hosts n1-hsn,n2-hsn,n3-v6
is 'hosts with different versions of IP form no tree' "$(grep -c '^1 ' "$T/said")" 3
matches 'hosts with different versions of IP hear why' "$(cat "$T/said")" \
	'^1 .*\(rank [0-2]\): its address .* and this node.s .* are of different versions of IP'
kill "${hosts[@]}"
