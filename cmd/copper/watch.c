/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct line {
	const char *text;
	size_t len;
};

static bool next_line(const char **at, struct line *out)
{
	size_t len = strcspn(*at, "\n");

	if (!**at)
		return false;
	*out = (struct line){*at, len};
	*at += len + ((*at)[len] == '\n');
	return true;
}

/* "  name 123  meaning": where the number ends. */
static bool is_counter(const struct line *l, char name[64], uint64_t *value, size_t *end)
{
	char text[256];
	int n = 0;

	if (l->len < 3 || strncmp(l->text, "  ", 2) != 0 || l->text[2] == ' ')
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)COP_MIN(l->len, sizeof(text) - 1), l->text);
	if (sscanf(text, " %63s %" SCNu64 "%n", name, value, &n) != 2 || !n)
		return false;
	*end = (size_t)n;
	return true;
}

/* The counter of that group and name in an earlier table; 0 where it was not listed yet. */
static uint64_t find(const char *table, const struct line *group, const char *name)
{
	struct line l;
	bool inside = false;

	while (next_line(&table, &l)) {
		char other[64];
		uint64_t value;
		size_t end;

		if (l.len && l.text[0] != ' ')
			inside = l.len == group->len && memcmp(l.text, group->text, l.len) == 0;
		else if (inside && is_counter(&l, other, &value, &end) && strcmp(other, name) == 0)
			return value;
	}
	return 0;
}

static double per_second(uint64_t before, uint64_t now, uint64_t elapsed_ms)
{
	return now < before || !elapsed_ms ? 0 : (double)(now - before) * 1000 / (double)elapsed_ms;
}

void cop_cmd_watch_table(
	const char *before, const char *now, uint64_t elapsed_ms, struct cop_buf *out)
{
	struct line l, group = {"", 0};

	while (next_line(&now, &l)) {
		char name[64], rate[32] = "";
		uint64_t value;
		size_t end;

		if (l.len && l.text[0] != ' ')
			group = l;
		if (!is_counter(&l, name, &value, &end)) {
			cop_buf_printf(out, "%.*s\n", (int)l.len, l.text);
			continue;
		}
		if (before)
			snprintf(rate, sizeof(rate), "%.1f/s",
				per_second(find(before, &group, name), value, elapsed_ms));
		cop_buf_printf(out, "%.*s %14s%.*s\n", (int)end, l.text, rate, (int)(l.len - end),
			l.text + end);
	}
}

/* The last line that begins with "total". */
static bool find_total(const char *table, struct line *out)
{
	struct line l;
	bool found = false;

	while (next_line(&table, &l)) {
		size_t blanks = strspn(l.text, " ");

		if (l.len > blanks + 5 && strncmp(l.text + blanks, "total", 5) == 0) {
			*out = l;
			found = true;
		}
	}
	return found;
}

/* The numbers at the end of a line, the last first: requests, to parent, for children, at origin,
 * failovers, rejected. */
#define NUMBERS 6

static bool numbers(const struct line *l, uint64_t value[NUMBERS], size_t *first)
{
	size_t at = l->len;

	for (unsigned i = 0; i < NUMBERS; i++) {
		size_t end;
		char digits[24];

		while (at && l->text[at - 1] == ' ')
			at--;
		end = at;
		while (at && l->text[at - 1] >= '0' && l->text[at - 1] <= '9')
			at--;
		if (end == at || end - at >= sizeof(digits))
			return false;
		snprintf(digits, sizeof(digits), "%.*s", (int)(end - at), l->text + at);
		if (cop_parse_u64(digits, &value[i]))
			return false;
	}
	*first = at;
	return true;
}

void cop_cmd_watch_all(
	const char *before, const char *now, uint64_t elapsed_ms, struct cop_buf *out)
{
	static const int width[NUMBERS] = {9, 9, 10, 12, 12, 12};
	struct line was, is;
	uint64_t a[NUMBERS], b[NUMBERS];
	size_t first;

	cop_buf_str(out, now);
	if (!before || !find_total(before, &was) || !find_total(now, &is) ||
		!numbers(&was, a, &first) || !numbers(&is, b, &first))
		return;
	cop_buf_printf(out, "%7s  %-41s", "per s", "");
	for (unsigned i = NUMBERS; i--;)
		cop_buf_printf(out, " %*.1f", width[i], per_second(a[i], b[i], elapsed_ms));
	cop_buf_str(out, "\n");
}
