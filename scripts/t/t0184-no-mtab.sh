#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Without /etc/mtab, which some containers lack, fusermount3 unmounts nothing for an ordinary user:
# a stop unmounts in another way, or says that the mount remains.
# covers: fuse
# modes: release asan
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'it takes root to hide /etc/mtab'
unshare --mount true 2>/dev/null || skip_all 'no namespaces here'
plan 8
become_user
small_tree "$T/src"
as_user mkdir "$W/mnt"
mkdir "$T/few" "$T/etc"
for program in fusermount3 sh sleep; do
	ln -s "$(command -v "$program")" "$T/few/$program"
done

hide_mtab() {
	forget_other_tests
	mount -t tmpfs etc "$T/etc" && mkdir "$T/etc/upper" "$T/etc/work" &&
		mount -t overlay -o "lowerdir=/etc,upperdir=$T/etc/upper,workdir=$T/etc/work" etc \
			/etc && rm -f /etc/mtab
}

stop_without_mtab() { # PATH: what is said goes to $T/stop, the mounts left to $T/left
	hide_mtab || return 77
	as_user env PATH="$1" "$COPPER" mount --hosts localhost --source "$T/src" "$W/mnt" || return
	as_user cmp "$T/src/hello" "$W/mnt/hello" || return
	as_user env PATH="$1" "$COPPER" stop "$W/mnt" >"$T/said" 2>&1
	echo $? >"$T/status"
	tr '\n' ' ' <"$T/said" >"$T/stop"
	awk -v dir="$W/mnt" '$5 == dir' /proc/self/mountinfo >"$T/left"
	! grep -q . "$T/left" || umount -l "$W/mnt"
}
apart() { # COMMAND…: in a mount namespace of its own
	(
		export T W COPPER cop_as_words="${cop_as[*]}"
		export -f hide_mtab stop_without_mtab
		unshare --mount --propagation private bash -c '
			read -ra cop_as <<<"$cop_as_words"
			as_user() { "${cop_as[@]}" "$@"; }
			"$@"' - "$@"
	)
}

apart stop_without_mtab "$PATH"
status=$?
[ "$status" -ne 77 ] || skip_all 'no overlay can be mounted on /etc here'
is 'a user stops a tree without /etc/mtab' "$status" 0
is 'with exit status 0' "$(cat "$T/status")" 0
is 'which says no more' "$(cat "$T/stop")" 'stopped 1/1 nodes '
is 'and no mount is left' "$(cat "$T/left")" ''
apart stop_without_mtab "$T/few"
is 'without umount, the tree stops' $? 0
is 'with exit status 1' "$(cat "$T/status")" 1
matches 'the stop says that the mount remains' "$(cat "$T/stop")" \
	"stopped 1/1 nodes.*$W/mnt could not be unmounted .*'umount -l $W/mnt'"
matches 'as it does' "$(cat "$T/left")" 'fuse\.copper'
