/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes of the ranks that were met: open addressing, never more than half full. */
#include <errno.h>
#include <stdlib.h>

#include "report/report_priv.h"

static size_t slot_of(const struct seen *s, uint64_t hash)
{
	size_t i = hash & (s->slots - 1);

	while (s->slot[i] && s->slot[i] != hash)
		i = (i + 1) & (s->slots - 1);
	return i;
}

static int grow(struct seen *s)
{
	struct seen old = *s;

	s->slots = old.slots ? old.slots * 2 : 1024;
	s->slot = calloc(s->slots, sizeof(*s->slot));
	if (!s->slot) {
		*s = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.slots; i++)
		if (old.slot[i])
			s->slot[slot_of(s, old.slot[i])] = old.slot[i];
	free(old.slot);
	return 0;
}

int cop_report_seen_add(struct seen *s, const char *name, size_t len)
{
	uint64_t hash = cop_hash64(name, len, s->seed);
	int rc = s->n * 2 >= s->slots ? grow(s) : 0;
	size_t i;

	if (rc)
		return rc;
	hash += !hash; /* 0 is an empty slot */
	i = slot_of(s, hash);
	if (s->slot[i])
		return 0;
	s->slot[i] = hash;
	s->n++;
	return 1;
}

void cop_report_seen_free(struct seen *s)
{
	free(s->slot);
	*s = (struct seen){0};
}
