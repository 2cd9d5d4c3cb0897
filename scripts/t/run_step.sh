# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of copper run --source in steps of a real Slurm, which tracks processes by
# control groups, or as COP_TRACKS says.
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
COP_TRACKS=${COP_TRACKS:-cgroup}
[ "$COP_TRACKS" != cgroup ] || need_groups

left() { # mounts, nodes, and files of theirs on any node
	local i
	echo "$(slurm_mounts) $(nodes_running) $(for i in "${!slurm_nodes[@]}"; do on_node "$i" \
			find "$NODE_LOCAL/run/copper" -mindepth 1 2>/dev/null; done | tr '\n' ' ')"
}
none_left() {
	[ "$(left)" = '0 0 ' ]
}
said() { # NAME
	cat "$W/out.$1"
}
case ${0##*/} in
*linuxproc*) wanted_tracks=proctrack/linuxproc ;;
*) wanted_tracks=proctrack/cgroup ;;
esac
tracks() {
	scontrol show config | awk '$1 == "ProctrackType" { print $3 }'
}
