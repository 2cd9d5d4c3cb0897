# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests behind harness.sh: a real Slurm on this machine, from Debian's packages, with
# virtual nodes n1..nN. Each slurmd has a mount namespace and a host name of its own, and in it
#
#	$NODE_LOCAL        a directory that only this node sees, as /tmp is on a cluster: mount
#	                   points, control sockets
#	/etc/hosts         in which n1 is 127.0.1.1, n2 is 127.0.1.2, ...
#
# Processes are tracked as COP_TRACKS says (cgroup, linuxproc), by control groups of the version
# COP_CGROUPS (v1, v2; if it is empty, the one that this machine tracks by). Heterogeneous jobs need
# COP_SCHEDULER=backfill. After become_user jobs
# and $NODE_LOCAL are that user's. Everything runs with ports and files of the test's own; nothing
# of the system's Slurm or munge is used or touched.
# shellcheck disable=SC2154

slurm_nodes=()
slurm_pids=()
NODE_LOCAL=$T/local
SLURM_CONF=$T/slurm/slurm.conf
export SLURM_CONF

slurm_conf() { # N: on standard output
	local i addr=127.0.0.1 host bf=${COP_SCHEDULER:+,bf_interval=1}
	host=$(hostname)
	cat <<-CONF
		ClusterName=test
		FirstJobId=$((1 + 29 * COP_LANE))
		SlurmctldHost=localhost(127.0.0.1)
		SlurmctldPort=$(free_port)
		SlurmUser=root
		AuthType=auth/munge
		AuthInfo=socket=$T/slurm/munge.socket
		CredType=cred/munge
		MpiDefault=none
		ProctrackType=proctrack/${COP_TRACKS:-linuxproc}
		TaskPlugin=task/none
		SwitchType=switch/none
		SchedulerType=sched/${COP_SCHEDULER:-builtin}
		SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0$bf
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		ReturnToService=2
		KillWait=5
		MailProg=/bin/true
		SlurmctldPidFile=$T/slurm/ctld.pid
		SlurmdPidFile=$T/slurm/%n.pid
		SlurmdSpoolDir=$T/slurm/spool.%n
		StateSaveLocation=$T/slurm/state
		SlurmctldLogFile=$T/slurm/ctld.log
		SlurmdLogFile=$T/slurm/%n.log
	CONF
	for ((i = 1; i <= $1; i++)); do
		echo "NodeName=n$i NodeHostname=$host NodeAddr=$addr Port=$(free_port) CPUs=8 State=UNKNOWN"
	done
	echo "PartitionName=main Nodes=n[1-$1] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4"
}

slurm_spawn() { # NAME COMMAND…
	local name=$1
	shift
	setsid "$@" </dev/null >"$T/slurm/$name.out" 2>&1 &
	slurm_pids+=($!)
}

# The directory in which Slurm makes its groups: other tests have nodes with the same names.
slurm_unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
COP_CGROUPS=${COP_CGROUPS:-$([ -w /sys/fs/cgroup/freezer ] && echo v1 || echo v2)}
case $COP_CGROUPS in
v1) slurm_groups=/sys/fs/cgroup/freezer/copper-test.$COP_LANE ;;
*) slurm_groups=${slurm_unified:-/nowhere}/copper-test.$COP_LANE ;;
esac
# Versions of Slurm that know only one version refuse the option in their configuration.
slurm_knows() { # VERSION
	[ -e "$(find /usr/lib /usr/lib64 -path "*/slurm*/cgroup_$1.so" 2>/dev/null | head -n 1)" ]
}
# Skips the test if Slurm could not track processes by groups here.
need_groups() {
	[ -w "${slurm_groups%/*}" ] ||
		skip_all "no control groups of version ${COP_CGROUPS#v} here, by which Slurm could track"
	[ "$COP_CGROUPS" != v2 ] || slurm_knows v2 ||
		skip_all 'this Slurm knows no control groups of version 2'
}

# A group cannot be removed until its last process is reaped.
slurm_groups_gone() {
	find "$slurm_groups" -depth -type d -exec rmdir {} \; 2>/dev/null
	[ ! -e "$slurm_groups" ]
}
# Ends what is in the groups. What is killed while it is frozen ends when it is thawed, and does
# nothing before; groups stay frozen as long as one above them is, and find names that one first. A
# process outside of this PID namespace has the number 0.
slurm_groups_swept() {
	local pid file
	find "$slurm_groups" -name cgroup.procs -exec cat {} + 2>/dev/null | while read -r pid; do
		[ "$pid" -le 1 ] || kill -KILL "$pid"
	done
	find "$slurm_groups" -name freezer.state -o -name cgroup.freeze | while read -r file; do
		case $file in
		*.state) echo THAWED >"$file" ;;
		*) echo 0 >"$file" ;;
		esac
	done
	slurm_groups_gone
}
# Makes the directory for the groups. The lane is this test's alone (patience.sh), so what is in
# them is of a run that was killed, and Slurm would count it as its own.
make_slurm_groups() {
	if [ -e "$slurm_groups" ]; then
		note "an earlier run has left $slurm_groups"
		wait_for 15 slurm_groups_swept || bail "it cannot be removed: $(
			find "$slurm_groups" -name cgroup.procs -exec grep -H . {} +)"
	fi
	mkdir -p "$slurm_groups" || bail 'no group can be made'
}

# On a machine that has both versions, makes Slurm believe that there is only version 2, as on most
# machines today. The first process seems to be in the top group, which is the node's.
make_unified() {
	cat >"$T/slurm/unified.c" <<-'C'
		#include <dlfcn.h>
		#include <fcntl.h>
		#include <stdarg.h>
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		static int unified(int fd, int first)
		{
			char text[8192], *line;
			ssize_t n = read(fd, text, sizeof(text) - 1);
			int only = memfd_create("cgroup", MFD_CLOEXEC);
			text[n < 0 ? 0 : n] = 0;
			line = first ? strcpy(text, "0::/\n") : strstr(text, "0::/");
			if (line && write(only, line, strcspn(line, "\n") + 1) > 0)
				lseek(only, 0, SEEK_SET);
			close(fd);
			return only;
		}
		static int opened(const char *name, const char *path, int flags, int mode)
		{
			typedef int (*open_fn)(const char *, int, ...);
			open_fn next = (open_fn)dlsym(RTLD_NEXT, name);
			int fd = next(path, flags, mode);
			if (fd < 0 || strncmp(path, "/proc/", 6) || !strstr(path, "/cgroup"))
				return fd;
			return unified(fd, !!strstr(path, "/1/"));
		}
		#define OPEN(name) \
			int name(const char *path, int flags, ...) \
			{ \
				va_list more; \
				va_start(more, flags); \
				int mode = va_arg(more, int); \
				va_end(more); \
				return opened(#name, path, flags, mode); \
			}
		OPEN(open)
		OPEN(open64)
	C
	gcc -D_GNU_SOURCE -shared -fPIC -o "$T/slurm/unified.so" "$T/slurm/unified.c" -ldl ||
		bail 'no library can be built'
}

# Becomes the slurmd of a node, in namespaces that unshare made: what is unmounted outside must be
# unmounted here, too.
slurm_node='
	forget_other_tests && hostname "$1" &&
	case $6 in
	v1) [ ! -d "$5" ] || mount --bind "$5" /sys/fs/cgroup/freezer ;;
	v2) [ ! -d "$5" ] || { mount -t cgroup2 groups /sys/fs/cgroup && echo 0 >/sys/fs/cgroup/start/cgroup.procs && export LD_PRELOAD="$7"; } ;;
	esac &&
	mount -t tmpfs -o mode=755 node "$2" &&
	mkdir -m 700 "$2/run" && mkdir "$2/mnt" "$2/other" && chown -R "$4" "$2" &&
	mount --bind "$3" /etc/hosts &&
	exec slurmd -D -N "$1"'

start_slurmd() { # NAME
	local own=$slurm_groups/$1 apart=(unshare --mount --propagation slave --uts)
	if [ "$COP_CGROUPS" = v2 ] && [ -d "$slurm_groups" ]; then
		mkdir -p "$own/start" "$own/system.slice"
		apart=(bash -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$own"
			"${apart[@]}" --cgroup)
	fi
	slurm_spawn "$1" "${apart[@]}" bash -c "$slurm_node" slurmd "$1" "$NODE_LOCAL" \
		"$T/slurm/hosts" "${cop_user:-root}" "$slurm_groups" \
		"$COP_CGROUPS" "$T/slurm/unified.so"
}

need_slurm() {
	local name
	for name in munged slurmctld slurmd sbatch srun unshare nsenter; do
		command -v "$name" >/dev/null ||
			skip_all "no $name; scripts/install-deps.sh all installs it"
	done
	[ "$(id -u)" -eq 0 ] || skip_all 'slurmd wants to be root'
	unshare --mount --uts true 2>/dev/null || skip_all 'no namespaces here'
}

start_slurm() { # N
	local i
	need_slurm
	mkdir -p "$T/slurm/state" "$NODE_LOCAL"
	[ ! -w "${slurm_groups%/*}" ] || make_slurm_groups
	slurm_conf "$1" >"$SLURM_CONF"
	printf '%s\n' CgroupMountpoint=/sys/fs/cgroup ConstrainCores=no ConstrainRAMSpace=no \
		>"$T/slurm/cgroup.conf"
	! slurm_knows "$COP_CGROUPS" ||
		echo "CgroupPlugin=cgroup/$COP_CGROUPS" >>"$T/slurm/cgroup.conf"
	[ "$COP_CGROUPS" != v2 ] || {
		echo IgnoreSystemd=yes >>"$T/slurm/cgroup.conf" && make_unified
	}
	(umask 077 && head -c 1024 /dev/urandom >"$T/slurm/munge.key")
	{
		echo '127.0.0.1 localhost'
		for ((i = 1; i <= $1; i++)); do
			echo "127.0.1.$i n$i"
		done
	} >"$T/slurm/hosts"
	slurm_spawn munged munged --foreground --force --key-file="$T/slurm/munge.key" \
		--socket="$T/slurm/munge.socket" \
		--pid-file="$T/slurm/munged.pid" --log-file="$T/slurm/munged.log" \
		--seed-file="$T/slurm/munged.seed"
	wait_for 10 test -S "$T/slurm/munge.socket" ||
		bail "munged does not start" "$(cat "$T/slurm/munged.out")"
	slurm_spawn ctld slurmctld -D
	for ((i = 1; i <= $1; i++)); do
		mkdir "$T/slurm/spool.n$i"
		start_slurmd "n$i"
		slurm_nodes[i]=$!
	done
	wait_for 30 slurm_idle "$1" ||
		bail "Slurm does not come up: $(sinfo 2>&1; tail -n 3 "$T"/slurm/*.out)"
	export XDG_RUNTIME_DIR=$NODE_LOCAL/run
}

slurm_idle() { # N
	[ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -eq "$1" ]
}

# Runs a command in node I's namespace, where its directories are.
on_node() { # I COMMAND…
	local i=$1
	shift
	nsenter --target "${slurm_nodes[$i]}" --mount --uts "$@"
}

# How many copper mounts all nodes have together.
slurm_mounts() {
	local i sum=0
	for i in "${!slurm_nodes[@]}"; do
		sum=$((sum + $(on_node "$i" grep -c " $NODE_LOCAL/.* - fuse.copper " /proc/self/mountinfo)))
	done
	echo "$sum"
}

# Starts nodes as copper-mount(1) describes it for Slurm 20.11.
slurm_is_early() {
	srun --version | awk '{ split($2, part, "."); exit part[1] > 20 }'
}

# Submits the script on standard input by sbatch and prints the job's number. Its output goes to
# $W/out.NAME.
submit() { # NAME NODES [SBATCH OPTION…]
	local name=$1 nodes=$2
	shift 2
	{
		echo '#!/bin/bash'
		cat
		echo 'echo "the script ends with $?"'
	} >"$T/$name.sh"
	! slurm_is_early || export SLURM_OVERLAP=1
	sbatch ${cop_user:+--uid="$cop_user"} --parsable --nodes="$nodes" --job-name="$name" \
		--output="$W/out.$name" --open-mode=append \
		"$@" "$T/$name.sh"
}

job_is_over() { # ID
	case $(squeue -h -j "$1" -o %T 2>/dev/null) in
	'') return 0 ;;
	*) return 1 ;;
	esac
}

# Finds the slurmstepds of the nodes. Their environment does not show that they are this test's, but
# they are in the nodes' namespaces.
slurm_steps() {
	local file
	for file in /proc/[0-9]*/exe; do
		[[ $(readlink "$file" 2>/dev/null) == */slurmstepd ]] || continue
		[[ " ${slurm_namespaces[*]} " != *" $(readlink "${file%exe}ns/mnt") "* ]] ||
			basename "${file%/exe}"
	done
}

stop_slurm() {
	local pid slurm_namespaces=()
	for pid in "${slurm_nodes[@]}"; do
		slurm_namespaces+=("$(readlink "/proc/$pid/ns/mnt" || echo none)")
	done
	scancel --quiet --user root 2>/dev/null
	wait_for 15 eval '[ -z "$(squeue -h 2>/dev/null)" ]'
	for pid in $(printf '%s\n' "${slurm_pids[@]}" | tac); do
		kill "$pid" 2>/dev/null
	done
	for pid in "${slurm_pids[@]}"; do
		wait "$pid" 2>/dev/null
	done
	slurm_pids=()
	for pid in $(slurm_steps); do
		kill -KILL "$pid" 2>/dev/null
	done
	wait_for 10 slurm_groups_gone
	return 0
}

# For launchers that are not Slurm's: $T/enter is what they start on another node instead of ssh,
# with HOST COMMAND…; $T/nodefile is PBS's.
hosts_for_mpi() {
	local i port
	{
		echo '#!/bin/bash'
		echo 'while [ "$1" != "${1#-}" ]; do shift; done'
		echo 'case $1 in'
		for i in "${!slurm_nodes[@]}"; do
			echo "n$i) pid=${slurm_nodes[$i]} ;;"
		done
		echo '*) echo "no node $1" >&2; exit 1 ;;'
		echo 'esac'
		echo 'shift'
		echo 'exec nsenter --target "$pid" --mount --uts bash -c "$*"'
	} >"$T/enter"
	chmod +x "$T/enter"
	# A host is listed once for each of its two slots. The virtual nodes are one machine, so
	# each needs a port of its own.
	for i in "${!slurm_nodes[@]}"; do
		port=$(free_port)
		printf 'n%d:%d\nn%d:%d\n' "$i" "$port" "$i" "$port"
	done >"$T/nodefile"
}
