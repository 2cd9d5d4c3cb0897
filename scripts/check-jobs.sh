# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by check.sh: runs tests and builds beside each other, prints one line for each, keeps a
# progress line on a terminal, and writes what became of each to a JSON file.
#
# A result is MODE|NAME|RESULT|WALL_MS|PROCESSOR_S|REASON.
# shellcheck disable=SC2034,SC2154

passed=0
failed=0
skipped=0
planned=0 # how many results will come, as far as known
started=0
results=()
processors=$(nproc)
declare -A running=() # PID -> MODE NAME BEGIN OUTPUT
declare -A made=()    # build -> exit status of make
declare -A earlier=() # MODE NAME -> result, of those that `make check` has run
to_make=()            # builds that wait for the one before them
building=0
# Less than a test with many nodes needs and more than most do.
lane_kib=400000
lanes=$(awk -v most=$((5 * processors)) -v each=$lane_kib '/^MemAvailable:/ { n = int($2 / each) }
	END { most = most < 20 ? most : 20; n = n < most ? n : most; print n < 1 ? 1 : n }' /proc/meminfo)
lanes=${COP_LANES:-$lanes}
out=$(mktemp -d "${TMPDIR:-/tmp}/copper-check.XXXXXX") || exit 1
trap 'rm -rf "$out"; forget_accounts' EXIT
trap 'interrupted' INT TERM HUP

now_ms() {
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

# ---- processor time
#
# A node is a daemon, so no shell waits for it. Where this process may make control groups that
# count (version 1), each test has one, and the time of all its processes is known; elsewhere it is
# that of the processes that the test has waited for.

accounts=
processor_time='processes that the test waited for'
find_accounts() {
	local path top=/sys/fs/cgroup/cpuacct
	path=$(awk -F : '$2 ~ /(^|,)cpuacct(,|$)/ { print $3 }' /proc/self/cgroup)
	[ -n "$path" ] && mkdir "$top${path%/}/copper-check.$$" 2>/dev/null || return 0
	accounts=$top${path%/}/copper-check.$$
	processor_time='all processes of the test'
}

open_account() { # NUMBER: for the process that calls this, and for all that it starts
	[ -n "$accounts" ] && mkdir "$accounts/$1" && echo "$BASHPID" >"$accounts/$1/cgroup.procs"
}

forget_accounts() {
	[ -z "$accounts" ] || find "$accounts" -depth -type d -exec rmdir {} + 2>/dev/null
}

# Prints seconds. `times` has two lines of minutes and seconds.
processor_s() { # NUMBER
	if [ -r "$accounts/$1/cpuacct.usage" ]; then
		awk '{ printf "%.1f", $1 / 1e9 }' "$accounts/$1/cpuacct.usage"
		rmdir "$accounts/$1" 2>/dev/null
	else
		awk '{ for (i = 1; i <= NF; i++) { split($i, t, "m"); sum += 60 * t[1] + t[2] } }
			END { printf "%.1f", sum }' "$out/$1.cpu" 2>/dev/null
	fi
}

# ---- what is shown

# One line on the terminal, which each result overwrites.
progress() {
	local line pid name
	[ -t 2 ] || return 0
	line="$passed passed, $failed failed, $skipped skipped"
	[ "$planned" -le 0 ] || line="$line, $planned left"
	for pid in "${!running[@]}"; do
		IFS='|' read -r _ name _ <<<"${running[$pid]}"
		line="$line  ${name#unit }"
	done
	printf '\r\033[K%s' "${line:0:$((${COLUMNS:-80} - 1))}" >&2
}

clear_progress() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

show_output() { # MODE NAME STATUS OUTPUT
	echo "---- output of $2 ($1), exit $3"
	cat "$4"
	echo "----"
}

# The end of a log is what is looked at first, so it says once more what failed, and how: of a
# system test the points that failed with what belongs to them, of others the last lines.
remember_failure() { # MODE NAME STATUS OUTPUT
	{
		printf 'FAIL %-7s %s, exit %s\n' "$1" "$2" "$3"
		awk '/^not ok/ { shown = 8 } shown-- > 0 { print; n++ } END { exit !n }' "$4" >"$4.short" ||
			tail -n 15 "$4" >"$4.short"
		head -n 40 "$4.short" | cut -c -300 | sed 's/^/     /'
		rm -f "$4.short"
	} >>"$out/failures"
}

show_failures() {
	[ ! -s "$out/failures" ] || cat "$out/failures"
}

result() { # STATUS MODE NAME MS NUMBER
	local word=ok reason='' seconds
	seconds=$(processor_s "$5")
	case $1 in
	0) passed=$((passed + 1)) ;;
	77)
		skipped=$((skipped + 1))
		word=skip
		reason=$(sed -n 's/.*# SKIP \(.*\)/\1/p' "$out/$5" | head -n 1)
		;;
	*)
		failed=$((failed + 1))
		word=FAIL
		;;
	esac
	planned=$((planned - 1))
	results+=("$2|$3|$word|$4|$seconds|$reason")
	clear_progress
	printf '%-4s %-7s %-40s %5d.%d s %6s s of processor%s\n' "$word" "$2" "$3" \
		$(($4 / 1000)) $(($4 / 100 % 10)) "$seconds" "${reason:+ ($reason)}"
	[ "$word" != FAIL ] || {
		show_output "$2" "$3" "$1" "$out/$5"
		remember_failure "$2" "$3" "$1" "$out/$5"
	}
	progress
}

# ---- jobs

start() { # MODE NAME COMMAND…
	local mode=$1 name=$2 status
	shift 2
	started=$((started + 1))
	{
		open_account "$started" 2>/dev/null
		"$@"
		status=$?
		times >"$out/$started.cpu"
		exit "$status"
	} >"$out/$started" 2>&1 </dev/null &
	running[$!]="$mode|$name|$(now_ms)|$started"
	progress
}

# True, and one less to come, if `make check` has a verdict on this test.
has_run() { # MODE NAME
	[ -n "${earlier[$1 $2]:-}" ] || return 1
	planned=$((planned - 1))
}

# Starts a test as soon as a lane is free. A build takes none: it uses the time in which tests wait.
launch() { # MODE NAME COMMAND…
	local mode=$1 name=$2
	shift 2
	! has_run "$mode" "$name" || return 0
	free_lane
	start "$mode" "$name" "$@"
}

# On a busy or slow machine that is later: more than four processes for each processor only take
# the time from each other, and every deadline in a test comes nearer.
free_lane() {
	local tests=$((${#running[@]} - building))
	while [ "$tests" -ge "$lanes" ] ||
		{ [ "$tests" -ge $((2 * processors)) ] && is_crowded; }; do
		collect
		tests=$((${#running[@]} - building))
	done
}

is_crowded() {
	local waiting
	read -r _ _ _ waiting _ </proc/loadavg
	[ "${waiting%%/*}" -gt $((4 * processors)) ]
}

# Waits for one test or build to end.
collect() {
	local pid status mode name begin number
	wait -n -p pid "${!running[@]}"
	status=$?
	IFS='|' read -r mode name begin number <<<"${running[$pid]}"
	unset "running[$pid]"
	result "$status" "$mode" "$name" $(($(now_ms) - begin)) "$number"
	rm -f "$out/$number" "$out/$number.cpu"
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

# Each test ends what it has started when it is asked to end.
interrupted() {
	trap '' INT TERM HUP
	local pid
	for pid in "${!running[@]}"; do
		ps -o pid= --ppid "$pid" | xargs -r kill 2>/dev/null
	done
	wait
	clear_progress
	echo "interrupted: $passed passed, $failed failed, $skipped skipped before" >&2
	exit 130
}

# ---- builds

# Builds are made in the order in which they were requested, one at a time.
make_next() {
	local name arguments
	[ "$building" -eq 0 ] && [ "${#to_make[@]}" -gt 0 ] || return 0
	read -r name arguments <<<"${to_make[0]}"
	to_make=("${to_make[@]:1}")
	building=1
	# The arguments are words.
	# shellcheck disable=SC2086
	start build "$name" make "-j$processors" --no-print-directory WERROR=-Werror $arguments
}

# What `make check` has built has its verdict.
make_all() { # NAME ARGUMENT…
	case ${earlier[build $1]:-} in
	'')
		to_make+=("$*")
		planned=$((planned + 1))
		make_next
		;;
	ok) made[$1]=0 ;;
	*) made[$1]=1 ;;
	esac
}

# Waits for a build; returns its exit status.
is_made() { # NAME
	while [ -z "${made[$1]:-}" ]; do
		collect
	done
	return "${made[$1]}"
}

# ---- the JSON file

quoted() { # TEXT: as a JSON string
	local text=${1//\\/\\\\}
	text=${text//\"/\\\"}
	printf '"%s"' "${text//[$'\001'-$'\037']/ }"
}

# One result a line, so that grep and sed can read it, too.
write_json() { # FILE TIER VERSION WALL_MS
	local line mode name word wall seconds reason comma=
	mkdir -p "${1%/*}" || return
	{
		printf '{"tier":"%s","version":%s,"processors":%d,"wall_s":%d.%03d,"processor_time":"%s",\n' \
			"$2" "$(quoted "$3")" "$processors" $(($4 / 1000)) $(($4 % 1000)) "$processor_time"
		printf '"passed":%d,"failed":%d,"skipped":%d,"results":[' "$passed" "$failed" "$skipped"
		for line in "${results[@]}"; do
			IFS='|' read -r mode name word wall seconds reason <<<"$line"
			printf '%s\n{"mode":"%s","test":"%s","result":"%s","wall_s":%d.%03d,"processor_s":%s,"reason":%s}' \
				"$comma" "$mode" "$name" "$word" $((wall / 1000)) $((wall % 1000)) \
				"${seconds:-0}" "$(quoted "$reason")"
			comma=,
		done
		printf '\n]}\n'
	} >"$1.new" && mv "$1.new" "$1"
}

# Counts what a file says was run for the same version, but for what was skipped: since then,
# packages may have been installed.
read_json() { # FILE TIER VERSION
	local line mode name word wall seconds
	[ -r "$1" ] && head -n 1 "$1" | grep -qF "{\"tier\":\"$2\",\"version\":$(quoted "$3")," || {
		echo "check: no $1 of this version, so everything is run" >&2
		return 0
	}
	while IFS='|' read -r mode name word wall seconds; do
		[ "$word" != skip ] || continue
		earlier[$mode $name]=$word
		results+=("$mode|$name|$word|$((10#${wall/./}))|$seconds|")
		if [ "$word" = ok ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			printf 'FAIL %-7s %s, in the run before\n' "$mode" "$name" >>"$out/failures"
		fi
	done < <(sed -nE 's/^\{"mode":"(.*)","test":"(.*)","result":"(.*)","wall_s":0*(.*),"processor_s":(.*),"reason":.*/\1|\2|\3|\4|\5/p' "$1")
	echo "check: $passed passed and $failed failed before, by $1" >&2
}
