#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program built as with the oldest libraries that will do (make old: no custom io, no loop
# settings, no expiring of names, no openat2, no close_range) does the same, and reports what it
# cannot; older libraries are named before anything is compiled.
# covers: fuse base
# modes: release
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 25

build() { # ARGUMENT…
	(cd "$cop_root" && env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES make \
			--no-print-directory "$@")
}

# ---- libraries that are too old are named

mkdir -p "$T/fuse" "$T/fabric/rdma" "$T/hash"
cat >"$T/fuse/fuse_lowlevel.h" <<'H'
#define FUSE_MAKE_VERSION(major, minor) ((major) * 10 + (minor))
#define FUSE_VERSION FUSE_MAKE_VERSION(3, 9)
H
printf '#define FI_MAJOR_VERSION 1\n#define FI_MINOR_VERSION 14\n' >"$T/fabric/rdma/fabric.h"
echo '#define XXH_VERSION_NUMBER 703' >"$T/hash/xxhash.h"
too_old() { # SENTENCE MAKE-ARGUMENT…
	local sentence=$1
	shift
	build BUILD="$T/b" "$@" "$T/b/needed" >"$T/make" 2>&1
	is "refused: $sentence" \
		"$? $(grep -c "error: .*$sentence" "$T/make") $(grep -c 'error:' "$T/make")" "2 1 ${named:-1}"
}
too_old 'libfuse is older than 3\.10' CPPFLAGS=-I"$T/fuse"
too_old 'libfabric is older than 1\.15' CPPFLAGS=-I"$T/fabric"
too_old 'xxHash is older than 0\.8' CPPFLAGS=-I"$T/hash"
# Everything that is missing is named at once; libfuse's directory is one that make names. What
# `make demo` may have unpacked in this clone is not there either.
named=$(grep '^#error .*not there' "$cop_root/vendor/needed.c" | grep -vc libfuse)
too_old 'libfabric is not there: .*libfabric-dev' CC='gcc -nostdinc' UNPACKED=
ok 'the libraries of this machine are accepted' build BUILD="$T/b" "$T/b/needed"

# ---- no function is newer than the oldest glibc

# Those of which no version is from 2.31 or before. stat and mknod were inline until 2.33; a guard
# of its header is around mallinfo2.
libc=$(gcc -print-file-name=libc.so.6)
nm -D --defined-only "$libc" "$(gcc -print-file-name=libm.so.6)" | awk '{
	split($NF, part, "@+")
	split(part[2], version, /[_.]/)
	is_new[part[1]] = is_new[part[1]] + 0
	if (version[1] != "GLIBC" || version[2] == 2 && version[3] <= 31)
		is_old[part[1]] = 1
}
END {
	for (name in is_new)
		if (!(name in is_old) &&
			name !~ /^_|^[fl]?stat(at)?(64)?$|^mknod(at)?$|^mallinfo2$/)
			print name
}' >"$T/newer"
too_new() { # FILE…: what they use of these
	nm -u "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | LC_ALL=C sort -u |
		grep -xF -f "$T/newer" | xargs
}
ok 'the check finds functions of this glibc that the oldest lacks' grep -qx close_range "$T/newer"
printf '#include <unistd.h>\nint main(void)\n{\n\treturn close_range(3, 4, 0);\n}\n' |
	gcc -D_GNU_SOURCE -x c -c -o "$T/new.o" -
is 'a program that uses one is found' "$(too_new "$T/new.o")" close_range
mapfile -t objects < <(find "$BUILD/obj" -name '*.o')
is "Copper's objects use none" "$(too_new "${objects[@]}")" ''

# ---- compilers: gcc is told to link a sanitizer statically, clang does so and has no such option

sanitizer_link() { # COMPILER
	build -n -B V=1 MODE=asan CC="$1" build/asan/slowfs | grep -e '-o build/asan/slowfs ' |
		grep -c -e '-static-libubsan'
}
printf '#!/bin/sh\necho "Debian $0 version 19"\n' | tee "$T/clang" >"$T/gcc"
chmod +x "$T/clang" "$T/gcc"
is 'gcc is told' "$(sanitizer_link "$T/gcc")" 1
is 'clang is not' "$(sanitizer_link "$T/clang")" 0

# ---- the program without the features of newer ones

build BUILD="$BUILD" old >"$T/make" 2>&1 || bail 'make old fails' "$(tail -n 5 "$T/make")"
COPPER=$BUILD/old/copper
SLOWFS=$BUILD/old/slowfs
# The features that its code lacks: the function of libfuse, or the numbers of the system calls.
newer() { # BINARY
	objdump -d --disassemble=cop_dirops_enable "$1" | grep -c 'fuse_session_custom_io'
	objdump -d --disassemble=cop_has_openat2 "$1" | grep -c '0x1b5'
	objdump -d --disassemble=cop_close_range "$1" | grep -c '0x1b4'
}
is 'a program built as with old libraries lacks the newer functions, the other has them' \
	"$(newer "$COPPER" | xargs) $(newer "$BUILD/copper" | xargs)" '0 0 0 1 1 1'
SRC=$T/src
small_tree "$SRC"
numbered_files "$SRC/many" 200 100
# shellcheck disable=SC2119
with_slowfs
mkfifo "$T/inherited"
cat "$T/inherited" >"$T/eof" &
reader=$!
exec 9>"$T/inherited"
with_tree 3 -A
exec 9>&-
wait_for 10 is_gone "$reader"
is 'a descriptor that a node was started with is closed when it is up' \
	"$(kill -0 "$reader" 2>/dev/null && echo open)" ''
is 'every node has every file' "$(for i in 0 1 2; do checksums "$W/mnt/$i"; done | LC_ALL=C sort |
		uniq -c | awk '$1 != 3')" ''
is 'many at once in one directory' "$(cat "$W/mnt/1/many/"* | wc -c)" "$(cat "$SRC/many/"* | wc -c)"
fails_with 1 'Read-only file system' touch "$W/mnt/2/new"
matches 'its log says that they wait for each other' \
	"$(cat "$JOB"/logs/*)" 'lookups in one directory wait for each other'
is 'the log does not say that the kernel was asked' "$(node_json 1 | "$PYTHON" -c '
import json, sys
print("parallel_dirops" in json.load(sys.stdin)["kernel"]["capabilities"])')" False
(cd "$W/mnt/1/dir" && exec sleep 60) &
inside=$!
echo changed >"$ORIGIN/hello"
echo new >"$ORIGIN/dir/new"
ok 'names and files are forgotten on demand' "$COPPER" cache-stats --invalidate "$W/mnt/0"
is 'the file is the new one' "$(cat "$W/mnt/2/hello")" changed
is 'the new name is there' "$(cat "$W/mnt/2/dir/new")" new
is 'the new name is in the working directory of a program' "$(cat "/proc/$inside/cwd/new")" new
kill "$inside"
is 'the storage was asked by the root alone' \
	"$(node_stat 1 origin.operations) $(node_stat 2 origin.operations)" '0 0'
ok 'the tree stops' without_tree
ok 'used files are distinguished from unused ones' \
	timeout "$(patient 60)" "$COPPER" paths "$JOB" --usage-root "$SRC"
is 'the list of possible paths has every name' \
	"$(wc -l <"$JOB/paths_dir/all_possible_existing_paths.txt")" \
	"$(find "$SRC" | wc -l)"
