/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/run.h: formats numbers independently of the locale. Prints the shortest digits
 * within half a unit in the last place (Steele and White, "How to Print Floating-Point Numbers
 * Accurately", 1990), found with exact 128-bit integers where those suffice. */

#define COPPER_RUN_I_NUMBER 40 /* maximum bytes of a number */
#ifndef COPPER_RUN_I_PRINT     /* a test replaces it */
#define COPPER_RUN_I_PRINT snprintf
#define COPPER_RUN_I_READ strtod
#endif

/* Writes n with at least this many digits, and returns the end. */
static inline char *copper_run_i_whole(char *out, unsigned long long n, int digits)
{
	char text[24];
	int at = sizeof(text);

	for (; n || digits > 0; n /= 10, digits--)
		text[--at] = (char)('0' + n % 10);
	memcpy(out, text + at, sizeof(text) - (size_t)at);
	return out + sizeof(text) - (size_t)at;
}

/* Writes digits times 10^power, power <= 0. */
COPPER_RUN_I_COLD char *copper_run_i_place(char *out, unsigned long long digits, int power)
{
	char text[24], *end = copper_run_i_whole(text, digits, 1);
	int n = (int)(end - text), before = n + power, i; /* digits before the decimal point */

	if (before > 0) {
		memcpy(out, text, (size_t)before);
		out += before;
		if (before == n)
			return out;
		*out++ = '.';
		memcpy(out, text + before, (size_t)(n - before));
		return out + n - before;
	}
	if (before > -4) {
		*out++ = '0';
		*out++ = '.';
		for (i = before; i < 0; i++)
			*out++ = '0';
		memcpy(out, text, (size_t)n);
		return out + n;
	}
	*out++ = text[0];
	if (n > 1) {
		*out++ = '.';
		memcpy(out, text + 1, (size_t)n - 1);
		out += n - 1;
	}
	*out++ = 'e';
	*out++ = '-';
	return copper_run_i_whole(out, (unsigned long long)(1 - before), 2);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 copper_run_i_wide;

/* value is at least 1e-13, below 2^53, and not an integer. So in `value * 10^n = product / 2^s`, n
 * is 1 to 30, s is positive, and all products fit into 128 bits. */
COPPER_RUN_I_COLD char *copper_run_i_shortest(char *out, double value)
{
	static const unsigned long long five[] = {1, 5, 25, 125, 625, 3125, 15625, 78125, 390625,
		1953125, 9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125};
	unsigned long long bits, four, least, most, digits;
	int exponent, n, s, dropped = 0, last, inexact;
	copper_run_i_wide power, product, low, high, mask;

	memcpy(&bits, &value, sizeof(bits));
	exponent = (int)(bits >> 52 & 0x7ff) - 1075;
	four = ((bits & 0xfffffffffffffULL) | 0x10000000000000ULL) << 2;
	n = exponent + 52; /* base-2 exponent; then base-10, rounded down */
	n = 16 - (n >= 0 ? n * 30103 / 100000 : -((-n * 30103 + 99999) / 100000));
	s = 2 - exponent - n;
	power = (copper_run_i_wide)five[n / 2] * five[n - n / 2];
	mask = ((copper_run_i_wide)1 << s) - 1;
	product = four * power;
	low = product - ((bits & 0xfffffffffffffULL) ? 2 : 1) * power;
	high = product + 2 * power;
	/* A tie at exactly half a unit reads back as the value if the value's last bit is 0. */
	least = (unsigned long long)(low >> s) + ((bits & 1) || (low & mask) != 0);
	most = (unsigned long long)(high >> s) - ((bits & 1) && (high & mask) == 0);
	digits = (unsigned long long)(product >> s);
	product &= mask;
	mask = (mask >> 1) + 1; /* a half */
	last = product > mask ? 6 : product == mask ? 5 : product ? 4 : 0;
	inexact = 0;
	/* Drop digits while the shorter interval still contains a number; the last one dropped
	 * picks the nearest candidate. */
	while (most / 10 >= (least + 9) / 10) {
		inexact |= last != 0;
		last = (int)(digits % 10);
		digits /= 10;
		least = (least + 9) / 10;
		most /= 10;
		dropped++;
	}
	digits += last > 5 || (last == 5 && (inexact || (digits & 1)));
	digits = digits < least ? least : digits > most ? most : digits;
	return copper_run_i_place(out, digits, dropped - n);
}
#endif

/* Uses the C library, with the fewest digits that read back as the same value, and replaces the
 * locale's decimal separator. */
COPPER_RUN_I_COLD char *copper_run_i_print(char *out, double value)
{
	char text[64], *from = text;
	double size = value < 0 ? -value : value;
	int digits = size < 1e-307 ? 1 : 15, point = 0; /* denormals have fewer than 15 */

	do
		COPPER_RUN_I_PRINT(text, sizeof(text), "%.*g", digits, value);
	while (COPPER_RUN_I_READ(text, NULL) != value && digits++ < 17);
	for (; *from; from++) {
		int ours = (*from >= '0' && *from <= '9') || (*from >= 'a' && *from <= 'z') ||
			   *from == '-' || *from == '+';

		if (ours)
			*out++ = *from;
		else if (!point++)
			*out++ = '.';
	}
	return out;
}

/* Writes the shortest text that reads back as the same number ("0.1", "1e-05", "-inf", "nan"), and
 * returns the end. */
COPPER_RUN_I_COLD char *copper_run_i_real(char *out, double value)
{
	double size = value < 0 ? -value : value;

	if (value != value) {
		memcpy(out, "nan", 3);
		return out + 3;
	}
	if (!(size < 9007199254740992.) || (size < 1e-13 && size != 0) ||
		(size == 0 && 1 / value < 0))
		return copper_run_i_print(out, value);
	if (value < 0)
		*out++ = '-';
	if (size == (double)(long long)size)
		return copper_run_i_whole(out, (unsigned long long)size, 1);
#ifdef __SIZEOF_INT128__
	return copper_run_i_shortest(out, size);
#else
	return copper_run_i_print(out, size);
#endif
}
