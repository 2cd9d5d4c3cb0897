#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The source changes in every way, also while it is read: a reader gets one complete version or an
# error, and after --invalidate the current one.
# covers: fetch fuse origin
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 35

fresh() {
	"$PYTHON" "$cop_t/t05_fresh.py" "$@"
}
# The kernels are told right after the nodes, so the current version may take a moment to appear.
soon() {
	wait_for 3 "$@"
}
invalidate() { # [PATH]
	"$COPPER" cache-stats --invalidate "$W/mnt/1" "$@" >"$T/out.invalidate" 2>&1
}
# Everything that a program can see of a tree: names, kinds, modes, sizes, times, links, bytes.
picture() { # DIR
	(cd "$1" && find . -mindepth 1 \( -type d -printf '%p %y %m %T@\n' -o \
			-printf '%p %y %m %n %s %T@ %l\n' \) | LC_ALL=C sort
	checksums "$1")
}
same() { # RANK
	picture "$W/mnt/$1" 2>&1 | cmp - "$T/now"
}
everywhere() { # DESCRIPTION: every node shows the source as it is
	local rank
	picture "$SRC" >"$T/now"
	for rank in 0 1 2; do
		soon same "$rank"
		ok "$1: node $rank" same "$rank"
	done
}

# ---- everything that can change, cached on every node

SRC=$T/src
mkdir -p "$SRC/a/deep/er" "$SRC/busy" "$SRC/becomes-file" "$SRC/old-name/sub" "$SRC/gone"
for name in replaced appended truncated emptied rewritten deleted chmodded linked becomes-dir \
	a/deep/er/held; do
	seq 1 3000 >"$SRC/a/${name#a/}"
	touch -d '2020-02-02 02:02:02' "$SRC/a/${name#a/}"
done
seq 1 5000 >"$SRC/old-name/sub/file"
echo x >"$SRC/gone/file"
ln -s a/replaced "$SRC/link"
ln -s a/nowhere "$SRC/dangling"
echo v0 >"$SRC/busy/file"
with_tree 3 --fanout 1
everywhere 'at first'

# On node 2 a program has one file open and one directory as its working directory.
exec 5<"$W/mnt/2/a/deep/er/held"
cd "$W/mnt/2/old-name/sub" || exit 1
ls >/dev/null

change() {
	cd "$SRC" || return 1
	seq 5 2000 >new && mv new a/replaced
	seq 6 3000 >new && mv new a/deep/er/held
	echo more >>a/appended
	truncate -s 700 a/truncated
	: >a/emptied
	tr 0-9 1-90 <a/rewritten >new && cat new >a/rewritten && rm new
	rm -r a/deleted gone a/becomes-dir becomes-file
	mkdir a/becomes-dir && echo inside >a/becomes-dir/file
	echo file >becomes-file
	chmod 600 a/chmodded
	ln a/linked a/linked2
	mv old-name new-name && mkdir -p old-name/sub && echo other >old-name/sub/file
	ln -sfn a/appended link
	echo here >a/nowhere
	mkdir -p a/fresh/dir && echo fresh >a/fresh/dir/file
}
(change) || bail 'the source does not change'
# Until the nodes are told, a reader gets an error or one complete version.
odd=$("$PYTHON" - "$T/now" "$SRC" "$W"/mnt/{0,1,2} <<'PY'
import hashlib, os, sys
known = {line.split("  ", 1)[0] for line in open(sys.argv[1]) if "  ./" in line}
source, *mounts = sys.argv[2:]
def sums(top):
    for where, _, names in os.walk(top):
        for name in names:
            try:
                with open(os.path.join(where, name), "rb") as f:
                    yield os.path.join(where, name), hashlib.blake2b(f.read()).hexdigest()
            except OSError:
                pass
known |= {s for _, s in sums(source)}
print([name for top in mounts for name, s in sums(top) if s not in known])
PY
)
is 'before it is said, every file is an old one, a new one or an error' "$odd" '[]'

invalidate
is 'all is invalidated on every node' "$? $(cat "$T/out.invalidate")" '0 invalidated on 3/3 nodes'
soon cmp "$SRC/a/deep/er/held" "$W/mnt/2/a/deep/er/held"
ok 'a file that a process holds open is the new one when it is opened anew' \
	cmp "$SRC/a/deep/er/held" "$W/mnt/2/a/deep/er/held"
# Its bytes are those that the kernel has kept; where it has not, they are lost.
matches 'an open file is still what it was, or an error' "$(sha256sum <&5 2>&1)" \
	"^($(seq 1 3000 | sha256sum)|.*Stale file handle)\$"
everywhere 'after --invalidate'
touch "$SRC/old-name/sub/appeared"
invalidate
soon eval '[ "$(ls)" != file ]'
is 'a working directory shows its current contents' "$(ls)" "$(ls "$SRC/old-name/sub")"
exec 5<&-
cd / || exit 1

# ---- one path only

echo one >"$SRC/a/fresh/dir/file"
echo two >"$SRC/becomes-file"
touch -d '2021-01-01' "$SRC/a/fresh/dir/file" "$SRC/becomes-file"
invalidate "$W/mnt/1/a/fresh"
soon eval '[ "$(cat "$W"/mnt/{0,1,2}/a/fresh/dir/file | sort -u)" = one ]'
is 'everything below the path is new on every node' \
	"$(cat "$W"/mnt/{0,1,2}/a/fresh/dir/file)" $'one\none\none'
invalidate becomes-file
soon eval '[ "$(cat "$W"/mnt/{0,1,2}/becomes-file | sort -u)" = two ]'
is 'a single file too' "$(cat "$W"/mnt/{0,1,2}/becomes-file; stat -c %Y "$W/mnt/2/becomes-file")" \
	"$(printf 'two\ntwo\ntwo\n'; stat -c %Y "$SRC/becomes-file")"

# ---- while programs read

readers=()
for ranks in '0 1 2' '2 0 1'; do
	(
		while [ ! -e "$T/busy.done" ]; do
			for rank in $ranks; do
				cat "$W/mnt/$rank/busy/file" >/dev/null 2>&1
			done
		done
	) &
	readers+=($!)
done
old=0
for i in $(seq 1 $((36 / cop_slower))); do
	echo "v$i" >"$SRC/busy/new"
	mv "$SRC/busy/new" "$SRC/busy/file"
	invalidate || note "round $i: $(cat "$T/out.invalidate")"
	for rank in 0 1 2; do
		shown=$(cat "$W/mnt/$rank/busy/file" 2>&1)
		[ "$shown" = "v$i" ] || {
			soon eval '[ "$(cat "$W/mnt/$rank/busy/file" 2>&1)" = "v$i" ]' ||
				old=$((old + 1))
			note "round $i: node $rank has $shown, then $(cat "$W/mnt/$rank/busy/file" 2>&1)"
		}
	done
done
touch "$T/busy.done"
wait "${readers[@]}"
is 'what is read at the same moment is not kept past --invalidate' "$old" 0
ok 'the tree stops' without_tree

# ---- more names in one directory than a queue holds

SRC=$T/wide
names() { # WORD DIR: makes 6,000 files anew, or counts those that are of 6 bytes
	"$PYTHON" -c '
import os, sys
count = 0
for i in range(6000):
    name = f"{sys.argv[2]}/n{i}"
    if sys.argv[1] == "count":
        count += os.stat(name).st_size == 6
        continue
    with open(f"{sys.argv[2]}/.new", "w") as f:
        f.write(f"{sys.argv[1]}\n")
    os.rename(f"{sys.argv[2]}/.new", name)
print(count)' "$@"
}
mkdir -p "$SRC/d"
names old "$SRC" >/dev/null
with_tree 2 --enoent-ttl-ms 600000
is 'the kernel learns 6,000 names' "$(names count "$W/mnt/1")" 0
is 'the kernel learns two absent names' \
	"$(cat "$W/mnt/1/late" "$W/mnt/1/d/late" 2>&1 | grep -c 'No such')" 2
echo late | tee "$SRC/late" >"$SRC/d/late"
names newer "$SRC" >/dev/null
invalidate
soon eval '[ "$(names count "$W/mnt/1")" -eq 6000 ]'
is 'after --invalidate all of them are new' "$(names count "$W/mnt/1")" 6000
soon cat "$W/mnt/1/late" "$W/mnt/1/d/late"
is 'after --invalidate names that were absent are there' \
	"$(cat "$W/mnt/1/late" "$W/mnt/1/d/late" 2>&1)" $'late\nlate'
ok 'the tree stops' without_tree

# ---- ten readers in the middle of a large file

SRC=$T/large
mkdir -p "$SRC/d"
: >"$T/states"
# A cache that is too small for the file, so that readers in its middle request more of a version
# that no longer exists.
with_tree 3 --fanout 1 --enoent-ttl-ms 100 --cache-size 16M --compress off
living=$(tree_sum pid)
head -c 9000000 /dev/zero | tee "$SRC/d/known" >"$SRC/d/unread"
ls -l "$W"/mnt/{0,1,2}/d >/dev/null
head -c 9000000 /dev/urandom | tee "$SRC/new" >"$SRC/unread"
mv "$SRC/new" "$SRC/d/known"
said=$("$PYTHON" - "$W/mnt/2/d/unread" "$SRC/unread" "$SRC/d/unread" <<'PY'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.rename(sys.argv[2], sys.argv[3])
try:
    print(len(os.read(fd, 4096)), "bytes")
except OSError as e:
    print(errno.errorcode[e.errno])
PY
)
is 'opening a version that is gone before it is read gives an error' "$said" ESTALE
for rank in 2 1 0; do
	said=$(cat "$W/mnt/$rank/d/known" 2>&1 >"$T/known")
	matches "a version that is gone is an error on node $rank, or the new one" \
		"$said$(cmp "$T/known" "$SRC/d/known" 2>&1)" '^$|Stale file handle'
	soon cmp "$SRC/d/known" "$W/mnt/$rank/d/known"
	ok "the next lookup brings the new version on node $rank" \
		cmp "$SRC/d/known" "$W/mnt/$rank/d/known"
done
fresh write "$SRC/d/file" "$T/states" 1 2>"$T/writer.err" &
writer=$!
wait_for 10 test -e "$SRC/d/file"
hows=(stream random mmap)
readers=()
for i in 0 1 2 3 4 5 6 7 8 9; do
	fresh read "${hows[i * 3 / 10]}" "$i" "$T/done" "$T/read.$i" "$W/mnt/$((i % 3))/d/file" \
		2>>"$T/readers.err" &
	readers+=($!)
done
n=0
while kill -0 "$writer" 2>/dev/null; do
	n=$((n + 1))
	[ $((n % 2)) -eq 0 ] || invalidate
	sleep 0.3
done
wait "$writer"
is 'the file was changed in every way' "$? $(cat "$T/writer.err")" '0 '
invalidate
sleep 1
touch "$T/done"
wait "${readers[@]}"
is 'no reader failed' "$(cat "$T/readers.err")" ''
verdict=$(fresh judge "$T/states" "$T"/read.? 2>"$T/faults")
matches 'no reader ever saw a mixture or bytes past the end' \
	"$verdict $(head -n 5 "$T/faults")" '^[0-9]+ [0-9]+ 0 $'
is_at_most 'each of them read something whole' 10 "$(grep -l whole "$T"/read.? | wc -l)"
note "whole, errors, faults: $verdict; $(cat "$T"/read.? | grep '^error' | sort | uniq -c |
		tr -s ' \n' ' ')"
for rank in 0 1 2; do
	soon cmp "$SRC/d/file" "$W/mnt/$rank/d/file"
	ok "in the end node $rank has the last version" cmp "$SRC/d/file" "$W/mnt/$rank/d/file"
done
is 'all nodes live' "$(tree_sum pid)" "$living"
