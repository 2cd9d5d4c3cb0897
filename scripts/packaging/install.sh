#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Puts what users need below DESTDIR and PREFIX, removes it, or lists it. `make install` and `make
# uninstall` call it.
#
#   DESTDIR=DIR PREFIX=/usr/local scripts/packaging/install.sh install|uninstall|list BUILD
#
# Version and options are the program's, not those of the checkout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
verb=${1:-}
build=${2:-}
prefix=${PREFIX:-/usr/local}
dest=${DESTDIR:-}$prefix

case $verb:$build in
install:?* | list:?*) program=$build/copper ;;
uninstall:?*)
	program=$dest/bin/copper
	[ -x "$program" ] || {
		echo "install.sh: nothing to take away: there is no $program; give the DESTDIR and PREFIX of the installation" >&2
		exit 1
	}
	;;
*)
	sed -n 's/^#   //p' "$0" >&2
	exit 2
	;;
esac
# $RUNNER runs the program if it is for another processor than this machine's.
# shellcheck disable=SC2086
version=$(${RUNNER:-} "$program" --version | sed -n 's/^copper //p')

# One file: where it comes from (- is standard input), where it goes, its mode.
place() { # FILE PLACE MODE
	local target=$dest/$2
	case $verb in
	list) echo "$prefix/$2" ;;
	uninstall) rm -f "$target" ;;
	install)
		mkdir -p "${target%/*}"
		if [ "$1" = - ]; then
			cat >"$target"
			chmod "$3" "$target"
		else
			install -m "$3" "$1" "$target"
		fi
		;;
	esac
}

link() { # WHERE-TO PLACE
	local target=$dest/$2
	case $verb in
	list) echo "$prefix/$2" ;;
	uninstall) rm -f "$target" ;;
	install)
		mkdir -p "${target%/*}"
		ln -sfn "$1" "$target"
		;;
	esac
}

# A generated file: nothing runs unless it is installed.
generate() { # PLACE COMMAND...
	local place=$1
	shift
	if [ "$verb" = install ]; then
		"$@" | place - "$place" 644
	else
		place - "$place" 644 </dev/null
	fi
}

modulefile() {
	sed "s|@PREFIX@|$prefix|g; s|@VERSION@|$version|g" "$here/copper.lua"
}

place "$build/copper" bin/copper 755
for script in scripts/launch_copper_*.sh scripts/stop_copper_*.sh scripts/copper_wrapper.sh; do
	[ ! -e "$script" ] || place "$script" "bin/${script##*/}" 755
done
# The commands of Copper 1.0, where its job scripts call them; a distribution has no such folders.
place scripts/cu_fuse bin/cu_fuse 755
old=scripts
if [ "$prefix" = /usr ]; then
	old=share/copper/scripts
else
	link ../bin/cu_fuse build/cu_fuse
fi
place scripts/copper1.py "$old/copper1.py" 644
for script in aggregate_profiling.py path_usage_analysis.py; do
	place "scripts/$script" "$old/$script" 755
done
for script in scripts/get_copper_stats_ioctl/*.py scripts/get_copper_stats_ioctl/*.sh; do
	place "$script" "$old/${script#scripts/}" 755
done
for page in man/*.[1-9]; do
	place "$page" "share/man/man${page##*.}/${page##*/}" 644
done
for file in README.md LICENSE; do
	place "$file" "share/doc/copper/$file" 644
done
# What programs mark and record themselves with: headers, and modules that PYTHONPATH must name
# (deb.sh puts them where Python looks).
generate include/copper/mark.h "$here/header.sh" internal/trace/mark/include/copper/mark.h
generate include/copper/run.h "$here/header.sh" internal/writers/runs/include/copper/run.h
place internal/trace/mark/include/copper/perfflow.h include/copper/perfflow.h 644
place internal/trace/mark/weave/copper_weave.cc share/copper/weave/copper_weave.cc 644
place internal/trace/mark/python/copper_mark.py share/copper/python/copper_mark.py 644
for file in __init__ aspect; do
	place "internal/trace/mark/python/perfflowaspect/$file.py" \
		"share/copper/python/perfflowaspect/$file.py" 644
done
place internal/writers/runs/python/copper_run.py share/copper/python/copper_run.py 644
generate share/bash-completion/completions/copper "$here/completion.sh" bash "$build/copper"
generate share/zsh/site-functions/_copper "$here/completion.sh" zsh "$build/copper"
generate "share/modulefiles/copper/$version.lua" modulefile

# Folders that are ours alone.
if [ "$verb" = uninstall ]; then
	for dir in share/doc/copper share/modulefiles/copper "$old/get_copper_stats_ioctl" "$old" \
		share/copper/python/perfflowaspect \
		share/copper/python share/copper/weave share/copper include/copper build; do
		[ ! -d "$dest/$dir" ] || rmdir --ignore-fail-on-non-empty "$dest/$dir"
	done
fi
