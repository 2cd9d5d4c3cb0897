# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of copper run --source on one machine: finds what is left; $run is the runtime
# directory.
# shellcheck disable=SC2154

left() { # what is below the runtime directory, runs and is mounted
	echo "$(find "$run/copper" -mindepth 1 2>/dev/null |
			tr '\n' ' ')$(nodes_running) $(grep -c " $run/" /proc/self/mountinfo)"
}
none_left() {
	[ "$(left)" = '0 0' ]
}
