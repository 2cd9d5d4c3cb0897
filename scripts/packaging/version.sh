#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints the version of this tree: that of the archive which it came in (.version, written by
# dist.sh), the number where the commit has its tag, else the number with how many commits there are
# and which one this is: 0.2.0+431.g9639c5d, -dirty after it if files differ.
#
#   scripts/packaging/version.sh NUMBER
set -eu
cd "$(dirname "$0")/../.."
number=${1:?usage: version.sh NUMBER}
if [ -s .version ]; then
	cat .version
elif [ ! -e .git ] || ! commit=$(git rev-parse --short HEAD 2>/dev/null); then
	echo "$number+unknown"
elif [ "$(git describe --tags --exact-match --dirty 2>/dev/null)" = "v$number" ]; then
	echo "$number"
else
	dirty=
	git diff --quiet HEAD -- 2>/dev/null || dirty=-dirty
	echo "$number+$(git rev-list --count HEAD).g$commit$dirty"
fi
