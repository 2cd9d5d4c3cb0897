/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the progress of the prefetch, for copper status and others. */
#include "tree/prefetch/prefetch_priv.h"

#include "base/base/json.h"

static const char *state_of(struct cop_prefetch *p, const char **why)
{
	static const char *const names[] = {"loading", "running", "done", "stopped"};
	const char *name;

	*why = NULL;
	if (!p)
		return "off";
	pthread_mutex_lock(&p->lock);
	name = names[p->state];
	if (p->state == DONE || p->state == STOPPED)
		*why = p->why;
	pthread_mutex_unlock(&p->lock);
	return name;
}

void cop_prefetch_json(struct cop_prefetch *p, struct cop_buf *out)
{
	const char *why, *state = state_of(p, &why);
	struct cop_json j = cop_json_to(out);

	cop_json_object(&j, NULL);
	cop_json_str(&j, "state", state);
	if (why)
		cop_json_str(&j, "why", why);
	else
		cop_json_null(&j, "why");
	cop_json_u64(&j, "items", p ? atomic_load(&p->count) : 0);
	cop_json_u64(&j, "listings", p ? atomic_load(&p->listings) : 0);
	cop_json_u64(&j, "files", p ? atomic_load(&p->files) : 0);
	cop_json_end(&j);
}

void cop_prefetch_text(struct cop_prefetch *p, struct cop_buf *out)
{
	const char *why, *state = state_of(p, &why);

	cop_buf_printf(out, "prefetch   %s", state);
	if (p)
		cop_buf_printf(out,
			", %" PRIu64 " lines of the manifest, %" PRIu64 " directories and %" PRIu64
			" files asked for",
			atomic_load(&p->count), atomic_load(&p->listings), atomic_load(&p->files));
	if (why)
		cop_buf_printf(out, ": %s", why);
}
