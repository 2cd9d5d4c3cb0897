// SPDX-License-Identifier: BSD-3-Clause
// Functions with PerfFlowAspect's annotation in C++, as they are left in all the ways there are.
//   weave calls|throws|threads|leaves
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <string>

#define AROUND __attribute__((annotate("@critical_path(pointcut='around')")))

// ---- one calls another

__attribute__((annotate("@critical_path(pointcut=\"after\", scope=\"inner\")"))) void inner()
{
}
__attribute__((annotate("@critical_path(pointcut=\"before\", scope=\"inner\")"))) void middle()
{
	inner();
}
__attribute__((annotate("@critical_path()"))) bool outer(const std::string &word)
{
	middle();
	if (word == "yes")
		return true;
	return false;
}

namespace mesh {
class solver {
	int steps = 0;

public:
	void step();
	template <class T> AROUND T sum(T a, T b)
	{
		return a + b;
	}
	AROUND int operator()(int n) const
	{
		return n + steps;
	}
};
AROUND void solver::step()
{
	steps++;
}
} // namespace mesh

__attribute__((annotate("@critical_path(pointcut='around_async', scope='files')"))) static void load()
{
}
__attribute__((annotate("@critical_path(pointcut='before_async')"))) static void fetch_begins()
{
}
__attribute__((annotate("@critical_path(pointcut='after_async')"))) static void fetch_ends()
{
}
__attribute__((annotate("@critical_path(pointcut='around', flow='out')"))) static void sends()
{
}
__attribute__((annotate("@critical_path(pointcut='around', flow='inout')"))) static void passes_on()
{
}
__attribute__((annotate("@critical_path(pointcut='sideways')"))) static void odd()
{
}
__attribute__((annotate("of another tool"))) static void other()
{
}

static int calls()
{
	mesh::solver s;

	for (int i = 0; i < 4; i++)
		outer(i ? "no" : "yes");
	s.step();
	s.sum(1, 2);
	s(1);
	load();
	fetch_begins();
	fetch_ends();
	sends();
	passes_on();
	odd();
	other();
	return 0;
}

// ---- exceptions

struct held {
	~held()
	{
		middle();
	}
};
__attribute__((noinline)) static void may_throw(int n)
{
	if (n)
		throw n;
}
AROUND void holds_nothing(int n)
{
	may_throw(n);
}
AROUND void holds(int n)
{
	held h;

	may_throw(n);
}
AROUND void throws_itself()
{
	throw 1;
}
AROUND int catches(int n)
{
	try {
		holds_nothing(n);
		return 0;
	} catch (int) {
		return 1;
	}
}

static int throws()
{
	int caught = catches(0) + catches(1);

	try {
		holds(1);
	} catch (int) {
		caught++;
	}
	try {
		throws_itself();
	} catch (int) {
		caught++;
	}
	return caught == 3 ? 0 : 1;
}

// ---- threads, and the end of the process

AROUND static void *work(void *arg)
{
	held h;

	pthread_exit(arg);
}

static int threads()
{
	pthread_t t[3];

	for (pthread_t &one : t)
		pthread_create(&one, nullptr, work, nullptr);
	for (pthread_t &one : t)
		pthread_join(one, nullptr);
	return 0;
}

AROUND static void leaves()
{
	std::exit(3);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "throws"))
		return throws();
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "leaves"))
		leaves();
	return calls();
}
