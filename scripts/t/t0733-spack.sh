#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The recipe of Spack: Spack 1.x can import it, it requires what vendor/needed.c requires, and make
# accepts its arguments.
# covers: base
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 14

recipe=$cop_root/scripts/packaging/spack/package.py
for how in '~static' '+static'; do
	"$PYTHON" "$cop_t/spack.py" "$recipe" "$T/opt" "$how" >"$T/$how" 2>"$T/err"
	is "with $how it can be imported" "$? $(cat "$T/err")" '0 '
done
needs() { # NAME: the versions that the recipe takes
	sed -n "s/^depends_on\t$1@\([0-9.]*\):\$/\1/p" "$T/~static"
}
least() { # LIBRARY: what needed.c takes
	sed -n "s/^#error \"$1 is older than \([0-9.]*\).*/\1/p" "$cop_root/vendor/needed.c"
}
is 'libfuse as old as will do' "$(needs libfuse)" "$(least libfuse)"
is 'libfabric, too' "$(needs libfabric)" "$(least libfabric)"
is 'xxHash is asked for with archives, too' "$(needs xxhash).0" "$(least xxHash)"
is 'a provider that is asked for is in libfabric' \
	"$(grep -c "$(printf '^depends_on\tlibfabric fabrics=cxi\tfabrics=cxi')" "$T/~static")" 1
is 'a static build does not offer cxi' \
	"$(grep -c "$(printf '^conflicts\tfabrics=cxi\t+static')" "$T/~static")" 1
words() { # LINE HOW
	mapfile -t words < <(sed -n "s/^$1\t//p" "$T/$2" | tr '\t' '\n')
}
make_it() { # prints what make would do
	(cd "$cop_root" && env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES make -n -B V=1 "$@" 2>&1)
}
words build '~static'
make_it "${words[@]}" >"$T/make"
is 'make takes its words' "$?" 0
matches 'the program is linked with shared libraries' \
	"$(grep -e '-o build/shared/copper ' "$T/make")" ' -lfuse3 -lfabric '
matches "libfuse's headers are Spack's" \
	"$(grep 'internal/mount/fuse/fuse\.c' "$T/make" | tail -n 1)" "-I$T/opt/libfuse/include/fuse3 "
words build '+static'
make_it "${words[@]}" >"$T/make"
matches 'a build with archives loads nothing' \
	"$(grep -e '-o build/copper ' "$T/make")" ' -static .*--wrap=dlopen.* -lfabric '
words install '~static'
make_it "${words[@]}" >"$T/make"
matches 'it is installed where Spack wants it' \
	"$(cat "$T/make")" "PREFIX=\"$T/opt/copper\" .*install\.sh install build/shared"
matches 'the build is tested without the packages of the system' \
	"$(grep '^check' "$T/~static")" 'unit$'
is 'a shell that loads it finds the program' "$(grep '^environment' "$T/~static")" \
	"$(printf 'environment\tCOPPER_ROOT\t%s' "$T/opt/copper")"
