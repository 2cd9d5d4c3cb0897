#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copper 1.0's get_all_metrics.sh <output_dir>: what the node here holds, and what it has counted by
# operation and by path, as far as it was started with counting (-P, -A). VIEW_DIR names the mount,
# in the environment or in ../env.sh; without it, it is the only one here.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
[ ! -f "$here/../env.sh" ] || . "$here/../env.sh"
[ -n "${1:-}" ] || {
	echo 'usage: get_all_metrics.sh <output_dir>'
	exit 1
}
exec python3 "$here/ioctl.py" IOCTL_LOG_ALL_METRICS "$1"
