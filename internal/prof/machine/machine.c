/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/machine/machine_priv.h"

#include <fcntl.h>
#include <dirent.h>
#include <sys/statvfs.h>

/* Samples processors, memory, network and the root file system from proc(5) and statvfs(3).
 * Definitions are those of psutil, on which MLflow's system metrics are based: I/O wait counts as
 * idle time, and memory that the kernel can free at once counts as unused. */

#define MB 1000000u

/* Reads the beginning of a file below root. Returns false if the file is missing or empty. */
static bool read_text(const char *root, const char *name, char text[TEXT_SIZE])
{
	char path[ROOT_SIZE + 256];
	ssize_t n = -1;
	int fd;

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT_SIZE - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void set_bytes(struct cop_machine_sum *s, unsigned metric, uint64_t bytes)
{
	cop_machine_set(s, metric, bytes / (MB / 1000));
}

/* "cpu  user nice system idle iowait irq softirq steal ..."; user time includes guest time. */
static void look_at_processors(struct cop_machine *m, struct cop_machine_sum *s)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TIMES };
	unsigned long long t[TIMES] = {0};
	char text[TEXT_SIZE];
	uint64_t idle, busy, all = 0;

	if (!read_text(m->root, "/proc/stat", text) ||
		sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[USER], &t[NICE],
			&t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ], &t[STEAL]) <= IDLE)
		return;
	for (unsigned i = 0; i < TIMES; i++)
		all += t[i];
	idle = t[IDLE] + t[IOWAIT];
	busy = all - idle;
	/* The kernel's idle time can decrease slightly. */
	if (m->all && all > m->all && busy >= m->busy)
		cop_machine_set_share(s, COP_MACHINE_CPU_PERCENT, busy - m->busy, all - m->all);
	m->busy = busy;
	m->all = all;
}

/* Finds and parses the line "Name:  12 kB". Returns false if there is none. */
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

	if (!read_text(m->root, "/proc/meminfo", text) || !read_line(text, "MemTotal", &all) ||
		!read_line(text, "MemAvailable", &available))
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

	if (!read_text(m->root, "/proc/net/dev", text))
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

/* As in df, the percentage excludes the blocks reserved for root. */
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

static void look_at_host(struct cop_machine *m, struct cop_machine_sum *s)
{
	look_at_processors(m, s);
	look_at_memory(m, s);
	look_at_network(m, s);
	look_at_disk(m, s);
}

/* AMD GPUs, from the sysfs files of the amdgpu driver (kernel documentation: "GPU power, thermal
 * and usage monitoring", "Memory usage"). Intel's drivers have no such file for utilization, so
 * Intel GPUs are not reported. */

static bool read_number(const char *dir, const char *name, uint64_t *out)
{
	char text[TEXT_SIZE], *end;

	if (!read_text(dir, name, text) || *text < '0' || *text > '9')
		return false;
	*out = strtoull(text, &end, 10);
	return true;
}

static void find_hwmon(struct gpu *g)
{
	char dir[sizeof(g->dir) + 16];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/hwmon", g->dir);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, "hwmon", 5) == 0 && strlen(e->d_name) < 12)
			snprintf(g->hwmon, sizeof(g->hwmon), "%s/%.12s", dir, e->d_name);
	if (d)
		closedir(d);
}

/* Keeps GPUs sorted by card number, which is their bus order. */
static void insert_gpu(struct cop_machine *m, const struct gpu *g)
{
	unsigned at = m->gpus;

	if (at == COP_MACHINE_GPUS)
		return;
	for (; at > 0 && m->gpu[at - 1].card > g->card; at--)
		m->gpu[at] = m->gpu[at - 1];
	m->gpu[at] = *g;
	m->gpus++;
}

static void find_gpus(struct cop_machine *m)
{
	char dir[ROOT_SIZE + 32];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/sys/class/drm", m->root);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		struct gpu g = {.card = 0};
		uint64_t ignored;
		int end = 0;

		/* "card0" is a GPU; "card0-DP-1" is one of its connectors. */
		if (sscanf(e->d_name, "card%4u%n", &g.card, &end) != 1 || e->d_name[end])
			continue;
		snprintf(g.dir, sizeof(g.dir), "%s/card%u/device", dir, g.card);
		if (!read_number(g.dir, "/mem_info_vram_total", &ignored))
			continue;
		find_hwmon(&g);
		insert_gpu(m, &g);
	}
	if (d)
		closedir(d);
}

static void look_at_power(const struct gpu *g, unsigned first, struct cop_machine_sum *s)
{
	uint64_t microwatts, cap;

	if (!*g->hwmon || (!read_number(g->hwmon, "/power1_average", &microwatts) &&
				  !read_number(g->hwmon, "/power1_input", &microwatts)))
		return;
	cop_machine_set(s, first + COP_MACHINE_GPU_WATTS, microwatts / 1000);
	if (read_number(g->hwmon, "/power1_cap", &cap) && cap)
		cop_machine_set_share(s, first + COP_MACHINE_GPU_WATTS_PERCENT, microwatts, cap);
}

static void look_at_gpus(const struct cop_machine *m, struct cop_machine_sum *s)
{
	for (unsigned i = 0; i < m->gpus; i++) {
		const struct gpu *g = &m->gpu[i];
		unsigned first = COP_MACHINE_GPU + i * COP_MACHINE_GPU_METRICS;
		uint64_t percent, used, all;

		if (read_number(g->dir, "/gpu_busy_percent", &percent))
			cop_machine_set(s, first + COP_MACHINE_GPU_PERCENT, percent * 1000);
		if (read_number(g->dir, "/mem_info_vram_used", &used) &&
			read_number(g->dir, "/mem_info_vram_total", &all) && all) {
			cop_machine_set(s, first + COP_MACHINE_GPU_MEMORY_MB, used / 1000);
			cop_machine_set_share(s, first + COP_MACHINE_GPU_MEMORY_PERCENT, used, all);
		}
		look_at_power(g, first, s);
	}
}

/* Processor utilization over less than this is meaningless. */
#define LAST_MS 1000

struct cop_machine *cop_machine_new(const char *root, uint64_t every_ms)
{
	struct cop_machine *m = calloc(1, sizeof(*m));
	char type[COP_MOUNT_TYPE_SIZE] = "";

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	snprintf(m->root, sizeof(m->root), "%s", root);
	m->every_ms = every_ms;
	/* Do not let a hung file server block the node. */
	m->has_disk = !cop_mount_type("/", type) && !cop_mount_is_shared(type);
	find_gpus(m);
	m->nvidia = cop_nvidia_new(every_ms);
	/* Baseline of the processor and network counters. */
	look_at_host(m, &(struct cop_machine_sum){0});
	return m;
}

void cop_machine_free(struct cop_machine *m)
{
	if (!m)
		return;
	cop_nvidia_free(m->nvidia);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static void take_sample(struct cop_machine *m)
{
	struct cop_machine_sum s = {0};

	look_at_host(m, &s);
	look_at_gpus(m, &s);
	cop_nvidia_look(m->nvidia, m->gpus, &s);
	pthread_mutex_lock(&m->lock);
	m->latest = s;
	pthread_mutex_unlock(&m->lock);
}

uint64_t cop_machine_look(struct cop_machine *m, uint64_t now_ms, bool last)
{
	if (!m)
		return UINT64_MAX;
	if (now_ms >= m->next_ms || (last && now_ms - m->looked_ms >= LAST_MS)) {
		take_sample(m);
		m->looked_ms = now_ms;
		m->next_ms = now_ms + m->every_ms;
	}
	return m->next_ms;
}

void cop_machine_add_own(struct cop_machine_sum *into, struct cop_machine *m)
{
	struct cop_machine_sum own;

	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	own = m->latest;
	pthread_mutex_unlock(&m->lock);
	cop_machine_add(into, &own);
}
