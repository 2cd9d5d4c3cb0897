/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sums, and their encoding. Each metric that has a value is encoded as four varints: its
 * number, the number of hosts, the sum and the maximum. Metrics are in ascending order. */
#include "prof/machine/machine_priv.h"

void cop_machine_name(unsigned metric, char name[COP_MACHINE_NAME_SIZE])
{
	static const char *const host[COP_MACHINE_GPU] = {
		[COP_MACHINE_CPU_PERCENT] = "cpu_utilization_percentage",
		[COP_MACHINE_MEMORY_MB] = "system_memory_usage_megabytes",
		[COP_MACHINE_MEMORY_PERCENT] = "system_memory_usage_percentage",
		[COP_MACHINE_RECEIVED_MB] = "network_receive_megabytes",
		[COP_MACHINE_SENT_MB] = "network_transmit_megabytes",
		[COP_MACHINE_DISK_PERCENT] = "disk_usage_percentage",
		[COP_MACHINE_DISK_MB] = "disk_usage_megabytes",
		[COP_MACHINE_DISK_FREE_MB] = "disk_available_megabytes"};
	static const char *const gpu[COP_MACHINE_GPU_METRICS] = {
		[COP_MACHINE_GPU_PERCENT] = "utilization_percentage",
		[COP_MACHINE_GPU_MEMORY_MB] = "memory_usage_megabytes",
		[COP_MACHINE_GPU_MEMORY_PERCENT] = "memory_usage_percentage",
		[COP_MACHINE_GPU_WATTS] = "power_usage_watts",
		[COP_MACHINE_GPU_WATTS_PERCENT] = "power_usage_percentage"};
	unsigned of_gpu = metric - COP_MACHINE_GPU;

	if (metric < COP_MACHINE_GPU)
		snprintf(name, COP_MACHINE_NAME_SIZE, "%s", host[metric]);
	else
		snprintf(name, COP_MACHINE_NAME_SIZE, "gpu_%u_%s", of_gpu / COP_MACHINE_GPU_METRICS,
			gpu[of_gpu % COP_MACHINE_GPU_METRICS]);
}

void cop_machine_set(struct cop_machine_sum *s, unsigned metric, uint64_t thousandths)
{
	s->of[metric] =
		(struct cop_machine_value){.hosts = 1, .sum = thousandths, .most = thousandths};
}

void cop_machine_set_share(struct cop_machine_sum *s, unsigned metric, uint64_t used, uint64_t all)
{
	cop_machine_set(s, metric, (uint64_t)((double)used / (double)all * 100e3 + 0.5));
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void cop_machine_add(struct cop_machine_sum *into, const struct cop_machine_sum *from)
{
	for (unsigned i = 0; i < COP_MACHINE_METRICS; i++) {
		struct cop_machine_value *to = &into->of[i];
		const struct cop_machine_value *v = &from->of[i];

		to->hosts = (uint32_t)COP_MIN(sum_of(to->hosts, v->hosts), UINT32_MAX);
		to->sum = sum_of(to->sum, v->sum);
		to->most = COP_MAX(to->most, v->most);
	}
}

void cop_machine_encode(const struct cop_machine_sum *s, struct cop_buf *out)
{
	for (unsigned i = 0; i < COP_MACHINE_METRICS; i++) {
		const struct cop_machine_value *v = &s->of[i];

		if (!v->hosts)
			continue;
		cop_buf_varint(out, i);
		cop_buf_varint(out, v->hosts);
		cop_buf_varint(out, v->sum);
		cop_buf_varint(out, v->most);
	}
}

static bool read_value(const unsigned char **at, const unsigned char *end,
	struct cop_machine_sum *s, uint64_t *next)
{
	uint64_t metric, hosts, sum, most;

	if (!cop_varint(at, end, &metric) || !cop_varint(at, end, &hosts) ||
		!cop_varint(at, end, &sum) || !cop_varint(at, end, &most))
		return false;
	if (metric < *next || metric >= COP_MACHINE_METRICS || !hosts || hosts > UINT32_MAX)
		return false;
	s->of[metric] =
		(struct cop_machine_value){.hosts = (uint32_t)hosts, .sum = sum, .most = most};
	*next = metric + 1;
	return true;
}

int cop_machine_decode(const void *data, size_t len, struct cop_machine_sum *s)
{
	const unsigned char *at = data, *end = at + len;
	uint64_t next = 0;

	*s = (struct cop_machine_sum){0};
	while (at < end)
		if (!read_value(&at, end, s, &next)) {
			*s = (struct cop_machine_sum){0};
			return -EBADMSG;
		}
	return 0;
}
