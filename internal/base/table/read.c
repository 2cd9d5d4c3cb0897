/* SPDX-License-Identifier: BSD-3-Clause */
/* First finds a record in the buffer, then splits it in place, which works because unquoting never
 * makes it longer. */
#include "base/table/table.h"

int cop_csv_open(struct cop_csv *c, cop_csv_read *read, void *arg)
{
	char *data = c->data ? c->data : malloc(COP_CSV_RECORD_MAX + 1);

	*c = (struct cop_csv){.read = read, .arg = arg, .data = data};
	return data ? 0 : -ENOMEM;
}

void cop_csv_free(struct cop_csv *c)
{
	free(c->data);
	*c = (struct cop_csv){0};
}

static int fail_record(struct cop_csv *c, const char *why)
{
	c->why = why;
	return -EBADMSG;
}

/* Returns 1 if it read more bytes, 0 at the end of the input, or -errno. */
static int refill_buffer(struct cop_csv *c)
{
	ssize_t n;

	if (c->ended)
		return 0;
	if (c->len == COP_CSV_RECORD_MAX)
		return fail_record(c, "a line is longer than any that Copper writes");
	memmove(c->data, c->data + c->start, c->len);
	c->start = 0;
	n = c->read(c->arg, c->data + c->len, COP_CSV_RECORD_MAX - c->len);
	if (n < 0)
		return (int)n;
	if (memchr(c->data + c->len, '\0', (size_t)n))
		return fail_record(c, "it has a NUL byte, so it is not text");
	c->ended = n == 0;
	c->len += (size_t)n;
	return n > 0;
}

/* Finds the line end of the next record, at start + *end. Returns 1 if found, 0 if only the end of
 * the input was. */
static int find_end(struct cop_csv *c, size_t *end)
{
	bool quoted = false;
	size_t i = 0;

	for (;;) {
		for (; i < c->len; i++) {
			char byte = c->data[c->start + i];

			if (byte == '"')
				quoted = !quoted;
			if (byte == '\n') {
				c->lines++;
				if (!quoted) {
					*end = i;
					return 1;
				}
			}
		}
		int more = refill_buffer(c);

		if (more < 0)
			return more;
		if (!more && quoted)
			return fail_record(c, "a quote is not closed");
		if (!more) {
			*end = i;
			return 0;
		}
	}
}

/* Splits off the field at text. Returns the position after it (a comma or the end), or NULL. */
static char *split_quoted(char *text, size_t *len)
{
	char *from = text + 1, *to = text;

	for (; *from != '"' || from[1] == '"'; from++) {
		from += *from == '"';
		*to++ = *from;
	}
	*len = (size_t)(to - text);
	return from[1] == ',' || !from[1] ? from + 1 : NULL;
}

static int split_record(struct cop_csv *c, char *line, struct cop_csv_record *out)
{
	out->n = 0;
	for (char *next;; line = next + 1) {
		size_t len;

		if (out->n == COP_CSV_FIELDS_MAX)
			return fail_record(c, "a line has more fields than any that Copper writes");
		if (*line == '"') {
			next = split_quoted(line, &len);
			if (!next)
				return fail_record(c, "there is text after a closing quote");
		} else {
			len = strcspn(line, ",");
			next = line + len;
			if (memchr(line, '"', len))
				return fail_record(c, "there is a quote inside a field");
		}
		bool last = !*next;

		out->field[out->n].text = line;
		out->field[out->n++].len = len;
		line[len] = '\0';
		if (last)
			return 1;
	}
}

int cop_csv_next(struct cop_csv *c, struct cop_csv_record *out)
{
	size_t end;
	char *line;
	int found;

	do {
		c->line = c->lines + 1;
		found = find_end(c, &end);
		if (found < 0)
			return found;
		out->cut = !found;
		line = c->data + c->start;
		c->start += end + (size_t)found;
		c->len -= end + (size_t)found;
		if (end && line[end - 1] == '\r')
			end--;
		line[end] = '\0';
	} while (!end && found);
	return end ? split_record(c, line, out) : 0;
}
