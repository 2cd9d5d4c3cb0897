#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs those packages of a list that are missing, on Debian 11 to 13. If nothing is missing, it
# returns at once and needs neither root nor sudo. No service that comes with a package is started,
# now or at boot.
#
#   scripts/install-deps.sh build            what make needs
#   scripts/install-deps.sh demo             what make demo needs
#   scripts/install-deps.sh [check]          what make check needs
#   scripts/install-deps.sh all              what make check-all, make lint and the packages need
#   scripts/install-deps.sh --list [LIST]    print the packages of a list, one a line
#
# On another distribution it names the packages, and changes nothing.
#
# Lists of packages are words.
# shellcheck disable=SC2086
set -eu
cd "$(dirname "$0")/.."

compiler="gcc libc6-dev make"
# What Copper is linked with (vendor/README.md).
libraries="libfuse3-dev libfabric-dev liblz4-dev libxxhash-dev libsodium-dev zlib1g-dev
libsqlite3-dev uuid-dev"
# fusermount3 mounts for ordinary users; the demo imports numpy.
demo="fuse3 python3 python3-numpy"
# Each of these is small, and several tests run it. cmocka: the unit tests. mandoc, groff-base: the
# manual is parsed and shown. strace: the paths that a program uses. iproute2, mount, passwd,
# procps, util-linux: namespaces, networks, users and processes of the tests' own. sqlite3: the run
# store. file, git, rsync, tmux: archives, versions, copies of trees, a terminal.
check="libcmocka-dev mandoc groff-base strace iproute2 mount passwd procps util-linux hostname
sqlite3 file git rsync tmux"
# Tests that are skipped without them. pandas reads our tables, protobuf our OpenTelemetry files,
# Chromium and Node.js our pages; lmod and zsh load the modulefile and the completion; newgidmap of
# uidmap lets a view have all groups of a user.
programs="python3-pandas python3-protobuf protobuf-compiler gdb zsh lmod rpm nodejs uidmap
chromium-headless-shell"
launchers="slurmctld slurmd slurm-client munge mpich openmpi-bin"
# For make lint, a plugin of clang, the sanitizers and fuzzers of clang with json-c as a judge of
# our scanner, and fi_pingpong, to which the benchmarks compare us.
tools="clang clang-format llvm-dev libclang-rt-dev libjson-c-dev shellcheck cppcheck pkg-config
libfabric-bin"

# The demo installs no development package of a library, but unpacks it here, where make finds it:
# the demo needs headers and archives, not the 26 packages that these packages depend on.
unpacked=build/deps

usage() {
	sed -n 's/^#   //p' scripts/install-deps.sh >&2
	exit 2
}

packages() { # LIST
	case $1 in
	build) set -- $compiler $libraries ;;
	demo) set -- $compiler $libraries $demo ;;
	check) set -- $compiler $libraries $demo $check ;;
	all) set -- $compiler $libraries $demo $check $programs $launchers $tools ;;
	*) return 1 ;;
	esac
	printf '%s\n' "$@"
}

say() {
	printf 'install-deps: %s\n' "$*" >&2
}

missing() { # PACKAGE…
	for package; do
		state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$state" = installed ] || printf '%s ' "$package"
	done
}

has_word() { # WORD WORD…
	word=$1
	shift
	case " $* " in
	*" $word "*) return 0 ;;
	esac
	return 1
}

# ---- apt

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

is_root_within_reach() {
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null
}

apt() { # ARGUMENT…
	as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@"
}

# An installed package is a candidate even without package lists, so candidates prove nothing.
are_lists_there() {
	LC_ALL=C apt-cache policy 2>/dev/null | grep -q ' Packages$'
}

updated=
update() {
	[ -z "$updated" ] || return 0
	updated=1
	say 'fetching the package lists'
	# apt-get update succeeds even if it fetched nothing.
	apt update -q >"$temporary/log" 2>&1 || true
	are_lists_there && return
	tail -n 20 "$temporary/log" >&2
	say 'the package lists could not be fetched: see what apt says above'
	exit 1
}

# Whether the release has the package, according to the package lists.
has() { # PACKAGE
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

lacking() { # PACKAGE…
	for package; do
		has "$package" || printf '%s ' "$package"
	done
}

# Removes from wanted what the release lacks. Without a compiler and libraries nothing can be built.
leave_out() {
	lacks=$(lacking $wanted)
	[ -n "$lacks" ] || return 0
	kept=
	for package in $wanted; do
		if ! has_word "$package" $lacks; then
			kept="$kept$package "
		elif has_word "$package" $compiler $libraries; then
			say "this release has no package $package, and without it nothing can be built: see vendor/README.md"
			exit 1
		fi
	done
	say "this release has no $lacks: the tests that use it are skipped"
	wanted=$kept
}

# ---- progress: one line that changes on a terminal, elsewhere the first and the last line

live() {
	[ ! -t 2 ] || printf '\r\033[Kinstall-deps: %s' "$*" >&2
}

end_live() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# Reads what apt-get prints on standard output and what its APT::Status-Fd=1 adds to that.
show_progress() {
	count='?' size=nothing
	while IFS= read -r line; do
		rest=${line#*:*:}
		case $line in
		dlstatus:*) live "fetching, ${rest%%[.:]*} %" ;;
		pmstatus:*) live "installing, ${rest%%[.:]*} %" ;;
		*' newly installed,'*)
			count=${line% newly installed,*}
			count=${count##* }
			;;
		'Need to get '*' of archives.')
			size=${line#Need to get }
			size=${size% of archives.}
			size=${size%%/*}
			;;
		'After this operation'*)
			end_live
			say "installing $count packages, $size to fetch: $wanted"
			;;
		*) printf '%s\n' "$line" >>"$temporary/log" ;;
		esac
	done
	end_live
}

# Its exit status is that of apt-get.
try_to_install() {
	: >"$temporary/log"
	{
		status=0
		apt install -y --no-install-recommends -o APT::Status-Fd=1 -o Dpkg::Use-Pty=0 \
			-o DPkg::Lock::Timeout=120 $wanted 2>"$temporary/errors" || status=$?
		echo "$status" >"$temporary/status"
	} | show_progress
	return "$(cat "$temporary/status")"
}

# If it fails with package lists that were here before, they may be outdated.
install_wanted() {
	began=$(date +%s)
	if ! try_to_install; then
		status=$(cat "$temporary/status")
		if [ -n "$updated" ] || ! { update; try_to_install; }; then
			status=$(cat "$temporary/status")
			tail -n 20 "$temporary/log" "$temporary/errors" >&2
			exit "$status"
		fi
	fi
	say "done after $(($(date +%s) - began)) s"
}

# ---- services

# While packages are installed, invoke-rc.d(8) asks this file whether their services may start. If
# the machine has one already, whoever wrote it decides. If this script is killed, its file permits
# everything from then on.
policy=/usr/sbin/policy-rc.d
mark="# written by Copper's install-deps.sh"

forbid_services() {
	[ ! -e "$policy" ] || grep -qxF "$mark" "$policy" || return 0
	printf '%s\n' '#!/bin/sh' "$mark" "kill -0 $$ 2>/dev/null || exit 0" 'exit 101' \
		>"$temporary/policy"
	as_root install -m 755 "$temporary/policy" "$policy"
	forbidden=1
}

# Prints the services that start with the machine: those of System V runlevels 2 to 5, and those of
# systemd.
services() {
	for link in /etc/rc[2-5].d/S[0-9][0-9]* /etc/systemd/system/*.wants/*.service; do
		[ -L "$link" ] || continue
		link=${link##*/}
		case $link in
		*.service) echo "${link%.service}" ;;
		*) echo "${link#S[0-9][0-9]}" ;;
		esac
	done | sort -u
}

# A package enables its services for the next boot when it is configured.
disable_new_services() {
	for service in $(services | grep -vxF -f "$temporary/services"); do
		as_root update-rc.d "$service" disable 2>/dev/null ||
			as_root systemctl --quiet disable "$service.service" ||
			say "the service $service starts with this machine from now on"
	done
}

forbidden=
# An installation that failed may have enabled services, too.
clean_up() {
	status=$?
	trap '' INT TERM HUP
	trap - EXIT
	end_live
	[ ! -e "$temporary/services" ] || disable_new_services || true
	[ -z "$forbidden" ] || as_root rm -f "$policy"
	rm -rf "$temporary" "$unpacked.part"
	exit "$status"
}

# ---- libraries of the demo

# Prints which of the libraries are neither installed nor unpacked.
missing_libraries() {
	for package in $(missing $libraries); do
		grep -qsxF "$package" "$unpacked/packages" || printf '%s ' "$package"
	done
}

# Takes headers and archives out of a package's directory into include and lib.
sort_out() { # FROM TO
	mkdir -p "$2/include" "$2/lib"
	cp -R "$1/usr/include/." "$2/include/"
	for directory in "$2"/include/*-linux-gnu*; do
		[ ! -d "$directory" ] || { cp -R "$directory/." "$2/include/" && rm -r "$directory"; }
	done
	find "$1/usr/lib" -name 'lib*.a' -type f -exec cp {} "$2/lib/" \;
}

# apt-get download checks signatures as apt-get install does, and needs no root.
download() { # PACKAGE…
	(cd "$temporary" && apt-get -o APT::Sandbox::User=root -qq download "$@")
}

unpack() { # PACKAGE…
	say "unpacking the headers and archives of $# libraries in $unpacked: $*"
	part=$(mkdir -p "$unpacked.part" && cd "$unpacked.part" && pwd)
	[ ! -d "$unpacked" ] || cp -R "$unpacked/." "$part/"
	if ! download "$@" 2>/dev/null; then
		! is_root_within_reach || update
		download "$@" || {
			say 'the libraries could not be fetched: see what apt says above'
			exit 1
		}
	fi
	for archive in "$temporary"/*.deb; do
		dpkg-deb -x "$archive" "$temporary/files"
	done
	sort_out "$temporary/files" "$part"
	printf '%s\n' "$@" >>"$part/packages"
	rm -rf "$unpacked"
	mv "$part" "$unpacked"
}

# ---- the command line

only_list=
[ "${1:-}" != --list ] || { only_list=1; shift; }
[ $# -le 1 ] || usage
list=${1:-check}
all=$(packages "$list") || usage
if [ -n "$only_list" ]; then
	echo "$all"
	exit 0
fi
if ! command -v dpkg-query >/dev/null; then
	say 'this is not Debian: if the counterparts of these packages are missing, install them by hand'
	echo "$all" >&2
	exit 0
fi

to_unpack=
if [ "$list" = demo ]; then
	to_unpack=$(missing_libraries)
	all="$compiler $demo"
fi
wanted=$(missing $all)
[ -n "$wanted$to_unpack" ] || exit 0
if [ -n "$wanted" ] && ! is_root_within_reach; then
	say "only root can install packages, and there is no sudo here; as root, run: apt-get install $wanted"
	exit 1
fi

temporary=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if ! are_lists_there; then
	if ! is_root_within_reach; then
		say "there are no package lists, and only root can fetch them; as root, run: scripts/install-deps.sh $list"
		exit 1
	fi
	update
fi
[ -z "$to_unpack" ] || unpack $to_unpack
leave_out
[ -n "$wanted" ] || exit 0
services >"$temporary/services"
forbid_services
install_wanted
# An older copy must not get into a program beside the installed headers.
[ "$list" = demo ] || rm -rf "$unpacked"
