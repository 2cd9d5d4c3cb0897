#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper mount --check reports what is missing with the way out and changes nothing; copper
# --version reports what is in the program.
# covers: check view
# network: own
# modes: release asan
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 45

check() { # OPTION...: the lines in $T/check, the exit status in $status
	"${cop_as[@]}" timeout "$(patient 30)" "$COPPER" mount --check "$@" >"$T/check" \
		2>"$T/check.err"
	status=$?
}
line() { # NAME: state and text
	awk -v name="$1" '$2 == name { $2 = ""; print }' "$T/check"
}

SRC=$T/src
small_tree "$SRC"
mkdir "$T/mnt"
check --source "$T/src" "$T/mnt"
is '--check finds that this machine can run Copper' "$status" 0
is 'every line is ok, the last says so' \
	"$(grep -vc '^ok ' "$T/check"; tail -n 1 "$T/check")" "$(printf '1\nready')"
for name in fuse kernel view mountpoint source job_dir hosts network cpus memory runtime_dir; do
	matches "there is a line for $name" "$(line $name)" '^ok .'
done
is '--check writes nothing to standard error' "$(cat "$T/check.err")" ''
is '--check mounts nothing' "$(is_mounted "$T/mnt" && echo yes)" ''

# ---- a job of several nodes

prepare_tree 3
words=(--hosts "$HOSTS" --rank 1 --source "$SRC")
check "${words[@]}" -d "$T/new/job" "$W/mnt/1"
is 'a job that has all it needs is ready' "$status" 0
matches 'the rank is reported' "$(line hosts)" "3 from .*rank 1, 127\.0\.0\.12"
matches 'the secret is still to be made' "$(line secret)" 'rank 0 will create .*/new/job/secret'
matches 'the address is reported' "$(line network)" 'address ofi\+tcp://127\.0\.0\.12:'
ok 'the check makes nothing' test ! -e "$T/new"
check "${words[@]}" -d "$T/job" --secret-file "$SECRET" "$W/mnt/1" --json
is '--check --json says the same' "$("$PYTHON" -c '
import json, sys
d = json.load(open(sys.argv[1]))
names = [c["name"] for c in d["checks"]]
assert d["ok"] is True and d["failed"] == 0 and d["warnings"] == 0 and "port" in names and "secret" in names, d
assert all(c["state"] == "ok" and c["text"] for c in d["checks"])
print("ok")' "$T/check" 2>&1)" ok

# ---- what is missing is reported in the line of its name

failed() { # NAME REGEX OPTION...
	local name=$1 regex=$2
	shift 2
	check "$@"
	matches "$name: $(line "$name")" "$status $(line "$name")" "^1 failed .*($regex)"
}
failed mountpoint 'is not empty' "${words[@]}" "$T/src"
failed source 'No such file' --source "$T/nowhere" "$W/mnt/1"
failed hosts 'not among' --hosts 198.51.100.1,198.51.100.2 "$W/mnt/1"
failed secret 'need a secret that they share' "${words[@]}" "$W/mnt/1"
echo short >"$T/short"
chmod 600 "$T/short"
failed secret 'shorter than 16' "${words[@]}" --secret-file "$T/short" "$W/mnt/1"
failed job_dir 'ot a directory' "${words[@]}" -d "$SECRET" "$W/mnt/1"
failed network 'providers here: .*tcp' "${words[@]}" -d "$T/job" -n cxi "$W/mnt/1"
failed cpus '65000 does not exist' "${words[@]}" -d "$T/job" -b 65000 "$W/mnt/1"
echo "127.0.0.11 ofi+tcp://127.0.0.11:7777" >"$T/book"
failed address_book 'no address of 127.0.0.12, 127.0.0.13' "${words[@]}" -d "$T/job" \
	-F "$T/book" "$W/mnt/1"
check "${words[@]}" --insecure --cache-size 500T "$W/mnt/1"
matches 'a warning is not a failure' "$status $(tail -n 1 "$T/check")" '^0 ready, with 2 warnings'
with_tree 2
failed port 'cannot listen on 127\.0\.0\.12 port' --hosts "$HOSTS" --rank 1 \
	--secret-file "$SECRET" --source "$SRC" "$T/mnt"
without_tree

# Views of the file system that only the command has.
in_view() { # COMMANDS, then the options
	local commands=$1
	shift
	"${cop_apart[@]}" bash -c "$commands"' && exec "$@"' - "${cop_as[@]}" "$COPPER" mount \
		--check "$@" >"$T/check" 2>&1
	status=$?
}
in_view 'mount -t tmpfs none /dev' --source "$T/src"
matches "fuse: $(line fuse)" "$status $(line fuse)" \
	'^1 failed +/dev/fuse is not there; .*modprobe fuse'
printf '127.0.0.5 n1\n127.0.0.6 n2\n' >"$T/etc-hosts"
if [ -e /etc/hosts ]; then
	in_view "mount --bind $T/etc-hosts /etc/hosts" --hosts n1,n2 --rank 0 --insecure --source "$T/src"
	matches "network: $(line network)" "$status $(line network)" \
		'^0 warning .*127\.0\.0\.5:.*other machines cannot reach'
else
	pass 'network # SKIP no /etc/hosts to mount over'
fi
set=/sys/fs/cgroup/memory/copper-test-$$
if mkdir "$set" 2>/dev/null && echo 512M >"$set/memory.limit_in_bytes"; then
	in_view "echo \$\$ >$set/tasks" --cache-size 1G --source "$T/src"
	matches "memory: $(line memory)" "$status $(line memory)" \
		'^0 warning .*1.0 GiB is more than the 512.0 MiB that this job may use in all .* 256.0 MiB'
else
	pass 'memory: what the job may use # SKIP no control groups here'
fi
[ ! -d "$set" ] || rmdir "$set"

# ---- an ordinary user

become_user
as_user mkdir -p "$W/mnt"
check --source "$T/src" "$W/mnt"
matches 'an ordinary user is ready' "$status $(line fuse)" '^0 ok .*fusermount3 is installed'
in_view 'mount --bind /dev/null /usr/bin/fusermount3' --source "$T/src" "$W/mnt"
matches "fuse: $(line fuse)" "$status $(line fuse)" \
	'^1 failed +fusermount3 is not installed.*package fuse3'
: >"$T/fuse.conf"
in_view "mount --bind $T/fuse.conf /etc/fuse.conf" --allow-other --source "$T/src" "$W/mnt"
matches "allow_other: $(line allow_other)" "$status $(line allow_other)" \
	'^1 failed .*user_allow_other in /etc/fuse.conf'
printf '# x\nuser_allow_other\n' >"$T/fuse.conf"
in_view "mount --bind $T/fuse.conf /etc/fuse.conf" --allow-other --source "$T/src" "$W/mnt"
matches "allow_other: $(line allow_other)" "$status $(line allow_other)" '^0 ok '

# ---- a node without a mount

"${cop_apart[@]}" bash -c 'mount --bind /dev/null /dev/fuse; exec "$@"' - \
	"$COPPER" serve --check --source "$SRC" >"$T/check" 2>&1
is 'serve needs no FUSE' "$? $(tail -n 1 "$T/check")" '0 ready'
is 'serve does not ask for FUSE' "$(line fuse)$(line kernel)$(line mountpoint)" ''
"$COPPER" serve --check --hosts '127.0.0.11,127.0.0.12' --rank 0 --insecure \
	--source /no-such-source >"$T/check" 2>&1
is 'missing files fail there, too' $? 1
matches 'a missing source is named' "$(line source)" '^failed .*no-such-source'

# ---- the rest

fails_with 2 'json needs --check' "$COPPER" mount --json "$W/mnt"
version=$("$COPPER" --version)
for word in '^copper .' "^build .*(gcc|[Cc]lang) [0-9]" '^libfuse 3' '^libfabric 1' \
	'^providers .*tcp'; do
	printf '%s\n' "$version" | grep -Eq "$word" || note "no $word in $version"
done >"$T/version"
is '--version names what is in the program' "$(cat "$T/version")" ''
