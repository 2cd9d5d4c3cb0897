# SPDX-License-Identifier: BSD-3-Clause
# Prints the value with this path, as Python would, if it is a whole number, a word or a text; ends
# with 3 otherwise. Nothing may be escaped.
BEGIN {
	wanted = split(path, want, ".")
}

{
	doc = doc $0 "\n"
}

function is_it(   i) {
	if (depth != wanted)
		return 0
	for (i = 1; i <= depth; i++)
		if (at[i] "" != want[i] "")
			return 0
	return 1
}

# A word or number that ends here, or what stands in quotes before it.
function end_value() {
	if ((quoted || value != "") && is_it()) {
		if (!quoted && value !~ /^(-?[0-9]+|true|false|null)$/)
			exit 3
		print (!quoted && value == "null" ? "None" : value)
		exit 0
	}
	value = ""
	quoted = 0
}

function sign(c) {
	if (c == ":") {
		at[depth] = value
		value = ""
		quoted = 0
	} else if (c == "{" || c == "[") {
		if (is_it())
			exit 3
		list[++depth] = c == "["
		at[depth] = list[depth] ? 0 : ""
	} else {
		end_value()
		if (c != ",")
			depth--
		else if (list[depth])
			at[depth]++
	}
}

END {
	parts = split(doc, part, "\"")
	for (p = 1; p <= parts; p++) {
		if (p % 2 == 0) {
			value = part[p]
			quoted = 1
			continue
		}
		rest = part[p]
		gsub(/[ \t\r\n]/, "", rest)
		while (match(rest, /[][{}:,]/)) {
			if (RSTART > 1)
				value = substr(rest, 1, RSTART - 1)
			sign(substr(rest, RSTART, 1))
			rest = substr(rest, RSTART + 1)
		}
	}
	exit 3
}
