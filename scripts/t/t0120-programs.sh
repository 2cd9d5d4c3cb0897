#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that people run from such a mount: git, gcc, sqlite3, python with numpy.
# covers: fuse fetch
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 11

SRC=$T/src
mkdir -p "$SRC/project" "$SRC/repo"
make_repo() {
	cd "$SRC/repo" && git init -q -b main . &&
		git config user.name Test && git config user.email test@example.org || return 1
	for i in 1 2 3 4 5; do
		seq 1 $((i * 1000)) >numbers
		echo "$i" >"file$i"
		git add . && git commit -q -m "change $i" || return 1
	done
	git gc -q && seq 1 9000 >numbers && git commit -q -a -m 'loose change'
}
make_project() {
	cd "$SRC/project" && mkdir include src &&
		echo '#define ANSWER 42' >include/answer.h &&
		printf '#include "answer.h"\nint answer(void);\nint answer(void) { return ANSWER; }\n' >src/answer.c &&
		printf '#include <stdio.h>\nint answer(void);\nint main(void) { printf("%%d\\n", answer()); return 0; }\n' >src/main.c
}
ok 'a repository is made' make_repo
ok 'a project is made' make_project
sqlite3 "$SRC/data.db" "create table t(a integer primary key, b text);
	with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
	insert into t select i, 'row ' || i from n; create index i on t(b);"
with_tree 2
mnt=$W/mnt/1
ok 'git fsck' git -C "$mnt/repo" fsck --full --no-progress
is 'git log' "$(git -C "$mnt/repo" log --oneline | wc -l)" 6
is 'git status sees a clean tree' "$(git -C "$mnt/repo" --no-optional-locks status --porcelain)" ''
ok 'gcc compiles' gcc -I"$mnt/project/include" -o "$T/program" "$mnt/project/src/main.c" \
	"$mnt/project/src/answer.c"
is 'the program that it compiled runs' "$("$T/program")" 42
is 'sqlite3 reads a database' \
	"$(sqlite3 -readonly "$mnt/data.db" \
		"pragma integrity_check; select count(*), sum(a) from t where b like 'row 1%'")" \
	"$(sqlite3 -readonly "$SRC/data.db" \
		"pragma integrity_check; select count(*), sum(a) from t where b like 'row 1%'")"
ok 'the tree stops' without_tree

SRC=/usr
with_tree 2
mnt=$W/mnt/1
is 'python imports numpy from the mount' "$(PYTHONPATH=$mnt/lib/python3/dist-packages "$PYTHON" -c '
import numpy
print(numpy.__file__.startswith("'"$mnt"'"), numpy.arange(10).sum(), numpy.linalg.det(numpy.eye(3)))')" 'True 45 1.0'
is 'a program runs from the mount' "$("$mnt/bin/env" "$mnt/bin/expr" 6 '*' 7)" 42
