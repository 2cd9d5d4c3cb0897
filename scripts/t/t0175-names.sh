#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Names of hosts when nsswitch.conf lists modules that a static program must not load: the hosts
# file and DNS answer.
# covers: hosts base
# modes: release
# limit: 60
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

unshare --net --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
small_tree "$T/src"
(umask 077 && head -c 32 /dev/urandom | base64 >"$T/secret")

# ---- a machine of its own: name server, hosts file, and modules that report that they were loaded

echo 'hosts: files myhostname mdns4_minimal [NOTFOUND=return] resolve sss' >"$T/nsswitch.conf"
printf '%s: files sss\n' passwd group services >>"$T/nsswitch.conf"
printf '127.0.0.11 n1\n' >"$T/hosts"
printf 'nameserver 127.0.0.53\nsearch cluster.test\noptions timeout:2 attempts:2\n' \
	>"$T/resolv.conf"
mkdir "$T/lib" "$T/mnt.1" "$T/mnt.2"
cat >"$T/mark.c" <<'C'
#include <fcntl.h>
static void __attribute__((constructor)) leave_a_mark(void)
{
	creat(MARK, 0600);
}
C
gcc -shared -fPIC -DMARK="\"$T/loaded\"" -o "$T/lib/one.so" "$T/mark.c" ||
	bail 'no module can be built'
for name in libnss_myhostname libnss_mdns4_minimal libnss_resolve libnss_sss; do
	cp "$T/lib/one.so" "$T/lib/$name.so.2"
done
cp "$T/lib/one.so" "$T/lib/libmark-fi.so"

machine_main='
	forget_other_tests
	hostname lonely
	ip link set lo up
	for file in nsswitch.conf hosts resolv.conf; do
		mount --bind "$1/$file" "/etc/$file" || exit 1
	done
	exec "$2" "$3" "$1/up" 127.0.0.53 n2.cluster.test=127.0.0.12 n3=127.0.0.13 >"$1/asked"
'
for file in /etc/nsswitch.conf /etc/hosts /etc/resolv.conf; do
	[ -e "$file" ] || skip_all "no $file to mount over"
done
unshare --net --mount --propagation private --uts bash -c "$machine_main" machine "$T" "$PYTHON" \
	"$cop_t/dns.py" &
machine=$!
wait_for 10 test -e "$T/up" || bail 'the name server does not start'
on() { # COMMAND…
	LD_LIBRARY_PATH=$T/lib FI_PROVIDER_PATH=$T/lib nsenter --target "$machine" --net \
		--mount --uts "$@"
}
words=(--secret-file "$T/secret" --source "$T/src")
check() { # RANK HOSTS: what --check says of it
	on timeout "$(patient 30)" "$COPPER" serve --check --hosts "$2" --rank "$1" "${words[@]}" \
		>"$T/check" 2>&1
	status=$?
}
line() { # NAME
	awk -v name="$1" '$2 == name' "$T/check"
}

# ---- one name

check 0 n1,127.0.0.12
matches 'a name in the hosts file' "$status $(line network)" '^0 .*tcp://127\.0\.0\.11:'
ok 'for which no name server is asked' test ! -s "$T/asked"
check 1 n1,n2
matches 'a name in DNS' "$status $(line network)" '^0 .*tcp://127\.0\.0\.12:'
is 'found through the search list' "$(head -n 1 "$T/asked")" n2.cluster.test
check 0 n3.,n1
matches 'a name in full' "$status $(line network)" '^0 .*tcp://127\.0\.0\.13:'
cp "$T/asked" "$T/asked.before"
check 0 127.0.0.14,n1
is 'an address is not a name' "$status $(diff "$T/asked.before" "$T/asked")" '0 '

# ---- names that nobody here has

check 1 n1,nobody
matches 'an unknown name fails, and not by a signal' \
	"$status $(line network)" '^1 .*nobody: its name is unknown: .*DNS'
matches 'an unknown name comes with the way out' "$(line network)" 'address book'
check 0 lonely,n1
matches "a machine's own name, which only a module would know" \
	"$status $(line network)" '^0 .*tcp://127\.0\.1\.1:'
on ip link add outside type veth peer name other 2>/dev/null &&
	on ip address add 10.77.0.1/24 dev outside &&
	on ip link set outside up && on ip link set other up
check 0 lonely.cluster.test,n1
if on ip link show outside >/dev/null 2>&1; then
	matches 'an address is one that others reach' \
		"$status $(line network)" '^0 .*tcp://10\.77\.0\.1:'
else
	pass 'an address is one that others reach # SKIP no veth here'
fi

# ---- a tree

for i in 1 2; do
	on timeout "$(patient 60)" "$COPPER" mount --hosts n1:7720,n2:7730 --rank $((i - 1)) \
		"${words[@]}" -d "$T/job" \
		--runtime-dir "$T/run.$i" --ready-timeout "$(patient 20)" "$T/mnt.$i" \
		>"$T/out.$i" 2>&1 &
	starts[i]=$!
done
for i in 1 2; do
	wait "${starts[i]}"
	is "n$i is part of a tree" "$? $(cat "$T/out.$i")" '0 '
done
ok 'a file comes' on cmp "$T/src/dir/numbers" "$T/mnt.2/dir/numbers"
is 'the tree is stopped from outside by its names' \
	"$(on "$COPPER" stop -d "$T/job" --secret-file "$T/secret" 2>&1)" \
	'stopped 2/2 nodes'

# ---- nodes that only Slurm knows

printf 'NodeName=x[1-2] NodeAddr=10.77.0.[1-2] CPUs=1\n' >"$T/slurm.conf"
if on ip address add 10.77.0.2/24 dev outside 2>/dev/null; then
	for i in 1 2; do
		SLURM_JOB_NODELIST='x[1-2]' SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 \
			SLURM_NODEID=$((i - 1)) MPI_LOCALRANKID=0 \
			SLURM_CONF=$T/slurm.conf on unshare \
			--uts bash -c 'hostname "$0" && exec "$@"' "x$i" \
			timeout "$(patient 60)" "$COPPER" mount "${words[@]}" -d "$T/slurm" \
			--runtime-dir "$T/run.$i" --ready-timeout "$(patient 20)" "$T/mnt.$i" \
			>"$T/out.$i" 2>&1 &
		starts[i]=$!
	done
	for i in 1 2; do
		wait "${starts[i]}"
		is "x$i finds its tree" "$? $(cat "$T/out.$i")" '0 '
	done
	is 'the tree of three machines stops' \
		"$(on "$COPPER" stop --runtime-dir "$T/run.1" "$T/mnt.1" 2>&1)" \
		'stopped 2/2 nodes'
else
	for i in 1 2 3; do
		pass 'nodes that only Slurm knows # SKIP no veth here'
	done
fi

# ---- and nothing was loaded

matches 'the program names what is in it' "$(on "$COPPER" --version)" 'providers .*tcp'
ok 'no module was ever loaded, and no provider' test ! -e "$T/loaded"
ok 'the loader would have told of a module' \
	bash -c 'LD_PRELOAD="$1/lib/one.so" /bin/true && test -e "$1/loaded"' - "$T"
kill "$machine"
