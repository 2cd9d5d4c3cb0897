#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: real environments work from the place where they were made: a venv with its console
# scripts, a relocated prefix with RPATH programs, a Node.js project with npm's links, Debian's
# numpy and torch, Perl, gcc. Nothing of them is changed. As root and as an ordinary user; under
# Slurm and MPI launchers they run in t0848-run-environments-jobs.sh.
# covers: view
# modes: release
# user: yes
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=environments.sh
. "$(dirname "$0")/environments.sh"
plan 38

SRC=$T/soft
make_environments "$SRC"
bin=$SOFT/envs/torch/bin
version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')

run() {
	as_user env -u PYTHONHOME "$COPPER" run "$@"
}
reads() {
	node_stat 0 fuse.read
}
environments() { # of $SOFT
	local before
	before=$(reads)
	is "$who: a console script of a conda-like prefix" "$(run "$SOFT/envs/torch/bin/console")" \
		"$SOFT/envs/torch $SOFT/envs/torch/lib/$version/json/__init__.py"
	ok "$who: the bytes of the script came through the node" test "$(reads)" -gt "$before"
	is "$who: a console script of a venv, whose base is that prefix" \
		"$(run "$SOFT/venvs/train/bin/console")" \
		"$SOFT/venvs/train $SOFT/envs/torch/lib/$version/json/__init__.py"
	is "$who: an activated one" \
		"$(run bash -c "export PATH=$bin:\$PATH CONDA_PREFIX=$SOFT/envs/torch; python -c 'import torchlike; print(torchlike.where)'")" \
		"$SOFT/envs/torch/lib/$version/dist-packages/torchlike/__init__.py"
	is "$who: a venv that activates itself" \
		"$(run bash -c ". '$SOFT/venvs/train/bin/activate' && python -c 'import worklike; print(worklike.where)'")" \
		"$SOFT/venvs/train/lib/$version/site-packages/worklike/__init__.py"
	if [ -n "$compiler" ]; then
		is "$who: a program with an absolute RPATH" "$(run "$SOFT/app/bin/main")" 42
		is "$who: the library of the program is the one of the tree" \
			"$(run sh -c "ldd '$SOFT/app/bin/main' | sed -n 's/.*libanswer.so => \\([^ ]*\\).*/\\1/p'")" "$SOFT/app/lib/libanswer.so"
	else
		pass "$who: RPATH # SKIP no gcc"
		pass "$who: library # SKIP no gcc"
	fi
	is "$who: a Perl script with an absolute interpreter and library" \
		"$(run "$SOFT/perl/bin/tool")" "thing of $SOFT/perl/lib/Site/Thing.pm"
	is "$who: where namespaces are off, the prefix still comes through the mount" \
		"$(run --view env "$bin/python" -c 'import json; print(json.__file__)')" \
		"$W/mnt/0/envs/torch/lib/$version/json/__init__.py"
	is "$who: where namespaces are off, the base of a venv is in the mount" \
		"$(run --view env "$SOFT/venvs/train/bin/python" \
			-c 'import json; print(json.__file__)')" \
		"$W/mnt/0/envs/torch/lib/$version/json/__init__.py"
	if command -v node >/dev/null; then
		is "$who: a command of a Node.js project, by its link" \
			"$(run "$SOFT/js/node_modules/.bin/tool")" \
			"$SOFT/js/node_modules/@site/tool/lib/main.js $SOFT/js/packages/local/index.js"
		is "$who: what a package exports, both ways" \
			"$(cd "$SOFT/js" && run node -e 'import("@site/tool/deep").then(m => console.log(m.where, require("@site/tool/deep").where))')" \
			"$SOFT/js/node_modules/@site/tool/lib/deep.mjs $SOFT/js/node_modules/@site/tool/lib/deep.js"
		matches "$who: a package exports nothing else" \
			"$(cd "$SOFT/js" && run node -e 'require("@site/tool/lib/main.js")' 2>&1)" \
			ERR_PACKAGE_PATH_NOT_EXPORTED
	else
		pass "$who: Node.js, a command # SKIP there is none"
		pass "$who: Node.js, exports # SKIP there is none"
		pass "$who: Node.js, no exports # SKIP there is none"
	fi
}

# What programs use on this machine anyway.
of_the_system() {
	if "$PYTHON" -c 'import numpy' 2>/dev/null; then
		is "$who: numpy computes" \
			"$(run /usr/bin/python3 -B \
				-c 'import numpy; print((numpy.eye(3) @ numpy.arange(9).reshape(3, 3)).sum(), numpy.__file__)')" \
			"36.0 $(/usr/bin/python3 -c 'import numpy; print(numpy.__file__)')"
	else
		pass "$who: numpy # SKIP there is none"
	fi
	if "$PYTHON" -c 'import torch' 2>/dev/null; then
		is "$who: torch computes" \
			"$(run /usr/bin/python3 -B \
				-c 'import torch; print(int(torch.arange(9).sum()), torch.__file__)')" \
			"36 $(/usr/bin/python3 -c 'import torch; print(torch.__file__)')"
	else
		pass "$who: torch # SKIP there is none"
	fi
	is "$who: perl with its modules" \
		"$(run perl -MPOSIX -MList::Util=sum \
			-e 'print sum(1..4), " ", POSIX::floor(2.5)')" '10 2'
	if [ -n "$compiler" ]; then
		is "$who: gcc with its own headers" \
			"$(run sh -c "gcc -o '$W/main' '$T/build/main.c' '$T/build/lib.c' && '$W/main'" 2>&1)" 42
	else
		pass "$who: gcc # SKIP there is none"
	fi
}
both() { # WHO
	who=$1
	SRC=$SOFT
	with_tree 1
	environments
	ok "$who: the tree stops" without_tree
	SRC=/usr
	with_tree 1
	of_the_system
	ok "$who: the tree of the system stops" without_tree
}

both root
become_user
both user
