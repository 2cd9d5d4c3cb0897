#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests and counts them. The last line is always `N passed, N failed, N skipped`.
#
#   scripts/check.sh                              everything that `make check` promises
#   scripts/check.sh --build DIR --unit-only      unit tests of one build
#   scripts/check.sh --build DIR --system-only [NAME…]   system tests (t0100, t02*) with one build
#
# COP_LANES tests run at a time, the longest first (default: two per processor, at most 8, since
# most of a test is waiting). Those with an `# alone:` line come last, one after another.
#
# Everything: builds release, shared, asan and tsan; lint; unit tests in release, asan and (those
# with threads) tsan; all system tests with the release build, and with the other builds those whose
# `# modes:` line says so; replay of testdata/fuzz. A build is made while the tests of the builds
# before it run.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2
passed=0
failed=0
skipped=0
build=
what=all
names=()
processors=$(nproc)
lanes=${COP_LANES:-$((processors < 4 ? 2 * processors : 8))}
started=0
# libinfinipath, which comes with Debian's libfabric, would leave a *.btr file in the current
# directory when a test aborts.
export IPATH_NO_BACKTRACE=1
declare -A running=() # PID -> MODE NAME BEGIN OUTPUT TURN
declare -A turns=()   # the `# turn:` lines of those that run
declare -A made=()    # build -> exit status of make
to_make=()            # builds that wait for the one before them
building=0
alone=() # BUILD FILE, two words each
out=$(mktemp -d "${TMPDIR:-/tmp}/copper-check.XXXXXX") || exit 1
trap 'rm -rf "$out"' EXIT

usage() {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--build)
		[ $# -ge 2 ] || usage
		build=$2
		shift
		;;
	--unit-only) what=unit ;;
	--system-only) what=system ;;
	-h | --help) usage ;;
	-*) usage ;;
	*) names+=("$1") ;;
	esac
	shift
done

mode_of() { # BUILD
	case ${1##*/} in
	asan | tsan | shared | debug | cov) echo "${1##*/}" ;;
	*) echo release ;;
	esac
}

now_ms() {
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

# Prints how many seconds of processor time `times` has printed, for a test and what it waited for.
cpu_of() { # FILE
	awk '{ for (i = 1; i <= NF; i++) { split($i, t, "m"); sum += 60 * t[1] + t[2] } } END { printf "%.1f", sum }' "$1" 2>/dev/null
}

result() { # STATUS MODE NAME MS OUTPUT
	local word=ok reason=
	case $1 in
	0) passed=$((passed + 1)) ;;
	77)
		skipped=$((skipped + 1))
		word=skip
		reason=" $(sed -n 's/.*# SKIP \(.*\)/(\1)/p' "$5" | head -n 1)"
		;;
	*)
		failed=$((failed + 1))
		word=FAIL
		;;
	esac
	printf '%-4s %-7s %-40s %5d.%d s %6s s of processor%s\n' "$word" "$2" "$3" $(($4 / 1000)) \
		$(($4 / 100 % 10)) "$(cpu_of "$5.cpu")" "$reason"
	if [ "$word" = FAIL ]; then
		echo "---- output of $3 ($2), exit $1"
		cat "$5"
		echo "----"
	fi
}

# Counts only tests that run beside others.
start() { # MODE NAME TURN COMMAND…
	local mode=$1 name=$2 turn=$3 output status
	shift 3
	started=$((started + 1))
	output=$out/$started
	{
		"$@"
		status=$?
		times >"$output.cpu"
		exit "$status"
	} >"$output" 2>&1 </dev/null &
	running[$!]="$mode|$name|$(now_ms)|$output|$turn"
	[ -z "$turn" ] || turns[$turn]=taken
}

# Starts a test as soon as a lane is free. A build takes none: it uses the time in which tests wait.
launch() { # MODE NAME COMMAND…
	local mode=$1 name=$2
	shift 2
	free_lane
	start "$mode" "$name" '' "$@"
}

free_lane() {
	while [ $((${#running[@]} - building)) -ge "$lanes" ]; do
		collect
	done
}

# Waits for one test or build to end.
collect() {
	local pid status mode name begin output turn
	wait -n -p pid "${!running[@]}"
	status=$?
	IFS='|' read -r mode name begin output turn <<<"${running[$pid]}"
	unset "running[$pid]"
	[ -z "$turn" ] || unset "turns[$turn]"
	result "$status" "$mode" "$name" $(($(now_ms) - begin)) "$output"
	rm -f "$output" "$output.cpu"
	[ "$mode" != build ] || {
		made[$name]=$status
		building=0
		make_next
	}
	return "$status"
}

collect_all() {
	while [ "${#running[@]}" -gt 0 ]; do
		collect
	done
}

# Builds are made in the order in which they were requested, one at a time.
make_next() {
	local name arguments
	[ "$building" -eq 0 ] && [ "${#to_make[@]}" -gt 0 ] || return 0
	read -r name arguments <<<"${to_make[0]}"
	to_make=("${to_make[@]:1}")
	building=1
	# The arguments are words.
	# shellcheck disable=SC2086
	start build "$name" '' make -j2 --no-print-directory WERROR=-Werror $arguments
}

make_all() { # NAME ARGUMENT…
	to_make+=("$*")
	make_next
}

# Waits for a build; returns its exit status.
is_made() { # NAME
	while [ -z "${made[$1]:-}" ]; do
		collect
	done
	return "${made[$1]}"
}

# The thread sanitizer of this compiler wants its shadow memory where newer kernels put random
# mappings.
wrapped() { # MODE COMMAND…
	local mode=$1
	shift
	case $mode in
	tsan) setarch -R "$@" ;;
	*) "$@" ;;
	esac
}

unit_one() { # MODE PROGRAM
	export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
	export LSAN_OPTIONS="suppressions=$root/scripts/lsan.supp:print_suppressions=0"
	export TSAN_OPTIONS="suppressions=$root/scripts/tsan.supp:second_deadlock_stack=1"
	wrapped "$1" timeout -k 5 600 "$2"
}

# What concerns the thread sanitizer: threads, of ours or of the libraries, and signal handlers. It
# links only what it needs.
has_threads() { # PROGRAM
	nm -D --undefined-only "$1" 2>/dev/null |
		grep -qE ' (pthread_create|sigaction|signal|fi_[a-z]+|fuse_session_[a-z]+)(@|$)' ||
		[ ! -x "$1" ]
}

unit_tests() { # BUILD
	local mode program
	mode=$(mode_of "$1")
	# The list comes from the sources: a program left over in build/ is not a test of this tree.
	for program in internal/*/*/*_test.c; do
		program=${program#internal/}
		[ "$mode" != tsan ] || has_threads "$1/test/${program%.c}" || continue
		launch "$mode" "unit ${program%.c}" unit_one "$mode" "$1/test/${program%.c}"
	done
}

wanted_name() { # FILE
	local name pattern
	[ "${#names[@]}" -gt 0 ] || return 0
	name=$(basename "$1" .sh)
	for pattern in "${names[@]}"; do
		# Patterns are meant to match.
		# shellcheck disable=SC2053
		[[ $name == $pattern || $name == $pattern-* ]] && return 0
	done
	return 1
}

has_mode() { # FILE MODE
	local modes
	modes=$(sed -n 's/^# modes: *//p' "$1" | head -n 1)
	case " ${modes:-release} " in
	*" $2 "*) return 0 ;;
	esac
	return 1
}

# LIMIT TURN FILE of each system test, those with the longest limits first.
by_length() {
	awk 'FNR == 1 { turn[FILENAME] = "-"; limit[FILENAME] = 120 } /^# limit:/ { limit[FILENAME] = $3 } /^# turn:/ { turn[FILENAME] = $3 }
		END { for (file in limit) print limit[file], turn[file], file }' \
		scripts/t/t[0-9]*.sh | LC_ALL=C sort -k 1,1nr -k 3
}

start_system() { # BUILD TURN FILE
	start "$(mode_of "$1")" "$(basename "$3" .sh)" "${2#-}" \
		env BUILD="$root/${1#"$root"/}" bash "$3"
}

# Finds the first test whose turn is free, so that none takes a lane while it waits for its turn.
next_system() { # BUILD; takes it out of `waiting`
	local i turn file
	for i in "${!waiting[@]}"; do
		read -r _ turn file <<<"${waiting[i]}"
		[ "$turn" = - ] || [ -z "${turns[$turn]:-}" ] || continue
		unset "waiting[i]"
		start_system "$1" "$turn" "$file"
		return 0
	done
	collect
}

# If names are given, or one build is asked for, the test runs whatever its modes are.
system_tests() { # BUILD [all]
	local mode file line waiting=()
	mode=$(mode_of "$1")
	while read -r line; do
		file=${line##* }
		wanted_name "$file" || continue
		[ "${2:-}" = all ] || has_mode "$file" "$mode" || continue
		if grep -q '^# alone:' "$file"; then
			alone+=("$1" "$file")
		else
			waiting+=("$line")
		fi
	done < <(by_length)
	while [ "${#waiting[@]}" -gt 0 ]; do
		free_lane
		next_system "$1"
	done
}

alone_tests() {
	local i
	for ((i = 0; i < ${#alone[@]}; i += 2)); do
		collect_all
		start_system "${alone[i]}" - "${alone[i + 1]}"
	done
	collect_all
}

can_fuzz() {
	command -v clang >/dev/null || return 1
	echo 'int LLVMFuzzerTestOneInput(const char *p, long n); int LLVMFuzzerTestOneInput(const char *p, long n) { return !p && n; }' |
		clang -fsanitize=fuzzer -x c - -o "$out/can-fuzz" 2>/dev/null
}

# Replays every stored input, and a fixed number of new ones from a fixed seed: the same run each
# time.
fuzz_one() { # FUZZER CORPUS…
	local fuzzer=$1 corpus
	shift
	corpus=$(mktemp -d "$out/corpus.XXXXXX") || return 1
	(cd "$corpus" && "$fuzzer" -runs=0 -rss_limit_mb=2048 . "$@" &&
		"$fuzzer" -seed=1 -runs=5000 -max_total_time=10 -rss_limit_mb=2048 . "$@")
}

fuzz_tests() {
	local source fuzzer module corpus
	ls internal/*/*/*_fuzz.c >/dev/null 2>&1 || return 0
	if ! can_fuzz; then
		echo "1..0 # SKIP no clang with libFuzzer" >"$out/output"
		result 77 fuzz replay 0 "$out/output"
		return
	fi
	is_made fuzz || return
	for source in internal/*/*/*_fuzz.c; do
		fuzzer=${source#internal/}
		module=${fuzzer%/*}
		module=${module#*/}
		corpus=()
		[ ! -d "testdata/fuzz/$module" ] || corpus=("$root/testdata/fuzz/$module")
		launch fuzz "${fuzzer%.c}" fuzz_one "$root/build/fuzz/fuzz/${fuzzer%.c}" \
			"${corpus[@]}"
	done
}

everything() {
	local mode
	make_all release all old tests bench-tools
	is_made release
	# Only the linking differs, so it shares the objects of the release build.
	make_all shared FABRIC=shared OBJECTS=build/obj all
	for mode in asan tsan; do
		make_all "$mode" MODE="$mode" all tests
	done
	! can_fuzz || make_all fuzz MODE=fuzz fuzz
	launch lint lint scripts/lint.sh
	unit_tests build
	system_tests build
	! is_made shared || system_tests build/shared
	for mode in asan tsan; do
		is_made "$mode" || continue
		unit_tests "build/$mode"
		system_tests "build/$mode"
	done
	fuzz_tests
}

case $what in
all) everything ;;
unit) unit_tests "${build:-build}" ;;
system) system_tests "${build:-build}" all ;;
esac
collect_all
alone_tests
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
