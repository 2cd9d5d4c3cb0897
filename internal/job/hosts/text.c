/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of small text files, and a map from text to numbers. The map uses open addressing and is
 * allocated at its final size. base/htab.h does not fit: there is no struct per name that could
 * embed a link, and some names are in the map twice. */
#include <ctype.h>

#include "job/hosts/hosts_priv.h"

struct cop_job_slot {
	const char *key; /* NULL: free slot */
	size_t len;
	uint32_t value;
	uint16_t port;
};

int cop_job_map_init(struct cop_job_map *m, uint32_t count)
{
	size_t slots = 16;

	while (slots < (size_t)count * 2)
		slots *= 2;
	m->slot = calloc(slots, sizeof(*m->slot));
	m->mask = slots - 1;
	return m->slot ? 0 : -ENOMEM;
}

void cop_job_map_fini(struct cop_job_map *m)
{
	free(m->slot);
	*m = (struct cop_job_map){0};
}

/* The slot that holds the key, or a free slot for it; at least half are free. */
static struct cop_job_slot *find_slot(
	const struct cop_job_map *m, const char *key, size_t len, uint16_t port)
{
	size_t i = cop_hash64(key, len, port) & m->mask;

	for (;; i = (i + 1) & m->mask) {
		struct cop_job_slot *s = &m->slot[i];

		if (!s->key || (s->len == len && s->port == port && !memcmp(s->key, key, len)))
			return s;
	}
}

uint32_t cop_job_map_get(const struct cop_job_map *m, const char *key, size_t len, uint16_t port)
{
	const struct cop_job_slot *s = find_slot(m, key, len, port);

	return s->key ? s->value : COP_JOB_ABSENT;
}

uint32_t cop_job_map_put(
	struct cop_job_map *m, const char *key, size_t len, uint16_t port, uint32_t value)
{
	struct cop_job_slot *s = find_slot(m, key, len, port);

	if (s->key)
		return s->value;
	*s = (struct cop_job_slot){.key = key, .len = len, .value = value, .port = port};
	return COP_JOB_ABSENT;
}

bool cop_job_lines_next(struct cop_job_lines *l, const char **text, size_t *len)
{
	while (l->p < l->end) {
		const char *p = l->p, *stop = memchr(p, '\n', (size_t)(l->end - p)), *comment;

		l->p = stop ? stop + 1 : l->end;
		l->number++;
		if (!stop)
			stop = l->end;
		comment = memchr(p, '#', (size_t)(stop - p));
		if (comment)
			stop = comment;
		while (p < stop && isspace((unsigned char)*p))
			p++;
		while (p < stop && isspace((unsigned char)stop[-1]))
			stop--;
		if (p == stop)
			continue;
		*text = p;
		*len = (size_t)(stop - p);
		return true;
	}
	return false;
}

const char *cop_job_quote(const char *text, size_t len, char out[64])
{
	size_t n = COP_MIN(len, (size_t)60);

	for (size_t i = 0; i < n; i++)
		out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	memcpy(out + n, "...", 4);
	if (n == len)
		out[n] = '\0';
	return out;
}

bool cop_job_name_is_six(const char *name, size_t len, struct cop_ip *out)
{
	char text[COP_IP_TEXT_SIZE];

	if (!memchr(name, ':', len) || memchr(name, 0, len) || len >= sizeof(text))
		return false;
	memcpy(text, name, len);
	text[len] = '\0';
	return cop_ip_parse(text, out);
}

bool cop_job_name_ok(const char *name, size_t len)
{
	struct cop_ip ip;

	if (!len || len > COP_JOB_NAME_MAX || name[0] == '-')
		return false;
	if (cop_job_name_is_six(name, len, &ip))
		return !cop_ip_is_link_local(&ip);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i] ? name[i] : '/'))
			return false;
	return true;
}

const char *cop_job_label(const char *name, uint16_t port, char out[COP_JOB_LABEL_SIZE])
{
	snprintf(out, COP_JOB_LABEL_SIZE, strchr(name, ':') ? "[%.251s]:%u" : "%.253s:%u", name,
		port);
	return out;
}

bool cop_job_address_ok(const char *text, size_t len)
{
	if (!len || len > COP_JOB_ADDRESS_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)text[i]))
			return false;
	return true;
}
