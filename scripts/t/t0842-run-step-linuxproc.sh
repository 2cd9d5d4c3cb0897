#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same steps if Slurm tracks processes by their parents.
# covers: launch scheduler
# modes: shared
# limit: 150
# user: yes
export COP_TRACKS=linuxproc
# shellcheck source=t0841-run-step.sh
. "$(dirname "$0")/t0841-run-step.sh"
