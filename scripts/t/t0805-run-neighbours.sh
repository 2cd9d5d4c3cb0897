#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copper run: the tasks of a node reach each other: cross-memory attach, MPI, shared memory,
# debuggers from inside and from outside.
# covers: view
# modes: release
# user: yes
# limit: 240
# takes: 40
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
plan 16
# Children of Python's pools begin where it does, which may be a directory of another user.
cd "$T" || exit 1

SRC=$T/src
small_tree "$SRC"
# Each of two processes reads a word of the other's memory: peek.py serve prints PID and ADDRESS,
# peek.py read PID ADDRESS the word.
cat >"$SRC/peek.py" <<'PY'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def peek(pid, address):
    here = ctypes.create_string_buffer(16)
    mine, theirs = Part(ctypes.addressof(here), 16), Part(address, 16)
    if libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) < 0:
        return os.strerror(ctypes.get_errno())
    return here.value.decode()
word = ctypes.create_string_buffer(b"word of a task", 16)
print(os.getpid(), ctypes.addressof(word), flush=True)
other = sys.stdin.readline().split()
if other:
    print(peek(int(other[0]), int(other[1])), flush=True)
sys.stdin.readline()
PY
cat >"$T/pair.py" <<'PY'
import os, subprocess, sys
tasks = [subprocess.Popen(command.split("\t"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in sys.argv[1:3]]
places = [task.stdout.readline() for task in tasks]
for task, place in zip(tasks, reversed(places)):
    print(task.stdin.write(place) and task.stdin.flush() or task.stdout.readline().strip())
for task in tasks:
    task.stdin.close()
    task.wait()
PY
cat >"$SRC/pool.py" <<'PY'
import multiprocessing
from multiprocessing import shared_memory
def fill(name):
    memory = shared_memory.SharedMemory(name)
    memory.buf[0] += 1
    memory.close()
if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=4096)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(fill, [memory.name] * 3)
    print(memory.buf[0])
    memory.close()
    memory.unlink()
PY
# Each task sends 4 MiB to the next, by MPICH's library (its mpi.h has these constants): large
# enough for cross-memory attach.
cat >"$SRC/ring.py" <<'PY'
import ctypes
mpi = ctypes.CDLL("libmpich.so.12")
WORLD, INT, IGNORE, N = 0x44000000, 0x4C000405, ctypes.c_void_p(1), 1 << 20
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
rank, size = rank.value, size.value
out, into = (ctypes.c_int * N)(*range(rank * N, rank * N + N)), (ctypes.c_int * N)()
for _ in range(3):
    right, left = (rank + 1) % size, (rank - 1) % size
    mpi.MPI_Sendrecv(out, N, INT, right, 0, into, N, INT, left, 0, WORLD, IGNORE)
first = (rank - 1) % size * N
wrong = ctypes.c_int(list(into) != list(range(first, first + N)))
total = ctypes.c_int(-1)
mpi.MPI_Allreduce(ctypes.byref(wrong), ctypes.byref(total), 1, INT, 0x58000003, WORLD)
if rank == 0:
    print(size, "tasks,", total.value, "wrong")
mpi.MPI_Finalize()
PY
# The same by Open MPI's library, whose constants are objects.
cat >"$SRC/openmpi.py" <<'PY'
import ctypes
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
def known(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
WORLD, INT, SUM, N = known("ompi_mpi_comm_world"), known("ompi_mpi_int"), known("ompi_mpi_op_sum"), 1 << 20
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
rank, size = rank.value, size.value
out, into = (ctypes.c_int * N)(*range(rank * N, rank * N + N)), (ctypes.c_int * N)()
for _ in range(3):
    right, left = (rank + 1) % size, (rank - 1) % size
    mpi.MPI_Sendrecv(out, N, INT, right, 0, into, N, INT, left, 0, WORLD, None)
first = (rank - 1) % size * N
wrong = ctypes.c_int(list(into) != list(range(first, first + N)))
total = ctypes.c_int(-1)
mpi.MPI_Allreduce(ctypes.byref(wrong), ctypes.byref(total), 1, INT, SUM, WORLD)
if rank == 0:
    print(size, "tasks,", total.value, "wrong", flush=True)
mpi.MPI_Finalize()
PY
openmpi=
if command -v mpirun.openmpi >/dev/null && command -v strace >/dev/null &&
	"$PYTHON" -c 'import ctypes; ctypes.CDLL("libmpi.so.40")' 2>/dev/null; then
	openmpi=yes
fi
mpi=
if command -v mpiexec.hydra >/dev/null && command -v strace >/dev/null &&
	"$PYTHON" -c 'import ctypes; ctypes.CDLL("libmpich.so.12")' 2>/dev/null; then
	mpi=yes
fi
chmod -R a+rX "$SRC" "$T/pair.py"
become_user
with_tree 1

run=("${cop_as[@]}" "$COPPER" run)
join() {
	local IFS=$'\t'
	echo "$*"
}
task=$(join "${run[@]}" "$PYTHON" -B "$SRC/peek.py")
is 'process_vm_readv between two tasks, both ways' \
	"$("$PYTHON" "$T/pair.py" "$task" "$task")" $'word of a task\nword of a task'
bind=$(join "${run[@]}" --view bind "$PYTHON" -B "$SRC/peek.py")
is 'process_vm_readv works between views of different kinds' \
	"$("$PYTHON" "$T/pair.py" "$task" "$bind")" $'word of a task\nword of a task'
plain=$(join "${cop_as[@]}" "$PYTHON" -B "$SRC/peek.py")
is 'a plain process reads a task; a task does not read a plain process' \
	"$("$PYTHON" "$T/pair.py" "$plain" "$task")" $'word of a task\nOperation not permitted'
is 'multiprocessing with shared memory' "$("${run[@]}" "$PYTHON" -B "$SRC/pool.py" 2>&1)" 3
# The libraries fall back to copies through shared memory if an attach is refused: what they do is
# counted.
# COMMAND…: what it says, and whether its tasks have attached to each other, always with success.
attaches() {
	as_user strace -f -qq -e trace=process_vm_readv,process_vm_writev -o "$W/attached" "$@" 2>&1
	grep process_vm_ "$W/attached" |
		awk '/ = -/ { failed++ } / = [1-9]/ { n++ } END { print (n ? "attached" : "not attached"), failed + 0, "failed" }'
}
shared() { # COMMAND…: by Open MPI on this machine, through shared memory
	attaches mpirun.openmpi --host localhost:2 -n 2 --mca mpi_yield_when_idle 1 --mca ras \
		'^slurm,tm' --mca plm isolated --mca pml ob1 --mca btl vader,self "$@"
}
if [ -n "$mpi" ]; then
	is 'MPICH, each task in a view of its own' \
		"$(attaches mpiexec.hydra -launcher fork -n 4 "$COPPER" run "$PYTHON" \
			-B "$SRC/ring.py")" \
		$'4 tasks, 0 wrong\nattached 0 failed'
	is 'MPICH, all in one view' \
		"$("${run[@]}" mpiexec.hydra -launcher fork -n 4 "$PYTHON" -B "$SRC/ring.py" \
			2>&1)" '4 tasks, 0 wrong'
	is 'MPICH, within and within' \
		"$("${run[@]}" mpiexec.hydra -launcher fork -n 2 "$COPPER" run "$PYTHON" \
			-B "$SRC/ring.py" 2>&1)" '2 tasks, 0 wrong'
else
	for how in each one within; do
		pass "MPICH, $how # SKIP no MPICH, or no strace"
	done
fi

if [ -n "$openmpi" ]; then
	is 'Open MPI' "$(shared "$COPPER" run "$PYTHON" -B "$SRC/openmpi.py")" \
		$'2 tasks, 0 wrong\nattached 0 failed'
	is 'Open MPI through shared memory alone' \
		"$(shared --mca btl_vader_single_copy_mechanism none "$COPPER" run "$PYTHON" \
			-B "$SRC/openmpi.py")" \
		$'2 tasks, 0 wrong\nnot attached 0 failed'
else
	pass 'Open MPI attaches # SKIP no Open MPI, or no strace'
	pass 'Open MPI, shared memory # SKIP no Open MPI, or no strace'
fi

# ---- a login beside the job, as by ssh: a session of its own, and hardly a variable of the job's

later=$(join setsid -w "${cop_as[@]::7}" env -i PATH=/usr/bin:/bin HOME="$W" \
		XDG_RUNTIME_DIR="$W/run" "$COPPER" run "$PYTHON" -B "$SRC/peek.py")
is 'a task that another login starts reaches a task, and is reached' \
	"$("$PYTHON" "$T/pair.py" "$task" "$later")" $'word of a task\nword of a task'

# ---- debuggers

"${run[@]}" "$PYTHON" -c 'import os, time
print(os.getpid(), flush=True)
while True:
    time.sleep(0.05)
    os.getppid()' >"$T/out.task" &
wait_for 20 test -s "$T/out.task"
task=$(cat "$T/out.task")
traced() { # WORDS BEFORE strace
	local words=("$@")
	timeout -s TERM "$(patient 3)" "${words[@]}" strace -p "$task" \
		-e trace=getppid -o "$W/trace.$$" >"$T/out.traced" 2>&1 </dev/null
	grep -c '^getppid' "$W/trace.$$" | awk '{ print ($1 > 0 ? "seen" : "nothing seen") }'
}
if command -v strace >/dev/null; then
	is 'strace -p from inside' "$(traced "${run[@]}")" seen
	is 'strace -p from a plain shell of the user' "$(traced "${cop_as[@]}")" seen
else
	pass 'strace # SKIP there is none'
	pass 'strace # SKIP there is none'
fi
if command -v gdb >/dev/null; then
	matches 'gdb -p from inside' \
		"$(timeout "$(patient 60)" "${run[@]}" gdb -nx -batch -p "$task" \
			-ex 'print 6*7' 2>&1)" '= 42'
	matches 'gdb -p from a plain shell of the user' \
		"$(timeout "$(patient 60)" "${cop_as[@]}" gdb -nx -batch -p "$task" \
			-ex 'print 6*7' -ex 'info proc mappings' 2>&1)" '= 42'
	# The option is taken from the manual.
	printf '#include <unistd.h>\nvolatile int word = 4242;\nint main(void)\n{\n\tfor (;;)\n\t\tpause();\n}\n' |
		cc -g -o "$T/waits" -x c -
	cp "$T/waits" "$SRC/waits"
	chmod 755 "$SRC/waits"
	"${run[@]}" "$SRC/waits" &
	waits=$!
	wait_for 20 eval '[ "$(readlink "/proc/$waits/exe")" = "$SRC/waits" ]'
	option=$(sed -n "s|.*gdb -iex .(aq\\(.*\\).(aq -p PID.*|\\1|p" "$cop_root/man/copper-run.1")
	matches 'gdb -p from a plain shell has symbols as the manual says' \
		"$(timeout "$(patient 60)" "${cop_as[@]}" gdb -nx -batch -iex "${option:-nothing}" \
			-p "$waits" -ex 'print word' 2>&1)" '= 4242'
	kill "$waits"
else
	pass 'gdb # SKIP there is none'
	pass 'gdb # SKIP there is none'
	pass 'gdb # SKIP there is none'
fi
kill "$task"
wait_for 10 is_gone "$task"
ok 'the tree stops' without_tree
