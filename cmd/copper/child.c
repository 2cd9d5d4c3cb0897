/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <sys/wait.h>

#include "base/base/base.h"

static const int passed_on[] = {
	SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};

static void waited_for(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < COP_ARRAY_SIZE(passed_on); i++)
		sigaddset(set, passed_on[i]);
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

/* Signals of a terminal reach the command as well as this process, so those are not passed on. */
static void pass_on(pid_t pid, const siginfo_t *info)
{
	if (info->si_code != SI_KERNEL)
		kill(pid, info->si_signo);
}

int cop_child_wait(pid_t pid, struct rusage *usage)
{
	int status = 0, sig;
	siginfo_t info;
	sigset_t set;

	waited_for(&set);
	while (wait4(pid, &status, WNOHANG, usage) == 0) {
		sig = sigwaitinfo(&set, &info);
		if (sig > 0 && sig != SIGCHLD)
			pass_on(pid, &info);
	}
	return status;
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
