#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Marks in C and C++: what each compiler makes of the header, and what stands in the files, however
# the program ends.
# covers: mark
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=marks.sh
. "$(dirname "$0")/marks.sh"

# As it is installed: one file.
"$cop_root/scripts/packaging/header.sh" "$cop_root/internal/trace/mark/include/copper/mark.h" \
	>"$T/one.h" || bail 'no header'
install -D -m 644 "$T/one.h" "$T/include/copper/mark.h"
export I=$T/include t=$cop_t
command -v g++ >/dev/null || skip_all 'no g++; scripts/install-deps.sh all installs it'
compilers=()
for cc in gcc clang; do
	! command -v "$cc" >/dev/null || compilers+=("$cc")
done
plan $((2 * ${#compilers[@]} + 48))

# ---- compiling

strict=(-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion -Werror)
for cc in "${compilers[@]}"; do
	cxx=${cc/gcc/g}
	[ "$cxx" != clang ] || cxx=clang
	said=
	for std in c99 gnu99 c11 gnu17; do
		said+=$("$cc" "-std=$std" -O2 "${strict[@]}" -Wstrict-prototypes \
				-Wmissing-prototypes -fsyntax-only -include copper/mark.h \
				-I "$I" -x c - \
			<<<'int f(void); int f(void) { COPPER_CRITICAL_PATH(); COPPER_MARK_COUNTER("c", 1); return 0; }' 2>&1)
	done
	is "$cc takes it without a warning, from C99 on" "$said" ''
	said=
	for std in c++11 gnu++14 c++20; do
		said+=$("${cxx}++" "-std=$std" -O2 "${strict[@]}" -fno-exceptions -fsyntax-only \
				-I "$I" -x c++ - \
			<<<'#include <copper/mark.h>
			namespace n { template <class T> struct s { T f(T t) const { COPPER_CRITICAL_PATH("x"); return t; } }; }
			int f(); int f() { COPPER_CRITICAL_PATH(); COPPER_MARK_BEGIN("b"); return n::s<int>().f(1); }' 2>&1)
	done
	is "${cxx}++ from C++11 on, also without exceptions" "$said" ''
done
matches 'it says what strict C99 needs' \
	"$(gcc -std=c99 -fsyntax-only -I "$I" -x c - <<<'#include <stdio.h>
#include <copper/mark.h>' 2>&1)" 'include it first, or compile with -std=gnu99'

ok 'a C program' gcc -O2 -I "$I" -o "$T/mark" "$cop_t/mark.c" -pthread -ldl
ok 'a C++ program compiles from the same source' g++ -O2 -I "$I" -o "$T/mark++" -x c++ "$cop_t/mark.c" -pthread -ldl
export mark=$T/mark

traced() { # DIR
	find "$1" -name '*.pfw' 2>/dev/null | wc -l
}
count() {
	"$PYTHON" "$cop_t/marks.py" count "$T/log" 2>&1
}
nest() {
	"$PYTHON" "$cop_t/marks.py" nest "$T/log" 2>&1
}

# ---- what is written

odd=$'q"b\\n\nt\tu\u00e4z?\x01'
for program in mark mark++; do
	traces -- "$T/$program" basics
	is "$program: all events are there" "$? $(count)" \
		"0 1 files flow:s 1 infinite:C 1 inner:B 2 inner:E 2 load:b 1 load:e 1 load:n 1 main:B 1 main:E 1 $odd:B 1 $odd:E 1 residual:C 1 step:B 3 step:E 3"
	is "$program: they nest" "$(nest)" ''
done
is 'async events and flows have ids' \
	"$("$PYTHON" "$cop_t/marks.py" list "$T/log" | grep -e ' [bnes] [^ ]* [0-9]*$' |
		sed "s|$cop_t/||")" 'load mark.c b files 7
load mark.c n files 7
load mark.c e files 7
flow odd "cat"\ s - 18446744073709551615'
matches 'the name is that of PerfFlowAspect' \
	"$(basename "$T/log"/*)" "^perfflow\.array\.$(hostname)\.[0-9]+\.pfw\$"
now=$(date +%s)
is 'times are microseconds since 1970, with fractions' \
	"$(sed -n "s/.*\"ts\":\(${now:0:7}\)[0-9]*\.[0-9][0-9][0-9],.*/\1/p" "$T/log"/* |
		sort -u)" "${now:0:7}"
cat >"$T/names.cc" <<'CC'
#include <copper/mark.h>
namespace a { template <class T> struct s { s() { COPPER_CRITICAL_PATH(); } T operator()(T t) { COPPER_CRITICAL_PATH(); return t; } static const char *f(int) { COPPER_CRITICAL_PATH(); return ""; } }; }
struct left { ~left() { COPPER_MARK_COUNTER("left", 1); } };
static void thrower() { COPPER_CRITICAL_PATH(); throw left(); }
int main() { a::s<int> s; s(1); s.f(2); try { thrower(); } catch (left &) { } }
CC
g++ -O2 -I "$I" -o "$T/names" "$T/names.cc" -pthread
traces -- "$T/names"
is 'functions of C++ have their whole name, and an exception ends them' \
	"$(nest)$("$PYTHON" "$cop_t/marks.py" list "$T/log" | sed -n 's/ [^ ]* E - -$//p' |
		paste -sd ' ')" \
	'a::s<T>::s a::s<T>::operator() a::s<T>::f thrower'

traces log-event=Compact -- "$mark" basics
is 'compact: one event for a scope' \
	"$(count | grep -o '\(step\|inner\|main\):.[ 0-9]*' | paste -sd ' ' | tr -s ' ')" \
	'inner:X 2 main:B 1 main:E 1 step:X 3'
traces log-format=Object:log-event=compact:name=part:log-filename-include=name,instance-path,hostname,pid -- env SLURM_JOB_ID=123456 SLURM_STEP_ID=1 "$mark" basics
matches 'object, and all that the name can include, in the words of PerfFlowAspect' \
	"$(basename "$T/log"/*)" \
	"^perfflow\.object\.part\.\{$(printf 123456.1 | sha1sum |
		cut -c -8)\}\.$(hostname)\.[0-9]+\.pfw\$"
is 'the document is an object' \
	"$("$PYTHON" -c 'import json, sys; print(sorted(json.load(open(sys.argv[1]))))' \
		"$T/log"/*)" "['displayTimeUnit', 'otherData', 'traceEvents']"
traces log-filename-include=instance-path -- env PERFFLOW_INSTANCE_PATH=a.b FLUX_JOB_ID=77 \
	"$mark" basics
is 'an instance below another' "$(basename "$T/log"/*)" 'perfflow.array.{a.b.77}.pfw'
traces log-filename-include=name:name=../../x -- "$mark" basics
is 'no name leads out of the directory' "$(basename "$T/log"/*)" 'perfflow.array...-..-x.pfw'
traces cpu-mem-usage=True -- "$mark" basics
is 'processor and memory' "$(count | grep -o ' step:C [0-9]*') $("$PYTHON" -c '
import json, sys
e = [e["args"] for e in json.load(open(sys.argv[1])) if e["ph"] == "C" and e["name"] == "step"]
print(sum(a["memory_usage"] > 500 for a in e), all(a["cpu_usage"] >= 0 for a in e))' "$T/log"/*)" \
	' step:C 6 3 True'
traces log-enable=False -- "$mark" basics
is 'off: no file, and the program is told' "$? $(traced "$T/log") $(cat "$T/err")" '3 0 '
traces log-evnt=Compact:log-event=Short:x:log-filename-include=pid,day -- "$mark" basics
is 'what is wrong in the options is told, and the rest holds' \
	"$? $(sort "$T/err" | sed 's/.*OPTIONS: //') $(count | head -n 1 | cut -d ' ' -f -2)" \
	'0 log-filename-include knows no day; ignored
no option is called log-evnt; ignored
not KEY=VALUE: x; ignored
not a value of log-event: Short; ignored 1 files'

# ---- threads, fork, exec, other ends

traces -- "$mark" threads 8 2000
is 'threads: every event, ended or there at exit' "$(count)" '1 files work:B 32000 work:E 32000'
is 'the events of threads nest' "$(nest)" ''
for how in exit _exit raw; do
	traces -- "$mark" fork "$how"
	is "fork, $how: a file each, nothing twice" \
		"$(count)" '2 files child:B 1 child:E 1 parent:B 1 parent:E 1 step:B 20 step:E 20'
done
traces -- "$mark" exec "$mark" late
is 'exec: both files can be read, and what is marked in the last handler is there' \
	"$(count)" '2 files step:B 3 step:E 3'
matches 'the second has a number' \
	"$(cd "$T/log" && echo *)" '^perfflow.*\.([0-9]+)-2\.pfw perfflow.*\.\1\.pfw$'
traces -- "$mark" crash 1
is 'killed: what was marked before is there' "$? $(count)" '137 1 files last:B 1 step:B 1 step:E 1'
traces -- "$mark" crash 5000
is 'killed: what many threads marked before is there' \
	"$(count)" '1 files last:B 1 step:B 5000 step:E 5000'
traces -- "$mark" closes "$T/own"
is 'a program that closes our file: its own file is whole, and ours goes on' \
	"$(cat "$T/own") $(count)" 'mine 1 files step:B 2 step:E 2'
traces -- "$mark" closes "$T/own" <&- >&- 2>&-
is 'a program without standard descriptors has its events' \
	"$(cat "$T/own") $(count)" 'mine 1 files step:B 2 step:E 2'
traces -- "$mark" signals 300000
is 'handlers that interrupt marks: none of the program is lost' \
	"$? $(count | grep -o 'step:. [0-9]*' | paste -sd ' ') $(cat "$T/err")" \
	'0 step:B 300000 step:E 300000 '
mkdir "$T/elsewhere"
(cd "$T" && PERFFLOW_OPTIONS=log-dir=relative "$mark" moves "$T/elsewhere")
is 'log-dir is where the program started' "$(traced "$T/relative") $(traced "$T/elsewhere")" '1 0'

# ---- several sources, and libraries

cat >"$T/first.c" <<'C'
#include <copper/mark.h>
int second(int);
int main(void) { COPPER_CRITICAL_PATH(); return second(0); }
C
cat >"$T/second.cc" <<'CC'
#include <copper/mark.h>
extern "C" int second(int n) { COPPER_CRITICAL_PATH(); return n; }
CC
gcc -O2 -I "$I" -c -o "$T/first.o" "$T/first.c" && g++ -O2 -I "$I" -o "$T/both" "$T/second.cc" \
	"$T/first.o" -pthread
traces -- "$T/both"
is 'a program of C and C++ has one file' \
	"$? $(count) $(nest)" '0 1 files main:B 1 main:E 1 second:B 1 second:E 1 '
cat >"$T/plugin.c" <<'C'
#include <copper/mark.h>
void plugin(void);
static void *thread(void *arg) { COPPER_CRITICAL_PATH("in its thread"); return arg; }
void plugin(void)
{
	pthread_t t;
	COPPER_CRITICAL_PATH();
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
}
C
gcc -O2 -fPIC -shared -I "$I" -o "$T/plugin.so" "$T/plugin.c" -pthread
gcc -O2 -I "$I" -o "$T/exports" "$cop_t/mark.c" -rdynamic -pthread -ldl
all='in its thread:B 1 in its thread:E 1 plugin:B 1 plugin:E 1 step:B 2 step:E 2'
traces -- "$T/exports" dlopen "$T/plugin.so"
is 'a library that is opened and closed writes to the file of its program' \
	"$? $(count) $(nest)" "0 1 files $all "
traces -- "$mark" dlopen "$T/plugin.so"
is 'if the program does not export its symbols, to one of its own' \
	"$? $(count) $(nest)" "0 2 files $all "
cat >"$T/user.c" <<'C'
#include <copper/mark.h>
void plugin(void);
int main(void) { COPPER_CRITICAL_PATH("step"); plugin(); { COPPER_CRITICAL_PATH("step"); } return 0; }
C
gcc -O2 -fvisibility=hidden -I "$I" -o "$T/linked" "$T/user.c" "$T/plugin.so" \
	-Wl,-rpath,"$T" -pthread
traces -- "$T/linked"
is 'a library that it is linked with, too' "$? $(count) $(nest)" "0 1 files $all "

# ---- no room

traces -- "$mark" limit 20000 3000
is 'a limit of file sizes does not end the program' \
	"$? $(count | cut -d ' ' -f -2) $(wc -l <"$T/err")" '0 1 files 2'
matches 'the program says once how many events are missing' "$(paste -sd ' ' "$T/err")" \
	'^copper-mark: cannot write .*: File too large; the program goes on, events beyond.* copper-mark: [0-9]+ events are missing in '
: >"$T/file"
PERFFLOW_OPTIONS=log-dir=$T/file/below "$mark" basics 2>"$T/err"
is 'a program that cannot make its directory goes on, without marks' \
	"$? $(sed 's/log.*: /: /' "$T/err" |
		grep -c 'cannot write .*Not a directory; the program goes on, without marks')" '3 1'
if [ "$(id -u)" -eq 0 ]; then
	full() { # COMMAND…: with a small disk at $T/small
		mkdir -p "$T/small"
		"${cop_apart[@]}" bash -c 'mount -t tmpfs -o size=64k,nr_inodes=16 small "$1" && head -c 16k /dev/zero >"$1/filler" && shift &&
			PERFFLOW_OPTIONS=log-dir=$1 && export PERFFLOW_OPTIONS && shift && "$@"; s=$?; rm -rf "$T/log"; mkdir "$T/log"; cp "$T"/small/*.pfw "$T/log"; exit "$s"' \
			full "$T/small" "$T/small" "$@" 2>"$T/err"
	}
	export T
	full "$mark" crash 1000
	matches 'a full disk: the file is JSON, and holds what there was room for' \
		"$? $(count)" '^137 1 files step:B [1-9][0-9]{2} step:E [1-9][0-9]{2}$'
	full "$mark" fills "$T/small/filler"
	is 'room again: the rest follows' \
		"$? $(count | grep -c 'events left out:C 1') $(wc -l <"$T/err")" '0 1 1'
	is 'with how many are missing' "$("$PYTHON" -c '
import glob, json, sys
e = json.load(open(glob.glob(sys.argv[1] + "/*")[0]))
print(sum(x["ph"] in "BE" for x in e) + sum(x["args"]["events"] for x in e if x["ph"] == "C"))' \
			"$T/log")" 2002
else
	for ((i = 0; i < 3; i++)); do
		pass 'a full disk # SKIP not root'
	done
fi

# ---- many, and a job

rm -rf "$T/log"
seq 500 | PERFFLOW_OPTIONS=log-dir=$T/log xargs -P 8 -n 1 "$mark" basics >/dev/null
is '500 programs in one directory' \
	"$(count | grep -o -e '^[0-9]* files' -e ' step:. [0-9]*' | paste -sd ' ')" \
	'500 files  step:B 1500  step:E 1500'
rm -rf "$T/log"
traces -- "$mark" many 2000
is '2,000 processes in one directory' \
	"$? $(count | tr -s ' ')" '0 2000 files step:B 2000 step:E 2000'
mkdir "$T/job"
(cd "$T" && COPPER_JOB_DIR=$T/job "$mark" basics)
is "in a job's directory there is a folder for traces" \
	"$(traced "$T/job/trace") $(stat -c %a "$T/job/trace")" '1 700'
COPPER_JOB_DIR=$T/job traces -- "$mark" basics
is 'log-dir comes first' "$(traced "$T/job/trace") $(traced "$T/log")" '1 1'

# ---- MPI

# MPICH's own headers need not be here: these numbers are those of its ABI.
if command -v mpiexec.hydra >/dev/null && gcc -x c - -o "$T/found" -l:libmpich.so.12 \
	<<<'int main(void) { return 0; }' 2>/dev/null; then
	cat >"$T/mpi.c" <<'C'
#include <copper/mark.h>
int MPI_Init(int *, char ***), MPI_Barrier(int), MPI_Finalize(void);
int main(int argc, char **argv) { COPPER_CRITICAL_PATH(); MPI_Init(&argc, &argv); { COPPER_CRITICAL_PATH("barrier"); MPI_Barrier(0x44000000); } return MPI_Finalize(); }
C
	ok 'a program of MPI' gcc -O2 -I "$I" -o "$T/mpi" "$T/mpi.c" -l:libmpich.so.12 -pthread
	traces -- mpiexec.hydra -launcher fork -n 4 "$T/mpi"
	is 'each rank has its file' \
		"$(count)$(nest)" '4 files barrier:B 4 barrier:E 4 main:B 4 main:E 4'
else
	pass 'a program of MPI # SKIP no mpich'
	pass 'MPI # SKIP no mpich'
fi
