/* SPDX-License-Identifier: BSD-3-Clause */
/* The same in C; and the calls that PerfFlowAspect's own plugin makes: names as compilers write
 * them, and an argument more. */
#include <pthread.h>
#include <stdlib.h>

#define AROUND __attribute__((annotate("@critical_path(pointcut='around')")))

AROUND static int inner(int n)
{
	return n > 1 ? inner(n - 1) : 0;
}

AROUND static void *work(void *arg)
{
	inner(3);
	pthread_exit(arg);
}

AROUND static void leaves(int status)
{
	exit(status);
}

#ifdef WOVEN
void perfflow_weave_before(
	int, const char *, const char *, const char *, const char *, const char *);
void perfflow_weave_after(
	int, const char *, const char *, const char *, const char *, const char *);

static void woven(void)
{
	perfflow_weave_before(0, "w.cpp", "_ZN4mesh6solver4stepEi", "NA", "NA", "around");
	perfflow_weave_before(1, "w.cpp", "load", "files", "NA", "around_async");
	perfflow_weave_after(1, "w.cpp", "load", "files", "NA", "around_async");
	perfflow_weave_after(0, "w.cpp", "_ZN4mesh6solver4stepEi", "NA", "outin", "around");
}
#else
static void woven(void)
{
}
#endif

int main(void)
{
	pthread_t t;

	woven();
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	leaves(0);
}
