#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --source several times in the scripts of a Slurm step on four nodes, for two trees at
# once and in different orders, and in steps of mixed programs, of which only some call it.
# covers: scheduler startnote op
# modes: release
# limit: 240
# takes: 70
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=run_step.sh
. "$(dirname "$0")/run_step.sh"
plan 16

small_tree "$T/src"
SRC=$T/src
become_user
export COPPER SRC W HOME=$W
start_slurm 4
gone() { # WHAT
	wait_for 20 none_left
	is "$1" "$(left)$(find "$W" -maxdepth 1 -name '.copper*')" '0 0 '
}
cat >"$W/call" <<'EOS'
#!/bin/sh
exec "$COPPER" run --source "$SRC" -- "${@:-cat}" "$SRC/hello"
EOS
sed -i '1s/sh/bash/' "$W/call"
chmod 755 "$W/call"

# ---- the same number of calls in all tasks

id=$(submit calls 4 <<'EOS'
srun --overcommit --ntasks=8 --ntasks-per-node=2 sh -c '$W/call; $W/call; $W/call'
echo "srun ends with $?"
srun --overcommit --ntasks=2 --nodes=1 sh -c '$W/call; $W/call & $W/call; wait'
echo "one node ends with $?"
EOS
)
wait_for 90 job_is_over "$id"
is 'three calls in each of eight tasks, and of two on one node' \
	"$(said calls | grep -cx hello)" 30 || note "$(said calls)"
is 'both end well' "$(said calls | grep -c 'ends with 0')" 3
gone 'nothing is left of them'

# ---- two trees of one step

id=$(submit two 4 <<'EOS'
srun --ntasks=4 sh -c '$W/call & "$COPPER" run --source "$SRC/dir" -- tail -n 1 "$SRC/dir/numbers"; wait'
echo "srun ends with $?"
srun --ntasks=4 sh -c '
	[ "$SLURM_PROCID" = 0 ] && at=$SRC/dir || at=$SRC
	exec "$COPPER" run --ready-timeout 10 --source "$at" -- true'
EOS
)
wait_for 90 job_is_over "$id"
is 'two trees are there at the same time' \
	"$(said two | grep -cx hello) $(said two | grep -cx 20000) $(said two |
		grep -x 'srun ends with .*')" '4 4 srun ends with 0' || note "$(said two)"
matches 'hosts that wait for different trees say so before the time is over' \
	"$(said two)" '^copper run: .*waits for the nodes of another tree' || note "$(said two)"
gone 'nothing is left of both'

# ---- one task calls once more, while the others wait for it in their program

id=$(submit more 4 <<'EOS'
export GO=$W/go
srun --ntasks=4 sh -c '
	[ "$SLURM_PROCID" != 0 ] || $W/call
	"$COPPER" run --source "$SRC" -- sh -c "touch $GO.$SLURM_PROCID; until [ -e $GO.0 ]; do sleep 0.1; done; tail -n 1 $SRC/dir/numbers"'
echo "srun ends with $?"
EOS
)
wait_for 120 job_is_over "$id"
is 'a call before the others come does not keep them from each other' \
	"$(said more | grep -cx 20000) $(said more | grep -x 'srun ends with .*')" '4 srun ends with 0' ||
	note "$(said more)"
gone 'nothing is left of that'

# ---- mixed programs

id=$(submit mixed 1 <<'EOS'
printf '%s\n' '0 true' "1 $W/call" >"$W/programs"
srun --overcommit --ntasks=2 --multi-prog "$W/programs"
echo "srun ends with $?"
EOS
)
wait_for 60 job_is_over "$id"
is 'on one machine, only one of two programs calls' \
	"$(said mixed | grep -cx hello) $(said mixed | grep -x 'srun ends with .*')" '1 srun ends with 0' ||
	note "$(said mixed)"
gone 'nothing is left of mixed programs'

for other in 0 2; do
	export other
	id=$(submit "hosts.$other" 4 <<'EOS'
for rank in 0 1 2 3; do
	[ "$rank" = "$other" ] && echo "$rank true" ||
		echo "$rank $COPPER run --ready-timeout 8 --source $SRC -- cat $SRC/hello"
done >"$W/programs.$other"
began=$(date +%s)
srun --kill-on-bad-exit=0 --ntasks=4 --multi-prog "$W/programs.$other"
echo "srun ends with $? after $(($(date +%s) - began))"
EOS
	)
	wait_for 90 job_is_over "$id"
	case $other in
	0) says='no task of the first of these 4 hosts .* those of these hosts did: n2, n3, n4' ;;
	*) says="nodes not ready.*n$((other + 1)).*; if their tasks do not make this call .*copper mount" ;;
	esac
	matches "rank $other of four machines does not call: the others say which are missing" \
		"$(said "hosts.$other" | grep '^copper run: ')" "$says" ||
		note "$(said "hosts.$other")"
	is_at_most 'they end within --ready-timeout and a few seconds' \
		"$(said "hosts.$other" | sed -n 's/^srun ends with 125 after //p')" \
		"$(patient 20)"
	gone 'nothing is left of them, in the home directory either'
done
stop_slurm
