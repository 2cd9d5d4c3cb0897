#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks what internal/LAYERS promises: modules include only what the table allows, private headers
# stay in their module, every public header compiles alone, and every global symbol begins with
# cop_.
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
	local line module
	while IFS= read -r line; do
		case $line in
		'#'* | '') continue ;;
		*:*) ;;
		*)
			fault "internal/LAYERS: not a row: $line"
			continue
			;;
		esac
		module=${line%%:*}
		allowed[$module]=" $module ${line#*:} "
	done <internal/LAYERS
}

# Rows may only name modules above them, so there is no cycle.
check_order() {
	local line module seen=' '
	while IFS= read -r line; do
		case $line in
		'#'* | '') continue ;;
		esac
		module=${line%%:*}
		for name in ${line#*:}; do
			case $seen in
			*" $name "*) ;;
			*)
				fault "internal/LAYERS: $module names $name, which has no row above it"
				;;
			esac
		done
		seen="$seen$module "
	done <internal/LAYERS
}

# Sets module to the module of a file: internal/M/…, sim (cmd/copper-sim) or cmd. Tests may include
# the private headers of their own module. (Taking the output of a function instead would cost a
# process for each of some thousand calls.)
set_module() { # FILE
	case $1 in
	internal/*)
		module=${1#internal/}
		module=${module%%/*}
		;;
	cmd/copper-sim/*) module=sim ;;
	*) module=cmd ;;
	esac
}

check_include() { # FILE INCLUDED
	local module target header
	set_module "$1"
	header=$2
	case $header in
	*/*) target=${header%%/*} ;;
	*) return 0 ;; # a private header beside the file
	esac
	[ -d "internal/$target" ] || return 0
	case ${allowed[$module]:-} in
	'') fault "$1: module $module has no row in internal/LAYERS" ;;
	*" $target "*) ;;
	*) fault "$1 includes $header, but $module may not use $target" ;;
	esac
	case $header in
	*_priv.h) [ "$target" = "$module" ] || fault "$1 includes $header, private to $target" ;;
	*_testing.h)
		[[ $1 == *_test.c ]] || [ "$target" = "$module" ] ||
			fault "$1 includes $header, which is for tests"
		;;
	"$target/$target.h" | "$target"/*.def | base/htab.h | base/json.h | base/ip.h) ;;
	base/compat.h) ;;
	*)
		[ "$target" = "$module" ] ||
			fault "$1 includes $header, which is not the public header of $target"
		;;
	esac
}

# slowfs plays a file system and does not know Copper.
check_slowfs() { # FILE INCLUDED
	case $1:$2 in
	cmd/slowfs/*:base/base.h | cmd/slowfs/*:base/htab.h | cmd/slowfs/*:base/compat.h) ;;
	cmd/slowfs/*:dirops/dirops.h) ;;
	cmd/slowfs/*:*/*)
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

check_headers() {
	local header
	for header in internal/*/*.h; do
		case $header in
		"${header%/*}/$(basename "${header%/*}").h" | internal/base/base/*) ;;
		*) continue ;;
		esac
		printf '#include "%s"\n' "${header#internal/}" |
			cc -std=gnu11 -D_GNU_SOURCE -DFUSE_USE_VERSION=314 -Iinternal \
				-I"${header%/*}" \
				-I/usr/include/fuse3 -Wall -Wextra -Werror -fsyntax-only -x c - ||
			fault "$header does not compile alone"
	done
}

# Looks at the objects of the release build, if it was made. The library names a fuzz target's entry
# point; accept replaces the C library's function, and so do the calls of a test's own storage.
check_symbols() {
	local object name source
	[ -d build/obj ] || return 0
	while read -r object name; do
		source=${object#build/obj/}
		source=${source%.o}.c
		[ -e "$source" ] || continue # left by a file that is gone
		case $source:$name in
		internal/fabric/fabric/guard_in.c:accept | internal/fabric/fabric/guard_in.c:listen) ;;
		internal/fabric/fabric/guard_out.c:connect | internal/fabric/fabric/guard_out.c:send) ;;
		internal/fabric/fabric/guard_out.c:recv) ;;
		# Tests of requests define libfuse's functions that take their replies.
		internal/mount/fs/*_test.c:fuse_re[qp]*) ;;
		internal/storage/origin/unanswered_test.c:statx) ;;
		internal/storage/origin/end_test.c:statx | internal/storage/origin/end_test.c:getdents64) ;;
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
