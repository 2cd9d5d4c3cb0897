#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What programs record of their own run: in a job, without a job, without a store; from shells,
# Python and C; by threads, children and many processes; on a full disk.
# covers: runs
# modes: release asan
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
comma=0
localedef -i de_DE -f UTF-8 "$T/de_DE.UTF-8" 2>/dev/null && comma=2
plan $((62 + comma))
# shellcheck source=runs.sh
. "$cop_t/runs.sh"
export PYTHONPATH=$cop_root/internal/writers/runs/python
include=$cop_root/internal/writers/runs/include
gcc -O2 -Wall -Wextra -Werror -I "$include" -o "$T/log" "$cop_t/run_log.c" -pthread || bail 'run_log.c does not compile'

python() { # WHAT…
	"$PYTHON" "$cop_t/run_log.py" "$@"
}
row() { # of the newest run
	judge 'SELECT name, status, exit_reason FROM run ORDER BY start DESC, rowid DESC LIMIT 1'
}
count() { # KEY: points of the newest run
	judge "SELECT count(*) FROM metric WHERE key = '$1' AND run = (SELECT id FROM run ORDER BY start DESC, rowid DESC LIMIT 1)"
}

# ---- without a job: a shell

id=$(runs log --param lr=0.1 --tag name=first --metric loss=3)
matches 'copper runs log says which run it is' "$id" '^[0-9a-f]{16}$'
export COPPER_RUN_ID=$id
is 'and logs on' "$(runs log --metric loss=2.5 --step 1 --metric acc=nan)" "$id"
is 'it is in the store at once' "$(runs list --json | json_of 'j[0]["name"], j[0]["status"]')" 'first RUNNING'
is 'with its steps' "$(runs show "$id" --metric loss --csv | cut -d , -f 1,3 | paste -sd ' ')" 'step,value 0,3 1,2.5'
is 'a value that is no number is a tag' "$(runs show "$id" --json | json_of 'j["tag"]["nan.acc"]')" 'step 1'
for i in 0 1 2 3 4 5 6 7 8 9; do
	runs log --metric "at-once=$i" --step "$i" >/dev/null &
done
wait
is 'ten at once lose nothing' "$(count at-once)" 10
runs log --status failed --reason 'as asked' >/dev/null
is 'its status' "$(row)" 'first|FAILED|as asked'
ok 'and nothing is left beside the store' test ! -e "$STORE.d"
fails_with 2 'is not KEY=VALUE' "$COPPER" runs log --store "$STORE" --param lr
fails_with 2 "'x' is not a number" "$COPPER" runs log --store "$STORE" --metric loss=x
fails_with 2 'not one of RUNNING, FINISHED, FAILED' "$COPPER" runs log --store "$STORE" --status LOST
fails_with 2 'nothing is to be recorded' "$COPPER" runs log --store "$STORE"
fails_with 2 'is not an ID' "$COPPER" runs log --store "$STORE" --run last --tag a=b
unset COPPER_RUN_ID
fails_with 1 'no job of Copper, and no .COPPER_STORE: nothing is recorded' "$COPPER" runs log --tag a=b

# ---- without a job: Python and C

is 'what Python and C write differs in nothing but time and place' "$(
	COPPER_RUN_ID=00000000000000aa COPPER_STORE=$T/p "$PYTHON" "$cop_t/run_log.py" plain
	COPPER_RUN_ID=00000000000000aa COPPER_STORE=$T/c "$T/log" plain
	for d in p c; do
		sed -e '/^name/d' -e 's/1[0-9]*\.[0-9]\{6\}/TIME/' -e 's/0\.10*1*$/0.1/' "$T/$d.d"/*.log >"$T/$d.text"
	done
	diff "$T/p.text" "$T/c.text" && wc -l <"$T/p.text"
)" 6
rm -r "$T/p.d" "$T/c.d"
export COPPER_STORE=$STORE
python raise 2>"$T/err"
is 'an exception is the end of a run' "$(runs list >/dev/null; row)" 'run_log.py|FAILED|ValueError: as asked'
is 'and goes its way' "$(tail -n 1 "$T/err")" 'ValueError: as asked'
is 'odd keys are bytes' "$(runs show --json | json_of 'j["param"]["a\tb"]' | sed -n l)" 'c\\$
d$'
python exit
is 'a status that is not 0 is kept' "$?" 3
is 'and is in the store' "$(runs list >/dev/null; row)" 'run_log.py|FAILED|exit 3'
python leave
is 'also without a with statement' "$? $(runs list >/dev/null; row)" '3 run_log.py|FAILED|exit 3'
python stay
is 'unless the program goes on' "$? $(runs list >/dev/null; row)" '0 run_log.py|FINISHED|'
is 'odd values harm nothing' "$(python odd 2>"$T/err")" 'done'
is 'and what is left out is told once' "$(cat "$T/err")" 'copper-run: param  is left out: it has no name'
is 'and the others are there' "$(runs show --json | json_of 'len(j["param"]), len(j["param"]["long"]), j["metric"]["ok"]["points"], j["metric"]["top 5 %d%"]["last"]')" \
	'4 2047 2 99'
for program in python "$T/log"; do
	"$program" threads
	runs list >/dev/null
	is "four threads and four children (${program##*/})" "$(count t0) $(count t3) $(count child)" \
		"$([ "$program" = python ] && echo 500 500 4 || echo 1000 1000 4)"
done
is 'a child that is forked in the middle of the first metric logs, and ends' \
	"$(COPPER_STORE=$T/begin.db "$T/log" beginnings)" 100
rm -r "$T/begin.db.d"
python beginnings
is 'threads that begin a file together lose nothing (Python)' "$(runs list >/dev/null; count begin)" 400
# A child of fork waits for ever for what another thread of its parent was importing.
is 'logging imports nothing' "$(python imports)" 0
# C logs no end: the run is open.
runs log --run "$(judge "SELECT id FROM run WHERE status = 'RUNNING'")" --status FINISHED >/dev/null
"$T/log" closed
is 'a program that closes all descriptors keeps its files apart' "$(runs list >/dev/null; count x)" 2
is 'ranks of one launch are one run' "$(
	for rank in 0 1 2; do
		SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_JOB_NAME=train python plain &
	done
	wait
	SLURM_JOB_ID=7 SLURM_STEP_ID=1 "$T/log" plain
	runs list >/dev/null
	judge "SELECT count(*), min(name), min(value) FROM run, resource WHERE name = 'train' AND run = id AND key = 'slurm.job_id'"
)" '1|train|7'
python ranks 200
is 'children of a Python program are one run' "$(runs list >/dev/null; judge "SELECT count(*) FROM metric WHERE key GLOB 'rank[0-9]'")" 200
COPPER_STORE=$T/forks.db python forks
is 'a child of fork has a file of its own from its first metric on' \
	"$(find "$T/forks.db.d" -name '*.log' | wc -l) $("$COPPER" runs show --store "$T/forks.db" --json |
		json_of 'j["metric"]["parent"]["points"], j["metric"]["forked"]["points"]')" '101 100 100'
[ "$cop_mode" = release ] && many=10000 || many=500
"$T/log" ranks "$many"
began=$(date +%s%N)
runs list >/dev/null
note "$many files were taken in $((($(date +%s%N) - began) / 1000000)) ms"
is "$many processes are one run" "$(count rank)" "$many"
"$T/log" cost "$T/bare" >"$T/cost"
note "a metric costs $(python cost | sed 's/ / us in Python, and of ten at once /') us; $(
	sed 's/ / us in C, of ten at once /; s/ \([0-9.]*\)$/ us, and a bare write \1/' "$T/cost") us"
ok 'less than twice a bare write in C' awk '{ exit !($1 < 2 * $3) }' "$T/cost"
is 'a metric is one write, and so are ten at once' "$("$T/log" writes)" '1000 1000'
rm -r "$STORE.d"
ok 'the module is for Python 3.6' "$PYTHON" -c \
	'import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 6))' "$PYTHONPATH/copper_run.py"

# ---- what stands in the way

mkdir "$T/full"
mount -t tmpfs -o size=64k none "$T/full" || bail 'no tmpfs'
head -c 32768 /dev/zero >"$T/full/fill"
is 'a full disk harms nothing' "$(COPPER_STORE=$T/full/s.db python full "$T/full/fill" 2>"$T/err")" 'done'
matches 'and is told once' "$(cat "$T/err")" '^copper-run: cannot write .*: No space left on device$'
cp -r "$T/full/s.db.d" "$T/s.db.d"
umount "$T/full"
is 'what follows is read, and what was cut is not' "$("$COPPER" runs show --store "$T/s.db" --json 2>"$T/err" |
	json_of 'j["metric"]["y"]["points"], j["metric"]["x"]["last"] == j["metric"]["x"]["points"] - 1')" '1 True'
is 'at most the one line is named' "$(grep -vc 'is damaged, and skipped$' "$T/err")" 0
COPPER_STORE='' COPPER_JOB_DIR=$T/nowhere/job "$T/log" plain 2>"$T/err"
is 'without its directory a program runs' "$? $(sed "s|$T||" "$T/err")" \
	"0 copper-run: cannot write /nowhere/job/runs/job-$(hostname)-$(sed 's/.*-\([0-9]*\)\.log.*/\1/' "$T/err").log: No such file or directory"
mkdir -p "$T/denied/runs"
chmod 755 "$T" "$T/denied" "$T/denied/runs"
is 'a directory that may not be written is tried once in C' "$(
	COPPER_STORE='' COPPER_JOB_DIR=$T/denied "$T/log" denied 2>"$T/err")" 1
matches 'and told once' "$(cat "$T/err")" '^copper-run: cannot write .*: Permission denied$'
is 'and in Python' "$(COPPER_STORE='' COPPER_JOB_DIR=$T/denied python denied 2>"$T/err") $(wc -l <"$T/err")" '1 1'
unset COPPER_STORE

# ---- in another language

if [ "$comma" -gt 0 ]; then
	is 'where 2.5 is 2,5' "$(COPPER_STORE=$T/de.db LOCPATH=$T LC_ALL=de_DE.UTF-8 "$T/log" numbers)" 2,5
	is 'a metric has the same values' \
		"$("$COPPER" runs show --store "$T/de.db" --metric loss --csv | cut -d , -f 1,3 | paste -sd ' ')" \
		'step,value 0,2.5 1,2.5e-20 2,1.5e+300 3,inf'
else
	note 'no sources of locales are installed: number_test has its own comma'
fi

# ---- in a job

with_tree 2 --store "$STORE" --store-interval 100ms
in_job() { # RANK COMMAND…
	env -u COPPER_JOB_DIR -u COPPER_STORE "$COPPER" run --mount "$W/mnt/$1" -- "${@:2}"
}
for rank in 0 1; do
	in_job "$rank" "$T/log" threads
	in_job "$rank" "$PYTHON" "$cop_t/run_log.py" threads
done
id=$(in_job 1 "$COPPER" runs log --metric shell=1 --tag sha256=abc)
steps() {
	[ "$(judge "SELECT count(*) FROM metric WHERE run = '$id' AND key IN ('t0', 't3b', 'shell')")" = 1501 ]
}
ok 'what ranks log is in the store while the job runs' wait_for 10 steps
without_tree >/dev/null
is 'and after it, beside what Copper counted' \
	"$(judge "SELECT count(*) FROM metric WHERE run = '$id' AND key IN ('t0', 't3b', 'shell')") $(
		judge "SELECT count(*) > 0 FROM metric WHERE run = '$id' AND key = 'fuse.requests'")" '1501 1'
is 'the tag, too' "$(runs show "$id" --json | json_of 'j["tag"]["sha256"], j["status"]')" 'abc FINISHED'
with_tree 1 --store "$STORE"
in_job 0 "$T/log" plain
without_tree >/dev/null
is 'a job whose program says that it failed has failed' "$(judge 'SELECT status, exit_reason FROM run ORDER BY start DESC LIMIT 1')" \
	'FAILED|the program failed: as asked'

# ---- side by side

for lr in 1 2; do
	with_tree 1 --store "$STORE" --tag "name=lr$lr"
	in_job 0 "$PYTHON" -c "import copper_run
for i in range(6): copper_run.current().metric('train_loss', 1 / (1 + i * $lr), 2 * i)"
	id=$(in_job 0 "$COPPER" runs log --metric "train_loss=$lr" --step 3)
	without_tree >/dev/null
	eval "id$lr=$id"
done
# shellcheck disable=SC2154
compare() {
	runs compare --metric train_loss "$@" "$id1" "$id2"
}
is 'a metric of two runs, step by step' "$(compare --csv | head -n 4 | paste -sd ' ')" \
	"step,${id1:0:8},${id2:0:8} 0,1,1 2,0.5,0.3333333333333333 3,1,2"
is 'as JSON' "$(compare --json | json_of 'len(j), j[2]["step"], j[2]["values"]')" '7 3 [1, 2]'
fails_with 1 "none of these runs has a metric 'loss'" "$COPPER" runs compare --store "$STORE" --metric loss last last~1
ok 'the report draws them' "$COPPER" report "$JOB" --store "$STORE" --compare "$id1" -o "$T/page.html"
is 'on one axis, each with its points' "$(grep -c '<figcaption>train_loss</figcaption>' "$T/page.html") $(
	grep -c "<title>this run, ${id2:0:8}, " "$T/page.html") $(grep -c "<title>lr1, ${id1:0:8}, " "$T/page.html")" '1 11 11'
fails_with 1 "no run in .* is 'zz'" "$COPPER" report "$JOB" --store "$STORE" --compare zz -o "$T/none.html"

# ---- a job without a store

STORE=$T/later.db
with_tree 1
in_job 0 "$T/log" plain
printf 'metric\tloss\t9\t1' >>"$(find "$JOB/runs" -name 'job-*.log')"
without_tree >/dev/null
ok 'without a store copper runs import takes it later' runs import "$JOB"
is 'into the run of the job' "$(runs show --json | json_of 'j["metric"]["loss"]["last"], j["param"]["lr"], j["status"]')" '0.1 0.1 FAILED'

# ---- one directory for several jobs

STORE=$T/again.db
again=$T/again
logged() { # RUN: what its programs have logged
	judge "SELECT group_concat(key || value, ' ') FROM (SELECT * FROM metric WHERE run = '$1' AND key GLOB '[ab]_*' ORDER BY key)"
}
job_in() { # NAME [OPTION…]: logs from two programs
	with_tree 1 --job-dir "$again" "${@:2}"
	in_job 0 "$PYTHON" -c "import copper_run; copper_run.current().metric('a_$1', 1)"
	in_job 0 "$COPPER" runs log --metric "b_$1=1" >/dev/null
	without_tree >/dev/null
}
job_in first
job_in stored --store "$STORE"
is 'a job does not take what an earlier one has logged' "$(logged "$(judge 'SELECT id FROM run')")" 'a_stored1.0 b_stored1.0'
job_in third
ok 'nor does the import of one without a store' runs import "$again"
third=$(sed -n 's/^COPPER_RUN_ID=//p' "$again/logs/copper_run.txt")
is 'its programs had a name, which is that of the run' "$(logged "$third")" 'a_third1.0 b_third1.0'
is 'there are two runs' "$(judge 'SELECT count(*) FROM run')" 2
