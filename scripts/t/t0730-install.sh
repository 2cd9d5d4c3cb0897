#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What make install and make deb put on a machine works from there: program, manual, completion of
# bash and zsh, modulefile; and it can be removed without a trace.
# covers: opt
# modes: release
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 52

make_it() { # TARGET VARIABLE=VALUE...: the program as it was built, not built again
	make -C "$cop_root" --no-print-directory -o "build/copper" "$@" >"$T/make" 2>&1 || {
		note "$(cat "$T/make")"
		return 1
	}
}
below() { # DIR
	(cd "$1" 2>/dev/null && find . ! -type d | sed 's/^\.//' | LC_ALL=C sort)
}

dest=$T/dest
prefix=/opt/copper
ok 'make install' make_it install DESTDIR="$dest" PREFIX=$prefix
at=$dest$prefix
is 'make install installs exactly what it lists' "$(below "$dest")" \
	"$(DESTDIR=$dest PREFIX=$prefix "$cop_root/scripts/packaging/install.sh" list "$BUILD" |
		LC_ALL=C sort)"
is 'each page of the manual is there' \
	"$(find "$at/share/man" -type f -printf '%f\n' | LC_ALL=C sort)" \
	"$(cd "$cop_root/man" && printf '%s\n' *.[1-9] | LC_ALL=C sort)"
is 'everyone may read it, only the owner may change it' \
	"$(find "$dest" -type f ! -perm 644 ! -perm 755; find "$dest" -type d ! -perm 755)" ''
is 'the programs may be run' "$(find "$at/bin" ! -perm 755)" ''

# ---- the program runs from there

mkdir "$T/mnt"
small_tree "$T/src"
ok 'the installed program mounts' "$at/bin/copper" mount --source "$T/src" "$T/mnt"
ok 'the installed program serves a file' cmp "$T/src/dir/numbers" "$T/mnt/dir/numbers"

is 'the commands of Copper 1.0 are where job scripts call them' \
	"$(cd "$at" && echo build/* scripts/*.py scripts/get_copper_stats_ioctl/*)" \
	"build/cu_fuse $(cd "$cop_root" && echo scripts/aggregate_profiling.py scripts/copper1.py \
		scripts/path_usage_analysis.py scripts/get_copper_stats_ioctl/*)"
matches 'the commands of Copper 1.0 run' \
	"$(env -u COPPER "$at/build/cu_fuse" -vpath "$T/mnt" -- --check --source "$T/src" 2>&1)" \
	'mount'

# ---- marks

ok 'each installed header is one file, and they compile' \
	sh -c \
	'printf "#include <copper/mark.h>\n#include <copper/run.h>\nint main(void) { COPPER_CRITICAL_PATH(); copper_run_tag(\"a\", \"b\"); return 0; }\n" |
	cc -Wall -Wextra -Werror -I "$1/include" -o "$2" -x c - -pthread && ! grep "#include \"" "$1/include/copper"/*.h' sh "$at" "$T/marked"
is 'the module of Python is there' \
	"$(PYTHONPATH=$at/share/copper/python PERFFLOW_OPTIONS=log-enable=False "$PYTHON" \
		-c 'import copper_run, copper_mark, perfflowaspect.aspect; print(copper_mark.enabled)')" False
named=$(sed -n 's|.*`PYTHONPATH=PREFIX/\([a-z/]*\)`.*|\1|p' "$cop_root/README.md")
is 'Python finds the module where README says' \
	"$(cd / && PYTHONPATH=$at/${named:-none} "$PYTHON" -c 'import copper_mark; print(copper_mark.__file__)' 2>&1 |
		tail -n 1)" "$at/share/copper/python/copper_mark.py"

# ---- bash

completion=$at/share/bash-completion/completions/copper
complete_line() { # LINE: the candidates, sorted, in one line
	(
		# shellcheck source=/dev/null
		. "$completion"
		COMP_LINE=$1
		COMP_POINT=${#1}
		read -ra COMP_WORDS <<<"$1"
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_copper
		printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u | tr '\n' ' ' | sed 's/ $//'
	)
}
options_of() { # SUBCOMMAND
	"$COPPER" "$1" --dump-options |
		awk -F '\t' '$1 == "option" && $4 != "ignored" { if ($2 != "--") print $2; if ($3 != "-") print $3 }
		END { print "--help"; print "--help-all" }' | LC_ALL=C sort -u | tr '\n' ' ' |
		sed 's/ $//'
}
# shellcheck source=/dev/null
is 'bash knows how to complete copper' "$(. "$completion" && complete -p copper)" \
	'complete -o filenames -F _copper copper'
mapfile -t subcommands < <("$COPPER" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' |
		grep -v '^copper$')
is 'the first word is a subcommand' "$(complete_line 'copper ')" \
	"$(printf '%s\n' "${subcommands[@]}" help --help --version | LC_ALL=C sort | tr '\n' ' ' |
		sed 's/ $//')"
wrong=
for sub in "${subcommands[@]}"; do
	[ "$(complete_line "copper $sub -")" = "$(options_of "$sub")" ] || wrong="$wrong $sub"
done
is 'every option of the subcommand is completed' "$wrong" ''
is 'a beginning is enough' "$(complete_line 'copper mo')" mount
is 'the beginning of an option is completed' "$(complete_line 'copper mount --secr')" --secret-file
is 'a value that is one of some words' "$(complete_line 'copper mount -a ')" 'discover facility'
is 'values are completed behind an equals sign' \
	"$(complete_line 'copper serve --compress=o')" 'off on'
is 'a value that is a number has none' "$(complete_line 'copper mount --fanout ')" ''
cd "$T" || exit 1
is 'a directory' "$(complete_line 'copper mount -d sr')" src
is 'a file' "$(complete_line 'copper mount --secret-file src/hel')" src/hello
is 'the operand after options' "$(complete_line 'copper mount -T 2 --insecure mn')" mnt
matches 'mounts that are there, to stop' " $(complete_line 'copper stop ') " " $T/mnt "
is 'stop completes no second operand' "$(complete_line 'copper mount mnt ')" ''
is 'after help a subcommand' "$(complete_line 'copper help cache')" cache-stats

# ---- zsh

if command -v zsh >/dev/null; then
	ok 'zsh reads its completion' zsh -n "$at/share/zsh/site-functions/_copper"
	# What a terminal shows after a line and the key, without colours.
	zsh_line() { # LINE
		(cd "$T" && timeout 20 zsh -f "$cop_t/zsh-complete.zsh" \
				"$at/share/zsh/site-functions" "$1" 2>&1)
	}
	matches 'zsh completes a subcommand' "$(zsh_line 'copper cache-')" 'copper cache-stats'
	matches 'an option' "$(zsh_line 'copper mount --secr')" 'copper mount --secret-file'
	matches 'explains them' "$(zsh_line 'copper stop --')" '--timeout.*-- give up after'
	matches 'completes a word' \
		"$(zsh_line 'copper mount --address-source=fac')" 'address-source=facility'
	matches 'a mount that is there is completed' \
		"$(zsh_line "copper stop $T/m")" "copper stop $T/mnt"
else
	for ((i = 0; i < 6; i++)); do
		pass 'zsh # SKIP not installed'
	done
fi
"$at/bin/copper" stop "$T/mnt" >"$T/.out"
is 'the program stops' "$(is_mounted "$T/mnt" && echo mounted)" ''

# ---- Lmod

version=$("$COPPER" --version | sed -n 's/^copper //p')
lmod=/usr/share/lmod/lmod/init/bash
if [ -e "$lmod" ]; then
	module_says() { # COMMANDS
		bash -c '. "$1" && module use "$2" >/dev/null && module load copper && '"$1" - \
			"$lmod" "$at/share/modulefiles" 2>&1
	}
	sed -i "s|$prefix|$at|" "$at/share/modulefiles/copper/$version.lua"
	is 'the module makes the program found' \
		"$(module_says 'command -v copper')" "$at/bin/copper"
	is 'the manual too' "$(module_says 'man -w copper-mount 2>/dev/null || tr : "\n" <<<"$MANPATH" | head -n 1')" \
		"$(command -v man >/dev/null && echo "$at/share/man/man1/copper-mount.1" ||
			echo "$at/share/man")"
	is 'the module says where Copper is' "$(module_says 'echo "$COPPER_ROOT"')" "$at"
	is 'the header and the module of Python, too' \
		"$(module_says 'cd / && echo "#include <copper/mark.h>" | cc -fsyntax-only -x c - && '"$PYTHON"' -c "import copper_mark; print(copper_mark.__file__)"')" \
		"$at/share/copper/python/copper_mark.py"
	is 'the module can be unloaded' \
		"$(module_says 'module unload copper && echo "${COPPER_ROOT:-none}"')" none
	matches 'it says what it is' "$(module_says 'module whatis copper')" 'Version: .*[0-9a-f]'
else
	for ((i = 0; i < 6; i++)); do
		pass 'Lmod # SKIP not installed'
	done
fi

# ---- away

ok 'make uninstall' make_it uninstall DESTDIR="$dest" PREFIX=$prefix
is 'takes all of it away' "$(below "$dest")" ''
fails_with 1 'nothing to take away' env DESTDIR="$dest" PREFIX=$prefix \
	"$cop_root/scripts/packaging/install.sh" uninstall "$BUILD"

# ---- a Debian package, made without a network, installed where nothing else is

# How small it is does not matter here.
export DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
deb="$cop_root/scripts/packaging/deb.sh"
if command -v dpkg-deb >/dev/null; then
	package=$(unshare -n env TMPDIR="$T" "$deb" "$BUILD" "$T/deb" 2>"$T/.err")
	ok 'a Debian package is made' test -s "$package"
	mkdir -p "$T/root/var/lib/dpkg/info" "$T/root/var/lib/dpkg/updates" \
		"$T/root/var/lib/dpkg/triggers"
	: >"$T/root/var/lib/dpkg/status"
	ok 'the Debian package can be installed' \
		dpkg --root="$T/root" --log=/dev/null --force-depends --force-not-root -i "$package"
	matches 'it asks for what it needs' "$(dpkg-deb -f "$package" Depends)" '^fuse3$'
	ok 'the program runs there' \
		"$T/root/usr/bin/copper" mount --check --source "$T/src" "$T/mnt"
	ok 'the commands of Copper 1.0 are there, too' \
		test -x "$T/root/usr/share/copper/scripts/aggregate_profiling.py" -a \
		-x "$T/root/usr/bin/cu_fuse" \
		-a ! -e "$T/root/usr/scripts"
	ok 'the module of Python is where Python finds it' \
		test -s "$T/root/usr/lib/python3/dist-packages/copper_mark.py" -a -s "$T/root/usr/lib/python3/dist-packages/copper_run.py" \
		-a ! -e "$T/root/usr/share/copper/python"
	ok 'the package can be removed' \
		dpkg --root="$T/root" --log=/dev/null --force-not-root --purge copper
	is 'the removed package leaves no trace' "$(below "$T/root" | grep -v '^/var/lib/dpkg/')" ''
	again=$(TMPDIR=$T "$deb" "$BUILD" "$T/again")
	ok 'made again it is the same, byte by byte' cmp "$package" "$again"
	mkdir "$T/other"
	cp /bin/true "$T/other/copper"
	fails_with 1 'is not the static binary' "$deb" "$T/other" "$T/deb"
fi
