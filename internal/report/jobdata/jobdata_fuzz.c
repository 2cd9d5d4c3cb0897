/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of a job directory: the first byte selects which, the second how many bytes each read
 * returns. Whatever it holds, what is read of it is bounded and in order. */
#include <stdlib.h>
#include <string.h>

#include "report/jobdata/jobdata_priv.h"

struct input {
	const uint8_t *data;
	size_t len, step;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->step), in->len);

	memcpy(data, in->data, n);
	in->data += n;
	in->len -= n;
	return (ssize_t)n;
}

static void check(const struct cop_jobdata *j)
{
	if (j->steps > COP_JOBDATA_STEPS_MAX || j->series_n > COP_JOBDATA_SERIES_MAX ||
		j->node_n > COP_JOBDATA_NODES_MAX || j->phases > COP_JOBDATA_PHASES_MAX)
		abort();
	for (size_t i = 1; i < j->series_n; i++)
		if (j->series[i]->rank == j->series[i - 1]->rank)
			abort();
	for (size_t i = 0; i < j->events; i++)
		if (!j->event[i].host || !j->event[i].event || !j->event[i].detail)
			abort();
	for (size_t i = 0; i < j->unused_n; i++)
		if (j->unused[i].directory[0] != '/')
			abort();
}

static void parse_text(struct cop_jobdata *j, unsigned which, const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len);

	if (!text)
		abort();
	if (which == 0)
		cop_jobdata_parse_counts(j, text);
	else if (which == 1)
		cop_jobdata_parse_unused(j, text);
	else
		cop_jobdata_parse_log(j, text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static cop_jobdata_from_fn *const from[] = {cop_jobdata_nodes_from, cop_jobdata_times_from,
		cop_jobdata_events_from, cop_jobdata_warnings_from};
	struct cop_jobdata j = {0};
	struct input in = {.data = data + 2, .len = size - 2};
	unsigned which;

	if (size < 2)
		return 0;
	which = data[0] % (COP_ARRAY_SIZE(from) + 3);
	in.step = data[1] + 1u;
	if (which < COP_ARRAY_SIZE(from))
		from[which](&j, read_input, &in);
	else
		parse_text(&j, which - COP_ARRAY_SIZE(from), data + 2, size - 2);
	check(&j);
	cop_jobdata_free(&j);
	return 0;
}
