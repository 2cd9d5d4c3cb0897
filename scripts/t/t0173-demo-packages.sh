#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the lists of scripts/install-deps.sh cost on a bare machine with git and make, as apt counts
# it for an empty package database. Nothing is fetched or installed.
# modes: release
# covers: base
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 3

deps=$cop_root/scripts/install-deps.sh
command -v apt-get >/dev/null || skip_all 'no apt here'
apt-cache policy | grep -q 'n=bookworm,l=Debian' || skip_all 'no package lists of Debian 12 here'

mapfile -t essential < <(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p')
# With a cache file apt reads the package lists only once.
caches=(-o "Dir::Cache::pkgcache=$T/pkgcache" -o "Dir::Cache::srcpkgcache=$T/srcpkgcache")
with() { # PACKAGE…: what is installed with them
	LC_ALL=C apt-get -s "${caches[@]}" -o Dir::State::status=/dev/null --no-install-recommends \
		install "${essential[@]}" apt git make "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | sort
}
with >"$T/bare"
added() { # PACKAGE…
	with "$@" | comm -13 "$T/bare" -
}
words() {
	"$deps" --list "$1" | sort
}

# The demo installs no development package of a library.
mapfile -t programs < <(comm -23 <(words demo) <(words build); echo gcc; echo libc6-dev)
added "${programs[@]}" >"$T/demo"
ok 'apt can tell what the demo needs' [ "$(wc -l <"$T/demo")" -gt 20 ]
is_at_most 'that is at most 60 packages' "$(wc -l <"$T/demo")" 60
mapfile -t check < <(words check)
apt-cache "${caches[@]}" show --no-all-versions "${check[@]}" |
	awk '$1 == "Package:" { name = $2 } $1 == "Size:" && $2 > 4e6 { print name }' | sort >"$T/large"
is 'make check lists no large package that is not there already' \
	"$(sort "$T/bare" "$T/demo" | comm -23 "$T/large" -)" ''
