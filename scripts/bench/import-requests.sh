#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# FUSE requests by kind in a first import and in later ones. These are counts: they do not depend on
# the machine's load. But the kernel may drop what it keeps, and ask for it again, so the best of
# several rounds of later imports counts.
# limit: 300
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
with_tree 1
fuse_counts() {
	node_json 0 | json_value fuse
}
# Prints the kinds that rose, as `lookup=12 read=3`, after the sum of those that are requests and
# not ioctls.
risen() { # BEFORE AFTER
	"$PYTHON" - "$1" "$2" <<'PY'
import json, sys
before, after = (json.loads(a) for a in sys.argv[1:])
rose = {k: after[k] - before[k] for k in after if after[k] != before[k]}
other = {"read_bytes", "negative", "errors", "refused", "ioctl"}
print(sum(v for k, v in rose.items() if k not in other), *(f"{k}={v}" for k, v in rose.items()))
PY
}
# SECONDS: how many, this long after the last one; the kinds are left in $T/kinds.
asked_by_import() {
	local before sum kinds
	sleep "$1"
	before=$(fuse_counts)
	import_wall "$W/mnt/0" >/dev/null
	read -r sum kinds <<<"$(risen "$before" "$(fuse_counts)")"
	echo "${kinds:-none}" >"$T/kinds"
	echo "$sum"
}
show() { # SIDE WHAT REQUESTS RULE FIGURE
	add "$1" "$3"
	report "FUSE requests but IOCTL, $2 ($(cat "$T/kinds"))" requests "$4" "$5" "$1" -
}
show cold "cold import $module" "$(asked_by_import 0)" none -
show warm 'warm second import' "$(least 10 asked_by_import 0)" at_most 10
# An absence is checked again after --enoent-ttl-ms (2 s), so a later import pays for each absent
# name.
hold_what_was_read 0
show later 'third import 3 s later' "$(least 10 asked_by_import 3)" at_most 10
