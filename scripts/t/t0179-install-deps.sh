#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/install-deps.sh on machines unlike this one: bare ones without package lists, without
# sudo, of releases that lack packages. Each is an overlay of this machine's root file system with
# the real apt and dpkg, a package database of its own and a repository of toy packages.
# covers: base
# modes: release
# limit: 240
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 53

command -v apt-get dpkg-deb >/dev/null || skip_all 'no apt and dpkg here'
[ "$(id -u)" -eq 0 ] || skip_all 'only root can mount an overlay'
mkdir -p "$T/disk" "$T/root"
mount -t tmpfs -o mode=755 tmpfs "$T/disk" || skip_all 'nothing can be mounted here'
root=$T/root
user=(setpriv --reuid 1000 --regid 1000 --clear-groups)

# ---- toy packages

repository=$T/disk/repository
mkdir -p "$repository"
# What debhelper writes for a service, and what the test wants to know: may it start now?
postinst='#!/bin/sh
set -e
/usr/sbin/policy-rc.d SERVICE start 2>/dev/null && echo "$?" >/policy || echo "$?" >/policy
deb-systemd-helper enable SERVICE.service >/dev/null || true
update-rc.d SERVICE defaults >/dev/null
invoke-rc.d SERVICE start >/dev/null 2>&1 || true
[ ! -e /hold ] || { : >/held; while [ -e /hold ]; do sleep 0.1; done; }
'
init='#!/bin/sh
### BEGIN INIT INFO
# Provides: SERVICE
# Required-Start: $remote_fs
# Required-Stop: $remote_fs
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
# Short-Description: a toy
### END INIT INFO
echo "$1" >>/SERVICE.$1
'
toy() { # PACKAGE VERSION
	local at=$T/toy
	rm -rf "$at"
	mkdir -p "$at/DEBIAN" "$at/usr/share/toys"
	echo "$2" >"$at/usr/share/toys/$1"
	case $1 in
	lib*-dev)
		mkdir -p "$at/usr/include/x86_64-linux-gnu" "$at/usr/lib/x86_64-linux-gnu"
		echo "$2" >"$at/usr/include/x86_64-linux-gnu/$1.h"
		echo "$2" >"$at/usr/lib/x86_64-linux-gnu/${1%-dev}.a"
		;;
	munge | slurmctld | slurmd | rsync)
		mkdir -p "$at/etc/init.d" "$at/lib/systemd/system"
		echo "${init//SERVICE/$1}" >"$at/etc/init.d/$1"
		printf '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' \
			>"$at/lib/systemd/system/$1.service"
		echo "${postinst//SERVICE/$1}" >"$at/DEBIAN/postinst"
		chmod 755 "$at/etc/init.d/$1" "$at/DEBIAN/postinst"
		;;
	esac
	printf '%s\n' "Package: $1" "Version: $2" 'Architecture: all' \
		'Maintainer: nobody <nobody@localhost>' 'Description: a toy' >"$at/DEBIAN/control"
	dpkg-deb -Znone --build "$at" "$repository/$1_$2.deb" >/dev/null
}

# Prints the package list of the repository without the packages that a release lacks.
index() { # VERSION [LACKING…]
	local package
	for package in $packages; do
		case " ${*:2} " in
		*" $package "*) continue ;;
		esac
		printf '%s\n' "Package: $package" "Version: $1" 'Architecture: all' \
			'Maintainer: nobody <nobody@localhost>' 'Description: a toy' \
			"Filename: ./${package}_$1.deb" \
			"Size: $(stat -c %s "$repository/${package}_$1.deb")" \
			"SHA256: $(sha256sum <"$repository/${package}_$1.deb" | cut -d ' ' -f 1)" ''
	done
}

packages=$("$cop_root/scripts/install-deps.sh" --list all)
for package in $packages; do
	toy "$package" 1
done
index 1 >"$repository/Packages"

# ---- machines

off() {
	! mountpoint -q "$root" || umount -R "$root"
	rm -rf "$T/disk/machine"
}

# Devices of its own: nothing that runs there can change those of this machine.
own_devices() {
	local node
	mount -t tmpfs -o mode=755 tmpfs "$root/dev" && mkdir "$root/dev/pts"
	for node in 'null 1 3' 'zero 1 5' 'urandom 1 9' 'random 1 8' 'tty 5 0'; do
		# The words are a name and two numbers.
		# shellcheck disable=SC2086
		set -- $node
		mknod -m 666 "$root/dev/$1" c "$2" "$3"
	done
	mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
}

# A new machine, on which only make is installed: its repository is known, its lists are not.
machine() {
	local at=$T/disk/machine place
	off
	mkdir -p "$at"/{upper,work,repository} "$at"/var-lib-dpkg/{info,updates,triggers,alternatives} \
		"$at"/{var-lib-apt/lists/partial,var-cache-apt/archives/partial,etc-apt}
	mount -t overlay -o "lowerdir=/,upperdir=$at/upper,workdir=$at/work" overlay "$root" ||
		skip_all 'no overlay of the root file system here'
	for place in var/lib/dpkg var/lib/apt var/cache/apt etc/apt; do
		mount --bind "$at/${place//\//-}" "$root/$place"
	done
	own_devices
	mount -t proc proc "$root/proc"
	rm -rf "$root"/usr/sbin/policy-rc.d "$root"/etc/rc?.d "$root"/etc/init.d/{munge,rsync,slurm*} \
		"$root"/etc/systemd/system/multi-user.target.wants \
		"$root"/var/lib/systemd/deb-systemd-helper* "$root"/usr/{local/,}bin/sudo
	: >"$at/var-lib-dpkg/available"
	echo 'deb [trusted=yes] copy:/repository ./' >"$at/etc-apt/sources.list"
	mkdir -p "$root/repository" "$root/src/scripts" "$root/src/build"
	mount --bind "$repository" "$root/repository"
	cp "$cop_root/scripts/install-deps.sh" "$root/src/scripts/"
	chown -R 1000:1000 "$root/src"
	{ sed -n '1,/^$/p' "$repository/Packages" | sed 's/^Package: .*/Package: make/; /^SHA256\|^Size\|^Filename/d'; } |
		sed '1a Status: install ok installed' >"$at/var-lib-dpkg/status"
	: >"$at/var-lib-dpkg/info/make.list"
}

on() { # COMMAND…
	chroot "$root" env -i PATH="$PATH" HOME=/ COP_TEST_DIR="$T" "$@"
}
install_deps() { # [WORD…]
	on "${as[@]}" /src/scripts/install-deps.sh "$@" >"$T/out" 2>"$T/err"
}
as=()
installed() {
	on dpkg-query -W -f '${Package}:${db:Status-Status}\n' | sed -n 's/:installed$//p' |
		LC_ALL=C sort
}
listed() { # LIST
	"$cop_root/scripts/install-deps.sh" --list "$1" | LC_ALL=C sort
}
known_lists() {
	find "$root/var/lib/apt/lists" -name '*Packages*' | wc -l
}
# From now on apt-get cannot be called.
without_apt() {
	rm "$root/usr/bin/apt-get"
}

# ---- root on a bare machine, without sudo

machine
ok 'root needs no sudo on a bare machine' install_deps
is 'a list for make check is installed, all of it' "$(installed)" "$(listed check)"
is 'package lists were fetched, though make was installed' "$(known_lists)" 1
matches 'it says so' "$(cat "$T/err")" '^install-deps: fetching the package lists$'
matches 'it says how many packages, of what size, and which' "$(cat "$T/err")" \
	"^install-deps: installing $(($(listed check | wc -l) - 1)) packages, [0-9.]+ ?[kM]?B to fetch: gcc libc6-dev "
matches 'the last line says that it is done' "$(tail -n 1 "$T/err")" \
	'^install-deps: done after [0-9]+ s$'
is 'that is all it says' "$(wc -l <"$T/err") $(wc -c <"$T/out")" '3 0'
without_apt
ok 'a second run has nothing to do' install_deps check
is 'and nothing to say' "$(cat "$T/err")" ''

machine
on script -qec '/src/scripts/install-deps.sh build' /dev/null >"$T/tty" 2>&1
is 'on a terminal' $? 0
matches 'a line shows the progress' "$(tr '\r' '\n' <"$T/tty")" \
	'install-deps: installing, [1-9][0-9]? %'
is 'make needs no more than a compiler and libraries' "$(installed)" "$(listed build)"

# ---- a user

machine
as=("${user[@]}")
install_deps build
is 'a user without sudo is refused' "$?" 1
matches 'a user without sudo gets advice for root' \
	"$(cat "$T/err")" 'only root .* apt-get install gcc libc6-dev '
is 'before anything was tried' "$(installed) $(known_lists)" 'make 0'
cp "$root/bin/bash" "$root/root-shell" && chmod u+s "$root/root-shell"
cat >"$root/usr/bin/sudo" <<'S'
#!/bin/sh
exec env -i PATH="$PATH" COP_TEST_DIR="$COP_TEST_DIR" /root-shell -p -c \
	'exec setpriv --reuid 0 --regid 0 --clear-groups -- "$@"' sudo "$@"
S
chmod 755 "$root/usr/bin/sudo"
ok 'with sudo everything is installed' install_deps check
is 'all is there' "$(installed)" "$(listed check)"
rm "$root/usr/bin/sudo"
without_apt
ok 'a user who has all packages of the build and the demo can run the demo' install_deps demo
is 'without a word' "$(cat "$T/err")" ''

# ---- the demo

machine
as=()
ok 'the demo installs what it runs' install_deps demo
is 'a compiler, fuse3, python3 and numpy, and no package of a library' "$(installed)" \
	"$(printf '%s\n' fuse3 gcc libc6-dev make python3 python3-numpy)"
is 'headers and archives of all libraries are there' \
	"$(find "$root/src/build/deps" -name 'lib*.[ah]' | sed 's|.*/deps/||' | LC_ALL=C sort)" \
	"$(listed build | sed -n '/^libc6/d; s|^\(lib.*\)-dev$|include/\1-dev.h\nlib/\1.a|p' | LC_ALL=C sort)"
is 'and nothing half done' "$(ls "$root/src/build")" deps
without_apt
ok 'a second time there is nothing to do' install_deps demo
machine
on apt-get update -q >/dev/null 2>&1
on apt-get install -q -y gcc libc6-dev fuse3 python3-numpy python3 >/dev/null 2>&1
as=("${user[@]}")
mv "$root/var/lib/apt/lists" "$root/var/lib/apt/kept"
install_deps demo
is 'a user who lacks libraries, without sudo and package lists' \
	"$? $(cat "$T/err")" "1 install-deps: there are no package lists, and only root can fetch them; as root, run: scripts/install-deps.sh demo"
mv "$root/var/lib/apt/kept" "$root/var/lib/apt/lists"
ok 'with lists such a user gets them' install_deps demo
as=()
ok 'the build' install_deps build
is 'installs them for everybody, and leaves no other copy' \
	"$(installed | wc -l) $(ls "$root/src/build")" "$(($(listed demo | wc -l))) "

# ---- releases that lack packages

index 1 libclang-rt-dev lmod >"$repository/Packages"
machine
ok 'what only tests need may be lacking' install_deps all
is 'the rest is installed' "$(installed | wc -l)" $(($(listed all | wc -l) - 2))
matches 'a package that lacks is named' \
	"$(cat "$T/err")" 'has no lmod libclang-rt-dev : the tests that use it are skipped'
without_apt
ok 'the next time nothing is fetched' install_deps all
index 1 libfuse3-dev >"$repository/Packages"
machine
install_deps build
is 'a package that the build needs may not be missing' "$?" 1
matches 'a lacking package for the build comes with the way out' \
	"$(cat "$T/err")" 'no package libfuse3-dev, .*vendor/README\.md'
machine
install_deps demo
is 'nor may the demo lack it' "$?" 1
matches 'which names it, too' "$(cat "$T/err")" 'libfuse3-dev'
index 1 >"$repository/Packages"

# ---- services

are_enabled() {
	find "$root"/etc/rc[2-5].d "$root/etc/systemd/system" 2>/dev/null | grep -E '/S.*(munge|rsync|slurm)|/(munge|rsync|slurm).*\.service'
}
machine
ok 'everything is installed' install_deps all
is 'packages were told to start no service' "$(cat "$root/policy")" 101
is 'none was started' "$(cd "$root" && echo {munge,rsync,slurmd,slurmctld}.start*)" \
	'munge.start* rsync.start* slurmd.start* slurmctld.start*'
is 'none starts with the machine' "$(are_enabled)" ''
ok 'its administrator can change that' on update-rc.d munge enable
matches 'and it starts with the machine' "$(are_enabled)" 'munge'
ok 'other packages may start theirs afterwards' [ ! -e "$root/usr/sbin/policy-rc.d" ]
machine
printf '#!/bin/sh\nexit 104\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
install_deps all
is "a machine's own rule about services stays" "$(tail -n 1 "$root/usr/sbin/policy-rc.d")" 'exit 104'
machine
: >"$root/hold"
chroot "$root" env -i PATH="$PATH" COP_TEST_DIR="$T" /src/scripts/install-deps.sh all \
	>"$T/out" 2>"$T/err" &
installer=$!
wait_for 30 [ -e "$root/held" ]
{ kill -KILL "$installer" && wait "$installer"; } 2>/dev/null
ok 'if it is killed, services may start from then on' on /usr/sbin/policy-rc.d munge start
rm "$root/hold"
wait_for 30 eval '[ -z "$(find /proc/[0-9]*/exe -lname "$root/*" 2>/dev/null)" ]'

# ---- a mirror that fails

machine
on apt-get update -q >/dev/null 2>&1
mv "$repository/gcc_1.deb" "$repository/gone"
install_deps
is 'a mirror that fails' "$?" 100
matches 'says why' "$(cat "$T/err")" 'E: Failed to fetch|E: .*gcc'
matches 'after its lists were fetched once more' "$(cat "$T/err")" 'fetching the package lists'
mv "$repository/gone" "$repository/gcc_1.deb"

machine
on apt-get update -q >/dev/null 2>&1
toy gcc 2 && mv "$repository/gcc_1.deb" "$repository/gone"
index 1 gcc >"$repository/Packages" 2>/dev/null
packages=gcc index 2 >>"$repository/Packages"
ok 'lists that are too old are fetched again' install_deps
mv "$repository/gone" "$repository/gcc_1.deb" && index 1 >"$repository/Packages"

machine
echo 'deb [trusted=yes] copy:/nowhere ./' >"$root/etc/apt/sources.list"
install_deps
is 'lists that cannot be fetched' "$?" 1
matches 'are what it complains of, not of packages' "$(cat "$T/err")" \
	'^E: .*nowhere|^install-deps: the package lists could not be fetched'

# ---- another distribution

machine
mv "$root/usr/bin/dpkg-query" "$root/usr/bin/not-dpkg-query"
ok 'on another distribution nothing is done' install_deps build
matches 'and the packages are named' "$(xargs <"$T/err")" 'not Debian.* gcc libc6-dev make libfuse3-dev '
off
umount "$T/disk"
