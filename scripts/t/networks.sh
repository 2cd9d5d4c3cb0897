# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts in namespaces of their own (network, mounts, name), and a tree on them. For tests of
# networks, after harness.sh.
#
# The file $T/hosts names the hosts, or $T/hosts.I as host I sees them; host 0 has the switches.

set_up_hosts() { # COUNT
	local i
	(umask 077 && head -c 32 /dev/urandom | base64 >"$T/secret")
	echo 'hosts: files' >"$T/nsswitch.conf"
	echo 'nameserver 127.0.0.1' >"$T/resolv.conf" # where nobody answers
	for i in /etc/nsswitch.conf /etc/hosts; do
		[ -e "$i" ] || skip_all "no $i to mount over"
	done
	for ((i = 0; i <= $1; i++)); do
		[ -e "$T/hosts.$i" ] || cp "$T/hosts" "$T/hosts.$i"
		mkdir "$T/mnt.$i"
		unshare --net --mount --propagation private --uts bash -c "$host_main" \
			host "$T" "$i" &
		hosts[i]=$!
		wait_for 10 test -e "$T/up.$i" || bail "host n$i does not start"
	done
}

# The namespaces end with the test.
host_main='
	forget_other_tests
	hostname "n$2"
	ip link set lo up
	mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && mount --bind "$1/hosts.$2" /etc/hosts || exit 1
	[ ! -e /etc/resolv.conf ] || mount --bind "$1/resolv.conf" /etc/resolv.conf || exit 1
	: >"$1/up.$2"
	exec sleep 600'
hosts=()

on() { # I COMMAND…
	nsenter --target "${hosts[$1]}" --net --mount --uts "${@:2}"
}

add_switch() { # NAME
	on 0 ip link add "$1" type bridge 2>/dev/null || skip_all 'no bridges here'
	on 0 ip link set "$1" up
}

plug_in() { # I SWITCH INTERFACE ADDRESS…
	local port=$2.$1 address
	on 0 ip link add "$port" type veth peer name "$3" netns "${hosts[$1]}" || bail 'no veth'
	on 0 ip link set "$port" master "$2" up
	for address in "${@:4}"; do
		case $address in
		*:*) on "$1" ip address add "$address" dev "$3" nodad || skip_all 'no IPv6 here' ;;
		*) on "$1" ip address add "$address" dev "$3" ;;
		esac
	done
	on "$1" ip link set "$3" up
}

# COUNT: hosts n1, n2 and so on at 10.78.1.I on one switch, whose ports can be blocked.
wire_hosts() {
	local i
	small_tree "$T/src"
	echo '127.0.0.1 localhost' >"$T/hosts"
	for ((i = 1; i <= $1; i++)); do
		echo "10.78.1.$i n$i" >>"$T/hosts"
	done
	set_up_hosts "$1"
	add_switch wire
	for ((i = 1; i <= $1; i++)); do
		plug_in "$i" wire eth0 "10.78.1.$i/24"
		on "$i" ip rule add pref 10 lookup local || bail 'no rules of routing here'
		on "$i" ip rule del pref 0
	done
	for ((i = 2; i <= $1; i++)); do
		wait_for 10 is_reached "$i" 10.78.1.1
		wait_for 10 is_reached 1 "10.78.1.$i"
	done
}

block() { # I PORT TYPE: what becomes of packets to that port; none: they arrive again
	on "$1" ip rule del pref 5 2>/dev/null
	[ "$3" = none ] || on "$1" ip rule add pref 5 iif eth0 ipproto tcp dport "$2" "$3" ||
		bail 'no rules for ports here'
}

is_reached() { # I ADDRESS: nobody listens there, which that host says
	on "$1" bash -c "exec 3<>'/dev/tcp/$2/9'" 2>&1 | grep -q refused
}

# HOSTS [OPTION…]: starts a tree of three nodes; the exit status of each and its output go to
# $T/said.
with_hosts() {
	local i list=$1
	shift
	rm -rf "$T/job"
	for i in 1 2 3; do
		on "$i" timeout "$(patient 60)" "$COPPER" mount --hosts "$list" \
			--secret-file "$T/secret" --source "$T/src" -d "$T/job" \
			--runtime-dir "$T/run.$i" --ready-timeout "$(patient 20)" "$@" "$T/mnt.$i" \
			>"$T/out.$i" 2>&1 &
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

addresses() { # the fabric's, without their ports, as the logs tell them
	cat "$T/job/logs/"* | sed -n 's/.*fabric address=ofi+tcp:\/\/\([][0-9a-f.:]*\):[0-9]* .*/\1/p' | LC_ALL=C sort | xargs
}

stops() { # HOW
	is "$1: the tree stops" "$(on 1 "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" 2>&1)" \
		'stopped 3/3 nodes'
}
