#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# This tree on other Debian releases: in the root file system of each the source archive is built with every warning an error, its
# unit tests run, and three of the nodes that were built form a tree; and this build's static binary runs there, where nsswitch.conf
# lists all the modules that a cluster has. Needs root and mmdebstrap, and fetches the releases from the mirror of this machine's apt.
# Everything runs after another, with low priority; half an hour on two processors. PORTABILITY=binary leaves out what is built.
#
#	scripts/portability.sh [DIR [RELEASE…]]     DIR keeps the root file systems for the next time; default: a new one, which goes
set -u
cd "$(dirname "$0")/.." || exit 2
copper=$PWD/build/copper
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
	head -n 1)
releases=(bullseye bookworm trixie)
[ $# -le 1 ] || releases=("${@:2}")
# A release whose own is older than 1.15 gets the headers and the archive of this one, as a site would build it.
newer=bookworm
packages=libnss-myhostname,libnss-mdns,libnss-sss,gcc,make,pkg-config,git,file,libc6-dev,libfuse3-dev,fuse3,libfabric-dev,liblz4-dev
packages+=,libxxhash-dev,libsodium-dev,uuid-dev,libcmocka-dev,python3,procps,iproute2,mount,strace
passed=0
failed=0

[ "$(id -u)" -eq 0 ] || { echo 'portability: run as root' >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo 'portability: no mmdebstrap here: apt-get install mmdebstrap' >&2; exit 2; }
[ -x "$copper" ] || { echo "portability: no $copper: run make" >&2; exit 2; }
if [ $# -ge 1 ]; then
	mkdir -p "$1"
	roots=$(cd "$1" && pwd)
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
		tail -n 60 "$4" | sed 's/^/# /'
	fi
	return "$1"
}

bootstrap() { # VARIANT PACKAGES RELEASE DIR
	nice -n 19 mmdebstrap --quiet --variant="$1" --include="$2" "$3" "$4" "${mirror:-http://deb.debian.org/debian}"
}

make_root() { # RELEASE
	[ -e "$roots/$1/etc/debian_version" ] || bootstrap essential "$packages" "$1" "$roots/$1" >"$roots/$1.log" 2>&1
}

# In namespaces of its own, with no network but its loopback: what is mounted and what runs goes with them.
inside() { # RELEASE COMMAND…
	nice -n 19 unshare --mount --propagation private --net --pid --fork --kill-child bash -c '
		ip link set lo up && mount --rbind "$0" "$0" && mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" &&
			mount --rbind /sys "$0/sys" && exec chroot "$0" "${@}"' "$roots/$1" "${@:2}"
}

try_binary() { # RELEASE
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

# ---- from the source

fabric_minor() { # RELEASE: 2.1 is 2001, 1.15 is 1015, none is 0
	[ -e "$roots/$1/usr/include/rdma/fabric.h" ] || { echo 0; return; }
	awk '$2 == "FI_MAJOR_VERSION" { major = $3 } $2 == "FI_MINOR_VERSION" { minor = $3 } END { print 1000 * major + minor }' \
		"$roots/$1/usr/include/rdma/fabric.h"
}

newer_fabric() { # RELEASE
	local at=$roots/$1/opt/libfabric
	[ ! -e "$at/lib/libfabric.a" ] || return 0
	bootstrap extract libfabric-dev "$newer" "$roots/libfabric.$newer" && mkdir -p "$at/lib" "$at/include" &&
		cp -r "$roots/libfabric.$newer/usr/include/rdma" "$at/include/" &&
		cp "$roots/libfabric.$newer/usr/lib/"*/libfabric.a "$at/lib/" && rm -rf "$roots/libfabric.$newer"
}

# Runs in the root file system, in the unpacked source. With a libfabric of the site's there is an archive only, which takes the
# stand-ins for providers as the static binary does; what else is linked statically needs glibc 2.34.
# shellcheck disable=SC2016
build='
	cd /var/tmp/copper && words="WERROR=-Werror"
	if [ -e /opt/libfabric/lib/libfabric.a ]; then
		gcc -O2 -Iinternal -I/opt/libfabric/include -c internal/fabric/absent_providers.c -o absent.o
		fabric="/var/tmp/copper/absent.o -l:libfabric.a -luuid -latomic -ldl -lrt"
		make -j2 $words FABRIC=shared BUILD=build CPPFLAGS=-I/opt/libfabric/include LDFLAGS=-L/opt/libfabric/lib \
			LIBS="-l:libfuse3.a -l:liblz4.a -l:libxxhash.a -l:libsodium.a $fabric" \
			LIBS_SHARED="-lfuse3 -llz4 -lxxhash -lsodium $fabric" all tests
	else
		make -j2 $words all tests
	fi'
# shellcheck disable=SC2016
tree='
	copper=/var/tmp/copper/build/copper hosts=127.0.0.11,127.0.0.12,127.0.0.13 dir=$(mktemp -d) status=0
	mkdir "$dir/0" "$dir/1" "$dir/2"
	for rank in 0 1 2; do
		"$copper" mount --hosts "$hosts" --rank "$rank" -A -d "$dir/job" --runtime-dir "$dir/run.$rank" --source /usr "$dir/$rank" &
	done
	wait
	for rank in 0 1 2; do
		cmp /usr/bin/env "$dir/$rank/bin/env" && diff -r /usr/include/linux "$dir/$rank/include/linux" || status=1
	done
	"$copper" stop -d "$dir/job" | grep -x "stopped 3/3 nodes" || status=1
	"$copper" paths "$dir/job" --usage-root /usr/include >"$dir/paths" || status=1
	[ "$(wc -l <"$dir/job/paths_dir/all_possible_existing_paths.txt")" = "$(find /usr/include | wc -l)" ] || status=1
	exit $status'

try_source() { # RELEASE
	local root=$roots/$1 out=$roots/$1.out
	if [ "$(fabric_minor "$1")" -lt 1015 ]; then
		newer_fabric "$1" >"$out" 2>&1
		result $? "$1" 'libfabric 1.15 or newer can be had' "$out" || return
	fi
	rm -rf "$root/var/tmp/copper"
	mkdir "$root/var/tmp/copper"
	tar -C "$root/var/tmp/copper" --strip-components=1 -xf "$archive"
	inside "$1" bash -c "$build" >"$out" 2>&1
	result $? "$1" 'it is built without a warning' "$out" || return
	inside "$1" bash -c 'cd /var/tmp/copper && COP_LANES=1 scripts/check.sh --build build --unit-only' >"$out" 2>&1
	result $? "$1" "unit tests: $(tail -n 1 "$out")" "$out"
	inside "$1" bash -c "$tree" >"$out" 2>&1
	result $? "$1" 'three nodes that were built there are a tree' "$out"
}

[ "${PORTABILITY:-}" = binary ] || archive=$(make -s dist) || exit 1
for release in "${releases[@]}"; do
	if make_root "$release"; then
		try_binary "$release"
		[ "${PORTABILITY:-}" = binary ] || try_source "$release"
	else
		result 1 "$release" 'its root file system can be made' "$roots/$release.log"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
