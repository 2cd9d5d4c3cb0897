#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests and counts them. The last line is always `N passed, N failed, N skipped`; before it,
# each test that failed is named once more, with the points that did.
#
#   scripts/check.sh                              what `make check` promises
#   scripts/check.sh --quick [MODULE|DISTRICT]    an answer in three minutes, or of one module
#   scripts/check.sh --all [--rest]               everything; --rest: what `make check` left, and
#                                                 both together are counted
#   scripts/check.sh --build DIR --unit-only      unit tests of one build
#   scripts/check.sh --build DIR --system-only [NAME…]   system tests (t0100, t02*) with one build
#
# COP_LANES tests run at a time (default: five per processor, with a sanitizer three, at most 20 and
# one for each 400 MB of available memory, since most of a test is waiting), fewer while more than
# four processes want each processor. Those with a `# takes:` line start first, the longest before
# all others; those with an `# alone:` line come last, one after another.
#
# By default: the release build, its unit tests, and the system tests whose `# modes:` line has
# release. --quick runs the unit tests and the system tests with a `# quick:` line; of a module or
# district, its unit tests and the system tests whose `# covers:` line names it. --all adds the
# builds shared, asan and tsan with what the `# modes:` lines say of them, unit tests in asan and
# (those with threads) tsan, lint, and a replay of testdata/fuzz. A build is made while the tests of
# the builds before it run.
#
# The first three write build/check.json: what became of each test, how long it took by the clock
# (wall_s), and how much processor time it needed (processor_s).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2
build=
tier=check
rest=
part=
names=()
alone=() # BUILD FILE, two words each
json=build/check.json
# libinfinipath, which comes with Debian's libfabric, would leave a *.btr file in the current
# directory when a test aborts.
export IPATH_NO_BACKTRACE=1

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
	--unit-only) tier=unit ;;
	--system-only) tier=system ;;
	--quick) tier=quick ;;
	--all) tier=all ;;
	--rest) rest=yes ;;
	-*) usage ;;
	*) names+=("$1") ;;
	esac
	shift
done
case $tier in
system) ;;
quick)
	[ "${#names[@]}" -le 1 ] || usage
	part=${names[0]:-}
	names=()
	;;
*) [ "${#names[@]}" -eq 0 ] || usage ;;
esac
# shellcheck source=check-jobs.sh
. scripts/check-jobs.sh

mode_of() { # BUILD
	case ${1##*/} in
	asan | tsan | shared | debug | cov) echo "${1##*/}" ;;
	*) echo release ;;
	esac
}

# ---- unit tests

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

unit_one() { # MODE PROGRAM NAME
	export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1
	export LSAN_OPTIONS="suppressions=$root/scripts/lsan.supp:print_suppressions=0"
	export TSAN_OPTIONS="suppressions=$root/scripts/tsan.supp:second_deadlock_stack=1"
	wrapped "$1" timeout -k 5 600 "$2" "$3"
}

# Their names, DISTRICT/MODULE/NAME_test: those of one part, or all. The list comes from the
# sources: a program left over in build/ is not a test of this tree.
unit_names() {
	local file
	for file in internal/*/*/*_test.c; do
		[ -z "$part" ] || [[ $file =~ ^internal/($part/|[a-z0-9]+/$part/) ]] || continue
		file=${file#internal/}
		echo "${file%.c}"
	done
}

# The release build knows which tests have threads, and so does the build itself if all of its
# tests were made.
threaded_tests() { # BUILD
	if [ -d build/obj/internal ]; then
		scripts/threaded.sh build/obj
	else
		scripts/threaded.sh "$1/obj"
	fi
}

unit_tests() { # BUILD
	local mode name threaded=
	mode=$(mode_of "$1")
	[ "$mode" != tsan ] || threaded=$(threaded_tests "$1")
	while read -r name; do
		if [ "$mode" = tsan ] && [[ $'\n'$threaded$'\n' != *$'\n'"$name"$'\n'* ]]; then
			planned=$((planned - 1))
			continue
		fi
		launch "$mode" "unit $name" unit_one "$mode" "$1/test/unit" "$name"
	done < <(unit_names)
}

# ---- system tests

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

# SECONDS FILE of the system tests that the tier runs with a build of this mode, those that take
# longest first. Tests that were asked for by name run whatever their modes are.
system_list() { # MODE
	local line
	awk -v mode="$1" -v tier="$tier" -v part="$part" -v modules="$(modules_of "$part")" '
		function has(list, word) { return index(" " list " ", " " word " ") > 0 }
		function covered(list, words, i, n) {
			n = split(list, words, " ")
			for (i = 1; i <= n; i++)
				if (has(modules, words[i]))
					return 1
			return 0
		}
		FNR == 1 { takes[FILENAME] = 0; modes[FILENAME] = "release" }
		/^# [a-z]+: / { key = substr($2, 1, length($2) - 1); value = $0; sub(/^# [a-z]+: */, "", value) }
		/^# takes: / { takes[FILENAME] = value }
		/^# modes: / { modes[FILENAME] = value }
		/^# quick: / { quick[FILENAME] }
		/^# covers: / { covers[FILENAME] = covers[FILENAME] " " value }
		END {
			for (file in takes)
				if (tier == "system" || has(modes[file], mode) && (tier != "quick" ||
					(part ? covered(covers[file]) : file in quick)))
					print takes[file], file
		}' scripts/t/t[0-9]*.sh | LC_ALL=C sort -k 1,1nr -k 2 |
		while read -r line; do
			! wanted_name "${line##* }" || echo "$line"
		done
}

# The modules of a district, or the one of that name, as words.
modules_of() { # MODULE | DISTRICT | DISTRICT/MODULE
	local dir words=
	[ -n "$1" ] || return 0
	for dir in internal/"$1"/*/ internal/*/"$1"/ internal/"$1"/; do
		[[ $dir =~ ^internal/[a-z0-9]+/([a-z0-9]+)/$ && -d $dir ]] || continue
		words="$words ${BASH_REMATCH[1]} ${dir:9:-1}"
	done
	echo "$words"
}

start_system() { # BUILD FILE
	start "$(mode_of "$1")" "$(basename "$2" .sh)" env BUILD="$root/${1#"$root"/}" bash "$2"
}

system_tests() { # BUILD [long | short]: those that have a `# takes:` line, or the others
	local mode seconds file
	mode=$(mode_of "$1")
	while read -r seconds file; do
		case ${2:-} in
		long) [ "$seconds" -gt 0 ] || continue ;;
		short) [ "$seconds" -eq 0 ] || continue ;;
		esac
		! has_run "$mode" "$(basename "$file" .sh)" || continue
		if grep -q '^# alone:' "$file"; then
			alone+=("$1" "$file")
		else
			free_lane
			start_system "$1" "$file"
		fi
	done < <(system_list "$mode")
}

alone_tests() {
	local i
	for ((i = 0; i < ${#alone[@]}; i += 2)); do
		collect_all
		start_system "${alone[i]}" "${alone[i + 1]}"
	done
	collect_all
}

# ---- replay

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
	if ! can_fuzz; then
		echo "1..0 # SKIP no clang with libFuzzer" >"$out/0"
		result 77 fuzz replay 0 0
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

# ---- tiers

plan_unit() { # how many builds have unit tests
	planned=$((planned + $1 * $(unit_names | wc -l)))
}

plan_system() { # MODE…
	local mode
	for mode; do
		planned=$((planned + $(system_list "$mode" | wc -l)))
	done
}

# The unit tests are built while the first system tests run, which wait most of the time.
make_release() {
	make_all release all old bench-tools
	make_all tests tests
}

test_release() {
	is_made release || return
	system_tests build long
	! is_made tests || unit_tests build
	system_tests build short
}

run_check() {
	plan_unit 1
	plan_system release
	make_release
	test_release
}

run_quick() {
	plan_unit 1
	plan_system release
	make_all release all tests ${part:+"M=$part"}
	is_made release || return
	unit_tests build
	system_tests build
}

run_all() {
	local mode
	plan_unit 3
	plan_system release shared asan tsan
	planned=$((planned + 1 + $(find internal -name '*_fuzz.c' | wc -l)))
	make_release
	# Only the linking differs, so it shares the objects of the release build.
	make_all shared FABRIC=shared OBJECTS=build/obj all
	make_all asan MODE=asan all tests
	make_all tsan MODE=tsan all threaded
	! can_fuzz || make_all fuzz MODE=fuzz fuzz
	launch lint lint scripts/lint.sh --all
	test_release
	! is_made shared || system_tests build/shared
	# With a sanitizer a test waits less than it computes.
	lanes=$((lanes < 3 * processors ? lanes : 3 * processors))
	for mode in asan tsan; do
		is_made "$mode" || continue
		unit_tests "build/$mode"
		system_tests "build/$mode"
	done
	fuzz_tests
}

begin=$(now_ms)
version=$(scripts/packaging/version.sh "$(sed -n 's/^NUMBER := //p' Makefile)")
find_accounts
case $tier in
quick)
	[ -z "$part" ] || [ -n "$(modules_of "$part")" ] || {
		echo "check: no module or district is named $part: ls -d internal/*/*" >&2
		exit 2
	}
	run_quick
	;;
check)
	rm -f "$json"
	run_check
	;;
all)
	[ -z "$rest" ] || read_json "$json" check "$version"
	run_all
	;;
unit)
	plan_unit 1
	unit_tests "${build:-build}"
	;;
system)
	plan_system release
	system_tests "${build:-build}"
	;;
esac
collect_all
alone_tests
clear_progress
case $tier in
check | quick | all) write_json "$json" "$tier" "$version" $(($(now_ms) - begin)) ;;
esac
show_failures
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
