#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copper 1.0's run_ioctl.sh <CMD>: the number of an ioctl, or its name in env.sh. VIEW_DIR as for
# get_all_metrics.sh; files go where SPEC_DEV_DIR says.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
[ ! -f "$here/../env.sh" ] || . "$here/../env.sh"
[ -n "${1:-}" ] || {
	echo 'usage: run_ioctl.sh <CMD>'
	exit 1
}
exec python3 "$here/ioctl.py" "$1"
