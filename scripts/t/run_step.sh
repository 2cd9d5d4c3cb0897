# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of copper run --source in steps of a real Slurm, which tracks processes by control groups, or as SLURM_TRACKS says.
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
SLURM_TRACKS=${SLURM_TRACKS:-cgroup}
[ "$SLURM_TRACKS" != cgroup ] || [ -w /sys/fs/cgroup/freezer ] || skip_all 'no freezer of cgroup v1 here, by which Slurm could track'

left() { # mounts, nodes, and files of theirs on any node
	local i
	echo "$(slurm_mounts) $(nodes_running) $(for i in "${!slurm_nodes[@]}"; do on_node "$i" find "$NODE_LOCAL/run/copper" -mindepth 1 2>/dev/null; done | tr '\n' ' ')"
}
none_left() {
	[ "$(left)" = '0 0 ' ]
}
said() { # NAME
	cat "$W/out.$1"
}
