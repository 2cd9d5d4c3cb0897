#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make dist and make bindist: archives that need no git, contain the version they were made from,
# and have the same bytes when they are made again.
# covers: base
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 20

dist=$cop_root/scripts/packaging/dist.sh
version=$("$COPPER" --version | sed -n 's/^copper //p')
make_in() { # DIR ARGUMENT…
	env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES make --no-print-directory -C "$@"
}

# ---- versions

matches 'a version begins with numbers' \
	"$version" '^[0-9]+\.[0-9]+\.[0-9]+(\+[0-9]+\.g[0-9a-f]+(-dirty)?|\+unknown)?$'
mkdir -p "$T/v/scripts/packaging"
cp "$cop_root/scripts/packaging/version.sh" "$T/v/scripts/packaging/"
told() {
	"$T/v/scripts/packaging/version.sh" 1.2.3
}
repository() { # GIT-ARGUMENT…
	git -C "$T/v" -c user.name=x -c user.email=x@localhost -c init.defaultBranch=x \
		"$@" >"$T/git" 2>&1
}
is 'without git and archive it is the number' "$(told)" 1.2.3+unknown
repository init && repository add . && repository commit -m one ||
	bail 'no repository can be made' "$(cat "$T/git")"
matches 'between two numbers the commit stands behind it' "$(told)" '^1\.2\.3\+1\.g[0-9a-f]{7,}$'
repository tag v1.2.3
is 'the commit that has its tag is the number' "$(told)" 1.2.3
echo '# more' >>"$T/v/scripts/packaging/version.sh"
matches 'unless files differ' "$(told)" '^1\.2\.3\+1\.g[0-9a-f]+-dirty$'
echo 1.2.2+7.gabc >"$T/v/.version"
is 'an archive knows where it is from' "$(told)" 1.2.2+7.gabc

# ---- the source

archive=$(TMPDIR=$T "$dist" source "$version" "$T/out")
is 'the source is packed' "$archive" "$T/out/copper-$version.tar.gz"
mkdir "$T/x"
tar -C "$T/x" -xf "$archive"
tree=$T/x/copper-$version
is 'into one folder' "$(ls -A "$T/x")" "copper-$version"
is 'with every file of the tree' \
	"$(cd "$tree" && find . ! -type d ! -name .version ! -path ./copper.spec -printf '%P\n' |
		LC_ALL=C sort | sha256sum)" \
	"$(cd "$cop_root" && if [ -e .git ]; then git ls-files; else find . ! -type d \
		! -path './build/*' ! -name .version ! -path ./copper.spec -printf '%P\n'; fi |
		LC_ALL=C sort | sha256sum)"
matches 'the program built there has the version' \
	"$(PATH=$T/none:/usr/bin:/bin make_in "$tree" -n V=1 build/obj/internal/base/base/version.o)" \
	"DCOP_VERSION='?\"?\\\\?\"?$(printf %s "$version" | sed 's/[+.]/\\&/g')"
again=$(TMPDIR=$T "$tree/scripts/packaging/dist.sh" source "$version" "$T/again")
ok 'packed again from the archive it is the same, byte by byte' cmp "$archive" "$again"
is 'the source archive has one spec file, as rpmbuild -ta demands' \
	"$(cd "$tree" && find . -name '*.spec')" ./copper.spec
matches 'the recipe of RPM in it is filled in' \
	"$(grep -E '^Version:' "$tree/copper.spec")" '^Version: [0-9]+\.[0-9]+\.[0-9]+[0-9a-z.+]*$'

# ---- the program

binary=$(TMPDIR=$T "$dist" binary "$BUILD" x86_64 "$T/out")
is 'the program is packed' "$binary" "$T/out/copper-$version-linux-x86_64.tar.gz"
mkdir "$T/opt"
tar -C "$T/opt" -xf "$binary"
at=$T/opt/copper-$version-linux-x86_64
is 'with all that make install puts there' "$(cd "$at" && find . ! -type d | LC_ALL=C sort)" \
	"$(DESTDIR='' PREFIX=. "$cop_root/scripts/packaging/install.sh" list "$BUILD" |
		LC_ALL=C sort)"
small_tree "$T/src"
mkdir "$T/mnt"
ok 'the program runs where the archive was unpacked' "$at/bin/copper" mount --check --source "$T/src" "$T/mnt"
lmod=/usr/share/lmod/lmod/init/bash
if [ -e "$lmod" ]; then
	is 'the modulefile finds the unpacked program' \
		"$(bash -c '. "$1" && module use "$2" >/dev/null && module load copper && command -v copper' - "$lmod" \
		"$at/share/modulefiles" 2>&1)" "$at/bin/copper"
else
	pass 'Lmod # SKIP not installed'
fi
ok 'packed again it is the same' \
	cmp "$binary" "$(TMPDIR=$T "$dist" binary "$BUILD" x86_64 "$T/again")"
mkdir "$T/other"
cp /bin/true "$T/other/copper"
fails_with 1 'is not the static binary' "$dist" binary "$T/other" x86_64 "$T/out"
fails_with 2 'dist\.sh source' \
	bash -c '"$1" binary 2>&1 | head -n 1 >&2; exit "${PIPESTATUS[0]}"' - "$dist"
