#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same steps on several nodes if Slurm tracks processes by their parents.
# covers: launch scheduler
# modes: shared
# limit: 200
# takes: 150
# user: yes
export COP_TRACKS=linuxproc
# shellcheck source=t0843-run-tree.sh
. "$(dirname "$0")/t0843-run-tree.sh"
