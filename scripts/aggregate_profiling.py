#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Copper 1.0's aggregate_profiling.py LOG_DIR [PREFIX] [--usage-root DIR]...: it is copper
aggregate."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import copper1  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("log_dir")
parser.add_argument("output_prefix", nargs="?", default="cluster")
parser.add_argument("--usage-root", action="append", default=[], metavar="DIR",
                    help="report how much of DIR was used; may be repeated")
a = parser.parse_args()
sys.exit(copper1.run(["aggregate"] + ["--usage-root=" + root for root in a.usage_root] +
                     ["--", a.log_dir, a.output_prefix]))
