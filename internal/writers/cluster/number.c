/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>

#include "writers/cluster/cluster_priv.h"

#define POWER_MAX 38 /* 10^38 still fits */
#define DIGITS_MAX 27

static cop_number_t power_of_ten(unsigned n)
{
	cop_number_t p = 1;

	while (n--)
		p *= 10;
	return p;
}

/* Returns value * 10^exponent, rounded; on overflow, a value above COP_NUMBER_MAX. */
static cop_number_t scale(cop_number_t value, int exponent)
{
	if (exponent < -POWER_MAX)
		return 0;
	if (exponent < 0) {
		cop_number_t p = power_of_ten((unsigned)-exponent);

		return value / p + (value % p >= p / 2);
	}
	for (; value && value <= COP_NUMBER_MAX && exponent > 0; exponent--)
		value *= 10;
	return value;
}

/* Digits beyond the precision only increment the exponent. */
static const char *parse_digits(
	const char *text, cop_number_t *value, unsigned *kept, int *exponent, bool fraction)
{
	for (; isdigit((unsigned char)*text); text++) {
		bool room = *kept < DIGITS_MAX;

		if (room) {
			*value = *value * 10 + (unsigned)(*text - '0');
			*kept += *value > 0;
		}
		*exponent += (room ? 0 : 1) - (fraction ? 1 : 0);
	}
	return text;
}

static const char *parse_exponent(const char *text, int *exponent)
{
	bool negative = *text == '-';
	int n = 0;

	text += *text == '-' || *text == '+';
	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++)
		n = COP_MIN(n * 10 + (*text - '0'), 100000);
	*exponent += negative ? -n : n;
	return text;
}

int cop_report_number_parse(const char *text, cop_number_t *out, bool *decimal)
{
	cop_number_t value = 0;
	unsigned kept = 0;
	int exponent = 0;

	if (!isdigit((unsigned char)*text) || strlen(text) > 4096)
		return -EINVAL;
	*decimal = strpbrk(text, ".eE");
	text = parse_digits(text, &value, &kept, &exponent, false);
	if (*text == '.')
		text = parse_digits(text + 1, &value, &kept, &exponent, true);
	if (*text == 'e' || *text == 'E')
		text = parse_exponent(text + 1, &exponent);
	if (!text || *text)
		return -EINVAL;
	value = scale(value, exponent + 6);
	*out = COP_MIN(value, COP_NUMBER_MAX);
	return value > COP_NUMBER_MAX;
}

cop_number_t cop_report_number_add(cop_number_t a, cop_number_t b)
{
	return COP_MIN(a + b, COP_NUMBER_MAX); /* no overflow: both are at most COP_NUMBER_MAX */
}

cop_number_t cop_report_number_of_double(double value)
{
	double millionths = value * COP_NUMBER_UNIT + 0.5;

	if (!(value > 0))
		return 0;
	return millionths < (double)COP_NUMBER_MAX ? (cop_number_t)millionths : COP_NUMBER_MAX;
}

void cop_report_number_print(struct cop_buf *out, cop_number_t n, bool decimal)
{
	cop_buf_printf(out, "%" PRIu64, (uint64_t)(n / COP_NUMBER_UNIT));
	if (decimal)
		cop_buf_printf(out, ".%06u", (unsigned)(n % COP_NUMBER_UNIT));
}
