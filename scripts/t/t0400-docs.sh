#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The manual agrees with the program; t0420-blocks.sh runs its examples.
# covers: opt stats
# modes: release
# limit: 180
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"

cd "$cop_root" || exit 1
man=$cop_root/man
mapfile -t subcommands < <("$COPPER" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' |
		grep -v '^copper$')
pages=("$man"/*.[157])
plan $((1 + 6 * ${#subcommands[@]} + ${#pages[@]} + 12))

ok 'copper lists its subcommands' test "${#subcommands[@]}" -ge 4

# ---- options

# Of the table: --name and -l, one a line. Of a page: the same, from the items of its lists.
options_of_table() { # SUBCOMMAND
	"$COPPER" "$1" --dump-options | awk -F '\t' \
		'$1 == "option" { if ($2 != "--" && $2 != "-") print $2; if ($3 != "-") print $3 }'
}
options_of_page() { # FILE
	sed -n '/^\.Sh OPTIONS/,/^\.Sh [^O]/p' "$1" | sed -n 's/^\.It //p' | tr ' ' '\n' |
		awk 'fl { print "-" $0 } { fl = $0 == "Fl" }'
}
built_in='--help --help-all --dump-options -h'
without_built_in() {
	grep -vxF -e "${built_in// /$'\n'}"
}
for sub in "${subcommands[@]}"; do
	page=$man/copper-$sub.1
	ok "copper $sub has a page" test -s "$page"
	options_of_table "$sub" | LC_ALL=C sort -u >"$T/table"
	options_of_page "$page" 2>/dev/null | without_built_in | LC_ALL=C sort -u >"$T/page"
	is "every option of copper $sub is in its page" \
		"$(comm -23 "$T/table" "$T/page" | tr '\n' ' ')" ''
	is "every option in the page of copper $sub is there" \
		"$(comm -13 "$T/table" "$T/page" | tr '\n' ' ')" ''
	"$COPPER" "$sub" --help >"$T/help" 2>&1
	is "the help of copper $sub is at most 80 wide" "$(awk 'length > 80' "$T/help")" ''
	is_at_most "the help of copper $sub is at most 24 lines high" "$(wc -l <"$T/help")" 24
	matches "copper.1 refers to copper-$sub.1" \
		"$(sed -n '/^\.Sh SEE ALSO/,$p' "$man/copper.1")" "^\\.Xr copper-$sub 1"
done

# ---- pages

warnings() { # FILE
	mandoc -T lint -W warning "$1" 2>&1 | sed "s|$man/||"
	! command -v groff >/dev/null || groff -mandoc -ww -z -Tutf8 "$1" 2>&1
}
for page in "${pages[@]}"; do
	if command -v mandoc >/dev/null; then
		is "${page##*/} has no warnings" "$(warnings "$page")" ''
	elif command -v groff >/dev/null; then
		is "${page##*/} has no warnings" "$(groff -mandoc -ww -z -Tutf8 "$page" 2>&1)" ''
	else
		pass "${page##*/} # SKIP no mandoc or groff"
	fi
done

# Pages of ours that others refer to.
missing=
while read -r name section; do
	[ -s "$man/$name.$section" ] || missing="$missing $name($section)"
done < <(sed -n 's/^\.Xr \(copper[a-z-]*\) \([0-9]\).*/\1 \2/p' "${pages[@]}" | sort -u)
is 'pages refer to pages that are there' "$missing" ''

# Each district says in a README of at most 15 lines what it is for, and names its modules.
unnamed=
for district in internal/*/; do
	[ "$(wc -l <"$district/README.md")" -le 15 ] || unnamed="$unnamed ${district}README.md:length"
	for module in "$district"*/; do
		grep -q "\`$(basename "$module")\`" "$district/README.md" || unnamed="$unnamed $module"
	done
done
is 'every module is in the README of its district' "$unnamed" ''

# Each operation between nodes, with its number.
operations() {
	"$PYTHON" - <<'PY'
import re
for name, prefix in (("tree/fetch/fetch.h", "COP_ASK_"), ("tree/start/start.h", "COP_START_OP_"), ("tree/op/op.h", "COP_OP_"), ("fabric/reach/reach.h", "COP_SKEW_")):
    text = re.sub(r"/\*.*?\*/", "", open("internal/" + name).read(), flags=re.S)
    for body in re.findall(r"enum[^{;]*\{(.*?)\};", text, re.S):
        value = -1
        for row in body.split(","):
            m = re.match(r"\s*(\w+)\s*(?:=\s*(\d+))?\s*$", row)
            if m and m[1].startswith(prefix):
                value = int(m[2]) if m[2] else value + 1
                print(m[1][len(prefix):], value)
PY
}
operations | LC_ALL=C sort >"$T/operations"
sed -n '/^\.Ss Operations/,/^\.Ss Limits/s/^\.It \([A-Z_]*\) Ta \([0-9]*\) Ta .*/\1 \2/p' "$man/copper-protocol.7" |
	grep -v '^CLOCK ' | LC_ALL=C sort >"$T/shown"
is 'copper-protocol(7) has every operation with its number' "$(diff "$T/operations" "$T/shown")" ''

# The walk through a cold read: each function is defined in the file named with it.
walk() {
	sed -n 's/^\.It Pa \([a-z_]*\/[a-z_]*\.c\) : \(Fn .*\)/\1 \2/p' "$man/copper-design.7"
}
absent=
steps=0
while read -r file names; do
	for name in ${names//[,]/}; do
		[ "$name" != Fn ] || continue
		steps=$((steps + 1))
		# A definition or its first line begins in the first column and is not a
		# declaration.
		grep -Eq "^[a-z].*\b$name\(([^;]*|.*[^;])$" "$cop_root"/internal/*/"$file" ||
			absent="$absent $file:$name"
	done
done < <(walk)
is 'the functions of the walk through a read are where it says' "$absent" ''
ok 'the walk through a read has as many steps as lines' \
	test "$steps" -ge "$(grep -c '^\.It Pa .* : Fn ' "$man/copper-design.7")" -a "$steps" -ge 20

# Each counter with its unit and its meaning, as the JSON has it.
rows() {
	sed -n 's/^COP_COUNTER([A-Z_0-9]*, "\([^"]*\)", "\([^"]*\)", "\([^"]*\)", "\([^"]*\)")$/\1.\2 \3: \4/p' internal/prof/stats/counters.def
}
described() { # an item and the lines up to the next macro are one line
	awk '/^\./ { if (item) print item; item = "" }
		/^\.It Li [a-z]+\.[a-z_]+$/ { item = $3; next }
		!/^\./ && item { item = item " " $0 }' "$man/copper-formats.5"
}
rows | sort >"$T/rows"
described | sort >"$T/described"
is 'every row of counters.def was understood' \
	"$(wc -l <"$T/rows")" "$(grep -c '^COP_COUNTER(' internal/prof/stats/counters.def)"
is 'every counter is in copper-formats(5), with its meaning' \
	"$(comm -23 "$T/rows" "$T/described")" ''
is 'copper-formats(5) names no other counter' "$(comm -13 "$T/rows" "$T/described")" ''

# ---- README

links() { # of a Markdown file: relative targets
	grep -o '\](\([^)]*\))' "$1" | sed 's/^](//; s/)$//; s/#.*//' |
		grep -v -e '^[a-z]*:' -e '^$'
}
dead=
for file in README.md HACKING.md NEWS.md vendor/README.md man/measurements.md; do
	while read -r link; do
		[ -e "$(dirname "$file")/$link" ] || dead="$dead $file:$link"
	done < <(links "$file")
done
is 'no relative link is dead' "$dead" ''
is_at_most 'README is short' "$(wc -l <README.md)" 160
linked=
for page in "${pages[@]}"; do
	grep -qF "(man/${page##*/})" README.md || linked="$linked ${page##*/}"
done
is 'README links every page' "$linked" ''
targets=$(grep -o '`\(sudo \)\?make [a-z][a-z]*\b' README.md | awk '{ print $NF }' | sort -u)
unknown=
for target in $targets; do
	grep -Eq "^([a-z -]* )?$target( [a-z -]*)?:" Makefile || unknown="$unknown $target"
done
is 'every make target that README names exists' "$unknown" ''
