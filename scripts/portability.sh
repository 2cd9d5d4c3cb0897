#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs this build's static binary on older and newer systems: root file systems of other Debian releases, whose nsswitch.conf lists all
# the modules that a cluster has. Needs root and mmdebstrap, and fetches the releases from the mirror of this machine's apt.
#
#	scripts/portability.sh [DIR [RELEASE…]]     DIR keeps the root file systems for the next time; default: a new one, which goes
set -u
cd "$(dirname "$0")/.." || exit 2
copper=$PWD/build/copper
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
	head -n 1)
releases=(bullseye trixie)
[ $# -le 1 ] || releases=("${@:2}")
passed=0
failed=0

[ "$(id -u)" -eq 0 ] || { echo 'portability: run as root' >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo 'portability: no mmdebstrap here: apt-get install mmdebstrap' >&2; exit 2; }
[ -x "$copper" ] || { echo "portability: no $copper: run make" >&2; exit 2; }
if [ $# -ge 1 ]; then
	roots=$1
	mkdir -p "$roots"
else
	roots=$(mktemp -d)
	trap 'rm -rf "$roots"' EXIT
fi

result() { # STATUS RELEASE TEXT [FILE]
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok - $2: $3"
	else
		failed=$((failed + 1))
		echo "not ok - $2: $3"
		sed 's/^/# /' "$4"
	fi
}

make_root() { # RELEASE
	[ -e "$roots/$1/etc/debian_version" ] && return 0
	mmdebstrap --quiet --variant=essential --include=libnss-myhostname,libnss-mdns,libnss-sss "$1" "$roots/$1" \
		"${mirror:-http://deb.debian.org/debian}" >"$roots/$1.log" 2>&1
}

# In a mount namespace of its own: what is mounted goes with it.
inside() { # RELEASE COMMAND…
	unshare --mount --propagation private bash -c '
		mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "${@}"' \
		"$roots/$1" "${@:2}"
}

try() { # RELEASE
	local root=$roots/$1 out=$roots/$1.out
	cp "$copper" "$root/usr/local/bin/copper"
	echo 'hosts: files myhostname mdns4_minimal sss dns' >"$root/etc/nsswitch.conf"
	printf '127.0.0.1 localhost\n127.0.0.11 n1\n' >"$root/etc/hosts"
	inside "$1" copper --version >"$out" 2>&1
	result $? "$1" 'the program starts' "$out"
	inside "$1" copper serve --check --hosts n1,no-such-host.invalid --rank 0 --insecure --source /usr >"$out" 2>&1
	result $? "$1" 'a name in the hosts file' "$out"
	inside "$1" copper serve --check --hosts n1,no-such-host.invalid --rank 1 --insecure --source /usr >"$out" 2>&1
	grep -q 'its name is unknown' "$out"
	result $? "$1" 'a name that nobody has gives a sentence' "$out"
	inside "$1" sh -c 'mkdir -p /mnt/copper && copper mount --source /usr /mnt/copper && cmp /usr/bin/env /mnt/copper/bin/env
		status=$?; copper stop /mnt/copper && exit $status' >"$out" 2>&1
	result $? "$1" 'a tree is mounted, read and stopped' "$out"
}

for release in "${releases[@]}"; do
	if make_root "$release"; then
		try "$release"
	else
		result 1 "$release" 'its root file system can be made' "$roots/$release.log"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
