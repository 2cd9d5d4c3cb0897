# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by launch_copper_*.sh and stop_copper_*.sh: translates the option letters that job scripts
# have used since Copper 1.0, and finds the copper to use. Everything else is done by `copper mount`
# and `copper stop`.
#
#	-d DIR       the job's directory is DIR/JOBID (default ~/copper-logs)
#	-v DIR       the mount point (default /tmp/USER/copper)
#	-l -t -T -M -E -P -N -A -I -b -n     as copper mount has them (copper mount --help-all)
#	-F FILE      the site's address book, with -a facility (default $facility_address_book, or
#	             the one in COPPER_ROOT/build)
#	-a WORD      facility or discover (default discover; facility with -F)
#	-s SECONDS   accepted, ignored: launch returns when the tree is ready
#	-profile_top_n N …   the long options of cu_fuse that have a letter above, with one dash
#
# Everything after -- is passed to copper mount as it is.
# shellcheck disable=SC2034 # log_dir and mnt are for the scripts that source this

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mnt=/tmp/${USER:-$(id -un)}/copper
log_dir=${HOME:-~}/copper-logs
# Set by the script that sources this: the site's network, and the name of its address book.
net_type=${net_type:-tcp}
book_name=${book_name:-}
book=
source_of_addresses=
options=()

die() { # STATUS TEXT…
	local status=$1
	shift
	echo "${0##*/}: $*" >&2
	exit "$status"
}

# COPPER if it is set; else the copper of COPPER_ROOT, of this tree, or of PATH.
find_copper() {
	local file
	for file in "${COPPER:-}" "${COPPER_ROOT:+$COPPER_ROOT/build/copper}" \
		"$here/../build/copper" "$here/../bin/copper"; do
		if [ -n "$file" ] && [ -x "$file" ]; then
			echo "$file"
			return
		fi
	done
	command -v copper || die 1 "there is no copper here: set COPPER_ROOT, or load its module"
}

# Job scripts that use only -a facility mean the address book that the site has installed.
find_book() {
	local file
	for file in "$book" "${facility_address_book:-}" \
		"${COPPER_ROOT:-/nowhere}/build/$book_name"; do
		if [ -n "$file" ] && { [ -f "$file" ] || [ "$file" = "$book" ]; }; then
			options+=(-F "$file")
			return
		fi
	done
	die 1 "-a facility needs the book of the site, and there is none here: name it with -F FILE, or let the nodes ask each other with -a discover"
}

# Starts the nodes. When they are ready, prints how long finding their addresses took, in the line
# that job scripts look for. Signals go to the process that starts them.
launch() { # JOBDIR COMMAND…
	local book=$1/logs/copper_address_book.txt began status=0 took child
	shift
	began=$(date +%s)
	"$@" <&0 &
	child=$!
	trap 'kill -TERM "$child" 2>/dev/null || :' TERM INT HUP
	wait "$child" || status=$?
	# A signal ends the wait, but not the process that is waited for.
	while kill -0 "$child" 2>/dev/null; do
		status=0
		wait "$child" || status=$?
	done
	[ "$status" -eq 0 ] || exit "$status"
	[ ! -e "$book" ] || {
		# The clock of the file system may differ.
		took=$(($(stat -c %Y "$book") - began))
		echo "prepared address book generation took $((took > 0 ? took : 0)) s"
	}
}

usage() {
	echo "usage: ${0##*/} [letters] [-- options of copper mount]" >&2
	sed -n 's/^#\t//p' "$here/copper_wrapper.sh" >&2
	exit 2
}

# The letters for the long options of cu_fuse.
declare -A letter_of=(
	[-vpath]=-v [-trees]=-T [-net_type]=-n [-facility_address_book]=-F
	[-log_level]=-l [-log_type]=-t [-log_output_dir]=-d [-max_cacheable_byte_size]=-M
	[-md_enoent_ttl_ms]=-E [-profile_metrics]=-P [-profile_top_n]=-N
	[-profile_paths_full]=-A [-profile_snapshot_interval_s]=-I)

read_letters() {
	local words=()
	while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
		words+=("${letter_of[${1:--}]:-$1}")
		shift
	done
	set -- "${words[@]}" "$@"
	while getopts ':l:t:d:T:M:E:PN:AI:s:b:F:a:n:v:h' letter; do
		case $letter in
		d) log_dir=${OPTARG%/} ;;
		v) mnt=$OPTARG ;;
		s) ;;
		n) net_type=$OPTARG ;;
		F) book=$OPTARG ;;
		a) source_of_addresses=$OPTARG ;;
		P | A) options+=("-$letter") ;;
		l | t | T | E | b) options+=("-$letter" "$OPTARG") ;;
		# 0 meant none.
		M | N | I) [ "$OPTARG" = 0 ] || options+=("-$letter" "$OPTARG") ;;
		h) usage ;;
		:) die 2 "-$OPTARG needs a value" ;;
		\?)
			[ "$OPTARG" = - ] || die 2 "-$OPTARG is unknown (see -h)"
			[ "${*:OPTIND:1}" != --help ] || usage
			die 2 "${*:OPTIND:1} is no letter: options of copper mount stand behind -- (see -h)"
			;;
		esac
	done
	shift $((OPTIND - 1))
	# -I alone made reports, too.
	[[ " ${options[*]} " != *" -I "* ]] || options+=(-P)
	case ${source_of_addresses:-${book:+facility}} in
	facility) find_book ;;
	discover | '') ;;
	*) die 2 "-a is facility or discover, not $source_of_addresses" ;;
	esac
	options+=(-n "$net_type" "$@")
}
