#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Copper 1.0's path_usage_analysis.py LOG_DIR [--output-dir DIR] [--usage-root DIR]...
[--skip-home-inference]: it is copper paths, and names what was written."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import copper1  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("log_dir")
parser.add_argument("--output-dir", metavar="DIR", help="write the lists here (LOG_DIR/paths_dir)")
parser.add_argument("--usage-root", action="append", default=[], metavar="DIR",
                    help="examine the use of DIR; may be repeated")
parser.add_argument("--skip-home-inference", action="store_true",
                    help="do not take $HOME as a usage root")
a = parser.parse_args()
out = a.output_dir or os.path.join(a.log_dir, "paths_dir")
options = ["--output-dir=" + out] + ["--usage-root=" + root for root in a.usage_root]
options += ["--skip-home-inference"] if a.skip_home_inference else []
status = copper1.run(["paths"] + options + ["--", a.log_dir])
for name in ("all_possible_existing_paths.txt", "used_paths_existing.txt",
             "same_run_candidate_not_observed_existing_paths.txt",
             "missing_probe_paths.txt", "roots_and_counts.txt",
             "paths_summary.md") if status == 0 else ():
    print("wrote " + os.path.join(os.path.abspath(out), name))
sys.exit(status)
