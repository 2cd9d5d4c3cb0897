#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# FUSE requests by kind in a first import and in a second one. These are counts: they do not depend on the machine's load.
# limit: 120
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SRC=/usr
with_tree 1
fuse_counts() {
	node_json 0 | json_value fuse
}
# The kinds that rose, as `lookup=12 read=3`; first the sum of those that are requests and no ioctls.
risen() { # BEFORE AFTER
	"$PYTHON" - "$1" "$2" <<'PY'
import json, sys
before, after = (json.loads(a) for a in sys.argv[1:])
rose = {k: after[k] - before[k] for k in after if after[k] != before[k]}
other = {"read_bytes", "negative", "errors", "refused", "ioctl"}
print(sum(v for k, v in rose.items() if k not in other), *(f"{k}={v}" for k, v in rose.items()))
PY
}
start=$(fuse_counts)
import_wall "$W/mnt/0" >/dev/null
cold=$(fuse_counts)
import_wall "$W/mnt/0" >/dev/null
warm=$(fuse_counts)
# Absence is asked again after --enoent-ttl-ms (2 s), so what comes later than that pays for each absent name.
sleep 3
later=$(fuse_counts)
import_wall "$W/mnt/0" >/dev/null
last=$(fuse_counts)
show() { # SIDE WHAT BEFORE AFTER RULE FIGURE
	local sum kinds
	read -r sum kinds <<<"$(risen "$3" "$4")"
	add "$1" "$sum"
	report "FUSE requests but IOCTL, $2 (${kinds:-none})" requests "$5" "$6" "$1" -
}
show cold "cold import $module" "$start" "$cold" none -
show warm 'warm second import' "$cold" "$warm" at_most 10
show later 'third import 3 s later' "$later" "$last" at_most 10
