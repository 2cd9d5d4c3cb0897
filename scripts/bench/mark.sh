#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# CPU time of one event of a mark, including writing it to a local file, and of a mark that is
# switched off: the least of several repetitions in one process.
# limit: 120
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
export PYTHONPATH=$cop_root/internal/trace/mark/python

cost() { # SIDE OPTIONS COMMAND…
	local side=$1 options=$2
	shift 2
	add "$side" "$(PERFFLOW_OPTIONS=log-dir=$T/log:$options "$@")"
	rm -rf "$T/log"
}
for _ in 1 2 3; do
	cost c log-event=Verbose "$BENCH/markcost" 200000 5
	cost c-off log-enable=False "$BENCH/markcost" 2000000 5
	cost python log-event=Verbose "$PYTHON" "$cop_root/scripts/bench/markcost.py" 40000 5
	cost python-off log-enable=False "$PYTHON" "$cop_root/scripts/bench/markcost.py" 400000 5
done
report 'a mark in C, one event' ns at_most 1000 c -
report 'a mark in C that is off' ns at_most 10 c-off -
report 'a mark in Python, one event' ns at_most 5000 python -
report 'a mark in Python that is off' ns at_most 200 python-off -
