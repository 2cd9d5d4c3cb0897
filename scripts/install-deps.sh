#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs what building and testing Copper needs on Debian 12. Does nothing, and quickly, when all of it is there.
#
#   scripts/install-deps.sh          install what is missing (root, or sudo)
#   scripts/install-deps.sh --list   print the packages, one a line
set -eu

build="gcc make pkg-config git file libc6-dev libfuse3-dev fuse3 libfabric-dev libfabric1 liblz4-dev
libxxhash-dev libsodium-dev uuid-dev"
checks="libcmocka-dev libfabric-bin clang clang-format libclang-rt-14-dev shellcheck cppcheck"
systems="python3 python3-numpy sqlite3 rsync strace iproute2 util-linux tar diffutils findutils procps
coreutils passwd mount mandoc groff-base hostname zsh lmod rpm"
launchers="slurmctld slurmd slurm-client munge mpich"

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
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "install-deps: run as root, or install sudo; missing: $wanted" >&2
		exit 1
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

wanted=$(missing)
[ -n "$wanted" ] || exit 0
echo "install-deps: installing $wanted" >&2
export DEBIAN_FRONTEND=noninteractive

# The package lists may be fresh enough; they are fetched only if the first try fails.
# shellcheck disable=SC2086
as_root apt-get install -y -q --no-install-recommends $wanted >/dev/null 2>&1 && exit 0
as_root apt-get update -q >/dev/null
# shellcheck disable=SC2086
as_root apt-get install -y -q --no-install-recommends $wanted >/dev/null
