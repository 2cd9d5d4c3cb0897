#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs what building and testing Copper needs on Debian 11 to 13. If everything is installed, it
# returns at once. Packages that only tests need and that the release lacks are named and left out.
#
#   scripts/install-deps.sh          install what is missing (root, or sudo)
#   scripts/install-deps.sh --list   print the packages, one a line
set -eu

build="gcc make pkg-config git file libc6-dev libfuse3-dev fuse3 libfabric-dev libfabric1 liblz4-dev
libxxhash-dev libsodium-dev zlib1g-dev libjson-c-dev libsqlite3-dev uuid-dev"
checks="libcmocka-dev libfabric-bin clang clang-format libclang-rt-dev shellcheck cppcheck"
systems="python3 python3-numpy python3-pandas python3-protobuf protobuf-compiler sqlite3 rsync strace gdb iproute2 util-linux tar diffutils findutils procps tmux
coreutils passwd mount mandoc groff-base hostname zsh lmod rpm nodejs chromium-headless-shell"
launchers="slurmctld slurmd slurm-client munge mpich openmpi-bin"

packages() {
	# The lists are words.
	# shellcheck disable=SC2086
	printf '%s\n' $build $checks $systems $launchers
}

missing() {
	for package in $(packages); do
		state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$state" = installed ] || printf '%s ' "$package"
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

case ${1:-} in
--list)
	packages
	exit 0
	;;
'') ;;
*)
	echo "usage: install-deps.sh [--list]" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "install-deps: this is not Debian; install the counterparts of these by hand:" >&2
	packages >&2
	exit 1
fi

# Whether the release has the package, as far as the package lists here say.
has() { # PACKAGE
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# Puts into wanted what can be installed. Without the packages of the first list nothing can be
# built.
leave_out() {
	known=
	lacking=
	for package in $wanted; do
		if has "$package"; then
			known="$known$package "
			continue
		fi
		lacking="$lacking$package "
		for needed in $build; do
			[ "$needed" != "$package" ] || {
				echo "install-deps: this release has no package $package, and without it nothing can be built: see vendor/README.md" >&2
				exit 1
			}
		done
	done
	[ -z "$lacking" ] || echo "install-deps: this release has no $lacking: the tests that use it are skipped" >&2
	wanted=$known
}

get() {
	# The lists are words.
	# shellcheck disable=SC2086
	as_root apt-get install -y -q --no-install-recommends $wanted >/dev/null
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
	echo "install-deps: only root can install packages, and there is no sudo here; as root, run: apt-get install $wanted" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive

# A machine that was never used has no package lists.
has make || as_root apt-get update -q >/dev/null
leave_out
[ -n "$wanted" ] || exit 0
echo "install-deps: installing $wanted" >&2
get 2>/dev/null && exit 0

# Either the package lists were outdated, or the second try reports what is wrong.
as_root apt-get update -q >/dev/null
get
