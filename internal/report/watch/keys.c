/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a terminal's bytes for a key: a character, or ESC with [ or O, further bytes and a final
 * byte (ECMA-48 5.4; xterm's "PC-style function keys"). */
#include "report/watch/watch.h"

static const struct {
	const char *text; /* after ESC, with O replaced by [ */
	int key;
} sequences[] = {
	{"[A", COP_SCREEN_KEY_UP},
	{"[B", COP_SCREEN_KEY_DOWN},
	{"[H", COP_SCREEN_KEY_HOME},
	{"[F", COP_SCREEN_KEY_END},
	{"[1~", COP_SCREEN_KEY_HOME},
	{"[4~", COP_SCREEN_KEY_END},
	{"[5~", COP_SCREEN_KEY_PAGE_UP},
	{"[6~", COP_SCREEN_KEY_PAGE_DOWN},
	{"[7~", COP_SCREEN_KEY_HOME},
	{"[8~", COP_SCREEN_KEY_END},
};

static int end_sequence(struct cop_screen_keys *k)
{
	int key = COP_SCREEN_KEY_NONE;

	k->text[k->len] = '\0';
	for (size_t i = 0; !k->skips && i < COP_ARRAY_SIZE(sequences); i++)
		if (strcmp(k->text, sequences[i].text) == 0)
			key = sequences[i].key;
	*k = (struct cop_screen_keys){0};
	return key;
}

static int begin_sequence(struct cop_screen_keys *k)
{
	*k = (struct cop_screen_keys){.in_sequence = true};
	return COP_SCREEN_KEY_NONE;
}

/* A sequence consists of bytes from space to tilde; one from @ up ends it. */
static int in_sequence(struct cop_screen_keys *k, unsigned char byte)
{
	if (byte == COP_SCREEN_KEY_ESCAPE)
		return begin_sequence(k);
	if (byte < 0x20 || byte > 0x7e) {
		*k = (struct cop_screen_keys){0};
		return COP_SCREEN_KEY_NONE;
	}
	if (!k->len && byte != '[' && byte != 'O') {
		/* Alt with a key. */
		*k = (struct cop_screen_keys){0};
		return COP_SCREEN_KEY_NONE;
	}
	if (!k->len) {
		k->text[k->len++] = '[';
		return COP_SCREEN_KEY_NONE;
	}
	if (k->len + 1 < sizeof(k->text))
		k->text[k->len++] = (char)byte;
	else
		k->skips = true;
	return byte >= 0x40 ? end_sequence(k) : COP_SCREEN_KEY_NONE;
}

int cop_screen_keys_take(struct cop_screen_keys *k, unsigned char byte)
{
	if (k->in_sequence)
		return in_sequence(k, byte);
	if (byte == COP_SCREEN_KEY_ESCAPE)
		return begin_sequence(k);
	return byte == COP_SCREEN_KEY_REDRAW || (byte >= 0x20 && byte < 0x7f) ? byte
									      : COP_SCREEN_KEY_NONE;
}

int cop_screen_keys_idle(struct cop_screen_keys *k)
{
	bool alone = k->in_sequence && k->len == 0;

	*k = (struct cop_screen_keys){0};
	return alone ? COP_SCREEN_KEY_ESCAPE : COP_SCREEN_KEY_NONE;
}
