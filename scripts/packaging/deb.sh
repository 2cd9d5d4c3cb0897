#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a Debian package of the static binary, without network and without root. `make deb` calls
# it.
#
#   scripts/packaging/deb.sh BUILD OUTDIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
[ "$#" -eq 2 ] || {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}
build=$1
out=$2
command -v dpkg-deb >/dev/null || {
	echo "deb.sh: dpkg-deb is not installed; this makes packages on Debian and its kin" >&2
	exit 1
}
# Run-time dependencies are not determined for other ways to link.
if ! file -b "$build/copper" | grep -q 'statically linked'; then
	echo "deb.sh: $build/copper is not the static binary; run make deb without FABRIC and MODE" >&2
	exit 1
fi

# A version that begins with a digit is Debian's as well; else it is made of the time and the
# commit, below every release.
version=$("$build/copper" --version | sed -n 's/^copper //p')
day=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S 2>/dev/null || echo 0)
case $version in
v[0-9]*) deb_version=${version#v} ;;
[0-9]*.*) deb_version=$version ;;
*) deb_version=0~git$day.$version ;;
esac
deb_version=$(printf '%s' "$deb_version" | tr -c 'A-Za-z0-9.+~' '.')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
arch=$(dpkg --print-architecture)

root=$(mktemp -d "${TMPDIR:-/tmp}/copper-deb.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
umask 022
DESTDIR=$root PREFIX=/usr "$here/install.sh" install "$build"

share=$root/usr/share
mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
mkdir -p "$root/usr/lib/python3/dist-packages"
mv "$share/copper/python"/* "$root/usr/lib/python3/dist-packages"
rmdir "$share/copper/python"
find "$share/man" -type f -exec gzip -9n {} +
{
	echo "Copper is under this licence:"
	echo
	cat LICENSE
	echo
	echo "The program is linked statically with libraries under their own licences, which /usr/share/doc/copper/README.md names,"
	echo "with what the LGPL asks of whoever passes the package on."
} >"$share/doc/copper/copyright"
rm "$share/doc/copper/LICENSE"
printf 'copper (%s) unstable; urgency=medium\n\n  * Built from %s.\n\n -- Copper <root@localhost>  %s\n' "$deb_version" "$version" \
	"$(date -Ru -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$share/doc/copper/changelog.gz"

mkdir "$root/DEBIAN"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) \
	>"$root/DEBIAN/md5sums"
cat >"$root/DEBIAN/control" <<CONTROL
Package: copper
Version: $deb_version
Architecture: $arch
Maintainer: Copper <root@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: fuse3
Suggests: python3
Section: net
Priority: optional
Description: read a shared tree once and serve it to every node of a job
 Copper puts one process on each node of a job, which mounts the shared tree
 read-only through FUSE. Only the roots of an overlay tree read the parallel
 file system; every other node gets names, attributes and bytes from its
 parent over libfabric.
CONTROL
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$root" "$out/copper_${deb_version}_$arch.deb" >/dev/null
echo "$out/copper_${deb_version}_$arch.deb"
