#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints a header with the parts that it includes from beside it in their places, without their
# first lines: one file to install.
#
#   scripts/packaging/header.sh HEADER
set -eu
[ "$#" -eq 1 ] || {
	sed -n 's/^#   //p' "$0" >&2
	exit 2
}
awk -v dir="$(dirname "$1")" '
	/^\/\* Installed, these stand here. \*\/$/ { next }
	/^#include "/ {
		split($0, word, "\"")
		file = dir "/" word[2]
		for (n = 0; (rc = (getline line <file)) > 0; n++)
			if (n)
				print line
		if (rc < 0) {
			print "header.sh: cannot read " file >"/dev/stderr"
			exit 1
		}
		next
	}
	{ print }' "$1"
