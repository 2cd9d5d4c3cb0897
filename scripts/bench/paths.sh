#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A complete run of `copper paths` over a tree of many files (BENCH_FILES, 150,000): reading tables,
# walking, marking, writing six lists; compared with find, which writes one. With sizes it is
# compared with a find that reads them, too; without, with a find that reads only names. The tree is
# on the local disk and warm; then a smaller one on a slow file system that takes 1 ms per metadata
# operation.
# limit: 600
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

files=${BENCH_FILES:-150000}
# DIR FILES: a hundred files in a directory, twenty directories in a package; a job that used every
# fiftieth file.
make_tree() {
	"$PYTHON" - "$1" "$2" <<'PY'
import os, sys
base, files = sys.argv[1] + "/tree", int(sys.argv[2])
os.makedirs(sys.argv[1] + "/job/tables/final")
with open(sys.argv[1] + "/job/tables/final/node-1-md_table_cache_event.output", "w") as table:
    table.write("md_cache_event_table {\n")
    for i in range(files // 100):
        where = "%s/package%03d/module-%02d" % (base, i // 20, i % 20)
        os.makedirs(where)
        for k in range(100):
            name = "%s/some_file_%d.py" % (where, k)
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            if k % 50 == 0:
                table.write(name + " {\ncache hits: 1,\ncache misses: 0,\nneg: 0\n}\n")
    table.write("}\n")
PY
}
make_tree "$T/fast" "$files"
with_sizes() { add sizes "$(wall 1 "$COPPER" paths "$T/fast/job" --usage-root "$T/fast/tree")"; }
find_sizes() {
	add find-sizes "$(wall 1 sh -c 'exec find "$1" -printf "%p %s\n" >"$2"' sh "$T/fast/tree" "$T/found")"
}
names() {
	add names "$(wall 1 "$COPPER" paths "$T/fast/job" --usage-root "$T/fast/tree" --no-sizes)"
}
find_names() {
	add find-names "$(wall 1 sh -c 'exec find "$1" >"$2"' sh "$T/fast/tree" "$T/found")"
}
find "$T/fast/tree" -size +1 >/dev/null
in_turn "${BENCH_PAIRS:-7}" with_sizes find_sizes
in_turn "${BENCH_PAIRS:-7}" names find_names
report "paths of $files files / find that reads sizes" s at_most 0.6 sizes find-sizes
report "the same without sizes / find" s at_most 1.3 names find-names
report "paths with sizes / find without them" s none - sizes find-names

make_tree "$T/far" 2000
SRC=$T/far/tree
with_slowfs --meta-us 1000 --read-us 1000 --slots 64
sed -i "s|^$T/far/tree|$SRC|" "$T/far/job/tables/final/"*
slow_paths() {
	add slow "$(wall 1 "$COPPER" paths "$T/far/job" --usage-root "$SRC" --output-dir "$T/far/out")"
}
slow_find() { add slow-find "$(wall 1 find "$SRC" -printf '%p %s\n')"; }
slow_names() {
	add slow-names "$(wall 1 "$COPPER" paths "$T/far/job" --usage-root "$SRC" --output-dir "$T/far/out" --no-sizes)"
}
slow_find_names() { add slow-find-names "$(wall 1 find "$SRC")"; }
in_turn 3 slow_paths slow_find
in_turn 3 slow_names slow_find_names
report 'paths of 2,000 files, slow file system / find that reads sizes' s at_most 1.3 slow slow-find
report 'the same without sizes / find' s at_most 1.3 slow-names slow-find-names
