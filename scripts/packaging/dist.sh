#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes archives, the same bytes from the same files: `make dist` the source, which builds without
# git and has the same version; `make bindist` what make install puts on a machine, to be unpacked
# anywhere.
#
#   scripts/packaging/dist.sh source VERSION OUTDIR
#   scripts/packaging/dist.sh binary BUILD ARCH OUTDIR     $RUNNER runs a program of another
#                                                          processor (qemu-aarch64)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

usage() {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}

pack() { # PARENT NAME OUTFILE
	tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--format=ustar -cf - "$2" | gzip -9n >"$3.part"
	mv "$3.part" "$3"
	echo "$3"
}

files() { # those of the tree, each ended by a NUL
	if [ -e .git ]; then
		git ls-files -z
	else
		find . \( -path ./build -o -path ./.version -o -path ./copper.spec \) -prune -o \( \
			-type f -o -type l \) -printf '%P\0'
	fi
}

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$([ -e .git ] && git log -1 --format=%ct 2>/dev/null ||
		stat -c %Y Makefile)}
root=$(mktemp -d "${TMPDIR:-/tmp}/copper-dist.XXXXXX")
trap 'rm -rf "$root"' EXIT
umask 022
case ${1:-}:$# in
source:3)
	name=copper-$2
	out=$3
	mkdir -p "$root/$name" "$out"
	files | tar -cf - --null --no-recursion --verbatim-files-from -T - |
		tar -C "$root/$name" -xf -
	echo "$2" >"$root/$name/.version"
	# rpmbuild -ta looks for it at the top. A dash is not allowed in its versions.
	sed "s|@VERSION@|$2|; s|@RPMVERSION@|${2//-/.}|" "$here/copper.spec.in" \
		>"$root/$name/copper.spec"
	chmod -R go=u-w "$root/$name"
	pack "$root" "$name" "$out/$name.tar.gz"
	;;
binary:4)
	build=$2
	arch=$3
	out=$4
	if ! file -b "$build/copper" | grep -q 'statically linked'; then
		echo "dist.sh: $build/copper is not the static binary; run make bindist without FABRIC and MODE" >&2
		exit 1
	fi
	# The words are a command.
	# shellcheck disable=SC2086
	version=$(${RUNNER:-} "$build/copper" --version | sed -n 's/^copper //p')
	name=copper-$version-linux-$arch
	mkdir -p "$out"
	DESTDIR=$root PREFIX=/$name "$here/install.sh" install "$build"
	pack "$root" "$name" "$out/$name.tar.gz"
	;;
*) usage ;;
esac
