#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make on a machine without a compiler or without libraries says which command installs them, and
# it takes the libraries that the demo unpacked.
# modes: release
# covers: base
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 9

[ "$(id -u)" -eq 0 ] || skip_all 'only root can hide headers'
tree=$T/tree
mkdir -p "$tree/scripts"
cp -r "$cop_root"/{Makefile,cmd,internal,vendor} "$tree"
cp -r "$cop_root/scripts/packaging" "$tree/scripts"
unset CC CPPFLAGS CFLAGS LDFLAGS MAKEFLAGS MAKELEVEL

# Runs make where a part of the system does not exist: prepare is a command that hides it.
make_without() { # PREPARE WORD…
	env -u MFLAGS "${cop_apart[@]}" bash -c "$1"' && exec make -C "$@"' - "$tree" "${@:2}" \
		>"$T/out" 2>"$T/err"
}
headers='mount -t tmpfs tmpfs /usr/include'
libs=$(readlink -f "$(dirname "$(cc -print-file-name=libfuse3.a)")")
# Covers directories of the system, and removes from them what the libraries' packages brought.
own='
	cover() {
		mkdir -p "$2/upper" "$2/work" && mount -t overlay \
			-o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$1"
	}
	mount -t tmpfs tmpfs "$T/tmp" && cover /usr/include "$T/tmp/include" &&
		cover "$libs" "$T/tmp/libs" && (
		cd /usr/include &&
			rm -rf fuse3 rdma uuid {lz4,sodium,sqlite3,xxh}* {zconf,zlib}.h &&
			cd "$libs" &&
			rm -f lib{fuse3,fabric,lz4,xxhash,sodium,z,sqlite3,uuid}.{a,so})'
export T libs
mkdir "$T/tmp"

make_without true CC=no-such-compiler
is 'make without a compiler fails' $? 2
is 'with the way out, and without other complaints' "$(cat "$T/err")" \
	"make: there is no C compiler called no-such-compiler: on Debian and Ubuntu scripts/install-deps.sh build installs what is missing (root, or sudo); elsewhere install gcc and the libraries in vendor/README.md
make: *** [Makefile:$(grep -n 'CC) --version >' "$tree/Makefile" | cut -d : -f 1): build/needed] Error 1"
make_without "$headers"
is 'make without headers fails' $? 2
is 'it names all of them at once' "$(grep -c '#error ".* not there' "$T/err")" 8
matches 'and the command that installs them' "$(tail -n 2 "$T/err" | head -n 1)" \
	'^make: on Debian and Ubuntu scripts/install-deps\.sh build installs what is missing .*; elsewhere install what is named above$'
make_without "$own" build/needed
is 'make without libraries fails' $? 2
is 'it names all seven' "$(grep -c '#error ".* not there' "$T/err")" 7

mkdir -p "$tree/build/deps"/{include,lib}
cp -r /usr/include/{fuse3,rdma,uuid,{lz4,sodium,sqlite3,xxh}*,zlib.h} "$tree/build/deps/include"
cp "$(echo '#include <zconf.h>' | cc -E - | sed -n 's/^# 1 "\(.*zconf\.h\)".*/\1/p' | head -n 1)" "$tree/build/deps/include"
for name in fuse3 fabric lz4 xxhash sodium z sqlite3 uuid; do
	cp "$libs/lib$name.a" "$tree/build/deps/lib"
done
ok 'make takes the libraries that the demo unpacked' make_without "$own" -j2 build/slowfs
is 'what it links needs no others' "$(objdump -p "$tree/build/slowfs" | grep -c 'NEEDED.*lib\(fuse\|xxh\)')" 0
