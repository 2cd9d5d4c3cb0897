#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts with a network between them, configured as Debian does it: each one's own name means
# 127.0.1.1 on itself.
# covers: dir node
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 6

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
[ -e /etc/hosts ] || skip_all 'no /etc/hosts to mount over'
small_tree "$T/src"
(umask 077 && head -c 32 /dev/urandom | base64 >"$T/secret")

host_main='
	forget_other_tests
	hostname "alpha$1"
	ip link set lo up
	mount --bind "$2" /etc/hosts
	echo ready >"$3"
	exec sleep 1000
'
hosts=()
for i in 0 1; do
	printf '127.0.0.1 localhost\n127.0.1.1 alpha%s\n10.77.0.%s alpha%s\n' "$i" "$((2 - i))" \
		"$((1 - i))" >"$T/hosts.$i"
	mkdir "$T/mnt.$i"
	unshare --net --mount --propagation private --uts bash -c "$host_main" host "$i" \
		"$T/hosts.$i" "$T/up.$i" &
	hosts+=($!)
done
wait_for 10 test -e "$T/up.0" -a -e "$T/up.1"
on() { # HOST COMMAND…
	local host=$1
	shift
	nsenter --target "${hosts[$host]}" --net --mount --uts "$@"
}
on 0 ip link add veth0 type veth peer name veth1 netns "${hosts[1]}" || bail 'no veth here'
for i in 0 1; do
	on "$i" ip address add "10.77.0.$((i + 1))/24" dev "veth$i"
	on "$i" ip link set "veth$i" up
done
is 'the name of a host means 127.0.1.1 to itself' \
	"$(on 0 getent ahostsv4 alpha0 | head -n 1 | cut -d ' ' -f 1)" 127.0.1.1

for i in 0 1; do
	on "$i" timeout "$(patient 60)" "$COPPER" mount --hosts alpha0,alpha1 \
		--secret-file "$T/secret" -d "$T/job" --source "$T/src" \
		--runtime-dir "$T/run.$i" --ready-timeout "$(patient 20)" "$T/mnt.$i" \
		>"$T/out.$i" 2>&1 &
	starts[i]=$!
done
for i in 0 1; do
	wait "${starts[i]}"
	is "host $i is part of a tree" "$? $(cat "$T/out.$i")" '0 '
done
ok 'a file comes over the network' on 1 cmp "$T/src/dir/numbers" "$T/mnt.1/dir/numbers"
matches 'its addresses are those of that network' \
	"$(on 1 "$COPPER" cache-stats --runtime-dir "$T/run.1" --json "$T/mnt.1")" \
	'"network":"veth1"'
is 'the tree stops' "$(on 0 "$COPPER" stop --runtime-dir "$T/run.0" "$T/mnt.0")" 'stopped 2/2 nodes'
kill "${hosts[@]}"
