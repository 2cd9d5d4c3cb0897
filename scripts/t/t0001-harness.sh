#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The harness must notice what it exists to notice: a test that cannot fail is a defect.
# covers: base
# limit: 100
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 25

# Runs a test made of the given lines under a harness of its own; keeps status and output.
inner() { # NAME HEADER…, lines on standard input
	{
		echo '#!/usr/bin/env bash'
		[ $# -eq 1 ] || printf '# %s\n' "${@:2}"
		echo ". '$cop_t/harness.sh'"
		cat
	} >"$T/$1.sh"
	env -u COP_TEST_DIR -u XDG_RUNTIME_DIR TMPDIR="$T" BUILD="$BUILD" bash "$T/$1.sh" \
		>"$T/$1.out" 2>&1
	status=$?
	output=$(cat "$T/$1.out")
}

inner good <<'EOT'
plan 2
ok 'true is true' true
is 'equal values are equal' 1 1
EOT
is 'a good test passes' $status 0

is 'a value of JSON is found by its path, in whichever form' "$(
	for path in n.0 n.1 n.2.text n.2.path t z; do
		json_value $path <<<'{"n": [7, 1.50, {"text": "p,q:{r}", "path": "a\\b"}], "t": true, "z": null}'
	done | tr '\n' ' '
)" '7 1.5 p,q:{r} a\b true None '

inner bad <<'EOT'
plan 1
ok 'false is true' false
EOT
is 'a failed point fails the test' $status 1

inner short <<'EOT'
plan 2
ok 'true is true' true
EOT
is 'a test that does not run what it planned fails' $status 1

inner unplanned <<'EOT'
ok 'true is true' true
EOT
is 'a test without a plan fails' $status 1

inner skipped <<'EOT'
skip_all 'no such machine'
EOT
is 'a skipped test says 77' $status 77
matches 'a skipped test says why' "$output" '# SKIP no such machine'

# On a busy machine a second of its limit may take a minute.
inner slow 'limit: 1' <<'EOT'
plan 1
sleep 3600
EOT
is 'a test past its limit fails' $status 1
matches 'a test past its limit says so' "$output" 'not ok - the test ends within 1 s'

inner daemon <<'EOT'
plan 1
setsid bash -c 'exec -a "daemon of $TMPDIR" sleep 600' >/dev/null 2>&1 &
ok 'the daemon runs' wait_for 60 pgrep -f "^daemon of $TMPDIR"
EOT
is 'a daemon that is left behind fails the test' $status 1
is 'a daemon that is left behind is ended' "$(pgrep -cf "^daemon of $T")" 0

inner mounted <<'EOT'
plan 1
mkdir "$T/a" "$T/b"
"$SLOWFS" "$T/a" "$T/b"
echo "$T" >"$TMPDIR/where"
ok 'true is true' true
EOT
is 'a mount that is left behind fails the test' $status 1
is 'a mount that is left behind is unmounted' \
	"$(grep -c "$(cat "$T/where")" /proc/self/mountinfo)" 0
is 'the directory of such a test is removed' "$(ls -d "$(cat "$T/where")" 2>/dev/null)" ''

inner covered 'user: yes' 'apart: yes' <<'EOT'
plan 1
[ "$(id -u)" -eq 0 ] && [ -e /etc/subgid ] || skip_all 'nothing to cover'
become_user
echo "$cop_user" >"$TMPDIR/covering"
: >"$T/subgid"
ok 'a file of the machine is covered' mount --bind "$T/subgid" /etc/subgid
EOT
if [ "$status" -eq 77 ]; then
	pass 'a user is removed, whatever the test covered # SKIP not root'
else
	is 'a user is removed, whatever the test covered' "$status $(
		cat /etc/passwd /etc/group /etc/subuid /etc/subgid | grep -c "^$(cat "$T/covering"):")" '0 0'
fi

echo ". '$cop_t/harness.sh'; plan 1; touch '$T/begun'; sleep 3600" >"$T/ended.sh"
env -u COP_TEST_DIR -u XDG_RUNTIME_DIR TMPDIR="$T" BUILD="$BUILD" bash "$T/ended.sh" \
	>"$T/ended.out" 2>&1 &
supervisor=$!
wait_for 60 test -e "$T/begun"
kill -TERM "$supervisor"
wait "$supervisor"
is 'a test that is ended from outside fails' $? 1
is 'and its timer ends with it' "$(pgrep -cf "^bash $T/ended.sh")" 0

# Like a test that makes a mount namespace while another test's slowfs is mounted.
(wait_for 60 test -e "$T/mounted" && exec unshare --mount --propagation private \
		sh -c 'touch "$0/pinned" && exec sleep 600' "$T") &
inner pinned <<'EOT'
plan 1
with_slowfs
touch "$TMPDIR/mounted"
ok 'a mount namespace made meanwhile has the mount, too' wait_for 60 test -e "$TMPDIR/pinned"
EOT
is 'a slowfs ends that another namespace still has mounted' "$status $(grep '^#' <<<"$output")" '0 '
kill $!
wait $!

# ---- counts of what the kernel may take back

numbers() { # 5, 4, 3, ... each time one less
	local n
	n=$(($(cat "$T/number") - 1))
	echo "$n" | tee "$T/number"
}
echo 6 >"$T/number"
is 'least stops as soon as it is enough' "$(least 3 numbers) $(cat "$T/number")" '3 3'
echo 6 >"$T/number"
is 'least takes the best of thirty if none is enough' \
	"$(least -100 numbers) $(cat "$T/number")" '-24 -24'
head -c 100000 /dev/urandom >"$T/page"
resident() { # pages
	fincore --noheadings --output PAGES "$T/page"
}
sync "$T/page"
cat "$T/page" >"$T/.ok"
hold_pages "$T/page"
"$PYTHON" -c 'import os, sys; os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' "$T/page"
is 'pages that are held stay' "$(resident) $(cat "$T/held")" "$(printf '%5s' 25) 1 files, 25 pages"
let_go
is 'pages that are let go can be dropped' "${cop_holder:-none}" none

inner sanitized <<'EOT'
plan 1
ok 'true is true' true
echo 'a report' >"$T/san/asan.1"
EOT
is 'a report of a sanitizer fails the test' $status 1

inner died <<'EOT'
plan 1
ok 'true is true' true
kill -KILL $$
EOT
is 'a test that is killed fails' $status 1

inner refused <<'EOT'
plan 3
fails_with 3 nothing true
fails_with 1 'one' sh -c 'echo one >&2; echo two >&2; exit 1'
fails_with 1 'one' sh -c 'echo one >&2; exit 1'
EOT
is 'fails_with wants the status and a single line' "$(grep -c '^not ok' "$T/refused.out")" 2
