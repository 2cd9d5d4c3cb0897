#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints the unit tests (DISTRICT/MODULE/NAME_test) that concern the thread sanitizer, one a line:
# those that link code with threads, ours or those of the libraries, or with signal handlers. The
# objects of another build say which, so that the other tests need not even be compiled.
#
#   scripts/threaded.sh OBJECTS       as build/obj; a test that has no object there is printed, too
set -eu
cd "$(dirname "$0")/.."
objects=$1
# As the linker takes from an archive: an object that defines what another one lacks.
{
	find internal -name '*_test.c'
	find "$objects/internal" -name '*.o' ! -name static_link.o ! -name absent_providers.o \
		-exec nm -A -g {} + 2>/dev/null || true
} | LC_ALL=C awk -v skip="$((${#objects} + 11))" '
	NF == 1 {
		test = substr($1, 10)
		sub(/\.c$/, "", test)
		tests[test]
		next
	}
	{
		object = $1
		sub(/\.o:.*/, "", object)
		object = substr(object, skip)
		there[object]
		if ($(NF - 1) == "U")
			lacks[object] = lacks[object] " " $NF
		else if ($(NF - 1) !~ /^[wv]$/ && object !~ /_(test|fuzz)$/)
			definer[$NF] = object
	}
	function is_threaded(object, count, symbols, i) {
		if (object in visited)
			return 0
		visited[object]
		count = split(lacks[object], symbols, " ")
		for (i = 1; i <= count; i++)
			if (symbols[i] in definer) {
				if (is_threaded(definer[symbols[i]]))
					return 1
			} else if (symbols[i] ~ wanted)
				return 1
		return 0
	}
	BEGIN { wanted = "^(pthread_create|sigaction|signal|fi_[a-z]+|fuse_session_[a-z]+)$" }
	END {
		for (test in tests) {
			split("", visited)
			if (!(test in there) || is_threaded(test))
				print test
		}
	}' | LC_ALL=C sort
