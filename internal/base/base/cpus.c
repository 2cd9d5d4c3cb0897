/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of processors, and binding threads to them (sched_setaffinity(2), cpuset(7)). If part of a
 * list is outside the cpuset, the kernel silently uses the rest. We treat that as an error, because
 * the user asked for these processors explicitly. */
#include "base/base/base.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>

#define CPUS_MAX 65536
#define WORD_BITS (8 * sizeof(unsigned long))

/* Like cpu_set_t, but large enough for any machine. */
struct cpus {
	unsigned long word[CPUS_MAX / WORD_BITS];
};

static bool has_cpu(const struct cpus *c, unsigned long cpu)
{
	return c->word[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

static void add_cpu(struct cpus *c, unsigned long cpu)
{
	c->word[cpu / WORD_BITS] |= 1UL << cpu % WORD_BITS;
}

/* Parses a number below CPUS_MAX and advances past it. */
static bool parse_cpu(const char **p, unsigned long *out)
{
	*out = 0;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p) && *out < CPUS_MAX; (*p)++)
		*out = *out * 10 + (unsigned long)(**p - '0');
	return *out < CPUS_MAX;
}

static int parse_cpus(const char *text, struct cpus *c)
{
	unsigned long first, last;

	*c = (struct cpus){0};
	for (;; text++) {
		if (!parse_cpu(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-' && (text++, !parse_cpu(&text, &last)))
			return -EINVAL;
		if (last < first)
			return -EINVAL;
		for (; first <= last; first++)
			add_cpu(c, first);
		if (*text != ',')
			return *text == '\0' || strcmp(text, "\n") == 0 ? 0 : -EINVAL;
	}
}

static void print_cpus(const struct cpus *c, struct cop_buf *out)
{
	const char *comma = "";

	for (unsigned long i = 0, end; i < CPUS_MAX; i = end + 1) {
		end = i;
		if (!has_cpu(c, i))
			continue;
		while (end + 1 < CPUS_MAX && has_cpu(c, end + 1))
			end++;
		cop_buf_printf(out, end > i ? "%s%lu-%lu" : "%s%lu", comma, i, end);
		comma = ",";
	}
}

/* Computes a minus b; returns whether any processors are left. */
static bool subtract_cpus(const struct cpus *a, const struct cpus *b, struct cpus *rest)
{
	bool any = false;

	for (size_t i = 0; i < COP_ARRAY_SIZE(a->word); i++) {
		rest->word[i] = a->word[i] & ~b->word[i];
		any |= rest->word[i] != 0;
	}
	return any;
}

static int get_cpus(struct cpus *c)
{
	*c = (struct cpus){0};
	return sched_getaffinity(0, sizeof(*c), (cpu_set_t *)c) ? -errno : 0;
}

static int set_affinity(pid_t thread, const struct cpus *c)
{
	return sched_setaffinity(thread, sizeof(*c), (const cpu_set_t *)c) ? -errno : 0;
}

static bool get_present_cpus(struct cpus *c)
{
	char *text;
	size_t len;
	bool known;

	if (cop_read_file("/sys/devices/system/cpu/present", 65536, &text, &len))
		return false;
	known = parse_cpus(text, c) == 0;
	free(text);
	return known;
}

static int refuse_cpus(
	const struct cpus *rest, const struct cpus *those, const char *what, struct cop_err *err)
{
	struct cop_buf a = {0}, b = {0};

	print_cpus(rest, &a);
	print_cpus(those, &b);
	cop_err_set(err, EINVAL, "processor %.200s %s %.200s", a.data ? a.data : "", what,
		b.data ? b.data : "");
	cop_buf_free(&a);
	cop_buf_free(&b);
	return -EINVAL;
}

/* Finds all processors of the cpuset. */
static int get_cpuset(const struct cpus *was, struct cpus *out)
{
	int rc;

	memset(out, 0xff, sizeof(*out));
	set_affinity(0, out);
	rc = get_cpus(out);
	set_affinity(0, was);
	return rc;
}

/* Binds this thread to these processors, or fails and leaves its affinity unchanged. */
static int try_affinity(const struct cpus *want, struct cop_err *err)
{
	struct cpus was, is, rest;
	int rc = get_cpus(&was);

	if (rc)
		return cop_err_set(
			err, -rc, "cannot read the processors of this process: %s", strerror(-rc));
	if (get_present_cpus(&is) && subtract_cpus(want, &is, &rest))
		return refuse_cpus(&rest, &is, "does not exist: this machine has", err);
	rc = set_affinity(0, want);
	if (rc && rc != -EINVAL)
		return cop_err_set(err, -rc, "cannot choose processors: %s", strerror(-rc));
	if (!rc && !get_cpus(&is) && !subtract_cpus(want, &is, &rest))
		return 0;
	rc = get_cpuset(&was, &is);
	subtract_cpus(want, &is, &rest);
	return rc ? cop_err_set(err, -rc, "cannot read the processors of this process: %s",
			    strerror(-rc))
		  : refuse_cpus(&rest, &is,
			    "may not be used here: offline, or outside of this job's cpuset, which has",
			    err);
}

/* A thread may exit meanwhile, which does no harm. */
static void set_all(const struct cpus *c)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			set_affinity((pid_t)atoi(d->d_name), c);
	if (dir)
		closedir(dir);
}

int cop_cpus_pin(const char *list, struct cop_err *err)
{
	struct cpus want;
	int rc = parse_cpus(list, &want);

	if (rc)
		return cop_err_set(
			err, EINVAL, "'%.60s' is not a list of processors (such as 0-3,8)", list);
	rc = try_affinity(&want, err);
	if (!rc)
		set_all(&want);
	return rc;
}

void cop_cpus_list(struct cop_buf *out)
{
	struct cpus c;

	if (get_cpus(&c) == 0)
		print_cpus(&c, out);
}

bool cop_cpus_bound(struct cop_buf *mine, struct cop_buf *cpuset)
{
	struct cpus is, all, rest;
	unsigned count = 0;

	if (get_cpus(&is) || get_cpuset(&is, &all) || !subtract_cpus(&all, &is, &rest))
		return false;
	for (size_t i = 0; i < COP_ARRAY_SIZE(is.word); i++)
		count += (unsigned)__builtin_popcountll(is.word[i]);
	if (count > 2)
		return false;
	print_cpus(&is, mine);
	print_cpus(&all, cpuset);
	return true;
}
