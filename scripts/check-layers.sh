#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks what internal/LAYERS promises: districts include only what the table allows, private
# headers stay in their module, every public header compiles alone, and every global symbol begins
# with cop_.
#
#   scripts/check-layers.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
faults=0

fault() {
	echo "check-layers: $*"
	faults=$((faults + 1))
}

declare -A allowed
read_layers() {
	local line row
	while IFS= read -r line; do
		case $line in
		'#'* | '') continue ;;
		*:*) ;;
		*)
			fault "internal/LAYERS: not a row: $line"
			continue
			;;
		esac
		row=${line%%:*}
		allowed[$row]=" $row ${line#*:} "
	done <internal/LAYERS
}

# Rows may only name districts above them, so there is no cycle.
check_order() {
	local line row name seen=' '
	while IFS= read -r line; do
		case $line in
		'#'* | '') continue ;;
		esac
		row=${line%%:*}
		for name in ${line#*:}; do
			case $seen in
			*" $name "*) ;;
			*)
				fault "internal/LAYERS: $row names $name, which has no row above it"
				;;
			esac
		done
		seen="$seen$row "
	done <internal/LAYERS
}

# Sets district and home (the folder) of a file: internal/DISTRICT/MODULE/…, sim (cmd/copper-sim) or
# cmd. Tests may include the private headers of their own module. (Taking the output of a function
# instead would cost a process for each of some thousand calls.)
set_district() { # FILE
	home=${1%/*}
	case $1 in
	internal/*/*/*)
		district=${1#internal/}
		home=${district#*/}
		home=${district%%/*}/${home%%/*}
		district=${district%%/*}
		;;
	internal/*) fault "$1 is not in a module: internal/DISTRICT/MODULE/" ;;
	cmd/copper-sim/*) district=sim ;;
	*) district=cmd ;;
	esac
}

check_include() { # FILE INCLUDED
	local district home target header module
	header=$2
	case $header in
	*/*/*) ;;
	*) return 0 ;; # a private header beside the file
	esac
	target=${header%%/*}
	module=${header#*/}
	module=$target/${module%%/*}
	[ -d "internal/$module" ] || return 0
	set_district "$1"
	case ${allowed[$district]:-} in
	'') fault "$1: district $district has no row in internal/LAYERS" ;;
	*" $target "*) ;;
	*) fault "$1 includes $header, but district $district may not use $target" ;;
	esac
	[ "$module" != "$home" ] || return 0
	case $header in
	*_priv.h) fault "$1 includes $header, private to $module" ;;
	*_testing.h)
		[[ $1 == *_test.c ]] || fault "$1 includes $header, which is for tests"
		;;
	"$module/${module#*/}.h" | "$module"/*.def | base/base/*.h) ;;
	*) fault "$1 includes $header, which is not the public header of $module" ;;
	esac
}

# slowfs plays a file system and does not know Copper.
check_slowfs() { # FILE INCLUDED
	case $1:$2 in
	cmd/slowfs/*:base/base/* | cmd/slowfs/*:mount/dirops/dirops.h) ;;
	cmd/slowfs/*:*/*/*)
		[ ! -d "internal/${2%%/*}" ] ||
			fault "$1 includes $2, but slowfs may use base and dirops only"
		;;
	esac
}

check_includes() {
	local file header
	while IFS=: read -r file header; do
		header=${header#*\"}
		header=${header%%\"*}
		check_include "$file" "$header"
		check_slowfs "$file" "$header"
	done < <(sources | xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"')
}

sources() {
	find internal cmd -name '*.[ch]' | LC_ALL=C sort
}

compiles() { # FILE…
	cc -std=gnu11 -D_GNU_SOURCE -DFUSE_USE_VERSION=314 -Iinternal -I/usr/include/fuse3 \
		-Wall -Wextra -Werror -fsyntax-only "$@"
}

# One compiler for all of them; only if it fails, one for each, which names the header.
check_headers() {
	local header module units unit
	units=$(mktemp -d) || exit 2
	for header in internal/*/*/*.h; do
		module=${header%/*}
		case $header in
		"$module/${module##*/}.h" | internal/base/base/[!_]*) ;;
		*) continue ;;
		esac
		printf '#include "%s"\n' "${header#internal/}" >"$units/${header//\//+}.c"
	done
	compiles "$units"/*.c 2>/dev/null || for unit in "$units"/*.c; do
		header=${unit##*/}
		header=${header//+//}
		compiles "$unit" || fault "${header%.c} does not compile alone"
	done
	rm -rf "$units"
}

# Looks at the objects of the release build, if it was made. The library names a fuzz target's entry
# point; accept replaces the C library's function, and so do the calls of a test's own storage.
check_symbols() {
	local object name source main
	[ -d build/obj ] || return 0
	while read -r object name; do
		source=${object#build/obj/}
		source=${source%.o}.c
		[ -e "$source" ] || continue # left by a file that is gone
		main=${source#internal/}
		main=${main%.c}
		case $source:$name in
		internal/fabric/endpoint/portguard_in.c:accept) ;;
		internal/fabric/endpoint/portguard_in.c:listen) ;;
		internal/fabric/endpoint/portguard_out.c:connect) ;;
		internal/fabric/endpoint/portguard_out.c:send) ;;
		internal/fabric/endpoint/portguard_out.c:recv) ;;
		# Tests of requests define libfuse's functions that take their replies.
		internal/mount/fuse/*_test.c:fuse_re[qp]*) ;;
		internal/storage/origin/unanswered_test.c:statx) ;;
		internal/storage/origin/end_test.c:statx) ;;
		internal/job/rendezvous/resolve_test.c:getaddrinfo) ;;
		internal/storage/origin/end_test.c:getdents64) ;;
		# main of a test in the program of all of them (Makefile).
		internal/*_test.c:"${main//\//_}") ;;
		*:accept | *:listen | *:connect | *:send | *:recv | *:fuse_re[qp]* | *:statx)
			fault "$source has $name of its own"
			;;
		*) fault "$source has the global symbol $name; make it static or cop_*" ;;
		esac
	done < <(find build/obj/internal build/obj/cmd -name '*.o' -print0 2>/dev/null |
			xargs -0 -r nm -A -g --defined-only 2>/dev/null |
		sed -n 's/^\([^:]*\):[^ ]* [^ ] /\1 /p' |
			grep -vE ' (cop_.*|main|fi_.*_ini|LLVMFuzzer.*|_.*)$' | LC_ALL=C sort)
}

read_layers
check_order
check_includes
check_headers
check_symbols
[ "$faults" -eq 0 ]
