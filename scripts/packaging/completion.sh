#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Prints the completion of copper for a shell, made from the option tables of the program itself.
#
#   scripts/packaging/completion.sh bash|zsh COPPER
set -eu
shell=${1:-}
copper=${2:-}
case $shell:$copper in
bash:?* | zsh:?*) ;;
*)
	echo "usage: completion.sh bash|zsh COPPER" >&2
	exit 2
	;;
esac

program() {
	# The words are a command.
	# shellcheck disable=SC2086
	${RUNNER:-} "$copper" "$@"
}

# What a value is, from its kind and its name in the help. Words are those of the table.
common_awk='
function action(kind, arg, range) {
	gsub(/, /, " ", range)
	if (kind == "word" || (kind == "cpus" && range != "-")) return "words " range
	if (arg == "MOUNTPOINT") return "mount"
	if (arg ~ /[|]/) { gsub(/[|]/, ",", arg); return "words," arg }
	if (arg ~ /DIR$/) return "dir"
	if (arg ~ /FILE|MANIFEST|PATH/) return "file"
	return "none"
}'

subcommands() { # "name summary" a line
	program --help | sed -n 's/^  \([a-z][a-z-]*\)   *\([^ ].*\)/\1 \2/p'
}

# ---- bash

bash_table() { # SUBCOMMAND
	program "$1" --dump-options | awk -F '\t' -v sub_="$1" "$common_awk"'
		$1 == "operand" { operands = operands " " action("string", $2, "-") ($2 ~ /[.][.][.]$/ ? "+" : "") }
		$1 != "option" || $4 == "ignored" { next }
		{ names = "" }
		$2 != "--" { all = all " " $2; names = $2 }
		$3 != "-" { all = all " " $3; names = names (names ? "|" : "") $3 }
		$4 != "flag" { print "\t" sub_ ":" names ") echo " action($4, $5, $7) " ;;"; next }
		END {
			print "\t" sub_ ":options) echo --help --help-all" all " ;;"
			print "\t" sub_ ":operands) echo" operands " ;;"
		}' | sed "s/^\\(\\t$1:[^)|]*\\)|\\(-[A-Za-z]\\))/\\1 | $1:\\2)/"
}

bash_completion() {
	local name
	cat <<'SH'
# bash completion of copper(1), made from its option tables

# What stands in the table under SUBCOMMAND:WORD.
_copper_table() {
	case $1 in
SH
	for name in $(subcommands | cut -d ' ' -f 1); do
		bash_table "$name"
	done
	cat <<SH
	copper:subcommands) echo $(subcommands | cut -d ' ' -f 1 | tr '\n' ' ')help ;;
SH
	cat <<'SH'
	esac
}

# Mounts of copper that are there; for a new one, directories.
_copper_mounts() {
	case $1 in
	mount | serve) compgen -d -- "$2" ;;
	*) compgen -W "$(awk '$3 == "fuse.copper" { print $2 }' /proc/self/mounts 2>/dev/null)" -- "$2" ;;
	esac
}

_copper_values() { # SUBCOMMAND KIND CURRENT WORD...
	local kind=$2 current=$3 command=$1
	shift 3
	case $kind in
	words) compgen -W "$*" -- "$current" ;;
	mount) _copper_mounts "$command" "$current" ;;
	dir) compgen -d -- "$current" ;;
	file) compgen -f -- "$current" ;;
	esac
}

_copper() {
	local line=${COMP_LINE:0:COMP_POINT} current previous command i seen=0 value operands
	local -a words
	# As the user wrote them: readline cuts words at = and :, which stand in options and hosts.
	read -ra words <<<"$line"
	case $line in
	*[[:space:]]) words+=('') ;;
	esac
	current=${words[-1]}
	command=${words[1]:-}
	COMPREPLY=()
	if [ "${#words[@]}" -le 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_copper_table copper:subcommands) --help --version" -- "$current")
		return
	fi
	if [ "$command" = help ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_copper_table copper:subcommands)" -- "$current")
		return
	fi
	previous=${words[-2]}
	case $current in
	--*=*)
		previous=${current%%=*}
		current=${current#*=}
		;;
	esac
	value=$(_copper_table "$command:$previous")
	case $previous:$value in
	-*:?*)
		# The words of the table are words here.
		# shellcheck disable=SC2086
		mapfile -t COMPREPLY < <(_copper_values "$command" "${value%% *}" "$current" ${value#* })
		;;
	*)
		case $current in
		-*) mapfile -t COMPREPLY < <(compgen -W "$(_copper_table "$command:options")" -- "$current") ;;
		*)
			for ((i = 2; i < ${#words[@]} - 1; i++)); do
				case ${words[i]}:${words[i - 1]} in
				-*) ;;
				*:-*) [ -n "$(_copper_table "$command:${words[i - 1]}")" ] || seen=$((seen + 1)) ;;
				*) seen=$((seen + 1)) ;;
				esac
			done
			read -ra operands <<<"$(_copper_table "$command:operands")"
			# One that stands for all that follow ends in +; words stand behind commas.
			value=${operands[seen]:-none}
			case ${operands[*]: -1} in
			*+) value=${operands[seen]:-${operands[*]: -1}} ;;
			esac
			value=${value%+}
			# shellcheck disable=SC2086
			mapfile -t COMPREPLY < <(_copper_values "$command" "${value%%,*}" "$current" ${value//,/ })
			;;
		esac
		;;
	esac
}
complete -o filenames -F _copper copper
SH
}

# ---- zsh

zsh_table() { # SUBCOMMAND: the words of _arguments, one a line
	program "$1" --dump-options | awk -F '\t' -v sub_="$1" -v q="'" "$common_awk"'
		function quote(s) { gsub(q, q "\\" q q, s); gsub(/\[/, "\\[", s); gsub(/\]/, "\\]", s); return s }
		function colons(s) { gsub(/:/, "\\:", s); return s }
		function zaction(a) {
			if (a ~ /^words[ ,]/) { gsub(/,/, " ", a); return "(" substr(a, 7) ")" }
			if (a == "mount") return (sub_ == "mount" || sub_ == "serve") ? "_files -/" : "_copper_mounts"
			return a == "dir" ? "_files -/" : a == "file" ? "_files" : " "
		}
		$1 == "operand" { n++; rest = rest "\n\t\t\t" q ($2 ~ /[.][.][.]$/ ? "*" : n) ($3 == "required" ? ":" : "::") colons($2) ":" zaction(action("string", $2, "-")) q " \\" }
		$1 != "option" || $4 == "ignored" { next }
		{
			help = "[" quote($8) "]"
			value = $4 == "flag" ? "" : ":" colons($5) ":" zaction(action($4, $5, $7))
			long = value ? "=" : ""
			short = value ? "+" : ""
			many = $4 == "list" ? "*" : ""
			if ($2 != "--" && $3 != "-" && many == "")
				printf "\t\t\t%s(%s %s)%s{%s,%s}%s%s%s%s \\\n", q, $3, $2, q, $3 short, $2 long, q, help, value, q
			else {
				if ($2 != "--") printf "\t\t\t%s%s%s%s%s%s \\\n", q, many, $2 long, help, value, q
				if ($3 != "-") printf "\t\t\t%s%s%s%s%s%s \\\n", q, many, $3 short, help, value, q
			}
		}
		END { sub(/ \\$/, "", rest); print "\t\t\t" q "(- *)--help[a short help]" q " \\" (rest ? rest : "\n\t\t\t&& return") }'
}

zsh_completion() {
	local name
	printf '#compdef copper\n# zsh completion of copper(1), made from its option tables\n\n_copper_mounts() {\n'
	cat <<'SH'
	local -a mounts
	mounts=(${(f)"$(awk '$3 == "fuse.copper" { print $2 }' /proc/self/mounts 2>/dev/null)"})
	compadd -a mounts
}

_copper() {
	local -a commands
	local curcontext=$curcontext state line
	commands=(
SH
	subcommands | sed "s/'/'\\\\''/g; s/^\([a-z-]*\) \(.*\)/\t\t'\1:\2'/"
	cat <<'SH'
		'help:the options of a subcommand'
	)
	_arguments -C '(- *)--help[the subcommands]' '(- *)--version[this program and its libraries]' '1: :->command' '*:: :->words'
	case $state in
	command) _describe subcommand commands ;;
	words)
		case $words[1] in
SH
	for name in $(subcommands | cut -d ' ' -f 1); do
		printf '\t\t%s) _arguments -s \\\n' "$name"
		zsh_table "$name"
		printf '\t\t\t;;\n'
	done
	cat <<'SH'
		help) _describe subcommand commands ;;
		esac
		;;
	esac
}

_copper "$@"
SH
}

"${shell}_completion"
