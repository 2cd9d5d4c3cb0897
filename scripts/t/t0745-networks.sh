#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts with several networks: a slow one for logins and a fast one, each host in a network namespace of its own. Which interface the
# nodes use, by name and by what the hosts are called; names that mean something on the fast network only; and hosts with IPv6 only.
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
plan 19
small_tree "$T/src"
(umask 077 && head -c 32 /dev/urandom | base64 >"$T/secret")
mkdir "$T/mnt.1" "$T/mnt.2" "$T/mnt.3"
echo 'hosts: files' >"$T/nsswitch.conf"
{
	echo '127.0.0.1 localhost'
	for i in 1 2 3; do
		echo "10.77.1.$i n$i"
		echo "10.77.2.$i n$i-hsn"
		echo "fd77::$i n$i-v6"
	done
} >"$T/hosts"
echo 'nameserver 127.0.0.1' >"$T/resolv.conf" # where nobody answers
for file in /etc/nsswitch.conf /etc/hosts; do
	[ -e "$file" ] || skip_all "no $file to mount over"
done

# ---- three hosts and two switches, in namespaces that end with the test

host_main='
	forget_other_tests
	hostname "$2"
	ip link set lo up
	mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && mount --bind "$1/hosts" /etc/hosts || exit 1
	[ ! -e /etc/resolv.conf ] || mount --bind "$1/resolv.conf" /etc/resolv.conf || exit 1
	: >"$1/up.$2"
	exec sleep 600'
hosts=()
for i in 0 1 2 3; do
	unshare --net --mount --propagation private --uts bash -c "$host_main" host "$T" "n$i" &
	hosts[i]=$!
	wait_for 10 test -e "$T/up.n$i" || bail "host n$i does not start"
done
on() { # I COMMAND…
	nsenter --target "${hosts[$1]}" --net --mount --uts "${@:2}"
}
for net in 1 2; do
	on 0 ip link add "switch$net" type bridge 2>/dev/null || skip_all 'no bridges here'
	on 0 ip link set "switch$net" up
	[ "$net" = 1 ] && name=eth0 || name=hsn0
	for i in 1 2 3; do
		on 0 ip link add "port$net.$i" type veth peer name "$name" netns "${hosts[$i]}" || bail 'no veth'
		on 0 ip link set "port$net.$i" master "switch$net" up
		on "$i" ip address add "10.77.$net.$i/24" dev "$name"
		[ "$net" = 1 ] || on "$i" ip address add "fd77::$i/64" dev "$name" nodad
		on "$i" ip link set "$name" up
	done
done
is_there() { # nobody listens there, which the other host says
	on 1 bash -c 'exec 3<>/dev/tcp/10.77.2.3/9' 2>&1 | grep -q refused
}
wait_for 10 is_there
on 1 ip route get 10.77.2.3 >"$T/route" 2>&1 || bail 'no way from n1 to n3' "$(cat "$T/route")"

with_hosts() { # HOSTS [OPTION…]: a tree of three nodes; the exit status of each and what they say go to $T/said
	local i list=$1
	shift
	rm -rf "$T/job"
	for i in 1 2 3; do
		on "$i" timeout "$(patient 60)" "$COPPER" mount --hosts "$list" --secret-file "$T/secret" --source "$T/src" -d "$T/job" \
			--runtime-dir "$T/run.$i" --ready-timeout "$(patient 20)" "$@" "$T/mnt.$i" >"$T/out.$i" 2>&1 &
		starts[i]=$!
	done
	for i in 1 2 3; do
		wait "${starts[i]}"
		echo "$? $(cat "$T/out.$i")"
	done >"$T/said"
}
all_up() { # HOW
	is "$1: all three are ready" "$(sort -u "$T/said")" '0 '
	ok "$1: the last one reads" on 3 cmp "$T/src/dir/deeper/random" "$T/mnt.3/dir/deeper/random"
}
addresses() { # the fabric's, as the logs tell them
	cat "$T/job/logs/"* | sed -n 's/.*fabric address=ofi+tcp:\/\/\([0-9.]*\):.*/\1/p' | LC_ALL=C sort | xargs
}
received() { # INTERFACE: KiB that n3 got there
	on 3 cat "/sys/class/net/$1/statistics/rx_bytes" 2>/dev/null || on 3 awk -v name="$1:" '$1 == name { print $2 }' /proc/net/dev
}
stops() { # HOW
	is "$1: the tree stops" "$(on 1 "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" 2>&1)" 'stopped 3/3 nodes'
}

with_hosts n1,n2,n3
all_up 'hosts by their names'
is 'they use the network that the names mean' "$(addresses)" '10.77.1.1 10.77.1.2 10.77.1.3'
stops 'hosts by their names'

with_hosts n1,n2,n3 -n tcp://hsn0
slow=$(received eth0)
fast=$(received hsn0)
all_up 'an interface by its name'
is 'all use that' "$(addresses)" '10.77.2.1 10.77.2.2 10.77.2.3'
is_at_most 'and the 3 MB come over it' 3000000 $(($(received hsn0) - fast))
is_at_most 'not over the other one' $(($(received eth0) - slow)) 100000
stops 'an interface by its name'

with_hosts n1-hsn,n2-hsn,n3-hsn
all_up 'names of the fast network only'
is 'they use it' "$(addresses)" '10.77.2.1 10.77.2.2 10.77.2.3'
stops 'names of the fast network only'

# ---- what cannot be

on 1 timeout "$(patient 30)" "$COPPER" mount --check --hosts n1,n2 --secret-file "$T/secret" --source "$T/src" -n tcp://ib0 "$T/mnt.1" >"$T/check" 2>&1
is 'an interface that is not there fails' "$?" 1
matches 'it is named' "$(cat "$T/check")" 'no interface ib0 .*ip address'
with_hosts n1-v6,n2-v6,n3-v6 --ready-timeout 3
is 'hosts with IPv6 only fail at once' "$(grep -c '^1 ' "$T/said")" 3
is 'and say so' "$(grep -c 'n[1-3]-v6: it has only an IPv6 address (fd77::[1-3]), and nodes use IPv4' "$T/said")" 3
with_hosts fd77::1,fd77::2,fd77::3 --ready-timeout 3
is 'addresses, too' "$(grep -c "'fd77::1': IPv6 addresses are not understood here" "$T/said")" 3
kill "${hosts[@]}"
