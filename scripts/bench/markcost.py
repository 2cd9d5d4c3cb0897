# SPDX-License-Identifier: BSD-3-Clause
"""markcost.py EVENTS REPETITIONS: as markcost.c, for decorated functions: what the mark adds to the
call."""
import sys
import time

import copper_mark


def bare():
    pass


marked = copper_mark.critical_path()(bare)


def least(function, calls, repetitions):
    best = float("inf")
    for _ in range(repetitions):
        begin = time.process_time_ns()
        for _ in range(calls):
            function()
        best = min(best, (time.process_time_ns() - begin) / calls)
    return best


calls, repetitions = int(sys.argv[1]) // 2, int(sys.argv[2])
print("%.3f" % max((least(marked, calls, repetitions) - least(bare, calls, repetitions)) / 2, 0))
