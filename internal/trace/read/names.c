/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects the names that the metadata of one file defines: the files and hosts behind its hashes
 * (DFTracer's FH and HH), processes, ranks and threads. A definition may come after its first use,
 * so with `names` a separate pass reads the file's metadata first. The first definition wins. */
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

static bool is_same(struct cop_trace_str a, struct cop_trace_str b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* Notes that a hash has two names. The first name is used, and the first such clash is reported. */
static void note_clash(struct names *n, const struct name *first, struct cop_trace_str second)
{
	size_t most = sizeof(n->clash_names[0]) - 1;

	if (first->kind > NAME_HOST || is_same(first->text, second) || n->clashes++)
		return;
	n->clash = first->hash;
	memcpy(n->clash_names[0], first->text.at, COP_MIN(first->text.len, most));
	memcpy(n->clash_names[1], second.at, COP_MIN(second.len, most));
}

static int add_name(struct names *n, unsigned kind, uint64_t hash, struct cop_trace_str text)
{
	uint64_t key = key_of(kind, hash);
	struct name *name = find_name(n, kind, hash, key);

	if (name) {
		note_clash(n, name, text);
		return 0;
	}
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

/* ---- processes and threads ---- */

static uint64_t hash_of(const struct cop_trace_event *e, bool thread)
{
	uint64_t h = cop_hash64(e->pid.at, e->pid.len, 0);

	return thread ? cop_hash64(e->tid.at, e->tid.len, h) : h;
}

static bool is_number(struct cop_trace_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)(s.at[i] - '0') >= 10)
			return false;
	return s.len > 0;
}

/* Returns the number in "Rank 3", DFTracer's name for a process under MPI. */
static struct cop_trace_str rank_in(struct cop_trace_str name)
{
	struct cop_trace_str digits = {name.at, 0};

	if (name.len > 5 && !memcmp(name.at, "Rank ", 5))
		digits = (struct cop_trace_str){name.at + 5, name.len - 5};
	return is_number(digits) ? digits : (struct cop_trace_str){"", 0};
}

static int take_who(struct names *n, const struct cop_trace_event *e)
{
	bool process = cop_trace_str_is(e->name, "process_name");
	struct cop_trace_str rank = process ? rank_in(e->of) : e->rank;
	int rc = 0;

	if (cop_trace_str_is(e->name, "thread_name") && e->of.len)
		return add_name(n, NAME_THREAD, hash_of(e, true), e->of);
	if (!process && !cop_trace_str_is(e->name, "PR"))
		return 0;
	if (is_number(rank))
		rc = add_name(n, NAME_RANK, hash_of(e, false), rank);
	if (!rc && process && e->of.len)
		rc = add_name(n, NAME_PROCESS, hash_of(e, false), e->of);
	return rc;
}

void cop_trace_names_who(const struct names *n, struct cop_trace_event *e)
{
	const struct cop_trace_str *name = cop_trace_names_get(n, NAME_RANK, hash_of(e, false));

	e->rank = name ? *name : e->rank;
	name = cop_trace_names_get(n, NAME_PROCESS, hash_of(e, false));
	e->process = name ? *name : e->process;
	name = cop_trace_names_get(n, NAME_THREAD, hash_of(e, true));
	e->thread = name ? *name : e->thread;
}

/* ---- both ---- */

int cop_trace_names_take(struct names *n, const struct fields *f, const struct cop_trace_event *e)
{
	unsigned kind;
	uint64_t hash;

	if (e->kind != COP_TRACE_META)
		return 0;
	if (e->name.len != 2 || e->name.at[1] != 'H')
		return take_who(n, e);
	if (!cop_trace_has(f, F_ARG_VALUE) || !cop_trace_has(f, F_ARG_NAME) ||
		(e->name.at[0] != 'F' && e->name.at[0] != 'H'))
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
