#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source under MPICH's mpiexec on several machines.
# covers: launch scheduler
# modes: release
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_mpi.sh
. "$(dirname "$0")/run_mpi.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec.hydra; scripts/install-deps.sh all installs mpich'
plan 9

start_hosts
printf 'n%d\n' 1 2 3 4 >"$T/hosts"
each() { # NODEFILE COMMAND…
	on_first "$1" env HYDRA_RMK=user HYDRA_HOST_FILE="$T/hosts" HYDRA_LAUNCHER=ssh \
		HYDRA_LAUNCHER_EXEC="$T/enter" mpiexec.hydra -ppn 2 -n 8 "${@:2}"
}
RANK=PMI_RANK run_everywhere
stop_slurm
