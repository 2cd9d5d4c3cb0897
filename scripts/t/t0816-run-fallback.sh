#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: a job whose commands got only variables says so once on the terminal, once in the log
# of the node, and when it stops; in a chroot whose root is no mount point there is a view.
# covers: view advice node
# modes: release
# user: yes
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 18

SRC=$T/src
small_tree "$SRC"
chmod -R a+rX "$SRC"
become_user
export XDG_RUNTIME_DIR=$W/run

# Its own user namespace has no further ones; root in it may not mount: setpriv.
without_namespaces() { # COMMAND…
	as_user unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "$@"' sh "$@"
}
in_log() { # PATTERN: how many lines of the nodes' logs
	cat "$JOB"/logs/*.log "$JOB"/logs/*/*.log 2>/dev/null | grep -c "$1"
}
notes() {
	grep '^copper: note: ' "$W/out.stop"
}

# ---- only variables

with_tree 2
for i in 1 2 3; do
	PMI_RANK=$i without_namespaces "$COPPER" run --mount "$W/mnt/1" cat "$SRC/hello"
done >"$T/out" 2>&1
is 'commands without a view run, and those after the first are silent' "$(sort -u "$T/out")" \
	"$(cat "$SRC/hello")"
as_user "$COPPER" run --mount "$W/mnt/1" --view env true
as_user "$COPPER" run --mount "$W/mnt/1" true
is 'the node counts them, and neither a view nor --view env' "$(node_stat 1 view.fallbacks)" 3
is 'one line in the log says so' "$(in_log 'Warning.*only variables.*user.max_user_namespaces is 0')" 1
ok 'the job stops' without_tree
matches 'stop says what was read, how many commands it were, why, and what helps' "$(notes)" \
	'^copper: note: programs read 0 B of the source through Copper: 3 commands of copper run had only variables such as PATH .*\(.*user\.max_user_namespaces is 0.*\).* copper run --check .* --view env$'
is 'stop says it once' "$(notes | wc -l)" 1

with_tree 1
as_user "$COPPER" run --view env true
as_user "$COPPER" run true
ok 'a job with views stops' without_tree
is 'there is nothing to say' "$(notes)" ''

# ---- a chroot

if [ "$(id -u)" -ne 0 ]; then
	for ((i = 0; i < 10; i++)); do
		pass 'a chroot # SKIP needs root'
	done
	exit
fi
mkdir -p "$T/new" "$T/plain"
cp -r "$SRC" "$T/plain/soft"
# The mounts above the new root are shared, as on most machines, so that what is mounted by mistake
# would be seen outside.
in_chroot() { # COMMAND…
	local name root=$T/new/root
	mount -t tmpfs tmpfs "$T/new" && mkdir -p "$root"/{usr,etc,dev,proc,tmp,soft,copper,mnt} || return
	for name in /bin /sbin /lib*; do
		[ ! -L "$name" ] || ln -s "usr/${name#/}" "$root/${name#/}"
	done
	for name in usr etc dev proc; do
		mount --rbind "/$name" "$root/$name" && mount --make-rprivate "$root/$name" || return
	done
	cp "$COPPER" "$root/copper/copper" && cp -r "$T/plain/soft/." "$root/soft" &&
		mount --make-shared "$T/new" || return
	grep -c " $T/new" /proc/self/mountinfo >"$T/before"
	PATH=/copper:/usr/bin:/bin:/usr/sbin chroot "$root" "$@"
	grep -c " $T/new" /proc/self/mountinfo >"$T/after"
}
apart() { # COMMAND…
	"${cop_apart[@]}" bash -c "T=$T COPPER=$COPPER; $(declare -f in_chroot);"' in_chroot "$@"' - \
		env -u XDG_RUNTIME_DIR -u TMPDIR "$@"
}
# shellcheck disable=SC2016
apart sh -c '
	exec 2>&1
	copper mount --source /soft /mnt && cd /soft/dir || exit
	copper run -l 4 sh -c "pwd; cat /soft/hello; ls -di /; echo x >/soft/new"
	ls -di / /soft/new | sed "s/^ *//"
	copper run --check | grep " view "
	copper run --view bind cat /soft/hello
	grep -c " / " /proc/self/mountinfo
	copper cache-stats --json | grep -o "\"fallbacks\":[0-9]*" | tail -n 1
	setpriv --bounding-set=-sys_chroot --inh-caps=-sys_chroot copper run true
	copper stop' >"$T/out" 2>&1
hello=$(cat "$SRC/hello")
text=$(cat "$T/out")
matches 'in a chroot the view is an overlay' "$text" 'view=overlay source=/soft'
is 'the working directory is the same' "$(grep -cx /soft/dir "$T/out")" 1
is 'the tree is read, by an overlay and by a bind' "$(grep -cxF "$hello" "$T/out")" 2
matches 'it is read-only' "$text" 'cannot create /soft/new: Read-only file system'
is 'the command has the root directory of the chroot' \
	"$(grep -E '^ *[0-9]+ /$' "$T/out" | sort -u | wc -l) $(grep -cE '^ *[0-9]+ /$' "$T/out")" '1 2'
matches '--check says so' "$text" 'ok +view +overlay'
matches 'nothing fell back' "$text" '"fallbacks":0'
matches 'where the root directory cannot be left, the way out is named' "$text" \
	'root directory of this chroot is no mount point: .mount --bind DIR DIR. before chroot'
matches 'stop repeats it' "$text" 'copper: note: .* 1 command of copper run .*mount --bind DIR DIR'
is 'no mount appeared outside, and none remains' \
	"$(cat "$T/after") $(grep -c " $T/new" /proc/self/mountinfo)" "$(cat "$T/before") 0"
