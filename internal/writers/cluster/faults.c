/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/cluster/cluster.h"

void cop_observed_faults_init(struct cop_observed_faults *f)
{
	*f = (struct cop_observed_faults){0};
	pthread_mutex_init(&f->lock, NULL);
}

static void drop_fault(struct cop_observed_fault *fault)
{
	free(fault->name);
	free(fault->why);
}

void cop_observed_faults_fini(struct cop_observed_faults *f)
{
	while (f->named)
		drop_fault(&f->first[--f->named]);
	pthread_mutex_destroy(&f->lock);
}

/* The insertion point of the name; COP_OBSERVED_NAMED_MAX: only count it. */
static unsigned place_of(const struct cop_observed_faults *f, const char *name)
{
	unsigned at = f->named;

	while (at && strcmp(name, f->first[at - 1].name) < 0)
		at--;
	return at;
}

/* Counts the fault even if there is no memory for its name. */
void cop_observed_faults_add(struct cop_observed_faults *f, const char *name, const char *why)
{
	struct cop_observed_fault fault = {.name = strdup(name), .why = strdup(why)};
	unsigned at;

	pthread_mutex_lock(&f->lock);
	f->count++;
	at = fault.name && fault.why ? place_of(f, name) : COP_OBSERVED_NAMED_MAX;
	if (at == COP_OBSERVED_NAMED_MAX) {
		drop_fault(&fault);
	} else {
		if (f->named == COP_OBSERVED_NAMED_MAX)
			drop_fault(&f->first[--f->named]);
		memmove(f->first + at + 1, f->first + at, (f->named - at) * sizeof(fault));
		f->first[at] = fault;
		f->named++;
	}
	pthread_mutex_unlock(&f->lock);
}

/* Names are untrusted, so escape bytes that could control a terminal. */
static void print_name(struct cop_buf *out, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < 0x20 || c == 0x7f || c == '\\')
			cop_buf_printf(out, "\\x%02x", c);
		else
			cop_buf_add(out, name, 1);
	}
}

void cop_observed_faults_list(const struct cop_observed_faults *f, struct cop_buf *out)
{
	for (unsigned i = 0; i < f->named; i++) {
		print_name(out, f->first[i].name);
		cop_buf_printf(out, ": %s\n", f->first[i].why);
	}
	if (f->count > f->named)
		cop_buf_printf(out, "and %" PRIu64 " more\n", f->count - f->named);
}
