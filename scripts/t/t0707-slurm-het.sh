#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Heterogeneous jobs of a real Slurm: the nodes of all components are one tree, and a step of each
# component can have a tree of its own.
# covers: scheduler hosts
# modes: release
# limit: 150
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
COP_SCHEDULER=backfill
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"
plan 6

small_tree "$T/src"
SRC=$T/src
MNT=$NODE_LOCAL/mnt
export COPPER SRC T MNT HOME=$T
start_slurm 3

cat >"$T/het.sh" <<'EOS'
#!/bin/bash
#SBATCH --nodes=1
#SBATCH hetjob
#SBATCH --nodes=2
echo "components $SLURM_HET_SIZE"
"$COPPER" mount -d "$T/job" --source "$SRC" "$MNT"
echo "mount ends with $?"
srun --het-group=0,1 --ntasks-per-node=1 cat "$MNT/hello"
"$COPPER" cache-stats --all --json "$MNT" >"$T/stats"
srun --het-group=0,1 --ntasks-per-node=1 "$COPPER" run -- tail -n 1 "$SRC/dir/numbers"
echo "run ends with $?"
"$COPPER" stop "$MNT"
srun --het-group=0,1 --ntasks-per-node=1 "$COPPER" run --source "$SRC" -- tail -n 2 "$SRC/dir/numbers"
echo "a tree for each ends with $?"
EOS
id=$(sbatch --parsable --output="$T/out" "$T/het.sh")
wait_for 90 job_is_over "${id%%+*}"
matches 'Slurm runs the job with two components' "$(cat "$T/out")" '^components 2$' ||
	note "$(cat "$T/out")"
matches 'mount starts the nodes of both' "$(cat "$T/out")" '^mount ends with 0$'
is 'all three machines read through the mount' "$(grep -cx hello "$T/out")" 3
is 'they are one tree' "$("$PYTHON" -c 'import json, sys
print(sorted(n["host"] for n in json.load(open(sys.argv[1]))["nodes"]))' "$T/stats")" "['n1', 'n2', 'n3']"
is 'tasks of all components find the tree, and one without a mount, too' \
	"$(grep -cx 20000 "$T/out") $(grep -cx 19999 "$T/out") $(grep -c 'ends with 0' "$T/out")" '6 3 3'
wait_for 10 eval '[ "$(slurm_mounts) $(nodes_running)" = "0 0" ]'
is 'nothing is left' "$(slurm_mounts) $(nodes_running)" '0 0'
[ "$cop_failed" = 0 ] || note "$(cat "$T/out")"
stop_slurm
