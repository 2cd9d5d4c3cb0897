#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A storage that reports wrong sizes, and one on which directories are renamed under open files: a
# reader gets the right bytes or an error.
# covers: origin fetch
# modes: release asan
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 41

SRC=$T/src
mkdir -p "$SRC/lies" "$SRC/top/old/sub"
storage() {
	timeout "$(patient 60)" "$PYTHON" "$cop_t/storage.py" "$@"
}

# ---- wrong sizes

sizes=(0 1 4096 5000 1048576 3000000)
for size in "${sizes[@]}"; do
	storage make "$SRC/lies/$size" "$size"
done
for i in 0 1 2 3; do
	storage make "$SRC/lies/changes$i" $((4 << 20))
	storage make "$SRC/top/old/sub/f$i" $((6 << 20))
done
with_slowfs --direct-io
# As most storage is read: through the kernel's pages, which end where the size does.
mkdir "$T/pages"
"$SLOWFS" --share "$SLOW_STATE" "$ORIGIN" "$T/pages" || bail "the second slowfs does not mount"
with_tree 2 --chunk 1M --enoent-ttl-ms 100 --cache-size 16M
tell() { # BYTES: by so much the sizes are told wrong from now on, and known by nobody
	slow_fault clear
	[ "$1" = 0 ] || slow_fault "size=$1:lies"
	"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null 2>&1
}
for bytes in 1 1000 2000000 -1 -1000; do
	direct=$SRC
	[ "$bytes" -gt 0 ] || direct=$T/pages
	tell "$bytes"
	for size in "${sizes[@]}"; do
		ok "size $size told wrong by $bytes" \
			storage like "$direct/lies/$size" "$W/mnt/1/lies/$size"
	done
done
tell 0
ok 'reported right again' cmp "$ORIGIN/lies/3000000" "$W/mnt/1/lies/3000000"

# The size is wrong and right in turn while both nodes read.
files=()
for rank in 0 1; do
	for i in 0 1 2 3; do
		files+=("$W/mnt/$rank/lies/changes$i")
	done
done
storage read "$(patient 30)" "$T/enough" "${files[@]}" >"$T/read" 2>&1 &
reader=$!
for bytes in 1000 0 -1000 70000 0 3000000 -4000000 0; do
	tell "$bytes"
	sleep 0.2
done
touch "$T/enough"
wait "$reader"
is 'changing sizes: no byte is wrong' $? 0
note "right, failed: $(cat "$T/read")"
ok 'when the sizes stay, every byte is there' cmp "$ORIGIN/lies/changes3" "$W/mnt/1/lies/changes3"
is 'the file has its size' "$(stat -c %s "$W/mnt/1/lies/changes3")" $((4 << 20))

umount "$T/pages"

# ---- directories are renamed above open files, and others with the same names take their place

mkfifo "$T/said"
storage hold "$T/go" "$W"/mnt/[01]/top/old/sub/f[0-3] >"$T/said" 2>&1 &
holder=$!
exec 8<"$T/said"
read -r -t "$(patient 30)" line <&8
is 'eight files are open' "$line" open
mkdir -p "$ORIGIN/new/sub"
for i in 0 1 2 3; do
	storage make "$ORIGIN/new/sub/f$i" $((6 << 20)) other
done
mv "$ORIGIN/top/old" "$ORIGIN/top/moved"
mv "$ORIGIN/new" "$ORIGIN/top/old"
touch "$T/go"
wait "$holder"
is 'renamed above them: no byte is wrong, and nobody hangs' $? 0
read -r right failed <&8
exec 8<&-
is_at_most 'some of it was read' 1 "$right"
note "right, failed: $right, $failed"
"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null 2>&1
is 'the old name shows the new directory' \
	"$(cat "$W/mnt/1/top/old/sub/f1" | cmp - "$ORIGIN/top/old/sub/f1" && echo same)" same
ok 'the new name shows the old one' cmp "$W/mnt/1/top/moved/sub/f2" "$ORIGIN/top/moved/sub/f2"

# Two directories change their names all the time while both nodes read by name.
mkdir -p "$ORIGIN/one" "$ORIGIN/other"
for i in 0 1; do
	storage make "$ORIGIN/one/g$i" $((4 << 20))
	storage make "$ORIGIN/other/g$i" $((4 << 20)) other
done
rm -f "$T/enough"
storage read "$(patient 30)" "$T/enough" "$W"/mnt/[01]/one/g0 "$W"/mnt/[01]/one/g1 \
	"$W"/mnt/[01]/other/g0 >"$T/read" 2>&1 &
reader=$!
storage swap 30 "$ORIGIN/one" "$ORIGIN/other" &
swapper=$!
while kill -0 "$swapper" 2>/dev/null; do
	"$COPPER" cache-stats --invalidate "$W/mnt/0" >/dev/null 2>&1
	sleep 0.1
done
wait "$swapper"
is 'directories change their names' $? 0
touch "$T/enough"
wait "$reader"
is 'no byte of an open file is wrong, or of the other file' $? 0
note "right, failed: $(cat "$T/read")"
