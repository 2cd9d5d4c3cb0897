# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by harness.sh, supervise.sh and the measurements: waiting times that depend on the load of
# this machine.
#
# Seconds here are those of a machine on which no process waits for a processor: if ten processes
# want each processor, a second takes ten. So a limit can be short enough to report a hang soon, and
# nothing fails because the machine is busy. wait_for, and so the limit of a test, doubles them:
# what a hypervisor or a quota takes from this machine is in no count of processes.
# shellcheck disable=SC2154

COP_PROCESSORS=${COP_PROCESSORS:-$(nproc)}
export COP_PROCESSORS

# Sets CROWD to the number of runnable processes per processor, at least 1.
look_around() {
	local running
	read -r _ _ _ running _ </proc/loadavg
	CROWD=$(((${running%%/*} + COP_PROCESSORS - 1) / COP_PROCESSORS))
	[ "$CROWD" -ge 1 ] || CROWD=1
}

# Converts seconds to seconds by the clock on this machine at the moment, for a command with a limit
# of its own: timeout "$(patient 60)" …
patient() { # SECONDS
	look_around
	echo $(($1 * cop_slower * CROWD))
}

# Returns 0 as soon as the command does, and 1 if it does not within that time. Tries every
# COP_POLL_S or, if that is not set, ever less often, since a try may cost a tenth of a second of
# processor time.
#
# COP_NEVER is a pipe into which nobody writes: to wait at it needs no process, of which the limits
# of all tests would start one in each second of each test.
wait_for() { # SECONDS COMMAND…
	local left=$(($1 * cop_slower * 2000000)) last=${EPOCHREALTIME/[.,]/} now \
		cop_pause=50 cop_seconds
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$left" -gt 0 ] || return 1
		printf -v cop_seconds 0.%03d "$cop_pause"
		if [ -p "${COP_NEVER:-}" ]; then
			read -r -t "${COP_POLL_S:-$cop_seconds}" _ <>"$COP_NEVER"
		else
			sleep "${COP_POLL_S:-$cop_seconds}"
		fi
		cop_pause=$((cop_pause < 240 ? cop_pause * 5 / 4 : cop_pause))
		look_around
		now=${EPOCHREALTIME/[.,]/}
		left=$((left - (now - last) / CROWD))
		last=$now
	done
}

# Takes a lane (ports and job numbers) that no other test on this machine has, in this checkout or
# another. Whatever the test starts keeps the lock, so the lane is free when the last process has
# ended. A test that is run by hand can be given a lane.
take_lane() {
	local dir=/tmp/copper-lanes lock
	[ -d "$dir" ] || mkdir -m 1777 "$dir" 2>/dev/null
	[ -z "${COP_LANE:-}" ] || return 0
	for ((COP_LANE = 0; COP_LANE < 65; COP_LANE++)); do
		[ -e "$dir/$COP_LANE" ] || (umask 022 && : >"$dir/$COP_LANE") 2>/dev/null
		{ exec {lock}<"$dir/$COP_LANE"; } 2>/dev/null || continue
		if flock -n "$lock"; then
			export COP_LANE
			return 0
		fi
		exec {lock}<&-
	done
	return 1
}

# Runs a command that changes this machine's users, one at a time: such commands refuse while
# another has their lock, and a command that is refused halfway leaves a group behind.
alone_with_users() { # COMMAND…
	flock -w 120 /tmp/copper-lanes/users "$@"
}
