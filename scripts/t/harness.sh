# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What every system test sources first. A test is a bash script that prints TAP:
#
#	#!/usr/bin/env bash
#	# SPDX-License-Identifier: BSD-3-Clause
#	# covers: fetch trace/table    modules that it would find broken: make quick M=fetch runs it
#	# quick: yes                   make quick runs it
#	# modes: release asan          which builds check.sh runs it with (default: release)
#	# limit: 60                    seconds (default 120; three times that under a sanitizer)
#	# takes: 40                    seconds that it takes beside others: check.sh starts it early
#	# alone: why                   nothing else runs beside it in check.sh
#	# user: yes                    it uses become_user
#	# apart: yes                   with user: nobody else mounts in its mount namespace
#	# network: own                 it uses ports that anybody may have (7720): a network namespace
#	# shellcheck source=harness.sh
#	. "$(dirname "$0")/harness.sh"
#	plan 2
#	with_tree 4
#	ok 'a file is the same on node 3' cmp "$SRC/hello" "$W/mnt/3/hello"
#	without_tree
#
# Names: T the test's own directory, W where trees are set up (T, or the user's part of it), SRC the
# source, COPPER and SLOWFS the binaries of BUILD. `BUILD=build/asan scripts/t/t0100-one-node.sh`
# runs one test alone; COP_KEEP=1 keeps T. Whatever happens, supervise.sh stops, ends and unmounts
# what the test started, and fails it if something was left.
set -u

cop_root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
cop_t=$cop_root/scripts/t
BUILD=${BUILD:-$cop_root/build}
case $BUILD in
/*) ;;
*) BUILD=$PWD/$BUILD ;;
esac
case $BUILD in
*/asan) cop_mode=asan ;;
*/tsan) cop_mode=tsan ;;
*/shared) cop_mode=shared ;;
*) cop_mode=release ;;
esac
case $cop_mode in
asan | tsan) cop_slower=3 ;;
*) cop_slower=1 ;;
esac

# The tests may run inside a scheduler's job, or in an environment that changes what programs print.
for name in $(compgen -e); do
	case $name in
	SLURM_* | SBATCH_* | SRUN_* | PBS_* | PALS_* | PMI_* | PMIX_* | FLUX_* | OMPI_* | \
		HYDRA_* | MPI* | COPPER_* | FI_* | PYTHON?*)
		unset "$name"
		;;
	esac
done

# What one tree records must not change what the next one asks for, which tests count; t0663 has the
# default.
export COPPER_PREFETCH=off

# shellcheck source=patience.sh
. "$cop_t/patience.sh"
if [ -z "${COP_TEST_DIR:-}" ]; then
	take_lane || { echo 'no lane is free: too many tests run on this machine' >&2; exit 1; }
	# shellcheck source=supervise.sh
	. "$cop_t/supervise.sh"
	supervise "$@"
fi

T=$COP_TEST_DIR
W=$T
export XDG_CACHE_HOME=$T/cache
COPPER=${COPPER:-$BUILD/copper}
# What asks nodes for their counters, often: without a sanitizer a program starts in a tenth of the
# processor time. t0650 and others ask with the program that is tested.
cop_asks=$COPPER
case $cop_mode in
asan | tsan)
	! cmp -s "$BUILD/version" "$cop_root/build/version" || [ ! -x "$cop_root/build/copper" ] ||
		cop_asks=$cop_root/build/copper
	;;
esac
SLOWFS=$BUILD/slowfs
[ -x "$SLOWFS" ] || SLOWFS=$cop_root/build/slowfs
PYTHON=/usr/bin/python3
SRC=
# The last one is for libinfinipath, which comes with libfabric.so and would otherwise leave a *.btr
# file where a program crashes.
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 IPATH_NO_BACKTRACE=1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

cop_planned=
cop_run=0
cop_failed=0
cop_tree=0
cop_tree_number=0
cop_port=
cop_user=
cop_as=()
cop_slow=
cop_load=()
cop_holder=
# The words that give a command a mount namespace of its own.
# shellcheck disable=SC2034
cop_apart=(unshare --mount --propagation private bash -c 'forget_other_tests && exec "$@"' apart)
declare -A cop_killed=()

# ---- TAP

plan() {
	cop_planned=$1
	echo "1..$1"
}

skip_all() {
	echo "1..0 # SKIP $1"
	cop_planned=0
	exit 77
}

# At most 40 lines of 400 characters: the output of a failed comparison may be megabytes.
note() {
	printf '%s\n' "$*" | cut -c -400 | head -n 40 | sed 's/^/# /'
}

bail() {
	note "$*"
	cop_failed=$((cop_failed + 1))
	exit 1
}

pass() {
	cop_run=$((cop_run + 1))
	echo "ok $cop_run - $1"
}

fail() { # DESCRIPTION [EXPLANATION…]
	local line
	cop_run=$((cop_run + 1))
	cop_failed=$((cop_failed + 1))
	echo "not ok $cop_run - $1"
	shift
	for line in "$@"; do
		note "$line"
	done
	return 1
}

ok() { # DESCRIPTION COMMAND…
	local what=$1 status
	shift
	"$@" >"$T/.ok" 2>&1
	status=$?
	if [ "$status" -eq 0 ]; then
		pass "$what"
	else
		fail "$what" "exit $status: $*" "$(tr -d '\0' <"$T/.ok")"
	fi
}

is() { # DESCRIPTION GOT WANTED
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "got:    $2" "wanted: $3"
	fi
}

at_most() { # NUMBER NUMBER
	if [[ "$1 $2" =~ ^-?[0-9]{1,18}\ -?[0-9]{1,18}$ ]]; then
		[ "$1" -le "$2" ]
	else
		awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
	fi
}

is_at_most() { # DESCRIPTION GOT MOST (decimals allowed)
	if [ -n "$2" ] && at_most "$2" "$3"; then
		pass "$1"
	else
		fail "$1" "got: $2" "at most: $3"
	fi
}

matches() { # DESCRIPTION TEXT REGEX
	if grep -Eq -- "$3" <<<"$2"; then
		pass "$1"
	else
		fail "$1" "got: $2" "wanted: /$3/"
	fi
}

# One point: the command ends with that exit status (`any` is 1 or 2) and gives the reason on
# standard error in one line.
fails_with() { # EXIT REGEX COMMAND…
	local want=$1 regex=$2 status text lines line
	shift 2
	look_around
	timeout $((60 * cop_slower * CROWD)) "$@" </dev/null >"$T/.out" 2>"$T/.err"
	status=$?
	{ text=$(<"$T/.err"); } 2>/dev/null # a warning of a NUL
	lines=0
	while read -r line; do
		[ -z "$line" ] || lines=$((lines + 1))
	done <<<"$text"
	[ "$want" != any ] || [ "$status" -ne 1 ] || want=1
	[ "$want" != any ] || want=2
	if [ "$status" -eq "$want" ] && [ "$lines" -eq 1 ] && grep -Eq -- "$regex" "$T/.err"; then
		pass "refused: $text"
	else
		fail "exit $want and one line like /$regex/" "$*" \
			"exit $status, $lines lines: $text"
	fi
}

# To be called before what a source says of itself is compared: while ext4 writes a new file to the
# disk, half a minute after a program did, it shows the file without blocks for some microseconds.
written() { # DIR | FILE…
	if [ -d "$1" ]; then sync -f "$1"; else sync "$@"; fi
}

# ---- what the kernel keeps

# shellcheck source=kept.sh
. "$cop_t/kept.sh"

# ---- an ordinary user

# The user and its group have the same number, as useradd gives them if that number is free for
# both.
add_user() { # NAME
	local n
	for ((n = 1001; n < 1200; n++)); do
		! getent passwd "$n" && ! getent group "$n" &&
			alone_with_users groupadd --gid "$n" "$1" || continue
		! alone_with_users useradd --no-create-home --home-dir "$T/u" --shell /bin/sh \
			--uid "$n" --gid "$n" "$1" || return 0
		alone_with_users groupdel "$1"
	done >/dev/null 2>&1
	return 1
}

# From here on trees belong to a new ordinary user, and W is a directory that this user owns.
become_user() {
	[ "$(id -u)" -eq 0 ] || return 0
	cop_user=copper-test-$$
	add_user "$cop_user" || skip_all "cannot add a user"
	echo "$cop_user" >"$T/user"
	W=$T/u
	install -d -m 755 -o "$cop_user" -g "$cop_user" "$W"
	install -d -m 700 -o "$cop_user" -g "$cop_user" "$W/run"
	install -D -m 755 "$COPPER" "$T/bin/copper"
	install -D -m 755 "$SLOWFS" "$T/bin/slowfs"
	COPPER=$T/bin/copper
	cop_asks=$COPPER
	SLOWFS=$T/bin/slowfs
	cop_as=(setpriv --reuid "$cop_user" --regid "$cop_user" --clear-groups
		env HOME="$W" USER="$cop_user" LOGNAME="$cop_user"
			XDG_RUNTIME_DIR="$W/run" XDG_CACHE_HOME="$W/cache" TMPDIR="$W")
}

# Where a function cannot be used, as in fails_with, the words of cop_as precede the command.
as_user() {
	"${cop_as[@]}" "$@"
}

# ---- trees

# shellcheck source=tree.sh
. "$cop_t/tree.sh"

# ---- the end

finish() {
	local status=$?
	trap - EXIT
	let_go
	stop_quietly
	if [ -n "$cop_planned" ] && [ "$cop_planned" -ne "$cop_run" ] && [ "$status" -ne 77 ]; then
		echo "not ok - $cop_planned points were planned and $cop_run ran"
		cop_failed=$((cop_failed + 1))
	fi
	[ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$cop_failed" -eq 0 ] &&
		echo "not ok - the script ended with status $status"
	if [ "$status" -eq 77 ]; then
		exit 77
	fi
	[ "$cop_failed" -eq 0 ] && [ -n "$cop_planned" ] || exit 1
	exit 0
}
trap finish EXIT
