#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs in C and C++ with PerfFlowAspect's annotations, unchanged: woven by Copper's plugin of
# clang, or calling what PerfFlowAspect's own plugin calls.
# covers: mark
# modes: release
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=marks.sh
. "$(dirname "$0")/marks.sh"

command -v clang++ >/dev/null || skip_all 'no clang; scripts/install-deps.sh all installs it'
version=$(clang++ -dumpversion)
config=$(command -v "llvm-config-${version%%.*}" || command -v llvm-config) &&
	[ -f "$("$config" --includedir 2>/dev/null)/llvm/Passes/PassPlugin.h" ] ||
	skip_all "no headers of LLVM ${version%%.*}, the compiler's own; Debian: llvm-${version%%.*}-dev"
plan 18

I=$cop_root/internal/trace/mark/include
# shellcheck disable=SC2046
ok 'the plugin compiles without a warning' clang++ -Wall -Wextra -Wno-unused-parameter -Werror -shared \
	-fPIC -fno-rtti $("$config" --cxxflags | sed 's/-I/-isystem /g') -o "$T/weave.so" \
	"$cop_root/internal/trace/mark/weave/copper_weave.cc"
woven=(-Wall -Wextra -Werror -I "$I" -include copper/perfflow.h -fpass-plugin="$T/weave.so")
counted() {
	"$PYTHON" "$cop_t/marks.py" count "$T/log" 2>&1
}
nested() {
	"$PYTHON" "$cop_t/marks.py" nest "$T/log" 2>&1 | grep -v "'name': 'inner'" | sed 's/.*: //'
}

# ---- C++

for how in -O0 '-O2 -g'; do
	# shellcheck disable=SC2086
	ok "C++ compiles, $how" clang++ $how "${woven[@]}" -o "$T/weave" "$cop_t/weave.cc" -pthread
	traces -- "$T/weave" calls
	is "each function has what its pointcut says, $how" "$? $(counted)" \
		'0 1 files fetch_begins:b 1 fetch_ends:e 1 flow:f 1 flow:s 2 inner:E 4 load:b 1 load:e 1 mesh::solver::operator():B 1 mesh::solver::operator():E 1 mesh::solver::step:B 1 mesh::solver::step:E 1 mesh::solver::sum<int>:B 1 mesh::solver::sum<int>:E 1 middle:B 4 outer:B 4 outer:E 4 passes_on:B 1 passes_on:E 1 sends:B 1 sends:E 1'
	traces -- "$T/weave" throws
	is "an exception ends the regions that it leaves, $how" "$? $(counted | sed 's/ inner:.*middle:B 1//')" \
		'0 1 files catches:B 2 catches:E 2 holds:B 1 holds:E 1 holds_nothing:B 2 holds_nothing:E 2 throws_itself:B 1 throws_itself:E 1'
	traces -- "$T/weave" threads
	is "so does the end of a thread, $how" "$? $(counted | grep -o 'work:. [0-9]*' | paste -sd ' ')" '0 work:B 3 work:E 3'
	traces -- "$T/weave" leaves
	is "and of the process, $how" "$? $(counted)" '3 1 files leaves:B 1 leaves:E 1'
done
matches 'scopes, ids and files are those of the annotation' "$("$PYTHON" "$cop_t/marks.py" list "$T/log" >/dev/null
	traces -- "$T/weave" calls
	"$PYTHON" "$cop_t/marks.py" list "$T/log" | sed "s|$cop_t/||" | grep -e load -e flow | paste -sd ' ')" \
	'^load weave.cc b files 123 load weave.cc e files 123 flow flow s - 100 flow flow f - 100 flow flow s - 100$'
is 'copper trace reads them' "$("$COPPER" trace table --by name --csv "$T/log" 2>/dev/null |
	sed -n 's/^outer,\([0-9]*\),.*/\1/p')" 4
matches 'an annotation that is not understood is named' \
	"$(clang++ "${woven[@]}" -c -o /dev/null "$cop_t/weave.cc" 2>&1)" \
	"^copper-weave: .*weave.cc: odd\(\) is not marked: @critical_path\(pointcut='sideways'\) is not understood$"

# ---- C

ok 'C compiles' clang -O2 "${woven[@]}" -o "$T/weave" "$cop_t/weave.c" -pthread
traces -- "$T/weave"
is 'calls, a thread and the end of the process' "$? $(counted) $("$PYTHON" "$cop_t/marks.py" nest "$T/log")" \
	'0 1 files inner:B 3 inner:E 3 leaves:B 1 leaves:E 1 work:B 1 work:E 1 '

# ---- without the plugin

gcc -O2 -w -I "$I" -include copper/perfflow.h -o "$T/weave" "$cop_t/weave.c" -pthread
traces -- "$T/weave"
is 'without the plugin, and with gcc, a program runs as it is' "$? $(find "$T/log" -type f 2>/dev/null | wc -l)" '0 0'
gcc -O2 -w -DWOVEN -c -o "$T/weave.o" "$cop_t/weave.c"
echo '#include <copper/perfflow.h>' >"$T/runtime.cc"
g++ -O2 -Wall -Wextra -Wpedantic -Werror -I "$I" -o "$T/weave" "$T/runtime.cc" "$T/weave.o" -pthread || bail 'no runtime'
traces -- "$T/weave"
is 'the calls of PerfFlowAspect'\''s own plugin have plain names' \
	"$? $("$PYTHON" "$cop_t/marks.py" list "$T/log" | paste -sd ' ')" \
	'0 mesh::solver::step w.cpp B - - load w.cpp b files 123 load w.cpp e files 123 flow flow f - 100 mesh::solver::step w.cpp E - -'
