/* SPDX-License-Identifier: BSD-3-Clause */
/* The names behind the hashes of one file: lines FH (files) and HH (hosts) of DFTracer. They may
 * come after their use, so if names are wanted, the file is first read once for these lines
 * alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/read/read_priv.h"

struct name {
	struct cop_hlink link;
	uint64_t hash;
	unsigned kind;
	struct cop_trace_str text;
	char bytes[];
};

static struct name *find_name(const struct names *n, unsigned kind, uint64_t hash, uint64_t key)
{
	struct cop_hlink *l = cop_htab_first(&n->table, key);

	for (; l; l = cop_htab_next(l)) {
		struct name *name = COP_CONTAINER_OF(l, struct name, link);

		if (name->hash == hash && name->kind == kind)
			return name;
	}
	return NULL;
}

static uint64_t key_of(unsigned kind, uint64_t hash)
{
	return cop_hash64(&hash, sizeof(hash), kind);
}

/* If a hash is defined twice, the first definition counts. */
static int add_name(struct names *n, unsigned kind, uint64_t hash, struct cop_trace_str text)
{
	uint64_t key = key_of(kind, hash);
	struct name *name;

	if (find_name(n, kind, hash, key))
		return 0;
	if (n->table.count >= COP_TRACE_NAMES_MAX) {
		n->lost++;
		return 0;
	}
	name = malloc(sizeof(*name) + text.len);
	if (!name)
		return -ENOMEM;
	memcpy(name->bytes, text.at, text.len);
	name->text = (struct cop_trace_str){name->bytes, text.len};
	name->hash = hash;
	name->kind = kind;
	cop_htab_add(&n->table, &name->link, key);
	return 0;
}

int cop_trace_names_take(struct names *n, const struct fields *f, const struct cop_trace_event *e)
{
	unsigned kind;
	uint64_t hash;

	if (e->kind != COP_TRACE_META || e->name.len != 2 || e->name.at[1] != 'H' ||
		!(cop_trace_has(f, F_ARG_VALUE)) || !(cop_trace_has(f, F_ARG_NAME)))
		return 0;
	if (e->name.at[0] != 'F' && e->name.at[0] != 'H')
		return 0;
	kind = e->name.at[0] == 'F' ? NAME_FILE : NAME_HOST;
	if (!cop_trace_hash(&f->f[F_ARG_VALUE], &hash))
		return 0;
	return add_name(n, kind, hash, e->of);
}

const struct cop_trace_str *cop_trace_names_get(const struct names *n, unsigned kind, uint64_t hash)
{
	struct name *name = find_name(n, kind, hash, key_of(kind, hash));

	return name ? &name->text : NULL;
}

void cop_trace_names_free(struct names *n)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(&n->table, NULL); l; l = next) {
		next = cop_htab_after(&n->table, l);
		free(COP_CONTAINER_OF(l, struct name, link));
	}
	cop_htab_fini(&n->table);
}
