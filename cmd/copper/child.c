/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/base/base.h"

#define FAILED 125

/* Signals for faults of this process itself and for job control, which are not forwarded. */
static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU};

static void waited_for(sigset_t *set)
{
	sigfillset(set);
	for (size_t i = 0; i < COP_ARRAY_SIZE(kept); i++)
		sigdelset(set, kept[i]);
}

void cop_child_expect(struct cop_child_signals *before)
{
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &before->child);
}

void cop_child_hold(struct cop_child_signals *before)
{
	sigset_t set;

	waited_for(&set);
	sigprocmask(SIG_BLOCK, &set, &before->blocked);
}

void cop_child_restore(const struct cop_child_signals *before)
{
	sigaction(SIGCHLD, &before->child, NULL);
	sigprocmask(SIG_SETMASK, &before->blocked, NULL);
}

void cop_child_tie(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(FAILED);
}

void cop_child_leave_streams(int last)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= last; fd++)
		dup2(null, fd);
	if (null > last)
		close(null);
}

/* The terminal sends its signals to the command as well, so they are not forwarded. */
static void pass_on(pid_t pid, const siginfo_t *info)
{
	if (info->si_code == SI_QUEUE)
		sigqueue(pid, info->si_signo, info->si_value);
	else if (info->si_code != SI_KERNEL)
		kill(pid, info->si_signo);
}

/* SIGSTOP does not count: a user who stops only the command may also continue only the command, and
 * this process would remain stopped. */
static bool is_of_terminal(int status)
{
	int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

int cop_child_wait(pid_t pid, struct rusage *usage)
{
	int status = 0, sig;
	siginfo_t info;
	sigset_t set;

	waited_for(&set);
	for (;;) {
		pid_t got = wait4(pid, &status, WNOHANG | WUNTRACED, usage);

		if (got && !WIFSTOPPED(status))
			return status;
		if (got && is_of_terminal(status))
			raise(SIGSTOP);
		sig = got ? 0 : sigwaitinfo(&set, &info);
		if (sig > 0 && sig != SIGCHLD)
			pass_on(pid, &info);
	}
}

int cop_child_end_as(int status)
{
	struct rlimit none = {0};
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
