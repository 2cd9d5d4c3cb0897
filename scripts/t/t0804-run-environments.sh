#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: real environments work from the place where they were made: a venv with its console scripts, a relocated prefix with RPATH
# programs, Debian's numpy, Perl, gcc. Nothing of them is changed.
# modes: release
# user: yes
# limit: 240
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=soft.sh
. "$(dirname "$0")/soft.sh"
plan 15

SRC=$T/soft
make_soft "$SRC"
bin=$SOFT/envs/torch/bin
# As pip writes a console script, and as make install writes a program with an absolute RPATH.
for name in venvs/train envs/torch; do
	printf '#!%s/%s/bin/python\nimport sys, json\nprint(sys.prefix, json.__file__)\n' "$SOFT" "$name" >"$SOFT/$name/bin/console"
	chmod 755 "$SOFT/$name/bin/console"
done
compiler=
if command -v gcc >/dev/null; then
	compiler=yes
	mkdir -p "$SOFT/app/lib" "$SOFT/app/bin" "$T/build"
	echo 'int answer(void) { return 42; }' >"$T/build/lib.c"
	printf '%s\n' '#include <stdio.h>' 'int answer(void);' 'int main(void) { printf("%d\n", answer()); return 0; }' >"$T/build/main.c"
	gcc -shared -fPIC -o "$SOFT/app/lib/libanswer.so" "$T/build/lib.c" &&
		gcc -o "$SOFT/app/bin/main" "$T/build/main.c" -L"$SOFT/app/lib" -lanswer -Wl,-rpath,"$SOFT/app/lib"
fi
mkdir -p "$SOFT/perl/lib/Site" "$SOFT/perl/bin"
ln -s "$(command -v perl)" "$SOFT/perl/bin/perl"
printf 'package Site::Thing;\nsub say_it { print "thing of $INC{q(Site/Thing.pm)}\\n" }\n1;\n' >"$SOFT/perl/lib/Site/Thing.pm"
printf '#!%s/perl/bin/perl\nuse lib "%s/perl/lib";\nuse Site::Thing;\nSite::Thing::say_it();\n' "$SOFT" "$SOFT" >"$SOFT/perl/bin/tool"
chmod 755 "$SOFT/perl/bin/tool"
chmod -R a+rX "$SOFT"

become_user
with_tree 1
version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')

run() {
	as_user env -u PYTHONHOME "$COPPER" run "$@"
}
reads() {
	node_stat 0 fuse.read
}
before=$(reads)
is 'a console script of a conda-like prefix' "$(run "$SOFT/envs/torch/bin/console")" "$SOFT/envs/torch $SOFT/envs/torch/lib/$version/json/__init__.py"
ok 'and its bytes came through the node' test "$(reads)" -gt "$before"
is 'a console script of a venv, whose base is that prefix' "$(run "$SOFT/venvs/train/bin/console")" "$SOFT/venvs/train $SOFT/envs/torch/lib/$version/json/__init__.py"
is 'an activated one' "$(run bash -c "export PATH=$bin:\$PATH CONDA_PREFIX=$SOFT/envs/torch; python -c 'import torchlike; print(torchlike.where)'")" \
	"$SOFT/envs/torch/lib/$version/dist-packages/torchlike/__init__.py"
is 'a venv that activates itself' "$(run bash -c ". '$SOFT/venvs/train/bin/activate' && python -c 'import worklike; print(worklike.where)'")" \
	"$SOFT/venvs/train/lib/$version/site-packages/worklike/__init__.py"
if [ -n "$compiler" ]; then
	is 'a program with an absolute RPATH' "$(run "$SOFT/app/bin/main")" 42
	is 'whose library is the one of the tree' "$(run sh -c "ldd '$SOFT/app/bin/main' | sed -n 's/.*libanswer.so => \\([^ ]*\\).*/\\1/p'")" "$SOFT/app/lib/libanswer.so"
else
	pass 'RPATH # SKIP no gcc'
	pass 'library # SKIP no gcc'
fi
is 'a Perl script with an absolute interpreter and library' "$(run "$SOFT/perl/bin/tool")" "thing of $SOFT/perl/lib/Site/Thing.pm"
is 'where namespaces are off, the prefix still comes through the mount' \
	"$(run --view env "$bin/python" -c 'import json; print(json.__file__)')" "$W/mnt/0/envs/torch/lib/$version/json/__init__.py"
is 'and so does the base of a venv' "$(run --view env "$SOFT/venvs/train/bin/python" -c 'import json; print(json.__file__)')" \
	"$W/mnt/0/envs/torch/lib/$version/json/__init__.py"
ok 'the tree stops' without_tree

# ---- Debian's own: everything that programs have on this machine

SRC=/usr
with_tree 1
if "$PYTHON" -c 'import numpy' 2>/dev/null; then
	is 'numpy computes' "$(run /usr/bin/python3 -B -c 'import numpy; print((numpy.eye(3) @ numpy.arange(9).reshape(3, 3)).sum(), numpy.__file__)')" \
		"36.0 $(/usr/bin/python3 -c 'import numpy; print(numpy.__file__)')"
else
	pass 'numpy # SKIP there is none'
fi
is 'perl with its modules' "$(run perl -MPOSIX -MList::Util=sum -e 'print sum(1..4), " ", POSIX::floor(2.5)')" '10 2'
if [ -n "$compiler" ]; then
	is 'gcc with its own headers' "$(run sh -c "gcc -o '$W/main' '$T/build/main.c' '$T/build/lib.c' && '$W/main'" 2>&1)" 42
else
	pass 'gcc # SKIP there is none'
fi
ok 'the tree stops' without_tree
