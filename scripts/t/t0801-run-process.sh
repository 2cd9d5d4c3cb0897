#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: a command gets the same environment as without it, and ends the same way, as root and
# as an ordinary user.
# covers: view launch
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 33

SRC=$T/src
small_tree "$SRC"
cp "$cop_t/process.py" "$T/process.py"
echo text >"$T/text"
chmod 644 "$T/process.py" "$T/text"
mkdir "$T/shared"
chgrp 54321 "$T/shared" && chmod 770 "$T/shared"

# Everything that a launcher or a user may have set, with the words of copper run in $@, or without.
as_given() { # DIRECTORY WORD…
	local dir=$1
	shift
	(
		cd "$dir" || exit
		trap '' USR1
		umask 027
		ulimit -S -n 77
		ulimit -S -c 0
		exec 7<"$T/text" 9>>/dev/null </dev/null 2>/dev/null
		export SOMETHING='a  b' PYTHONDONTWRITEBYTECODE=1
		exec taskset -c 0 nice -n 3 setpriv "${who[@]}" --pdeathsig USR2 "$@" "$PYTHON" \
			"$T/process.py" show a 'b c' -- ''
	)
}
all_the_same() { # WHO
	local view dir how
	with_tree 1
	for view in overlay bind env; do
		for dir in "$SRC/dir" "$T"; do
			as_given "$dir" >"$T/out.given"
			# Groups that the namespace does not know are shown as nogroup; their rights
			# are tested below.
			[ "$view" = env ] || sed -i '/^who/s/\[54321\]/[65534]/' "$T/out.given"
			mv "$T/out.given" "$T/without"
			as_given "$dir" "$COPPER" run --view "$view" -- >"$T/out.given"
			mv "$T/out.given" "$T/with"
			# Only for env: the variables are rewritten; none of them names the source
			# here.
			ok "$1, $view: all is as without it, from ${dir#"$T"}/" diff \
				"$T/without" "$T/with"
		done
	done
	ok "$1: the comparison went as far as the last signal" grep -q '^death signal 12 ' "$T/with"
	for how in kill core interrupt stop; do
		(cd "$W" && "${as[@]}" "$PYTHON" "$T/process.py" end "$how" \
				sh -c 'echo ready; exec sleep 100') >"$T/without" 2>&1
		(cd "$W" && "${as[@]}" "$PYTHON" "$T/process.py" end "$how" "$COPPER" run \
				sh -c 'echo ready; exec sleep 100') >"$T/with" 2>&1
		ok "$1: $how ends it as without" diff "$T/without" "$T/with"
		note "$(cat "$T/with")"
	done
	"${as[@]}" "$COPPER" run sh -c "exit 42"
	is "$1: exit status" "$?" 42
	is "$1: standard streams" \
		"$(echo in | "${as[@]}" "$COPPER" run sh -c 'cat; echo err >&2' 2>&1)" $'in\nerr'
	is "$1: a parent that ends takes it along" \
		"$("$PYTHON" - "${as[@]}" setpriv --pdeathsig KILL "$COPPER" run \
			sh -c 'echo $$; exec sleep 100' <<'PY'
import os, subprocess, sys, time
r, w = os.pipe()
if os.fork() == 0:
    child = subprocess.Popen(sys.argv[1:], stdout=w)
    time.sleep(1.5)
    os._exit(0)
os.wait()
pid = int(os.read(r, 100).split()[0])
for _ in range(100):
    try:
        with open(f"/proc/{pid}/stat") as f:
            if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                break
    except (FileNotFoundError, ProcessLookupError):
        break
    time.sleep(0.05)
else:
    print("it lives")
print("gone")
PY
)" gone
	ok "$1: the tree stops" without_tree
}

who=()
as=(env)
all_the_same root
become_user
who=(--reuid "$cop_user" --regid "$cop_user" --groups 54321)
as=(setpriv "${who[@]}" env HOME="$W" USER="$cop_user" LOGNAME="$cop_user"
	XDG_RUNTIME_DIR="$W/run" TMPDIR="$W")
cop_as=("${as[@]}")
export XDG_RUNTIME_DIR=$W/run
all_the_same user
with_tree 1
is 'a supplementary group keeps its rights' \
	"$(as_user "$COPPER" run \
		sh -c "echo mine >'$T/shared/file' && cat '$T/shared/file'" 2>&1)" mine
ok 'the tree stops' without_tree
is 'the file belongs to who made it' "$(stat -c %U "$T/shared/file")" "$cop_user"
