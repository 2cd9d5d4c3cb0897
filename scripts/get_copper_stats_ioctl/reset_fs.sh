#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copper 1.0's reset_fs.sh: the node here writes what it has counted (profiling/pre-reset of the job
# directory) and counts from zero. VIEW_DIR as for get_all_metrics.sh.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
[ ! -f "$here/../env.sh" ] || . "$here/../env.sh"
exec python3 "$here/ioctl.py" IOCTL_RESET_FS
