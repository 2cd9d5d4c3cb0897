#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts Copper on every node of a Slurm job, and returns when the tree is ready. copper_wrapper.sh
# has its option letters.
set -eu
net_type=cxi://cxi1
book_name=olcf_frontier_copper_addressbook.txt
# shellcheck source=copper_wrapper.sh
. "$(dirname "${BASH_SOURCE[0]}")/copper_wrapper.sh"
read_letters "$@"

[ -n "${SLURM_JOB_ID:-}" ] && [ -n "${SLURM_JOB_NODELIST:-}" ] ||
	die 1 'there is no Slurm job here: SLURM_JOB_ID and SLURM_JOB_NODELIST are set in a job script'
copper=$(find_copper)
launch "$log_dir/$SLURM_JOB_ID" "$copper" mount -d "$log_dir/$SLURM_JOB_ID" "${options[@]}" "$mnt"
