/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/machine/machine_priv.h"

#include <fcntl.h>

/* Processor utilization over a shorter time is meaningless. */
#define LAST_MS 1000

bool cop_machine_text(const char *root, const char *name, char text[TEXT_SIZE])
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

struct cop_machine *cop_machine_new(const char *root, uint64_t every_ms)
{
	struct cop_machine *m = calloc(1, sizeof(*m));
	char type[COP_MOUNT_TYPE_SIZE] = "";

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	snprintf(m->root, sizeof(m->root), "%s", root);
	m->every_ms = every_ms;
	/* A hung server must not block the node. */
	m->has_disk = !cop_mount_type("/", type) && !cop_mount_is_shared(type);
	cop_machine_find_gpus(m);
	m->nvidia = cop_nvidia_new(every_ms);
	/* Baseline of the processor and network counters. */
	cop_machine_look_at_host(m, &(struct cop_machine_sum){0});
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

	cop_machine_look_at_host(m, &s);
	cop_machine_look_at_gpus(m, &s);
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
