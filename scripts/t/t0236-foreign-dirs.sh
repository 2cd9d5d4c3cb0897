#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job directory that others own, may write to, or have planted a link in is refused, and nothing
# is written through it.
# covers: dir base
# modes: release
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root, to play the other user'
plan 22
become_user
SRC=$T/src
small_tree "$SRC"
as_user mkdir -p "$W/mnt/0" "$W/there"
other=65534

refused() { # WHAT REGEX DIR
	fails_with 1 "$2" "${cop_as[@]}" "$COPPER" mount --source "$SRC" -d "$3" "$W/mnt/0"
	is "$1: nothing was written there" "$(find "$W/there" "$3/" -type f 2>/dev/null)" ''
}
fresh() { # a job directory with logs
	rm -rf "$W/job"
	as_user mkdir -m 700 "$W/job" "$W/job/logs"
}

fresh
chown "$other" "$W/job"
refused 'of another user' "$W/job belongs to user $other.*choose a directory that is yours alone" \
	"$W/job"
fresh
chmod 1777 "$W/job"
refused 'open to all' "others may write to $W/job .mode 1777.*chmod go-w it" "$W/job"
fresh
chgrp "$other" "$W/job"
chmod 770 "$W/job"
refused 'open to a group' "others may write to $W/job .mode 0770" "$W/job"
fresh
chown "$other" "$W/job/logs"
chmod 777 "$W/job/logs"
refused 'logs of another user' "$W/job/logs belongs to user $other" "$W/job"
fresh
rmdir "$W/job/logs"
as_user ln -s "$W/there" "$W/job/logs"
refused 'a link called logs' \
	"$W/job/logs is a symbolic link, and Copper never writes through one: remove it" "$W/job"
fresh
as_user ln -s "$W/there" "$W/job/profiling"
refused 'a link called profiling' "$W/job/profiling is a symbolic link" "$W/job"
fresh
ln -s "$W/there" "$W/planted"
chown -h "$other" "$W/planted"
refused 'the job directory by a link of another user' \
	"$W/planted is a symbolic link of user $other" "$W/planted"
is 'copper mount --check says so too' \
	"$(as_user "$COPPER" mount --check --source "$SRC" -d "$W/planted" "$W/mnt/0" 2>&1 |
		grep -c "is a symbolic link of user $other")" 1

# Planted while a node runs, in a directory that was opened to others meanwhile.
fresh
as_user "$COPPER" mount --source "$SRC" -d "$W/job" -A "$W/mnt/0" >/dev/null ||
	bail 'it does not start'
as_user cat "$W/mnt/0/hello" >/dev/null
rm -rf "$W/job/tables" "$W/job/profiling"
ln -s "$W/there" "$W/job/tables"
ln -s "$W/there" "$W/job/profiling"
as_user "$COPPER" stop "$W/mnt/0" >/dev/null 2>&1
is 'links that are planted later are not followed either' "$(find "$W/there" -type f)" ''
ok "the log says that a planted link is not followed" \
	wait_for 20 grep -q "profile not written" "$W"/job/logs/*.log

# Usual settings still work: a link of one's own on the way, a group of one's own, an umask that
# lets it write.
fresh
as_user ln -s "$W/job" "$W/mine"
chmod 775 "$W/job" "$W/job/logs"
ok 'a job directory reached through a link of the user, with a group of its own, is accepted' \
	as_user "$COPPER" mount --source "$SRC" -d "$W/mine" -P "$W/mnt/0"
ok 'the node with links of its user stops' as_user "$COPPER" stop "$W/mnt/0"
ok 'the node has written its report' \
	test -s "$(find "$W/job/profiling/final" -name '*profiling_aggregate.csv')"
ok 'copper aggregate writes there' as_user "$COPPER" aggregate "$W/job" run
rm -rf "$W/job/profiling/cluster"
as_user ln -s "$W/there" "$W/job/profiling/cluster"
fails_with 1 "profiling/cluster is a symbolic link" "${cop_as[@]}" "$COPPER" aggregate "$W/job" run
