#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demonstration does what it promises, for root and for an ordinary user, also where copper run
# has no view with mounts and beside other work. It fails if Copper did nothing, and leaves nothing
# behind, even if it is interrupted or fails.
# covers: launch view
# modes: release
# limit: 200
# takes: 40
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 41

"$PYTHON" -c 'import numpy' 2>/dev/null || skip_all 'no numpy'
mkdir -m 1777 "$T/tmp"
bin=$T/demo/bin
mkdir -p "$bin" "$T/demo/scripts"
cp "$COPPER" "$SLOWFS" "$bin"
cp "$cop_root/scripts/demo.sh" "$T/demo/scripts"
demo=(env -u XDG_RUNTIME_DIR -u COPPER_PREFETCH TMPDIR="$T/tmp" BUILD="$bin" DEMO_IMPORT=numpy)

running() { # how many processes of the demo's binaries
	find /proc/[0-9]*/exe -prune -lname "$bin/*" 2>/dev/null | wc -l
}
nothing_left() { # WHEN
	wait_for 5 eval '[ "$(running)" -eq 0 ]'
	is "$1: no process, mount or file is left" \
		"$(running) $(grep -c " $T/tmp" /proc/self/mountinfo) $(find "$T/tmp" -mindepth 1 |
			wc -l)" '0 0 0'
}
run_demo() { # NODES [COMMAND…]
	: >"$T/out.demo"
	"${@:2}" "${demo[@]}" "DEMO_NODES=$1" "$T/demo/scripts/demo.sh" >"$T/out.demo" 2>"$T/out.err"
}

# ---- a whole one

# Its times do not matter here.
DEMO_TRIES=1 run_demo '1 2 4'
is 'the demo ends well' $? 0
is 'the demo has no complaints' "$(cat "$T/out.err")" ''
matches 'a program has recorded its loss' "$(cat "$T/out.demo")" 'beside what Copper measured: 1, 0\.5, 0\.333, .*0\.125'
text=$(cat "$T/out.demo")
operations() { # LABEL: the three numbers of that row of the results
	sed -n "/^ *Operations at/,/^ *Time until/s/^ *$1  *\([0-9, ]*\)\$/\1/p" <<<"$text" | tr -d ,
}
matches 'it says what is imported' "$text" '^Copper demo: 1, 2 and 4 nodes on this machine import numpy'
matches 'which view it had' "$text" '^ *the view of copper run: (overlay|bind|env)'
read -ra direct < <(operations direct)
read -ra cold < <(operations 'through Copper, first start')
read -ra warm < <(operations 'through Copper, second start')
between() { # NUMBER LEAST MOST
	awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(n != "" && a <= n && n <= b) }'
}
ok "direct, every node costs the same (${direct[*]})" between "$((direct[0] ? 100 * direct[2] / direct[0] : 0))" 390 410
ok "through Copper, four nodes cost hardly more than one (${cold[*]})" \
	between "$((cold[0] ? 100 * cold[2] / cold[0] : 0))" 80 125
ok 'and less than two direct ones' between "${cold[2]}" 100 "${direct[1]}"
ok "the second start costs next to nothing (${warm[*]})" between "${warm[2]}" 0 "$((cold[2] / 10))"
is 'operations come before times' "$(grep -E '^ *(Operations at|Time until)' <<<"$text" | awk '{ print $1 }' | xargs)" \
	'Operations Time'
for label in direct 'through Copper, first start' 'through Copper, second start' 'local disk'; do
	matches "the time of 1, 2 and 4 nodes: $label" "$text" "^ *$label( +[0-9.]+ s){3}\$"
done
for rank in 1 2 3; do
	matches "node $rank asked its parent, never the origin" \
		"$text" "^ *node $rank +[1-9][0-9]*( +[0-9]+){3} +[1-9][0-9]* +0\$"
done
matches 'the root read the origin' "$text" '^ *node 0( +[0-9]+){5} +[1-9][0-9]*$'
matches 'every node was stopped' "$text" '^ *stopped 4/4 nodes$'
is 'no line is too wide for a terminal of 120' "$(awk 'length > 120' "$T/out.demo")" ''
nothing_left 'after it'

# The other runs need not wait that long for the file system.
demo+=(DEMO_META_US=20)

# ---- interrupted

# In the background bash ignores signals that would end it in the foreground, unless told otherwise.
interrupted() { # SIGNAL WHAT-IT-WAITS-FOR
	local pid
	: >"$T/out.demo"
	env --default-signal=INT setsid "${demo[@]}" DEMO_NODES=2 "$T/demo/scripts/demo.sh" \
		>"$T/out.demo" 2>&1 &
	pid=$!
	wait_for 20 grep -q "$2" "$T/out.demo"
	sleep 0.1
	kill "-$1" "$pid"
	wait "$pid"
}
interrupted INT '^1 '
is 'Ctrl-C in the first step ends it with 130' $? 130
nothing_left 'then'
interrupted TERM 'the view of'
is 'a signal while nodes import ends it with 143' $? 143
nothing_left 'then, too'

# ---- a Copper that does not start, and one that does nothing

cp "$bin/copper" "$bin/whole"
printf '#!/bin/sh\necho no such luck >&2\nexit 1\n' >"$bin/copper"
run_demo 1
is 'nodes that do not start fail it' $? 1
matches 'nodes that do not start give their reason' \
	"$(cat "$T/out.err")" 'node . did not start: no such luck'
nothing_left 'after that'
cat >"$bin/copper" <<'S'
#!/bin/sh
case "$1 $4" in
'run --') shift 4; exec "$@" ;;
esac
exec "${0%/*}/whole" "$@"
S
run_demo 1
is 'programs that do not read through Copper fail it' $? 1
matches 'with a sentence' "$(cat "$T/out.err")" \
	'^demo: node 0 saw no lookup: its program did not read through Copper \(view (overlay|bind|env)\)$'
mv "$bin/whole" "$bin/copper"

# ---- an ordinary user, beside other work

become_user
for ((i = 0; i < $(nproc); i++)); do
	bash -c 'while [ -d "/proc/$1" ]; do for ((i = 0; i < 100000; i++)); do :; done; done' busy $$ &
	busy+=("$!")
done
run_demo 1 as_user &
started=$!
wait_for 60 eval 'grep -q "operations .*(" "$T/out.demo" || ! kill -0 "$started"'
{ kill "${busy[@]}" && wait "${busy[@]}"; } 2>/dev/null
wait "$started"
is 'an ordinary user gets the same, beside other work' "$? $(grep -c 'stopped 1/1 nodes' "$T/out.demo")" '0 1'
matches 'what was disturbed is repeated, with the reason' "$(cat "$T/out.demo")" \
	'operations .*\(best of [23], longest [0-9.]+ s: other .* took [0-9]+ %'
matches 'the demo says what that means' "$(tail -n 1 "$T/out.demo")" 'That changes times, not operations'

# ---- where copper run has no view with mounts

measured() { # WHERE STATUS VIEW
	is "$1 the demo ends well" "$2 $(cat "$T/out.err")" '0 '
	matches "$1 it says which view it had" "$(cat "$T/out.demo")" "the view of copper run: $3"
	matches "$1 the program read through the node" "$(cat "$T/out.demo")" '^ *node 0 +[1-9]'
}

# The command's user namespace has the same users, and no other can be made in it. Its bash has all
# rights in it once its user is known there, hence the second one.
without_namespaces() { # COMMAND…
	local pid known
	mkfifo "$T/known"
	# Open all the while: what nobody has open loses what was written to it.
	exec {known}<>"$T/known"
	unshare --user --mount bash -c 'read -r _ <"$0" && exec bash -c "echo 0 >/proc/sys/user/max_user_namespaces && exec \"\$@\"" - "$@"' \
		"$T/known" "${cop_as[@]}" "$@" &
	pid=$!
	wait_for 10 eval '[ "$(readlink "/proc/$pid/ns/user")" != "$(readlink /proc/self/ns/user)" ]'
	echo '0 0 65536' | tee "/proc/$pid/uid_map" >"/proc/$pid/gid_map"
	echo >&"$known"
	wait "$pid"
}
run_demo 1 without_namespaces
measured 'without user namespaces' $? env
matches 'it gives the reason' "$(cat "$T/out.demo")" 'max_user_namespaces is 0'

# Its root directory is no mount point.
in_chroot() { # COMMAND…
	local name
	mkdir -p "$T/new/root"
	mount -t tmpfs tmpfs "$T/new" && mkdir -p "$T/new/root"/{usr,etc,dev,proc,tmp,demo} || return
	cd "$T/new/root" || return
	for name in /bin /sbin /lib*; do
		[ ! -L "$name" ] || ln -s "usr/${name#/}" "${name#/}"
	done
	for name in usr etc dev proc; do
		mount --rbind "/$name" "$name" && mount --make-rprivate "$name" || return
	done
	mount --bind "$T/demo" demo && mount --bind "$T/tmp" tmp && chroot "$T/new/root" "$@"
}
demo+=(TMPDIR=/tmp BUILD=/demo/bin)
("${cop_apart[@]}" bash -c "T=$T; $(declare -f in_chroot);"' in_chroot "$@"' - "${demo[@]}" DEMO_NODES=1 \
	/demo/scripts/demo.sh) >"$T/out.demo" 2>"$T/out.err"
measured 'in a chroot of root' $? '(overlay|bind)'
nothing_left 'at the end'
