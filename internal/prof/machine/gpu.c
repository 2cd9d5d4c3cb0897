/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD GPUs, from the files of the kernel's amdgpu driver (its documentation: "GPU power, thermal
 * and usage monitoring", "Memory usage"). Intel's drivers have no such file for GPU utilization:
 * those GPUs are not reported. */
#include "prof/machine/machine_priv.h"

#include <dirent.h>

static bool read_number(const char *dir, const char *name, uint64_t *out)
{
	char text[TEXT_SIZE], *end;

	if (!cop_machine_text(dir, name, text) || *text < '0' || *text > '9')
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

/* Sorted by card number, which is the order of their buses. */
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

void cop_machine_find_gpus(struct cop_machine *m)
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

		/* "card0" is a GPU, "card0-DP-1" one of its connectors. */
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

void cop_machine_look_at_gpus(const struct cop_machine *m, struct cop_machine_sum *s)
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
