#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source under Open MPI's mpirun on several machines.
# covers: launch scheduler
# modes: release
# limit: 120
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_mpi.sh
. "$(dirname "$0")/run_mpi.sh"
command -v mpirun.openmpi >/dev/null ||
	skip_all 'no mpirun.openmpi; scripts/install-deps.sh all installs openmpi-bin'
plan 9

start_hosts
printf 'n%d slots=2\n' 1 2 3 4 >"$T/hosts"
# This process is not in a job of Slurm. Daemons of Open MPI 4 speak to each other on the loopback
# interface alone; those of 5 never do where there is another.
case $(mpirun.openmpi --version | head -n 1) in
*' '[1-4].*)
	how=(--mca plm rsh --mca ras '^slurm,tm' --mca plm_rsh_agent "$T/enter"
		--mca oob_tcp_if_include lo --mca orte_tmpdir_base "$T")
	;;
*)
	how=(--prtemca plm ssh --prtemca ras '^slurm,pbs' --prtemca plm_ssh_agent "$T/enter"
		--prtemca prte_tmpdir_base "$T")
	;;
esac
each() { # NODEFILE COMMAND…
	on_first "$1" mpirun.openmpi --allow-run-as-root --hostfile "$T/hosts" --map-by ppr:2:node \
		-n 8 "${how[@]}" -x COPPER -x SRC -x T "${@:2}"
}
RANK=OMPI_COMM_WORLD_RANK run_everywhere
stop_slurm
