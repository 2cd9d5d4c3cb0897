/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt/opt.h"

#define WORD_MAX 40

static size_t min3(size_t a, size_t b, size_t c)
{
	return COP_MIN(COP_MIN(a, b), c);
}

/* Levenshtein distance; a word longer than WORD_MAX is far from everything. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), row[WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[lb];
}

static size_t common_beginning(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

const char *cop_opt_suggest(const char *word, const char *const *candidates)
{
	const char *near = NULL, *alike = NULL;
	size_t best = strlen(word) / 3 + 1, longest = 1;

	for (; *candidates; candidates++) {
		size_t d = distance(word, *candidates), same = common_beginning(word, *candidates);

		if (same > 1 && !word[same])
			return *candidates;
		/* If no letter is in the same position it is not a typo, however short both words
		 * are. */
		if (d < strlen(word) && d <= best && (!near || d < best)) {
			best = d;
			near = *candidates;
		}
		if (same > longest) {
			longest = same;
			alike = *candidates;
		}
	}
	return near ? near : alike;
}
