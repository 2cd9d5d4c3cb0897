#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/install-deps.sh on machines unlike this one: bare ones without package lists, without
# sudo, of releases that lack packages. Scripts that record their arguments replace dpkg, apt and
# sudo.
# covers: base
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 22

deps=$cop_root/scripts/install-deps.sh
bin=$T/bin
mkdir "$bin"
for tool in sh grep cat; do
	ln -s "$(command -v "$tool")" "$bin/$tool"
done
tool() { # NAME: its script on standard input
	{ echo '#!/bin/sh'; cat; } >"$bin/$1"
	chmod +x "$bin/$1"
}
tool dpkg-query <<'S'
for package; do :; done
grep -qxF "$package" "$MACHINE/installed" && printf installed
exit 0
S
tool id <<'S'
cat "$MACHINE/uid"
S
# What a release has is known once its lists were fetched.
tool apt-cache <<'S'
echo "$2:"
if [ -e "$MACHINE/lists" ] && ! grep -qxF "$2" "$MACHINE/lacks"; then echo '  Candidate: 1.0'; else echo '  Candidate: (none)'; fi
S
tool apt-get <<'S'
echo "$*" >>"$MACHINE/calls"
[ "$(cat "$MACHINE/uid")" = 0 ] || [ "${BY_SUDO:-}" = 1 ] || { echo 'E: are you root?' >&2; exit 100; }
case $1 in
update) : >"$MACHINE/lists" ;;
install)
	shift
	for package; do
		case $package in
		-*) continue ;;
		esac
		[ -e "$MACHINE/lists" ] && ! grep -qxF "$package" "$MACHINE/lacks" || { echo "E: Unable to locate package $package" >&2; exit 100; }
		[ ! -e "$MACHINE/broken" ] || { echo 'E: Failed to fetch' >&2; exit 100; }
		echo "$package" >>"$MACHINE/installed"
	done
	;;
esac
S
machine() { # UID: a new one, bare
	export MACHINE=$T/machine.$1.$RANDOM
	mkdir "$MACHINE"
	echo "$1" >"$MACHINE/uid"
	: >"$MACHINE/installed"
	: >"$MACHINE/lacks"
	: >"$MACHINE/calls"
	rm -f "$bin/sudo"
}
install_deps() {
	PATH=$bin "$bin/sh" "$deps" >"$T/out" 2>"$T/err"
}
lines() { # FILE
	wc -l <"$MACHINE/$1"
}

# ---- root on a bare machine, without sudo

machine 0
ok 'root needs no sudo on a bare machine' install_deps
is 'the lists are fetched, then everything is installed at once' \
	"$(cut -d ' ' -f 1 "$MACHINE/calls" | xargs)" 'update install'
is 'all that is asked for' "$(LC_ALL=C sort "$MACHINE/installed")" \
	"$("$deps" --list | LC_ALL=C sort)"
matches 'it says what it does' "$(cat "$T/err")" '^install-deps: installing gcc make '
: >"$MACHINE/calls"
ok 'a second run has nothing to do' install_deps
is 'a second run does not ask apt' "$(lines calls)" 0

# ---- a user

machine 1000
: >"$MACHINE/lists"
install_deps
is 'a user without sudo is refused' "$?" 1
matches 'a user without sudo gets advice for root' \
	"$(cat "$T/err")" 'only root .* apt-get install gcc make '
is 'before anything was tried' "$(lines calls)" 0
tool sudo <<'S'
BY_SUDO=1 exec "$@"
S
ok 'with sudo everything is installed' install_deps
is 'all is there' "$(lines installed)" "$("$deps" --list | wc -l)"
rm -f "$bin/sudo"
ok 'when all is there a user needs nothing' install_deps

# ---- releases that lack packages

machine 0
printf '%s\n' libclang-rt-dev lmod >"$MACHINE/lacks"
ok 'what only tests need may be lacking' install_deps
is 'the rest is installed' "$(lines installed)" $(($("$deps" --list | wc -l) - 2))
matches 'a package that lacks is named' \
	"$(cat "$T/err")" 'has no libclang-rt-dev lmod : the tests that use it are skipped'
: >"$MACHINE/calls"
ok 'the next time' install_deps
is 'the second time nothing is fetched' "$(lines calls)" 0
machine 0
echo libfuse3-dev >"$MACHINE/lacks"
install_deps
is 'a package that the build needs may not be missing' "$?" 1
matches 'a lacking package for the build comes with the way out' \
	"$(cat "$T/err")" 'no package libfuse3-dev, .*vendor/README\.md'

# ---- a mirror that fails

machine 0
: >"$MACHINE/lists"
: >"$MACHINE/broken"
install_deps
is 'a mirror that fails' "$?" 100
matches 'says why' "$(cat "$T/err")" 'E: Failed to fetch'
is 'after its lists were fetched once more' \
	"$(cut -d ' ' -f 1 "$MACHINE/calls" | xargs)" 'install update install'
