# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# The outer half of every system test, sourced by harness.sh: runs the script once more as its own
# session with a time limit, in a private directory, and afterwards ends, unmounts and reports
# whatever the test left behind.
#
# What a test started is recognized by its environment: daemons inherit COP_TEST_DIR, too, and
# nothing else has that value. Nothing is ever ended by its name.
# shellcheck disable=SC2154

header_value() { # KEY DEFAULT: the rest of a `# KEY: …` line at the head of the script
	local line value=
	while read -r line && [[ $line == '#'* ]]; do
		[[ ! $line =~ ^"# $1:"\ *(.*) ]] || { value=${BASH_REMATCH[1]} && break; }
	done <"$script"
	printf '%s' "${value:-$2}"
}

started_pids() {
	grep -lzFx "COP_TEST_DIR=$test_dir" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

# The last one first.
left_mounts() {
	local lines i
	mapfile -t lines </proc/self/mountinfo
	lines=("${lines[@]#* * * * }")
	for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
		[[ ${lines[i]} != "$test_dir/"* ]] || echo "${lines[i]%% *}"
	done
}

# Files of the machine that the test has covered with its own, as t0815 does with /etc: userdel
# would change those.
covered_files() {
	awk -v dir="/${test_dir##*/}/" 'index($4, dir) && $5 != "/dev/fuse" { print $5 }' \
		/proc/self/mountinfo | tac
}

describe_pids() {
	local pid
	for pid in $(started_pids); do
		printf '#   %s: %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
		for task in "/proc/$pid/task"/*; do
			printf '#     %s waits in %s\n' "$(cat "$task/comm" 2>/dev/null)" \
				"$(cat "$task/wchan" 2>/dev/null)"
		done
	done
}

# Looks once more, for processes that were about to start; true if none is left.
killed() {
	local pids
	pids=$(started_pids)
	[ -n "$pids" ] || return 0
	# shellcheck disable=SC2086
	kill -KILL $pids 2>/dev/null
	return 1
}

# Daemons need a moment to end after they were told to; if they take longer, that is a fault of
# theirs.
is_clean() {
	[ -z "$(left_mounts)" ] && [ -z "$(started_pids)" ]
}

sweep() {
	local mount mounts
	wait_for 5 killed
	mounts=$(left_mounts && covered_files)
	for mount in $mounts; do
		umount -l "$mount" 2>/dev/null || fusermount3 -u -z "$mount" 2>/dev/null
	done
	[ -z "$mounts" ] || wait_for 5 killed
	[ ! -e "$test_dir/user" ] || alone_with_users userdel "$(cat "$test_dir/user")" 2>/dev/null
}

show_logs() {
	local file
	for file in "$test_dir"{,/u}/{out.*,job.*/logs/{srun.log,*-output.log}} \
		"$test_dir"/slurm/*.log; do
		[ -s "$file" ] || continue
		echo "# --- ${file#"$test_dir"/}"
		tail -n 40 "$file" | cut -c -400 | sed 's/^/#   /'
	done
}

sanitizer_reports() {
	local file found=1
	for file in "$test_dir"/san/*; do
		[ -s "$file" ] || continue
		found=0
		echo "not ok - a sanitizer reported: ${file##*/}"
		head -n 100 "$file" | sed 's/^/# /'
	done
	return $found
}

remove_dir() {
	[ -z "${COP_KEEP:-}" ] || {
		echo "# kept: $test_dir"
		return
	}
	chmod -R u+rwX "$test_dir" 2>/dev/null
	rm -rf --one-file-system "$test_dir"
}

sanitizer_options() {
	export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:quarantine_size_mb=16:log_path=$test_dir/san/asan"
	export LSAN_OPTIONS="suppressions=$cop_root/scripts/lsan.supp:print_suppressions=0"
	export UBSAN_OPTIONS="print_stacktrace=1:log_path=$test_dir/san/ubsan"
	export TSAN_OPTIONS="suppressions=$cop_root/scripts/tsan.supp:log_path=$test_dir/san/tsan:second_deadlock_stack=1"
}

# Debian gives /dev/fuse to everyone; on a machine that does not, the test gets a private mount
# namespace with such a device, and nothing outside it changes. A test that says `# apart: yes` gets
# one in any case, because others must not change what is mounted in it.
namespace_for_user() {
	[ -z "${COP_TEST_NAMESPACE:-}" ] && [ "$EUID" -eq 0 ] || return 0
	[ -n "$(header_value user '')" ] && [ -e /dev/fuse ] || return 0
	case $(stat -c %a /dev/fuse) in
	*6) [ -n "$(header_value apart '')" ] || return 0 ;;
	esac
	COP_TEST_NAMESPACE=1 exec unshare --mount --propagation private bash "$script" "$@"
}

# A mount namespace keeps what was mounted when it was made, even after the test that mounted it has
# unmounted it, and that test's slowfs would not end. So a test that makes a mount namespace calls
# this in it first.
forget_other_tests() {
	awk -v own="$COP_TEST_DIR/" \
		'/ - fuse\./ && $5 ~ /\/copper-test\./ && index($5, own) != 1 { print $5 }' \
		/proc/self/mountinfo | tac |
		while read -r mount; do
			umount -l "$mount" 2>/dev/null
		done
	return 0
}
export -f forget_other_tests

# A test that says `# network: own` uses ports that anybody on this machine may have, such as
# Copper's default one. As root it gets a network of its own, with the loopback's addresses and one
# other, without which the C library resolves no address for Slurm.
network_of_its_own() {
	[ -n "$(header_value network '')" ] && [ "$EUID" -eq 0 ] || return 0
	if [ -z "${COP_TEST_NETWORK:-}" ]; then
		! unshare --net true 2>/dev/null ||
			COP_TEST_NETWORK=1 exec unshare --net bash "$script" "$@"
		return 0
	fi
	ip link set lo up
	ip link add lan type bridge && ip address add 10.231.7.1/24 dev lan && ip link set lan up
} 2>/dev/null

open_device() {
	[ -n "${COP_TEST_NAMESPACE:-}" ] || return 0
	COP_TEST_DIR=$test_dir forget_other_tests
	mknod -m 666 "$test_dir/fuse" c 10 229 && chmod 666 "$test_dir/fuse" &&
		mount --bind "$test_dir/fuse" /dev/fuse
}

judge() { # STATUS TIMED_OUT
	local status=$1
	[ -z "$timer" ] || kill "$timer" 2>/dev/null
	[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || status=1
	if [ "$2" -eq 1 ]; then
		echo "not ok - the test ends within $((limit * cop_slower)) s"
		status=1
	fi
	if [ "$status" -eq 1 ]; then
		[ "$2" -eq 0 ] || describe_pids
		show_logs
	elif ! wait_for 5 is_clean; then
		echo "not ok - nothing is left running or mounted"
		describe_pids
		left_mounts | sed 's/^/#   still mounted: /'
		show_logs
		status=1
	fi
	sweep
	! sanitizer_reports || status=1
	remove_dir
	exit "$status"
}

supervise() {
	local body timer='' ended status wrap=()
	script=$0
	network_of_its_own "$@"
	namespace_for_user "$@"
	limit=$(($(header_value limit 120)))
	test_dir=$(mktemp -d "${TMPDIR:-/tmp}/copper-test.XXXXXX") || exit 1
	chmod 755 "$test_dir"
	mkdir -m 1777 "$test_dir/san"
	mkdir -m 700 "$test_dir/run"
	export COP_NEVER=$test_dir/never
	mkfifo -m 600 "$COP_NEVER"
	trap 'judge 1 0' INT TERM HUP
	open_device || echo "# no /dev/fuse for ordinary users"
	sanitizer_options
	[ "$cop_mode" != tsan ] || wrap=(setarch -R)
	COP_TEST_DIR=$test_dir XDG_RUNTIME_DIR=$test_dir/run \
		setsid "${wrap[@]}" bash "$script" "$@" </dev/null &
	body=$!
	COP_POLL_S=1 wait_for "$limit" false &
	timer=$!
	wait -n -p ended "$body" "$timer"
	status=$?
	if [ "$ended" = "$timer" ]; then
		judge 1 1
	fi
	judge "$status" 0
}
