#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A libfabric that is too old when the program starts is named with the way out.
# covers: endpoint check
# modes: shared
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 3

small_tree "$T/src"
printf '#include <stdint.h>\nuint32_t fi_version(void);\nuint32_t fi_version(void)\n{\n\treturn 1 << 16 | 14;\n}\n' >"$T/old.c"
gcc -shared -fPIC -o "$T/old.so" "$T/old.c" || bail 'no library can be built'
alone=(mount --hosts '127.0.0.11,127.0.0.12' --rank 0 --insecure --source "$T/src" --check)
mkdir "$T/mnt"
ok 'the one of this machine will do' "$COPPER" "${alone[@]}" "$T/mnt"
env LD_PRELOAD="$T/old.so" timeout "$(patient 60)" "$COPPER" "${alone[@]}" "$T/mnt" >"$T/check" 2>&1
is 'a libfabric that is too old is refused' "$?" 1
matches 'one that is too old is named, with the way out' \
	"$(cat "$T/check")" 'libfabric 1\.14, which this program found .* LD_LIBRARY_PATH'
