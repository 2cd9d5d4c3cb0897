#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make rpm: a package that needs fuse3 and the system's libfabric, can be installed where nothing
# else is, and removed without a trace.
# covers: launch
# modes: shared
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 11

command -v rpmbuild >/dev/null || skip_all 'rpmbuild is not installed'
make_package() { # BUILD: where nothing can be fetched, by anyone
	unshare -n env TMPDIR="$T" HOME="$T" "$cop_root/scripts/packaging/rpm.sh" "$1" "$T/out"
}
package=$(make_package "$BUILD" 2>"$T/.err")
ok 'a package is made' test -s "$package"
version=$("$COPPER" --version | sed -n 's/^copper //p')
is 'the version of the package is that of the program' "$(rpm -qp --qf '%{VERSION}' "$package")" "${version//-/.}"
requires=$(rpm -qp --requires "$package")
matches 'it asks for what mounts' "$requires" '(^|[[:space:]])fuse3([[:space:]]|$)'
matches "the package asks for the system's libfabric" "$requires" 'libfabric\.so\.1'
is 'the package does not bring libfabric along' "$(rpm -qpl "$package" | grep -c 'libfabric')" 0
ok 'the package can be installed' \
	rpm --root "$T/root" --dbpath /db --nodeps --noscripts -i "$package"
is 'with all that make install puts there' \
	"$(cd "$T/root" && find usr ! -type d -printf '/%p\n' | sed 's/\.gz$//' | LC_ALL=C sort)" \
	"$(DESTDIR='' PREFIX=/usr "$cop_root/scripts/packaging/install.sh" list "$BUILD" |
		LC_ALL=C sort)"
small_tree "$T/src"
mkdir "$T/mnt"
ok 'the program runs there' "$T/root/usr/bin/copper" mount --check --source "$T/src" "$T/mnt"
ok 'the package can be removed' rpm --root "$T/root" --dbpath /db --nodeps --noscripts -e copper
is 'the removed package leaves no trace' "$(cd "$T/root" && find . ! -type d ! -path './db/*')" ''
mkdir "$T/static"
echo 'int main(void) { return 0; }' | gcc -static -x c -o "$T/static/copper" - ||
	bail 'no static program can be built'
fails_with 1 'is the static binary' \
	bash -c '"$@" >&2' - "$cop_root/scripts/packaging/rpm.sh" "$T/static" "$T/out"
