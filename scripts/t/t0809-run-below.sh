#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run --below: parts of the source are replaced, as a mount of / needs it; the rest stays the
# machine's own.
# covers: view
# modes: release
# user: yes
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 13

SRC=$T/src
small_tree "$SRC"
echo other >"$SRC/empty/file"
become_user
run=("${cop_as[@]}" "$COPPER" run)
replaced() { # WORD…: which directories of the source are another file system's than the source
	"${run[@]}" "$@" sh -c "for d in '$SRC' '$SRC/dir' '$SRC/empty' '$SRC/dir/deeper'; do stat -f -c %T \$d; done" | sed 's/overlay.*/tree/; /tree/!s/.*/own/' | tr '\n' ' '
}
parts() { # SOURCE OF THE NODE
	is "$1: --below replaces one directory" \
		"$(replaced --below "$SRC/dir")" 'own tree own tree '
	is "$1: two, by relative names" \
		"$(cd "$SRC" && replaced --below dir --below ./empty)" 'own tree tree tree '
	is "$1: the bytes are right" \
		"$("${run[@]}" --below "$SRC/dir" --below "$SRC/empty" \
			sh -c "cat '$SRC/dir/deeper/random' '$SRC/empty/file' '$SRC/hello' | sha256sum")" \
		"$(cat "$SRC/dir/deeper/random" "$SRC/empty/file" "$SRC/hello" | sha256sum)"
	is "$1: a working directory in one of them" \
		"$(cd "$SRC/dir" && "${run[@]}" --below "$SRC/dir" \
			sh -c 'touch here 2>&1; head -n 1 numbers')" \
		"touch: cannot touch 'here': Read-only file system"$'\n1'
}
with_tree 1
parts "$SRC"
ok 'the tree stops' without_tree

# ---- the habit of Copper 1.0: everything below one mount point

source=$SRC
SRC=/
with_tree 1
SRC=$source
fails_with 125 'the source of .* is /, which cannot be replaced as a whole: .*--below /soft' \
	"${run[@]}" true
fails_with 125 '--below /: that is not below /' "${run[@]}" --below / true
parts /
ok 'the tree stops' without_tree
is 'no mount remains' "$(mounts_left)" 0
