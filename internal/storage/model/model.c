/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

static const struct row {
	const char *name, *unit, *source;
	size_t offset;
	uint64_t value, least;
} rows[] = {
#define COP_SIM_PARAM(name, value, least, unit, source)                                            \
	{#name, unit, source, offsetof(struct sim_model, name), value, least},
#include "params.def"
#undef COP_SIM_PARAM
};

static uint64_t *field(struct sim_model *m, const struct row *r)
{
	return (uint64_t *)((char *)m + r->offset);
}

void cop_sim_model_default(struct sim_model *m)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		*field(m, &rows[i]) = rows[i].value;
}

int cop_sim_model_set(struct sim_model *m, const char *text, struct cop_err *err)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	uint64_t value;

	for (size_t i = 0; i < COP_ARRAY_SIZE(rows) && len; i++) {
		if (strlen(rows[i].name) != len || memcmp(rows[i].name, text, len))
			continue;
		if (cop_parse_u64(equals + 1, &value) || value < rows[i].least ||
			value > UINT32_MAX)
			return cop_err_set(err, EINVAL,
				"--set %s: a whole number from %" PRIu64 " to %u is needed", text,
				rows[i].least, UINT32_MAX);
		*field(m, &rows[i]) = value;
		return 0;
	}
	return cop_err_set(
		err, EINVAL, "--set %s: there is no such parameter; --parameters lists them", text);
}

void cop_sim_model_print(const struct sim_model *m)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		printf("%s=%" PRIu64 "\n    %s\n    from: %s\n", rows[i].name,
			*field((struct sim_model *)m, &rows[i]), rows[i].unit, rows[i].source);
}
