#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and tests this tree in other environments: the Debian releases bullseye, bookworm and
# trixie, each in a root file system of its own, and aarch64, cross-compiled and run by qemu-user.
# Results are kept in a directory, so that an interrupted run continues where it was: a step that
# passed is repeated only when what it tests has changed (the build and the unit tests when a C file
# has), or with --again.
#
#	scripts/portability.sh [--dir DIR] [--step STEP[,STEP…]]… [--again] [--table] [ENVIRONMENT…]
#
# DIR: build/portability unless given; 3 GB. --table only prints what is known. All environments
# unless some are named. The steps, of which each needs those before it that it names:
#
#	root     the root file system, from the mirror of this machine's apt (root, mmdebstrap)
#	build    the source archive is built with every warning an error
#	unit     the unit tests (build); aarch64: what qemu-user lacks (seccomp filters,
#	         subreapers, all of TCP_INFO) is tried by the tests that need it, which are
#	         skipped with that reason
#	tree     three nodes that were built there are a tree (build)
#	slurm    the system tests with that release's Slurm, which tracks by control groups of
#	         version 1 (of 2, where that is the only one) and by parents (build)
#	groups2  those that track by control groups of version 2, which Slurm 20.11 does not know
#	         (build)
#	mpi      those with its MPICH and Open MPI (build)
#	packages rpmbuild makes a package of the source archive, and what was built there goes into
#	         a Debian package and an archive, which are unpacked and start; aarch64: the archive
#	         (build)
#	static   this machine's build/copper starts there, knows names, and is a tree of one node;
#	         aarch64: the one that was built there (build)
#
# The steps run one after another, with low priority. All steps of a release take a quarter of an
# hour on two processors. The last lines are a table; the exit status is 1 if a step failed.
set -u
cd "$(dirname "$0")/.." || exit 2
root=$PWD
copper=$root/build/copper
environments=(bullseye bookworm trixie aarch64)
steps=(root build unit tree slurm groups2 mpi packages static)
# A release whose own libfabric is older than 1.15 gets the headers and the archive of this one, as
# a site would build it.
newer=bookworm
# The release that has the compiler for aarch64 and the libraries for that processor.
cross=bookworm
slurm_tests=(t0700 t0705 t0841 t0842 t0843 t0844)
group_tests=(t0705 t0841 t0843)
mpi_tests=(t0710 t0740 t0845 t0847)

tools=gcc,make,pkg-config,git,file,rpm,rsync,python3,procps,iproute2,mount,util-linux,fuse3,strace
libraries=(libc6-dev libfuse3-dev libfabric-dev liblz4-dev libxxhash-dev libsodium-dev zlib1g-dev
	libsqlite3-dev uuid-dev libcmocka-dev)
lookups=libnss-myhostname,libnss-mdns,libnss-sss
launchers=slurmctld,slurmd,slurm-client,munge,mpich,openmpi-bin,hostname

usage() {
	sed -n '/^#\tscripts/s/^#\t//p' "$0" >&2
	echo "environments: ${environments[*]}; steps: ${steps[*]}" >&2
	exit 2
}

is_one_of() { # WORD WORD…
	local word=$1 other
	shift
	for other; do
		[ "$word" != "$other" ] || return 0
	done
	return 1
}

dir=$root/build/portability
again=
only_table=
wanted_steps=()
wanted=()
while [ $# -gt 0 ]; do
	case $1 in
	--dir | --step)
		[ $# -ge 2 ] || usage
		[ "$1" = --dir ] && dir=$2
		[ "$1" = --dir ] || IFS=, read -r -a more <<<"$2"
		[ "$1" = --dir ] || wanted_steps+=("${more[@]}")
		shift
		;;
	--again) again=1 ;;
	--table) only_table=1 ;;
	-*) usage ;;
	*) wanted+=("$1") ;;
	esac
	shift
done
[ "${#wanted[@]}" -gt 0 ] || wanted=("${environments[@]}")
[ "${#wanted_steps[@]}" -gt 0 ] || wanted_steps=("${steps[@]}")
for word in "${wanted[@]}"; do is_one_of "$word" "${environments[@]}" || usage; done
for word in "${wanted_steps[@]}"; do is_one_of "$word" "${steps[@]}" || usage; done
mkdir -p "$dir" || exit 2
dir=$(cd "$dir" && pwd)

# ---- what is known: DIR/ENVIRONMENT.STEP has the key, the state (passed, failed, left: not done)
# and a sentence

known() { # ENVIRONMENT STEP FIELD
	sed -n "$3p" "$dir/$1.$2" 2>/dev/null
}

keep() { # ENVIRONMENT STEP KEY STATE SENTENCE
	printf '%s\n' "${@:3}" >"$dir/$1.$2"
	case $4 in
	passed) echo "ok - $1 $2: $5" ;;
	left) echo "not done - $1 $2: $5" ;;
	*)
		echo "not ok - $1 $2: $5"
		tail -n 60 "$dir/$1.$2.log" | sed 's/^/# /'
		;;
	esac
}

# Prints what a step's result depends on.
key_of() { # STEP ENVIRONMENT
	case $1:$2 in
	root:*) echo root ;;
	static:aarch64) echo "$source_key" ;;
	static:*) [ ! -e "$copper" ] || cksum <"$copper" ;;
	build:* | unit:* | tree:*) echo "$built_key" ;;
	*) echo "$source_key" ;;
	esac
}

# Prints the state of the steps that a step needs, in words; nothing if all of them passed.
lacks() { # ENVIRONMENT STEP
	local need needs=root
	case $1:$2 in
	*:root) needs= ;;
	*:unit | *:tree | *:slurm | *:groups2 | *:mpi | *:packages | aarch64:static)
		needs='root build'
		;;
	esac
	for need in $needs; do
		[ "$(known "$1" "$need" 2)" = passed ] &&
			[ "$(known "$1" "$need" 1)" = "$(key_of "$need" "$1")" ] && continue
		case $(known "$1" "$need" 2) in
		failed) echo "$need failed" ;;
		*) echo "$need is not done" ;;
		esac
		return
	done
}

# A step is a function: 0 passed, 77 cannot be done here, else failed. What it prints on descriptor
# 3 is the sentence.
do_step() { # ENVIRONMENT STEP
	local status sentence missing key
	key=$(key_of "$2" "$1")
	if [ -z "$again" ] && [ "$(known "$1" "$2" 2)" = passed ] &&
		[ "$(known "$1" "$2" 1)" = "$key" ]; then
		echo "ok - $1 $2: as before, $(known "$1" "$2" 3)"
		return
	fi
	missing=$(lacks "$1" "$2")
	if [ -n "$missing" ]; then
		keep "$1" "$2" "$key" left "$missing"
		return
	fi
	"step_$2" "$1" 3>"$dir/.sentence.$1" >"$dir/$1.$2.log" 2>&1
	status=$?
	sentence=$(tail -n 1 "$dir/.sentence.$1")
	case $status in
	0) keep "$1" "$2" "$key" passed "${sentence:-done}" ;;
	77) keep "$1" "$2" "$key" left "${sentence:-not to be done here}" ;;
	*) keep "$1" "$2" "$key" failed "${sentence:-see $dir/$1.$2.log}" ;;
	esac
}

say() {
	printf '%s\n' "$*" >&3
}

# ---- root file systems

mirror() {
	sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
		/etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
		head -n 1
}

bootstrap() { # VARIANT PACKAGES RELEASE DIR [OPTION…]
	local url
	url=$(mirror)
	nice -n 19 mmdebstrap --quiet --variant="$1" --include="$2" "${@:5}" "$3" "$4" \
		"${url:-http://deb.debian.org/debian}"
}

joined() { # SUFFIX WORD…
	local suffix=$1 out
	shift
	printf -v out ",%s$suffix" "$@"
	echo "${out#,}"
}

step_root() { # ENVIRONMENT
	local at=$dir/root.$1 packages options=() release=$1
	[ "$(id -u)" -eq 0 ] || { say 'it needs root'; return 77; }
	command -v mmdebstrap >/dev/null || {
		say 'no mmdebstrap here: apt-get install mmdebstrap'
		return 77
	}
	if [ "$1" = aarch64 ]; then
		release=$cross
		packages=$tools,gcc-aarch64-linux-gnu,qemu-user-static,$(joined :arm64 \
				"${libraries[@]}")
		options=("--architectures=amd64,arm64")
	else
		packages=$tools,$lookups,$launchers,$(joined '' "${libraries[@]}")
	fi
	rm -rf "$at" "$at.part"
	bootstrap essential "$packages" "$release" "$at.part" "${options[@]}" || {
		say 'it cannot be made'
		return 1
	}
	printf '127.0.0.1 localhost\n10.231.7.1 portable\n127.0.0.11 n1\n' >"$at.part/etc/hosts"
	# fusermount3 of libfuse 3.10 unmounts for a user only what /etc/mtab lists.
	[ -e "$at.part/etc/mtab" ] || ln -s ../proc/self/mounts "$at.part/etc/mtab"
	mv "$at.part" "$at"
	say "Debian $(cat "$at/etc/debian_version")"
}

# Runs in namespaces of its own, with which its mounts and processes end. Its network has no other
# host, but has an address that is neither the loopback's nor the one that tests take for nobody's
# (192.0.2.1): without it the C library resolves no address for Slurm. The root is replaced with
# pivot_root, not just changed, because tests enter namespaces of their own and would be outside
# again. Control groups are made below one on this machine that nobody else uses.
inside() { # ENVIRONMENT COMMAND…
	local status groups=copper-portability.$1.$$
	nice -n 19 unshare --mount --propagation private --net --uts --pid --fork \
		--kill-child bash -c '
		ip link set lo up && ip link add lan type bridge &&
			ip address add 10.231.7.1/24 dev lan && ip link set lan up &&
			hostname portable &&
			mount --rbind "$0" "$0" && mount --rbind /dev "$0/dev" &&
			mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" &&
			mount -t tmpfs tmpfs "$0/run" || exit
		for at in "$0"/sys/fs/cgroup "$0"/sys/fs/cgroup/{unified,freezer}; do
			[ ! -e "$at/cgroup.procs" ] || { mkdir -p "$at/$2" && mount --bind "$at/$2" "$at"; } || exit
		done
		mkdir -p "$0/.before" && pivot_root "$0" "$0/.before" && cd / && PATH=$1 &&
			umount -l /.before && exec env HOME=/root "${@:3}"' \
		"$dir/root.$1" /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$groups" "${@:2}"
	status=$?
	find "/sys/fs/cgroup/$groups" /sys/fs/cgroup/{unified,freezer}/"$groups" -depth -type d \
		-exec rmdir {} \; 2>/dev/null
	return "$status"
}

# ---- the static binary elsewhere

static_there='
	fail() { echo "$1" >&3; exit 1; }
	checked() { copper serve --check --hosts n1,no-such-host.invalid --insecure --source /usr "$@"; }
	checked --rank 0 || fail "a name in the hosts file"
	checked --rank 1 2>&1 | tee /run/said
	grep -q "its name is unknown" /run/said || fail "a name that nobody has gives no sentence"
	mkdir -p /mnt/copper && copper mount --source /usr /mnt/copper || fail "no tree is mounted"
	cmp /usr/bin/env /mnt/copper/bin/env
	status=$?
	copper stop /mnt/copper && exit $status'

step_static() { # ENVIRONMENT
	local at=$dir/root.$1
	if [ "$1" = aarch64 ]; then
		static_by_qemu
		return
	fi
	[ -x "$copper" ] || { say "no $copper: run make"; return 77; }
	file -b "$copper" | grep -q 'statically linked' || {
		say 'this build is not static'
		return 77
	}
	cp "$copper" "$at/usr/local/bin/copper" || return
	echo 'hosts: files myhostname mdns4_minimal sss dns' >"$at/etc/nsswitch.conf"
	inside "$1" copper --version || { say 'it does not start'; return 1; }
	inside "$1" sh -c "$static_there" || return
	say 'it starts, knows names, is mounted, read and stopped'
}

static_by_qemu() {
	local version
	version=$(inside aarch64 sh -c 'cd /var/tmp/copper/build && file -bL copper >&2 &&
		qemu-aarch64-static "$PWD/copper" --version' | head -n 1)
	[ -n "$version" ] || { say 'it does not start'; return 1; }
	inside aarch64 qemu-aarch64-static /var/tmp/copper/build/copper serve --check \
		--hosts localhost --source /usr ||
		{ say "$version starts; its check of the machine failed"; return 1; }
	say "$version starts by qemu-user and checks its machine; a mount by it is not tried"
}

# ---- from the source

fabric_minor() { # ENVIRONMENT: 2.1 is 2001, 1.15 is 1015, none is 0
	local header=$dir/root.$1/usr/include/rdma/fabric.h
	[ -e "$header" ] || { echo 0; return; }
	awk '$2 == "FI_MAJOR_VERSION" { major = $3 } $2 == "FI_MINOR_VERSION" { minor = $3 } END { print 1000 * major + minor }' "$header"
}

newer_fabric() { # ENVIRONMENT
	local at=$dir/root.$1/opt/libfabric from=$dir/libfabric.$newer
	[ ! -e "$at/lib/libfabric.a" ] || return 0
	rm -rf "$from"
	bootstrap extract libfabric-dev "$newer" "$from" && mkdir -p "$at/lib" "$at/include" &&
		cp -r "$from/usr/include/rdma" "$at/include/" &&
		cp "$from/usr/lib/"*/libfabric.a "$at/lib/" && rm -rf "$from"
}

# Runs in the root file system, in the unpacked source. The site's libfabric is an archive only,
# which takes the stand-ins for providers as the static binary does; linking anything else
# statically needs glibc 2.34.
native_build='
	cd /var/tmp/copper && words="WERROR=-Werror"
	if [ -e /opt/libfabric/lib/libfabric.a ]; then
		gcc -O2 -Iinternal -I/opt/libfabric/include \
			-c internal/fabric/endpoint/absent_providers.c -o absent.o
		libs="-l:libfuse3.a -l:liblz4.a -l:libxxhash.a -l:libsodium.a -l:libz.a"
		libs="$libs -l:libsqlite3.a"
		fabric="/var/tmp/copper/absent.o -l:libfabric.a -luuid -latomic -ldl -lrt"
		make -j2 $words FABRIC=shared BUILD=build CPPFLAGS=-I/opt/libfabric/include \
			LDFLAGS=-L/opt/libfabric/lib \
			LIBS="$libs $fabric -lm" \
			LIBS_SHARED="-lfuse3 -llz4 -lxxhash -lsodium -lz -lsqlite3 $fabric -lm" all tests
	else
		make -j2 $words all tests
	fi'
cross_build='cd /var/tmp/copper && make -j2 CC=aarch64-linux-gnu-gcc WERROR=-Werror all tests'

step_build() { # ENVIRONMENT
	local at=$dir/root.$1 how=$native_build
	[ "$1" != aarch64 ] || how=$cross_build
	if [ "$(fabric_minor "$1")" -lt 1015 ]; then
		newer_fabric "$1" || { say 'no libfabric 1.15 or newer can be had'; return 1; }
	fi
	rm -rf "$at/var/tmp/copper"
	mkdir "$at/var/tmp/copper" && tar -C "$at/var/tmp/copper" --strip-components=1 \
		-xf "$archive" || return
	inside "$1" bash -c "$how" || { say 'it is not built, or with a warning'; return 1; }
	say "without a warning, by $(compiler_of "$1")"
}

compiler_of() { # ENVIRONMENT
	local name=gcc
	[ "$1" != aarch64 ] || name=aarch64-linux-gnu-gcc
	inside "$1" "$name" -dumpfullversion | sed "s/^/$name /"
}

# check.sh's count is the sentence. If no test passed, the step was not done, for the reason that
# the last test gave.
checked() { # ENVIRONMENT OPTION…
	local status said=$dir/.said.$1 reason
	tar -C "$dir/root.$1/var/tmp/copper" --strip-components=1 --wildcards -xf "$archive" \
		'*/scripts/*' || return
	inside "$1" bash -c 'cd /var/tmp/copper && COP_LANES=1 exec scripts/check.sh --build build "$@"' check "${@:2}" | tee "$said"
	status=${PIPESTATUS[0]}
	reason=$(sed -n 's/.*# SKIP *//p' "$said" | sort -u | paste -sd ';')
	say "$(tail -n 1 "$said")${reason:+ ($reason)}"
	! tail -n 1 "$said" | grep -q '^0 passed, 0 failed' || return 77
	return "$status"
}

step_unit() { # ENVIRONMENT
	[ "$1" = aarch64 ] || { checked "$1" --unit-only; return; }
	inside "$1" bash -c '
		cd /var/tmp/copper || exit 1
		for file in internal/*/*/*_test.c; do
			name=${file#internal/}
			name=${name%.c}
			program=build/test/$name
			[ -e "$program" ] || program="build/test/unit $name"
			# shellcheck disable=SC2086
			if timeout -k 5 900 qemu-aarch64-static $program; then
				passed=$((passed + 1))
			else
				failed="$failed ${name##*/}"
			fi
		done
		echo "$((passed)) programs passed by qemu-user${failed:+; not:$failed}" >&3
		[ -z "$failed" ]'
}

tree_there='
	copper=/var/tmp/copper/build/copper hosts=127.0.0.11,127.0.0.12,127.0.0.13 status=0
	dir=$(mktemp -d)
	mkdir "$dir/0" "$dir/1" "$dir/2"
	for rank in 0 1 2; do
		"$copper" mount --hosts "$hosts" --rank "$rank" -A -d "$dir/job" \
			--runtime-dir "$dir/run.$rank" --source /usr "$dir/$rank" &
	done
	wait
	for rank in 0 1 2; do
		cmp /usr/bin/env "$dir/$rank/bin/env" &&
			diff -r /usr/include/linux "$dir/$rank/include/linux" || status=1
	done
	"$copper" stop -d "$dir/job" | grep -x "stopped 3/3 nodes" || status=1
	"$copper" paths "$dir/job" --usage-root /usr/include >"$dir/paths" || status=1
	listed=$dir/job/paths_dir/all_possible_existing_paths.txt
	[ "$(wc -l <"$listed")" = "$(find /usr/include | wc -l)" ] || status=1
	exit $status'

step_tree() { # ENVIRONMENT
	[ "$1" != aarch64 ] || { say 'a mount by qemu-user is not tried'; return 77; }
	inside "$1" bash -c "$tree_there" || return
	say 'three nodes were mounted, read and stopped, and their paths are right'
}

step_slurm() { # ENVIRONMENT
	[ "$1" != aarch64 ] || { say 'no Slurm by qemu-user'; return 77; }
	checked "$1" --system-only "${slurm_tests[@]}"
}

step_groups2() { # ENVIRONMENT
	[ "$1" != aarch64 ] || { say 'no Slurm by qemu-user'; return 77; }
	COP_CGROUPS=v2 checked "$1" --system-only "${group_tests[@]}"
}

step_mpi() { # ENVIRONMENT
	[ "$1" != aarch64 ] || { say 'no MPI by qemu-user'; return 77; }
	checked "$1" --system-only "${mpi_tests[@]}"
}

# The scripts may be newer than what was built there, and so may be the source archive.
packages_there='
	version=$(build/copper --version | sed -n "s/^copper //p")
	fail() { echo "$1" >&3; exit 1; }
	rpmbuild -ta --quiet --nodeps --define "_topdir $PWD/rpm" copper-*.tar.gz &&
		rpm --root "$PWD/rpm/root" --dbpath /db --nodeps -i rpm/RPMS/*/*.rpm &&
		rpm -qp --requires rpm/RPMS/*/*.rpm | grep -x fuse3 &&
		rpm/root/usr/bin/copper --version |
		grep -qxF "copper $(basename copper-*.tar.gz .tar.gz | cut -c8-)" ||
		fail "the package of RPM"
	make deb && dpkg-deb -x build/*.deb deb &&
		[ "$(deb/usr/bin/copper --version | head -n 1)" = "copper $version" ] ||
		fail "the Debian package"
	make bindist && tar -xf build/*-linux-x86_64.tar.gz &&
		copper-*-linux-x86_64/bin/copper serve --check --source /usr || fail "the archive"
	echo "rpmbuild $(rpmbuild --version | sed "s/.* //"), dpkg-deb and tar: $version starts from each" >&3'

packages_of_aarch64='
	make CC=aarch64-linux-gnu-gcc RUNNER=qemu-aarch64-static bindist &&
		tar -xf build/*-linux-aarch64.tar.gz &&
		file -b copper-*-linux-aarch64/bin/copper | grep -E "ARM aarch64.* statically linked" &&
		qemu-aarch64-static copper-*-linux-aarch64/bin/copper --version || exit
	echo "an archive of the static program; no other package is tried" >&3'

step_packages() { # ENVIRONMENT
	local at=$dir/root.$1/var/tmp/copper how=$packages_there
	[ "$1" != aarch64 ] || how=$packages_of_aarch64
	if [ -e "$dir/root.$1/opt/libfabric" ]; then
		say "with a site's libfabric that is an archive nothing is packed"
		return 77
	fi
	rm -rf "$at"/{rpm,deb} "$at"/copper-* "$at"/build/*.{deb,tar.gz}
	cp "$archive" "$at/" && inside "$1" \
		bash -c "cd /var/tmp/copper && export WERROR=-Werror && $how"
}

# ---- all

print_table() {
	local environment step state
	printf '\n%-10s' ''
	printf ' %-10s' "${steps[@]}"
	echo
	for environment in "${environments[@]}"; do
		printf '%-10s' "$environment"
		for step in "${steps[@]}"; do
			state=$(known "$environment" "$step" 2)
			case $state in
			passed | failed)
				[ "$(known "$environment" "$step" 1)" = \
					"$(key_of "$step" "$environment")" ] || state=old
				;;
			*) state='not done' ;;
			esac
			printf ' %-10s' "$state"
		done
		echo
	done
	echo
	for environment in "${environments[@]}"; do
		for step in "${steps[@]}"; do
			[ ! -e "$dir/$environment.$step" ] || printf '%-10s %-10s %s\n' \
				"$environment" "$step" "$(known "$environment" "$step" 3)"
		done
	done
}

# The key of files, all unless some are named. A file that is not committed gets another key each
# time it changes.
key_of_files() { # [PATH…]
	{ git ls-tree -r HEAD -- "$@" && git diff HEAD -- "$@"; } 2>/dev/null | cksum | tr ' ' .
}
source_key=$(key_of_files)
# The other files do not go into the build.
built_key=$(key_of_files Makefile cmd internal vendor)
if [ -z "$only_table" ]; then
	archive=$(make -s dist) || exit 1
	archive=$root/${archive#"$root"/}
	for environment in "${wanted[@]}"; do
		for step in "${steps[@]}"; do
			! is_one_of "$step" "${wanted_steps[@]}" || do_step "$environment" "$step"
		done
	done
fi
print_table
for environment in "${wanted[@]}"; do
	for step in "${wanted_steps[@]}"; do
		[ "$(known "$environment" "$step" 2)" != failed ] || exit 1
	done
done
