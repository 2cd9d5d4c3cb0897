#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stops Copper on every node of the job; its reports are complete when this returns. -v names the
# mount point; the other letters of launch_copper_frontier.sh are accepted, and mean nothing here.
set -eu
# shellcheck source=copper_wrapper.sh
. "$(dirname "${BASH_SOURCE[0]}")/copper_wrapper.sh"
read_letters "$@"

copper=$(find_copper)
exec "$copper" stop "$mnt"
