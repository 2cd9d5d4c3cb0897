#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints the modules (district/module) that the given sources can need, one a line: their own, and
# those whose headers these include, and so on.
#
#   scripts/reachable.sh internal/DISTRICT/MODULE/FILE…
set -eu
cd "$(dirname "$0")/.."
grep -rhoE --include='*.[ch]' --exclude='*_test.c' '^# *include "[a-z]+/[a-z0-9_]+/' internal /dev/null -H |
	awk -F '[/":]' -v sources="$*" '
		{ edges[$2 "/" $3] = edges[$2 "/" $3] " " $(NF - 2) "/" $(NF - 1) }
		END {
			count = split(sources, files, " ")
			for (i = 1; i <= count; i++) {
				split(files[i], part, "/")
				add(part[2] "/" part[3])
			}
			for (i = 1; i <= wanted; i++)
				visit(list[i])
			for (i = 1; i <= wanted; i++)
				print list[i]
		}
		function add(module) {
			if (!(module in seen))
				list[++wanted] = module
			seen[module]
		}
		function visit(module, to, j, n) {
			n = split(edges[module], to, " ")
			for (j = 1; j <= n; j++)
				add(to[j])
		}'
