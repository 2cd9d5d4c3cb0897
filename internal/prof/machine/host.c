/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors, memory, network and the root file system. Method: proc(5) and statvfs(3), with the
 * definitions of psutil, the basis of MLflow's system metrics: I/O wait is idle time, and memory
 * that the kernel can free immediately is not used. */
#include "prof/machine/machine_priv.h"

#include <sys/statvfs.h>

#define MB 1000000u

static void set_bytes(struct cop_machine_sum *s, unsigned metric, uint64_t bytes)
{
	cop_machine_set(s, metric, bytes / (MB / 1000));
}

/* "cpu  user nice system idle iowait irq softirq steal ...": user time includes guest time. */
static void look_at_processors(struct cop_machine *m, struct cop_machine_sum *s)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TIMES };
	unsigned long long t[TIMES] = {0};
	char text[TEXT_SIZE];
	uint64_t idle, busy, all = 0;

	if (!cop_machine_text(m->root, "/proc/stat", text) ||
		sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[USER], &t[NICE],
			&t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ], &t[STEAL]) <= IDLE)
		return;
	for (unsigned i = 0; i < TIMES; i++)
		all += t[i];
	idle = t[IDLE] + t[IOWAIT];
	busy = all - idle;
	/* The kernel's idle times may decrease slightly. */
	if (m->all && all > m->all && busy >= m->busy)
		cop_machine_set_share(s, COP_MACHINE_CPU_PERCENT, busy - m->busy, all - m->all);
	m->busy = busy;
	m->all = all;
}

/* Parses a line "Name:  12 kB". False: there is none. */
static bool read_line(const char *text, const char *name, uint64_t *bytes)
{
	const char *at = strstr(text, name);
	unsigned long long kib;

	if (!at || (at > text && at[-1] != '\n') || sscanf(at + strlen(name), ": %llu", &kib) != 1)
		return false;
	*bytes = kib * 1024;
	return true;
}

static void look_at_memory(const struct cop_machine *m, struct cop_machine_sum *s)
{
	char text[TEXT_SIZE];
	uint64_t all, available;

	if (!cop_machine_text(m->root, "/proc/meminfo", text) ||
		!read_line(text, "MemTotal", &all) || !read_line(text, "MemAvailable", &available))
		return;
	available = COP_MIN(available, all);
	set_bytes(s, COP_MACHINE_MEMORY_MB, all - available);
	cop_machine_set_share(s, COP_MACHINE_MEMORY_PERCENT, all - available, all);
}

static void count(struct counter *c, uint64_t now)
{
	if (c->known && now >= c->last)
		c->total += now - c->last;
	c->last = now;
	c->known = true;
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes ...", after two header
 * lines. Loopback traffic is excluded. */
static void look_at_network(struct cop_machine *m, struct cop_machine_sum *s)
{
	char text[TEXT_SIZE], *rest = text, *line;
	uint64_t received = 0, sent = 0;

	if (!cop_machine_text(m->root, "/proc/net/dev", text))
		return;
	/* A truncated line has no newline. */
	while ((line = strsep(&rest, "\n")) && rest) {
		char *colon = strchr(line, ':');
		unsigned long long in, out;

		if (!colon ||
			sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) != 2)
			continue;
		*colon = '\0';
		if (strcmp(line + strspn(line, " "), "lo") == 0)
			continue;
		received += in;
		sent += out;
	}
	count(&m->received, received);
	count(&m->sent, sent);
	set_bytes(s, COP_MACHINE_RECEIVED_MB, m->received.total);
	set_bytes(s, COP_MACHINE_SENT_MB, m->sent.total);
}

/* The percentage refers to the space available to users, as in df: without root's reserved blocks.
 * */
static void look_at_disk(const struct cop_machine *m, struct cop_machine_sum *s)
{
	uint64_t block, used, available;
	struct statvfs v;

	if (!m->has_disk || statvfs("/", &v) || !v.f_blocks)
		return;
	block = v.f_frsize;
	used = (v.f_blocks - v.f_bfree) * block;
	available = v.f_bavail * block;
	set_bytes(s, COP_MACHINE_DISK_MB, used);
	set_bytes(s, COP_MACHINE_DISK_FREE_MB, available);
	cop_machine_set_share(s, COP_MACHINE_DISK_PERCENT, used, used + available);
}

void cop_machine_look_at_host(struct cop_machine *m, struct cop_machine_sum *s)
{
	look_at_processors(m, s);
	look_at_memory(m, s);
	look_at_network(m, s);
	look_at_disk(m, s);
}
