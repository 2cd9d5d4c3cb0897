#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the habits that a tool can check: layers, lengths, licence lines, shell scripts, promises
# in comments, what the tests cover, and what cppcheck finds in C.
#
#   scripts/lint.sh [ROOT]           the files that differ from the branch that this one left (main,
#                                    or what COP_LINT_BASE names); on that branch itself, from the
#                                    commit before the last. What cannot be judged by the file is
#                                    judged for all.
#   scripts/lint.sh --all [ROOT]     every file
#
# The last line counts: `lint: N faults in N checks of N files`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
all=
while [ $# -gt 0 ]; do
	case $1 in
	--all) all=yes ;;
	-*)
		sed -n 's/^#   //p' "$0" >&2
		exit 2
		;;
	*) break ;;
	esac
	shift
done
cd "${1:-$here/..}" || exit 2
most_function=90
most_file=650
faults=0
checks=0

fault() {
	[ ! -t 2 ] || printf '\r\033[K' >&2
	echo "lint: $*"
	faults=$((faults + 1))
}

# One check; on a terminal its name is shown while it runs.
check() { # FUNCTION
	checks=$((checks + 1))
	[ ! -t 2 ] || printf '\r\033[Klint: %s' "${1#check_}" >&2
	"$1"
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# The commit whose differences are looked at.
base_commit() {
	local branch base
	for branch in "${COP_LINT_BASE:-}" '@{upstream}' origin/HEAD origin/main main; do
		[ -n "$branch" ] && base=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
		[ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse --verify -q HEAD~1)
		echo "$base"
		return 0
	done
	git rev-parse --verify -q HEAD~1
}

# Puts the files to look at into `chosen`, one a line; the first sentence says which they are.
choose() {
	local base
	[ "$(git rev-parse --show-prefix 2>/dev/null)" = '' ] || all=yes
	[ -n "$all" ] || base=$(base_commit 2>/dev/null) || all=yes
	if [ -n "$all" ]; then
		chosen=$(every_text)
		echo "lint: all files" >&2
		return
	fi
	chosen=$({
		git diff --name-only "$base" --
		git ls-files --others --exclude-standard
	} | LC_ALL=C sort -u | LC_ALL=C comm -12 - <(every_text))
	echo "lint: the files that differ from commit ${base:0:9}; --all looks at every file" >&2
}

texts() { # the files to look at
	[ -z "$chosen" ] || printf '%s\n' "$chosen"
}

every_text() { # every text file of ours; golden data and corpora are not ours to format
	find Makefile README.md cmd internal scripts vendor man .ci -type f \
		! -name '*.supp' ! -path '*/testdata/*' 2>/dev/null | LC_ALL=C sort
}

c_files() {
	texts | grep -E '\.(c|h|def)$'
}

# Scripts have .sh at the end or a shell in the first line.
shell_files() {
	texts | grep '\.sh$'
	texts | grep -vE '\.[^/]*$' | LC_ALL=C xargs -r awk '
		/^#!.*[\/ ](ba)?sh( |$)/ { print FILENAME }
		{ nextfile }'
}

# A function reaches from a brace in the first column to the next closing one there.
check_long() {
	local long
	long=$(c_files | LC_ALL=C xargs -r awk -v most="$most_function" -v most_file="$most_file" '
		function whole_file() {
			if (lines > most_file)
				printf "lint: %s has %d lines (at most %d)\n", file, lines, most_file
		}
		FNR == 1 { whole_file(); file = FILENAME; start = 0; is_c = file ~ /\.c$/ }
		{ lines = FNR }
		!is_c { next }
		/^\{/ { start = FNR }
		/^\}/ {
			if (start && FNR - start - 1 > most)
				printf "lint: %s:%d: a function of %d lines (at most %d)\n",
					file, start, FNR - start - 1, most
			start = 0
		}
		END { whole_file() }')
	[ -z "$long" ] || {
		echo "$long"
		fault "too long"
	}
}

# Prints what grep finds in the files on standard input; true if there is something. Without files
# there is nothing.
found() { # GREP-ARGUMENT…
	local lines
	lines=$(xargs -r grep "$@")
	[ -n "$lines" ] && echo "$lines"
}

check_licences() {
	local file
	while read -r file; do
		fault "$file has no SPDX line at its top"
	done < <({ c_files; shell_files | grep '\.sh$'; } | LC_ALL=C xargs -r awk '
		BEGIN { for (i = 1; i < ARGC; i++) without[ARGV[i]] }
		FNR > 2 { nextfile }
		/SPDX-License-Identifier: BSD-3-Clause/ { delete without[FILENAME]; nextfile }
		END { for (file in without) print file }' | LC_ALL=C sort)
}

# Open work belongs in the issue tracker, not in the source.
check_promises() {
	local words='TO''DO|FIX''ME|XX''X|HA''CK|not yet imple''mented|not imple''mented yet|for n''ow,|st''ub'
	texts | grep -E '\.(c|h|def|sh|md|[157])$|^Makefile$' |
		found -nHEw -- "$words" && fault "words that promise later work"
}

# A function that only tests call is not part of the product, except for what tests need to reach
# in: fakes, failures and clocks that they cause, and looks inside.
check_callers() {
	local uncalled for_tests='_fake(_|$)|_endpoint_net_|_starve$|_for_test$|_cache_check$'
	uncalled=$(find internal cmd -name '*.[ch]' ! -name '*_test.c' ! -name '*_fuzz.c' \
			! -name '*_testing.h' -exec awk '
		FNR == 1 { comment = 0 }
		{
			text = ""
			for (rest = $0; rest != ""; comment = !comment) {
				at = index(rest, comment ? "*/" : "/*")
				if (!comment)
					text = text (at ? substr(rest, 1, at - 1) : rest)
				if (!at)
					break
				rest = substr(rest, at + 2)
			}
			inline = text ~ /^static inline /
			while (match(text, /cop_[a-z0-9_]+/)) {
				name = substr(text, RSTART, RLENGTH)
				text = substr(text, RSTART + RLENGTH)
				met[name]++
				if (text ~ /^\(/ && $1 != "typedef")
					function_[name] = 1
				# These are a declaration and the definition; for an inline function
				# this is both.
				if (inline)
					met[name]++
			}
		}
		END {
			for (name in function_)
				if (met[name] <= 2)
					print name
		}' {} + | grep -vE "$for_tests" | LC_ALL=C sort)
	[ -z "$uncalled" ] || fault "called by nobody but tests: ${uncalled//$'\n'/ }"
}

check_spaces() {
	c_files | found -nHE '[[:blank:]]+$' && fault "blanks at the end of a line"
	c_files | found -nHE '^ +[^ *]' && fault "indented with spaces"
	c_files | grep -E '^(internal|cmd)/' |
		grep -vE '_(test|testing|fuzz)\.[ch]$|/portguard_(in|out)\.c$' |
		found -nHE '(^|[^[:alnum:]_>.])(listen|accept4?|connect|send|recv)\(' |
		grep -vE ':[0-9]+:[[:blank:]]*(/?\*|//)' &&
		fault "a socket call that is replaced for libfabric: base/sock.h"
}

# One version of it decides, because no two agree. A line that is still too long is a sentence for
# users, which can be found by its words.
check_format() {
	local format
	format=$(command -v clang-format-14 || command -v clang-format) &&
		"$format" --version | grep -q 'version 14\.' || {
		echo "lint: no clang-format 14 here, which decides how lines are broken" >&2
		return 0
	}
	c_files | grep '\.[ch]$' | xargs -r "$format" --dry-run -Werror >&2 ||
		fault "not as clang-format has it: clang-format -i FILE"
	c_files | xargs -r grep -nHE '^[^"]{101,}$' |
		grep -E '[^[:blank:]]+[[:blank:]][^[:blank:]]' && fault "longer than 100 columns"
}

# A line of a script that has a string may be longer, because a string cannot be broken as code can.
check_widths() {
	local wide
	wide=$({ shell_files; texts | grep '\.py$'; } | LC_ALL=C xargs -r awk '
		/^#!/ || /["\047]/ && !/^[ \t]*#/ { next }
		{
			line = $0
			gsub(/[\200-\277]/, "", line) # what a character has after its first byte
			for (columns = 0; sub(/^\t/, "", line); columns += 8)
				;
			columns += length(line)
			if (columns > 100)
				printf "%s:%d: %d columns\n", FILENAME, FNR, columns
		}')
	[ -z "$wide" ] || {
		echo "$wide"
		fault "longer than 100 columns"
	}
}

# Words that this project once invented, for which the field has others: raise_priority (hurry),
# peer (twin, stranger), deferred work (chore), expire_idle (tidy), stage (lane), reduction
# (gathered), headroom (roomy), complete (settle), upstream rank (hop, of which others speak when
# they mean one of a message). What stands in quotation marks is the data of a test.
check_words() {
	local old
	old=$(c_files | LC_ALL=C xargs -r awk '
		{
			line = tolower($0)
			gsub(/"[^"]*"/, "", line)
			gsub(/[^a-z]/, " ", line)
			if ((" " line " ") ~ / (hurry|hurries|hurried|twins?|strangers?|chores?|tidy|tidies|tidied|lanes?|gathered|roomy|settles?|settled|per hop) /)
				printf "%s:%d: %s\n", FILENAME, FNR, $0
		}')
	[ -z "$old" ] || {
		echo "$old"
		fault "a word for which the field has another"
	}
}

# The tree must build anywhere: it names no path of one machine.
check_paths() {
	texts | found -nHE '(^|[^[:alnum:]_.])/(work|home/[a-z]+|root)/' -- &&
		fault "a path of one machine"
}

# What tests see of the harness, its functions and its variables: reading all of it again with each
# test would take five times as long.
face_of_harness() {
	local parts
	mapfile -t parts < <(sed -n 's|^\t*\. "$cop_t/\(.*\)"$|scripts/t/\1|p' scripts/t/harness.sh)
	echo '# shellcheck shell=bash'
	sed -nE 's/^([a-z_]+)\(\) \{.*/\1() { :; }/p' scripts/t/harness.sh "${parts[@]}"
	grep -ohE '\$\{?[A-Za-z_][A-Za-z_0-9]*|\b[A-Za-z_][A-Za-z_0-9]*=' scripts/t/harness.sh \
		"${parts[@]}" | tr -d '${=' |
		LC_ALL=C sort -u | sed 's/.*/: "${&:=}"/'
}

check_shell() {
	local check tests chosen_tests
	command -v shellcheck >/dev/null || {
		echo "lint: no shellcheck here; scripts/install-deps.sh all installs it" >&2
		return 0
	}
	# SC2016: programs for sh -c and awk stand in single quotes. SC2002: the message of cat is
	# what some tests read. SC2015 and SC2155: style, not faults.
	check='xargs -0 -r -n 8 -P '$(nproc)' shellcheck -x -P SCRIPTDIR -e SC2016,SC2002,SC2015,SC2155'
	shell_files | grep -v '^scripts/t/t[0-9]' | tr '\n' '\0' | $check || fault "shellcheck"
	mapfile -t chosen_tests < <(texts | grep '^scripts/t/t[0-9].*\.sh$')
	[ "${#chosen_tests[@]}" -gt 0 ] || return 0
	tests=$(mktemp -d) || exit 1
	mkdir -p "$tests/scripts/t"
	if cp scripts/t/*.sh "$tests/scripts/t" 2>/dev/null &&
		face_of_harness >"$tests/scripts/t/harness.sh"; then
		(cd "$tests" && printf '%s\0' "${chosen_tests[@]}" | $check) || fault "shellcheck"
	fi
	rm -rf "$tests"
}

# cppcheck checks a file again only after a change. Tests are left out: the sanitizers run them.
# clang-tidy finds more, most of it no fault, and is run by hand: clang-tidy.conf.
check_c() {
	local suppressions=$here/cppcheck.supp
	command -v cppcheck >/dev/null || {
		echo "lint: no cppcheck here; scripts/install-deps.sh all installs it" >&2
		return 0
	}
	mkdir -p build/cppcheck
	texts | grep -E '^(internal|cmd)/.*\.c$' | grep -vE '_(test|fuzz)\.c$' >build/cppcheck/files
	[ -s build/cppcheck/files ] || return 0
	cppcheck --file-list=build/cppcheck/files --quiet -j "$(nproc)" \
		--cppcheck-build-dir=build/cppcheck \
		--std=c11 --enable=warning,performance,portability \
		--suppressions-list="$suppressions" --error-exitcode=1 -D_GNU_SOURCE \
		-D__linux__ -Iinternal >&2 || fault "cppcheck"
}

# What a system test covers are modules that exist (`rpc`; where two districts have one of that
# name, `trace/table`), and each module is covered by one.
check_covers() {
	local line
	[ -n "$(compgen -G 'scripts/t/t[0-9]*.sh')" ] || return 0
	while read -r line; do
		fault "$line"
	done < <(awk '
		BEGIN {
			for (i = 1; i < ARGC; i++)
				if (split(ARGV[i], part, "/") == 4) { # internal/DISTRICT/MODULE/
					module = part[2] "/" part[3]
					modules[++count] = module
					which[module] = module
					other = which[part[3]]
					which[part[3]] = (other ? other " or " : "") module
					ARGV[i] = ""
				} else
					unnamed[tests[++test_count] = ARGV[i]]
		}
		/^# covers:/ {
			delete unnamed[FILENAME]
			for (i = 3; i <= NF; i++)
				if (!($i in which))
					print FILENAME " covers " $i ", which is no module: ls -d internal/*/*"
				else if (which[$i] ~ / /)
					print FILENAME " covers " $i ", which may be " which[$i]
				else
					covered[which[$i]]
		}
		END {
			for (i = 1; i <= test_count; i++)
				if (tests[i] in unnamed)
					print tests[i] " names no module in a \047# covers:\047 line"
			for (i = 1; i <= count; i++)
				if (!(modules[i] in covered))
					print "no system test covers internal/" modules[i] "/"
		}' internal/*/*/ scripts/t/t[0-9]*.sh)
}

check_layers() {
	"$here/check-layers.sh" . || fault "layers"
}

choose
for name in layers long licences promises callers spaces format widths words paths covers shell \
	c; do
	check "check_$name"
done
echo "lint: $faults faults in $checks checks of $(texts | wc -l) files"
[ "$faults" -eq 0 ]
