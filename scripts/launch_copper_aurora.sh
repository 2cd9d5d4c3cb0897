#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts Copper on every host of a PBS job, and returns when the tree is ready. copper_wrapper.sh
# has its option letters.
set -eu
net_type=cxi
book_name=alcf_aurora_copper_addressbook.txt
# shellcheck source=copper_wrapper.sh
. "$(dirname "${BASH_SOURCE[0]}")/copper_wrapper.sh"
read_letters "$@"

[ -n "${PBS_JOBID:-}" ] && [ -r "${PBS_NODEFILE:-}" ] ||
	die 1 'there is no PBS job here: PBS_JOBID and PBS_NODEFILE are set in a job script'
copper=$(find_copper)
job=$log_dir/${PBS_JOBID%%.*}
# Only the first host has PBS_NODEFILE, which lists a host once for each of its slots; this copy is
# for all hosts. The ports are those that copper derives from a job's number when it reads the
# scheduler's list itself.
hosts=$job/logs/hosts
mkdir -p "$job/logs"
awk -v job="${PBS_JOBID%%[!0-9]*}" \
	'NF && !seen[$1]++ { print $1 ":" 20480 + (job * 16 + n++ % 16) % 8192 }' \
	"$PBS_NODEFILE" >"$hosts"
# PALS would bind a node to the first processor, which belongs to the application; -b overrides
# that.
each=(env PALS_CPU_BIND=none mpiexec -n "$(wc -l <"$hosts")" -ppn 1)

launch "$job" "${each[@]}" "$copper" mount --hosts "$hosts" -d "$job" "${options[@]}" "$mnt"
