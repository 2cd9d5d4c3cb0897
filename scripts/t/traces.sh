# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of copper trace after harness.sh.
# shellcheck disable=SC2154

trace() { # ARG…: standard output to $T/out, standard error to $T/err
	timeout "$(patient 60)" "$COPPER" trace "$@" </dev/null >"$T/out" 2>"$T/err"
}
generate() { # FORM EVENTS SEED FILE [WORD…]
	"$PYTHON" "$cop_root/scripts/gen-trace.py" "$@"
}
is_told() { # DESCRIPTION STATUS PATTERN ARG…
	local what=$1 status=$2 pattern=$3 got
	shift 3
	trace "$@"
	got=$?
	is "$what: the exit status" "$got" "$status"
	matches "$what: it says so" "$(tr "\n" " " <"$T/err")" "$pattern"
}
