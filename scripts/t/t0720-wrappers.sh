#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The scripts of Aurora and Frontier, as job scripts call them: launch, run, stop, aggregate, paths.
# Frontier's in a job of a real Slurm; Aurora's with MPICH's mpiexec over the same virtual nodes,
# and files as PBS writes them.
# covers: launch
# modes: release
# limit: 100
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec of MPICH; scripts/install-deps.sh all installs it'
plan 34

scripts=$cop_root/scripts
small_tree "$T/src"
MNT=$NODE_LOCAL/made/view
export COPPER T MNT scripts
start_slurm 4

said() { # NAME
	cat "$T/out.$1"
}

# ---- Frontier

id=$(submit frontier 4 <<'EOS'
PATH=$scripts:$PATH
launch_copper_frontier.sh -d "$T/logs/" -v "$MNT" -l 4 -t file -T 1 -M 10485760 -E 2000 -P -N 20 -I 60 -s 10 -a discover -n tcp -- --source "$T/src"
echo "launch ends with $?"
cat "$T/logs/$SLURM_JOB_ID/logs/"*-output.log | grep -c 'parent readiness confirmed'
srun --ntasks-per-node=1 sh -c 'cat $MNT/hello; ls $MNT/absent 2>/dev/null'
stop_copper_frontier.sh -d "$T/logs/" -v "$MNT"
echo "stop ends with $?"
"$COPPER" aggregate "$T/logs/$SLURM_JOB_ID" >/dev/null && echo aggregated
"$COPPER" paths "$T/logs/$SLURM_JOB_ID" --usage-root "$MNT" --skip-home-inference >/dev/null 2>&1
ls -R "$T/logs/$SLURM_JOB_ID"
EOS
)
wait_for 60 job_is_over "$id"
matches 'Frontier: launch ends with 0' "$(said frontier)" '^launch ends with 0$'
matches 'Frontier: the launch says how long the addresses took' \
	"$(said frontier)" '^prepared address book generation took [0-9]+ s$'
is 'four nodes are ready' "$(sed -n '/^launch ends/ { n; p }' "$T/out.frontier")" 4
is 'programs on all nodes read' "$(grep -c '^hello$' "$T/out.frontier")" 4
matches 'stop stops all' "$(said frontier)" '^stopped 4/4 nodes$'
matches 'Frontier: stop ends with 0' "$(said frontier)" '^stop ends with 0$'
is 'no other log has the name of a node' \
	"$(find "$T/logs/$id/logs" -name '*output.log' | wc -l) $(cd "$T/logs/$id/logs" &&
		echo srun*)" '4 srun.log'
is 'each node reports' \
	"$(find "$T/logs/$id/profiling/final" -name '*-profiling_operations.csv' | wc -l)" 4
is 'with the paths used most' \
	"$(find "$T/logs/$id/profiling/final" -name '*-profiling_top_paths.csv' | wc -l)" 4
matches 'the reports are summed up' "$(said frontier)" '^aggregated$'
is 'over four nodes' "$(sed -n 's/^ranks_with_aggregate_files,//p' "$T/logs/$id/profiling/cluster/cluster-profiling_aggregate.csv")" 4

# ---- Aurora

# It uses the options of MPICH's mpiexec; here Open MPI's may have that name.
mkdir "$T/bin"
printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v mpiexec.hydra)" >"$T/bin/mpiexec"
chmod +x "$T/bin/mpiexec"

id=$(submit aurora 4 <<'EOS'
PATH=$T/bin:$scripts:$PATH
export PBS_JOBID=$SLURM_JOB_ID.aurora-pbs-0001.hostmgmt PBS_NODEFILE=$NODE_LOCAL/nodefile
for node in n1 n2 n3 n4; do printf '%s\n%s\n' "$node" "$node"; done >"$PBS_NODEFILE"
launch_copper_aurora.sh -d "$T/logs" -v "$MNT" -n tcp -A -s 10 -l 4 -- --source "$T/src"
echo "launch ends with $?"
mpiexec -n 4 -ppn 1 cat "$MNT/hello"
stop_copper_aurora.sh -d "$T/logs" -v "$MNT"
echo "stop ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
matches 'Aurora: launch ends with 0' "$(said aurora)" '^launch ends with 0$'
matches 'Aurora: and says how long the addresses took' \
	"$(said aurora)" '^prepared address book generation took [0-9]+ s$'
is 'all nodes read' "$(grep -c '^hello$' "$T/out.aurora")" 4
matches 'stop stops all of them' "$(said aurora)" '^stopped 4/4 nodes$'
matches 'Aurora: stop ends with 0' "$(said aurora)" '^stop ends with 0$'
is 'each host is in the list once' "$(tr '\n' ' ' <"$T/logs/$id/logs/hosts" | sed 's/:[0-9]*//g')" \
	'n1 n2 n3 n4 '
is 'every node tells its paths' \
	"$(find "$T/logs/$id/tables/final" -name '*md_table_cache_event.output' | wc -l)" 4

# ---- wrongly

launch=$scripts/launch_copper_frontier.sh
mkdir "$T/empty"
fails_with 1 'launch_copper_frontier.sh: there is no Slurm job here' "$launch" -v "$MNT"
fails_with 1 'launch_copper_aurora.sh: there is no PBS job here' \
	"$scripts/launch_copper_aurora.sh" -v "$MNT"
fails_with 2 '-Z is unknown' "$launch" -Z
fails_with 2 '-d needs a value' "$launch" -d
fails_with 2 '--source is no letter: options of copper mount stand behind --' \
	"$launch" -v "$MNT" --source "$T/src"
fails_with 2 '-a is facility or discover, not dns' "$launch" -a dns
# What the wrapper passes to copper mount, in a job whose srun does nothing.
given() { # [VARIABLE=VALUE…] LETTERS…
	env PATH="$T/nothing:$PATH" COPPER=/bin/echo SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n1 \
		SLURM_JOB_NUM_NODES=1 "$@" 2>&1
}
mkdir -p "$T/nothing" "$T/site/build"
printf '#!/bin/sh\nexit 1\n' >"$T/nothing/srun"
chmod +x "$T/nothing/srun"
touch "$T/site/build/olcf_frontier_copper_addressbook.txt" "$T/other.book"
matches '-a facility alone means the book of the site' \
	"$(given COPPER_ROOT="$T/site" "$launch" -a facility)" \
	"^mount -d $HOME/copper-logs/7 -F $T/site/build/olcf_frontier_copper_addressbook.txt -n cxi://cxi1 /tmp/.*/copper\$"
matches '-a facility takes the book that facility_address_book names' \
	"$(given facility_address_book="$T/other.book" "$launch" -a facility)" " -F $T/other.book "
given "$launch" -a facility -n cxi >"$T/out"
is '-a facility without any book is an error' $? 1
matches 'that names the way out' \
	"$(cat "$T/out")" '-a facility needs the book of the site, .*-F FILE, .*-a discover$'
fails_with 1 'PBS_NODEFILE: cannot read .*only the first host of a PBS job has it.*--hosts FILE' \
	env PBS_NODEFILE="$T/nowhere" "$COPPER" mount --source "$T/src" "$T/empty"
is 'the long options of cu_fuse are the letters' \
	"$(given "$launch" -log_level 4 -profile_metrics -profile_top_n 20 -profile_paths_full \
		-profile_snapshot_interval_s 0 -trees 2 -- --observe -trees)" \
	"$(given "$launch" -l 4 -P -N 20 -A -I 0 -T 2 -- --observe -trees)"
matches '-h lists the letters' "$("$launch" -h 2>&1)" '^-v DIR .*mount point'
ok 'stop takes the letters of launch' \
	"$scripts/stop_copper_aurora.sh" -d "$T/logs" -v "$T/empty" -l 1 -P -n cxi -b 1,2

ok 'stop needs no HOME' env -u HOME "$scripts/stop_copper_frontier.sh" -v "$T/empty"

is 'no mount and no node remains' "$(slurm_mounts) $(nodes_running)" '0 0'
stop_slurm
