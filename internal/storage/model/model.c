/* SPDX-License-Identifier: BSD-3-Clause */
#include "storage/model/model.h"

static const struct row {
	const char *name, *unit, *source;
	size_t offset;
	uint64_t value, least;
} rows[] = {
#define COP_MODEL_PARAM(name, value, least, unit, source)                                          \
	{#name, unit, source, offsetof(struct cop_model, name), value, least},
#include "params.def"
#undef COP_MODEL_PARAM
};

static uint64_t *field(struct cop_model *m, const struct row *r)
{
	return (uint64_t *)((char *)m + r->offset);
}

void cop_model_default(struct cop_model *m)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		*field(m, &rows[i]) = rows[i].value;
}

int cop_model_set(struct cop_model *m, const char *text, struct cop_err *err)
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

void cop_model_print(const struct cop_model *m)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rows); i++)
		printf("%s=%" PRIu64 "\n    %s\n    from: %s\n", rows[i].name,
			*field((struct cop_model *)m, &rows[i]), rows[i].unit, rows[i].source);
}

/* ---- the storage ---- */

int cop_model_storage_open(struct cop_model_storage *s, const struct cop_model *m)
{
	*s = (struct cop_model_storage){.model = m};
	s->slot_free = calloc(COP_MAX(m->storage_slots, (uint64_t)1), sizeof(*s->slot_free));
	return s->slot_free ? 0 : -ENOMEM;
}

void cop_model_storage_close(struct cop_model_storage *s)
{
	free(s->slot_free);
	s->slot_free = NULL;
}

uint64_t cop_model_service_ns(const struct cop_model_storage *s, uint64_t op_ns)
{
	uint64_t knee = s->model->storage_knee;

	return knee ? op_ns + op_ns * s->clients / knee : op_ns;
}

uint64_t cop_model_served_at(
	struct cop_model_storage *s, uint64_t now_ns, uint64_t op_ns, uint64_t bytes)
{
	uint64_t *place = &now_ns, *slot = s->slot_free, began = now_ns;

	if (s->model->storage_slots)
		place = slot;
	for (uint64_t i = 1; i < s->model->storage_slots; i++)
		if (slot[i] < *place)
			place = &slot[i];
	*place = COP_MAX(*place, began) + cop_model_service_ns(s, op_ns);
	s->bytes_free = COP_MAX(s->bytes_free, began) + bytes * 1000 / s->model->storage_mb_per_s;
	return COP_MAX(*place, s->bytes_free);
}

double cop_model_direct_s(const struct cop_model *m, const struct cop_model_client *c, double nodes)
{
	double ops_s = c->ops_s, alone, together = 0;

	if (m->storage_knee)
		ops_s *= 1 + nodes / (double)m->storage_knee;
	alone = ops_s + c->own_s;
	if (m->storage_slots)
		together = nodes * ops_s / (double)m->storage_slots;
	together = COP_MAX(together, nodes * c->bytes / ((double)m->storage_mb_per_s * 1e6));
	return COP_MAX(alone, together);
}
