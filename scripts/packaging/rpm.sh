#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes an RPM package of the program that is linked with the system's libfabric, without network
# and without root. `make rpm` calls it.
#
#   scripts/packaging/rpm.sh BUILD OUTDIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ "$#" -eq 2 ] || {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
command -v rpmbuild >/dev/null || {
	echo "rpm.sh: rpmbuild is not installed; it comes with the package rpm-build (SLES, RHEL) or rpm (Debian)" >&2
	exit 1
}
if file -b "$build/copper" | grep -q 'statically linked'; then
	echo "rpm.sh: $build/copper is the static binary; run make rpm, which builds the one that is linked with libfabric" >&2
	exit 1
fi

version=$("$build/copper" --version | sed -n 's/^copper //p')
top=$(mktemp -d "${TMPDIR:-/tmp}/copper-rpm.XXXXXX")
trap 'rm -rf "$top"' EXIT
mkdir "$top/SOURCES" "$top/SPECS" "$top/tmp"
"$here/dist.sh" source "$version" "$top/SOURCES" >/dev/null
tar -C "$top/SPECS" --strip-components=1 -xf "$top/SOURCES/copper-$version.tar.gz" \
	"copper-$version/copper.spec"
# rpm finds the program's libraries; what it is built with is installed, since it has been built.
rpmbuild -bb --quiet --nodeps --define "_topdir $top" --define "_tmppath $top/tmp" \
	--define "copper_build $build" \
	--define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
	"$top/SPECS/copper.spec" >"$top/log" 2>&1 || {
	cat "$top/log" >&2
	exit 1
}
for package in "$top"/RPMS/*.rpm; do
	cp "$package" "$out/"
	echo "$out/${package##*/}"
done
