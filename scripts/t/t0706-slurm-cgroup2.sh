#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same by control groups of version 2.
# covers: scheduler launch
# modes: release
# limit: 400
# takes: 30
# user: yes
export COP_CGROUPS=v2
# shellcheck source=t0705-slurm-cgroup.sh
. "$(dirname "$0")/t0705-slurm-cgroup.sh"
