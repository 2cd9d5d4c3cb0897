/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/op/op.h"

static const char *const words[COP_NODELINE_STATES] = {"ok", "dead", "refused", "failed"};

/* Rank, state, below, the values, host and reason. */
#define FIELDS (3 + COP_NODELINE_VALUES + 2)

const char *cop_nodeline_word(enum cop_nodeline_state state)
{
	return words[state];
}

static bool is_escaped(unsigned char c)
{
	return c < 0x20 || c == 0x7f || c == '%';
}

static void write_text(const char *text, struct cop_buf *out)
{
	for (; *text; text++)
		if (is_escaped((unsigned char)*text))
			cop_buf_printf(out, "%%%02x", (unsigned char)*text);
		else
			cop_buf_add(out, text, 1);
}

void cop_nodeline_write(const struct cop_nodeline *n, struct cop_buf *out)
{
	cop_buf_printf(out, "%" PRIu32 "\t%s\t%" PRIu32, n->rank, words[n->state], n->below);
	for (unsigned v = 0; v < COP_NODELINE_VALUES; v++)
		cop_buf_printf(out, "\t%" PRIu64, n->value[v]);
	cop_buf_str(out, "\t");
	write_text(n->host, out);
	cop_buf_str(out, "\t");
	write_text(n->reason, out);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Unescapes in place; accepts only the output of write_text. */
static int read_text(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from != '%') {
			if (is_escaped((unsigned char)*from))
				return -EBADMSG;
			*to++ = *from;
			continue;
		}
		high = hex(from[1]);
		low = high < 0 ? -1 : hex(from[2]);
		if (low < 0 || (high | low) == 0 || !is_escaped((unsigned char)(high * 16 + low)))
			return -EBADMSG;
		*to++ = (char)(high * 16 + low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

static int read_u32(const char *text, uint32_t *out)
{
	uint64_t number;

	if (cop_parse_u64(text, &number) || number > UINT32_MAX)
		return -EBADMSG;
	*out = (uint32_t)number;
	return 0;
}

static int read_state(const char *text, enum cop_nodeline_state *out)
{
	for (unsigned s = 0; s < COP_NODELINE_STATES; s++)
		if (strcmp(text, words[s]) == 0) {
			*out = (enum cop_nodeline_state)s;
			return 0;
		}
	return -EBADMSG;
}

static int split_fields(char *line, char *field[FIELDS])
{
	unsigned n = 0;

	while (line && n < FIELDS)
		field[n++] = strsep(&line, "\t");
	return n == FIELDS && !line ? 0 : -EBADMSG;
}

int cop_nodeline_read(char *line, struct cop_nodeline *out)
{
	char *field[FIELDS], **text = field + FIELDS - 2;

	*out = (struct cop_nodeline){0};
	if (split_fields(line, field) || read_u32(field[0], &out->rank) ||
		read_state(field[1], &out->state) || read_u32(field[2], &out->below))
		return -EBADMSG;
	for (unsigned v = 0; v < COP_NODELINE_VALUES; v++)
		if (cop_parse_u64(field[3 + v], &out->value[v]))
			return -EBADMSG;
	if (read_text(text[0]) || read_text(text[1]))
		return -EBADMSG;
	out->host = text[0];
	out->reason = text[1];
	return 0;
}
