# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of copper runs.
# shellcheck disable=SC2154

STORE=$T/store/runs.db
mkdir "$T/store"

judge() { # SQL, or an option and what belongs to it
	case $1 in
	--*) timeout "$(patient 60)" "$PYTHON" "$cop_t/runs_judge.py" "$1" "$STORE" "${@:2}" ;;
	*) timeout "$(patient 60)" "$PYTHON" "$cop_t/runs_judge.py" "$STORE" "$1" ;;
	esac
}

runs() { # of copper runs; the first word is its subcommand
	timeout "$(patient 60)" "$COPPER" runs "$1" --store "$STORE" "${@:2}"
}

json_of() { # PYTHON-EXPRESSION of j; standard input is JSON
	"$PYTHON" -c "import json, sys; j = json.load(sys.stdin); print($1)"
}
