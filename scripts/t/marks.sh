# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of marks.

# Runs a program with an empty directory for its traces.
traces() { # [OPTIONS] -- WORD…
	local options=
	rm -rf "$T/log"
	[ "$1" = -- ] || {
		options=:$1
		shift
	}
	shift
	PERFFLOW_OPTIONS="log-dir=$T/log$options" timeout "$(patient 60)" "$@" >"$T/out" 2>"$T/err"
} 2>/dev/null # bash tells of what was killed
