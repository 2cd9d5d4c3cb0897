#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The job scripts that README and the manual show, in a Slurm cluster of four virtual nodes. The
# kinds of their blocks:
#
#	slurm        a batch script, given to sbatch
#	mpi          a script of a PBS job, run on its first node with PBS's environment; mpiexec is
#	             MPICH's, then Open MPI's
#	check WHAT   the same, but WHAT is not here (a fabric, a launcher): copper mount looks with
#	             --check at all that it would need, and nothing but WHAT may be missing; other
#	             subcommands run
#
# /soft and /tmp stand for directories of the test, train.py for a program that fails where its
# files do not come from the mount.
# covers: launch scheduler
# network: own
# modes: release
# limit: 240
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=soft.sh
. "$(dirname "$0")/soft.sh"
# shellcheck source=slurm.sh
. "$(dirname "$0")/slurm.sh"

command -v mpiexec.hydra >/dev/null ||
	skip_all 'no mpiexec.hydra; scripts/install-deps.sh all installs mpich'
cd "$cop_root" || exit 1
files=(README.md man/*.[157])
mkdir "$T/blocks" "$T/bin" "$T/stand-in" "$T/home" "$T/cwd"
"$PYTHON" "$cop_t/blocks.py" write "$T/blocks" "${files[@]}" >"$T/index" || bail 'blocks.py fails'
count() {
	awk -F '\t' -v word="$1" '{ split($4, w, " ") } w[1] == word' "$T/index" | wc -l
}
plan $((1 + 3 * ($(count slurm) + 2 * $(count mpi)) + 2 * $(count check)))
note "$(count slurm) slurm, $(count mpi) mpi, $(count check) check of $(wc \
		-l <"$T/index") blocks in ${#files[@]} files"
ok 'README shows job scripts' grep -qE $'\tREADME.md\t.*\t(slurm|mpi)$' "$T/index"

make_soft "$T/soft"
cp "$SOFT/train.py" "$T/cwd/"
mkdir "$SOFT/etc"
ln -s "$COPPER" "$T/bin/copper"
ln -s "$cop_root"/scripts/*copper_*.sh "$T/bin/"
export HOME=$T/home USER=tester PATH=$T/bin:$PATH
# Books like those of sites, with more nodes than the job.
for i in 1 2 3 4 5 6; do
	printf 'n%d ofi+cxi://0x00%04x00\n' "$i" "$i"
done | tee "$SOFT/etc/aurora_copper_addressbook.txt" >"$SOFT/etc/frontier_copper_addressbook.txt"
start_slurm 4

text() { # NUMBER
	sed -E "s#(^|[^[:alnum:]_./}-])/tmp\b#\1$NODE_LOCAL#g; s#(^|[^[:alnum:]_./}-])/soft\b#\1$SOFT#g" "$T/blocks/$1".*
}
gone() {
	[ "$(slurm_mounts) $(nodes_running)" = '0 0' ]
}
trained() { # how many nodes ran the program from the mount, or in a view of it
	grep -Ec "^trained on n[0-9] with ($NODE_LOCAL/tester-copper|$SOFT)/envs/torch$" \
		"$T/out.block"
}
judge() { # STATUS WHERE
	is "$2: the script works" "$1" 0 || note "$(cat "$T/out.block")"
	is "$2: the program runs on all nodes, from the mount" \
		"$(trained)" 4 || note "$(cat "$T/out.block")"
	wait_for 10 gone
	is "$2: nothing is left" "$(slurm_mounts) $(nodes_running)" '0 0' || clean
}
clean() {
	local i
	for i in 1 2 3 4; do
		on_node "$i" "$COPPER" stop --local "$NODE_LOCAL/tester-copper"
	done >/dev/null 2>&1
	wait_for 5 gone
}

# ---- Slurm

run_slurm() { # runs $T/block
	local id
	id=$({
		grep '^#SBATCH' "$T/block"
		echo "bash -eu -o pipefail '$T/block'"
	} | submit block 4 --chdir="$T/cwd")
	wait_for 60 job_is_over "$id" || scancel "$id"
	sed -n 's/^the script ends with //p' "$T/out.block" | tail -n 1
}
while IFS=$'\t' read -r number file line _; do
	text "$number" >"$T/block"
	rm -f "$T/out.block"
	judge "$(run_slurm)" "$file, line $line"
done < <(awk -F '\t' '$4 == "slurm"' "$T/index")

# ---- PBS's environment, mpiexec of MPICH and of Open MPI

hosts_for_mpi
job_number=100
# Done as in t0847. A test has only one machine, on which nothing is bound to a processor.
case $(mpirun.openmpi --version 2>/dev/null | head -n 1) in
*' '[1-4].*)
	open_mpi=(OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$T/enter"
		OMPI_MCA_orte_default_hostfile="$T/hostfile.slots"
		OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_hwloc_base_binding_policy=none)
	;;
*)
	open_mpi=(PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent="$T/enter"
		PRTE_MCA_prte_default_hostfile="$T/hostfile.slots" PRTE_MCA_ras='^slurm,pbs'
		PRTE_MCA_hwloc_default_binding_policy=none)
	;;
esac
run_pbs() { # [VARIABLE=VALUE…]: runs $T/block on node 1
	job_number=$((job_number + 1))
	(cd "$T/cwd" && on_node 1 env PBS_NODEFILE="$T/nodefile" PBS_JOBID="$job_number.server" \
			PBS_O_WORKDIR="$T/cwd" \
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "${open_mpi[@]}" \
		HYDRA_RMK=user HYDRA_HOST_FILE="$T/hostfile" HYDRA_LAUNCHER=ssh \
		HYDRA_LAUNCHER_EXEC="$T/enter" "$@" \
		timeout "$(patient 60)" bash -eu -o pipefail "$T/block") </dev/null \
		>"$T/out.block" 2>&1
}
printf 'n%d:1\n' 1 2 3 4 >"$T/hostfile"
printf 'n%d slots=2\n' 1 2 3 4 >"$T/hostfile.slots"
for launcher in mpiexec.hydra mpiexec.openmpi; do
	# It looks for its helpers beside itself.
	printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "$launcher")" >"$T/bin/mpiexec"
	chmod +x "$T/bin/mpiexec"
	while IFS=$'\t' read -r number file line _; do
		text "$number" >"$T/block"
		if command -v "$launcher" >/dev/null; then
			run_pbs
			judge $? "$file, line $line, $launcher"
		else
			for _ in 1 2 3; do
				pass "$launcher # SKIP not installed"
			done
		fi
	done < <(awk -F '\t' '$4 == "mpi"' "$T/index")
done

# ---- what needs more than there is here

# Stands in for launchers: runs the command that they would start once, here. Stands in for copper:
# the real one, which only checks.
cat >"$T/stand-in/launcher" <<'EOS'
#!/bin/bash
while [ $# -gt 0 ]; do
	case $1 in
	hostlist) exec echo 'n[1-4]' ;;
	mkdir | copper | */copper) exec "$@" ;;
	*/bin/python) exit 0 ;; # nothing is mounted
	esac
	shift
done
EOS
cat >"$T/stand-in/copper" <<'EOS'
#!/bin/bash
case $1 in
mount) "$REAL" mount --check --json "${@:2}" | tee -a "$SAID" >/dev/null; [ "${PIPESTATUS[0]}" -lt 2 ] ;;
*) "$REAL" "$@" ;;
esac
EOS
chmod +x "$T/stand-in/"*
for name in mpiexec srun flux pdsh clush; do
	ln -s launcher "$T/stand-in/$name"
done
sed 's/:.*//' "$T/nodefile" >"$T/nodefile.plain"
missing() { # what --check found missing, once each
	"$PYTHON" -c '
import json, sys
names = set()
text, decode, at = open(sys.argv[1]).read(), json.JSONDecoder(), 0
while text[at:].strip():
    at += len(text[at:]) - len(text[at:].lstrip())
    said, at = decode.raw_decode(text, at)
    names |= {check["name"] for check in said["checks"] if check["state"] == "failed"}
print(" ".join(sorted(names)) or "nothing")' "$1"
}
while IFS=$'\t' read -r number file line kind; do
	text "$number" >"$T/block"
	rm -f "$T/said"
	slurm=()
	! grep -q '^#SBATCH' "$T/block" ||
		slurm=(SLURM_JOB_ID=77 SLURM_JOB_NODELIST='n[1-4]' SLURM_JOB_NUM_NODES=4
		SLURM_NODEID=0)
	mkdir -p "$T/cwd/job"
	run_pbs job="$T/cwd/job" mnt="$NODE_LOCAL/mnt" PBS_NODEFILE="$T/nodefile.plain" \
		REAL="$COPPER" COPPER="$T/stand-in/copper" SAID="$T/said" \
		PATH="$T/stand-in:$PATH" "${slurm[@]}"
	is "$file, line $line: a shell understands it, and copper its options" \
		$? 0 || note "$(cat "$T/out.block")"
	case $kind in
	'check cxi') want=network ;;
	'check pdsh') want=peers ;; # this machine knows no n[1-64]
	*) want=nothing ;; # the launcher's place is taken
	esac
	is "$file, line $line: without ${kind#check }, --check finds missing: $want" \
		"$(missing "$T/said" 2>&1)" "$want" ||
		note "$(cat "$T/said")"
done < <(awk -F '\t' '$4 ~ /^check /' "$T/index")
stop_slurm
