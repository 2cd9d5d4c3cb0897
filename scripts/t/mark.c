/* SPDX-License-Identifier: BSD-3-Clause */
/* mark WHAT...: programs with marks, for t086*.sh. It is compiled as C and, as mark.cc, as C++. */
#include <copper/mark.h>

#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static void step(int depth)
{
	COPPER_CRITICAL_PATH();
	if (depth > 0) {
		COPPER_CRITICAL_PATH("inner");
		step(depth - 1);
	}
}

static int basics(char **word)
{
	(void)word;
	COPPER_MARK_BEGIN("main");
	step(2);
	COPPER_MARK_COUNTER("residual", 0.25);
	COPPER_MARK_COUNTER("infinite", 1e308 * 10);
	COPPER_MARK_ASYNC_BEGIN("load", "files", 7);
	COPPER_MARK_ASYNC_INSTANT("load", "files", 7);
	COPPER_MARK_ASYNC_END("load", "files", 7);
	copper_mark_event('s', "flow", "odd \"cat\"\\", NULL, 18446744073709551615ULL);
	COPPER_MARK_BEGIN("q\"b\\n\nt\tu\xc3\xa4z\xff\x01");
	COPPER_MARK_END("q\"b\\n\nt\tu\xc3\xa4z\xff\x01");
	COPPER_MARK_END("main");
	return copper_mark_enabled() ? 0 : 3;
}

static void *run_thread(void *arg)
{
	int n = *(int *)arg, i;

	for (i = 0; i < n; i++) {
		COPPER_CRITICAL_PATH("work");
	}
	return NULL;
}

/* threads N EVENTS: one after the other, and then so many at once; the last are there at exit. */
static int threads(char **word)
{
	int n = atoi(word[0]), each = atoi(word[1]), i;
	pthread_t thread[64];

	for (i = 0; i < 3 * n; i++) {
		if (i >= n && i < 2 * n)
			pthread_create(&thread[i - n], NULL, run_thread, &each);
		else if (i < n && !pthread_create(&thread[i], NULL, run_thread, &each))
			pthread_join(thread[i], NULL);
		else if (i >= 2 * n)
			pthread_join(thread[i - 2 * n], NULL);
	}
	return 0;
}

/* fork HOW: with buffers that are full of the parent's events. */
static int forks(char **word)
{
	int raw = !strcmp(word[0], "raw"), i;
	pid_t pid;

	for (i = 0; i < 20; i++)
		step(0);
	pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (pid == 0) {
		usleep(raw ? 20000 : 0);
		COPPER_MARK_BEGIN("child");
		COPPER_MARK_END("child");
		if (strcmp(word[0], "_exit") != 0)
			exit(0);
		copper_mark_flush();
		_exit(0);
	}
	COPPER_MARK_BEGIN("parent");
	waitpid(pid, NULL, 0);
	COPPER_MARK_END("parent");
	return 0;
}

static int execs(char **word)
{
	step(0);
	copper_mark_flush();
	execv(word[0], word);
	return 1;
}

/* many N: children, eight at a time; each has a file. */
static int many(char **word)
{
	int n = atoi(word[0]), status, failed = 0, i;

	for (i = 0; i < n + 8; i++) {
		if (i >= 8)
			failed += wait(&status) < 0 || status;
		if (i < n && fork() == 0) {
			step(0);
			exit(0);
		}
	}
	return failed;
}

/* Events of a moment ago are on the disk, without an end of the process. */
static int crash(char **word)
{
	int n = atoi(word[0]), i;

	for (i = 0; i < n; i++)
		step(0);
	usleep(1100000); /* no write is put off longer (mark.h) */
	COPPER_MARK_BEGIN("last");
	raise(SIGKILL);
	return 1;
}

/* A program that closes what it does not know, and opens a file of its own. */
static int closes(char **word)
{
	FILE *own;
	int fd;

	step(0);
	for (fd = 3; fd < 64; fd++)
		close(fd);
	own = fopen(word[0], "w");
	fputs("mine\n", own);
	fflush(own);
	usleep(5000);
	step(0);
	fclose(own);
	return 0;
}

static void on_alarm(int number)
{
	(void)number;
	COPPER_MARK_BEGIN("alarm");
	COPPER_MARK_END("alarm");
}

static int signals(char **word)
{
	struct itimerval often;
	int i;

	memset(&often, 0, sizeof(often));
	often.it_value.tv_usec = often.it_interval.tv_usec = 200;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < atoi(word[0]); i++)
		step(0);
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	return 0;
}

static void at_the_end(void)
{
	step(0);
}

static int late(char **word)
{
	(void)word;
	atexit(at_the_end);
	step(0);
	return 0;
}

/* dlopen LIBRARY: it marks, is closed, and the program goes on. */
static int opens(char **word)
{
	void *library = dlopen(word[0], RTLD_NOW | RTLD_LOCAL);
	void (*run)(void);
	void *symbol;

	if (!library || !(symbol = dlsym(library, "plugin")))
		return 1;
	memcpy(&run, &symbol, sizeof(run));
	step(0);
	run();
	dlclose(library);
	step(0);
	return 0;
}

static int moves(char **word)
{
	if (!copper_mark_enabled() || chdir(word[0]))
		return 1;
	step(0);
	return 0;
}

/* limit BYTES EVENTS: the file must not become larger. */
static int limit(char **word)
{
	struct rlimit most;
	int i;

	most.rlim_cur = most.rlim_max = (rlim_t)atoi(word[0]);
	setrlimit(RLIMIT_FSIZE, &most);
	for (i = 0; i < atoi(word[1]); i++)
		step(0);
	return 0;
}

/* fills FILE: the events of the first second have no room; then FILE goes away. */
static int fills(char **word)
{
	int i;

	for (i = 0; i < 1000; i++)
		step(0);
	unlink(word[0]);
	usleep(1200000);
	step(0);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **word);
} programs[] = {{"basics", basics}, {"threads", threads}, {"fork", forks}, {"many", many},
	{"exec", execs}, {"crash", crash}, {"closes", closes}, {"signals", signals}, {"late", late},
	{"dlopen", opens}, {"moves", moves}, {"limit", limit}, {"fills", fills}};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run(argv + 2);
	return 2;
}
