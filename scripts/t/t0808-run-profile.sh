#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Profiles stay accurate in a view: with -A, and with --observe, they see the same of a program as
# strace, as on the bare mount.
# covers: view profile
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
command -v strace >/dev/null || skip_all 'strace is not installed'
plan 18

SRC=$T/src
small_tree "$SRC"
mkdir -p "$SRC/lib/package/sub" "$SRC/unseen"
echo 'from package.sub import inner' >"$SRC/lib/package/__init__.py"
echo 'value = 42' >"$SRC/lib/package/sub/inner.py"
: >"$SRC/lib/package/sub/__init__.py"
: >"$SRC/unseen/file"
ln -s ../dir/numbers "$SRC/lib/link"
cat >"$SRC/lib/program.py" <<'PY'
import os, sys
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import package
try:
    import not_there
except ImportError:
    pass
os.listdir(top + "/dir")
for name in ("hello", "lib/link", "dir/deeper/random", "absent", "dir/absent", "absent/below"):
    try:
        with open(os.path.join(top, name), "rb") as f:
            f.read()
    except OSError:
        pass
PY

trace=(strace -f -qq -e trace=%file -e signal=none -s 4096 -o "$T/trace")
program=(env -i PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -S -E -s)
one() { # a final file of the node
	local found=("$JOB"/"$1"/final/127.0.0.11-*-"$2")
	echo "${found[0]}"
}
compare() { # TOP: what the program saw below it, and what the node counted
	"$PYTHON" "$cop_root/scripts/t/traced.py" "$SRC" "$1" \
		"$(one tables md_table_cache_event.output)" "$T/trace" |
		awk '/^counted/ { print ($2 > 8 && $3 > 4) ? "counted enough" : $0; next } { print }'
}
nothing=$'existing-not-seen: \nabsent-not-seen: \nseen-not-by-strace: \ncounted enough'
for how in -A --observe; do
	options=(-A)
	[ "$how" = -A ] || options=(-A --observe --enoent-ttl-ms 600000)
	for where in mount overlay bind; do
		with_tree 1 "${options[@]}"
		case $where in
		mount) top=$W/mnt/0 run=() ;;
		*) top=$SRC run=("$COPPER" run --view "$where" --) ;;
		esac
		ok "$how, $where: a program runs" \
			"${run[@]}" "${trace[@]}" "${program[@]}" "$top/lib/program.py"
		ok "$how, $where: the tree stops" without_tree
		is "$how, $where: strace and the node see the same" "$(compare "$top")" "$nothing"
		cut -d , -f 1,2 "$(one profiling profiling_operations.csv)" |
			grep -E '^(open|readdir|readlink),' | tr '\n' ' ' >"$T/operations.$where"
		note "$(cat "$T/operations.$where")"
		rm -rf "$JOB"
	done
done
