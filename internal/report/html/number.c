/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "markup.h"

static char *put_unknown(char out[COP_HTML_NUMBER])
{
	return strcpy(out, "-");
}

char *cop_html_count(double n, char out[COP_HTML_NUMBER])
{
	char digits[COP_HTML_NUMBER];
	size_t len, to = 0;

	if (!isfinite(n))
		return put_unknown(out);
	if (fabs(n) >= 1e15) {
		snprintf(out, COP_HTML_NUMBER, "%.3g", n);
		return out;
	}
	snprintf(digits, sizeof(digits), "%.0f", fabs(n));
	len = strlen(digits);
	if (n <= -0.5)
		out[to++] = '-';
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[to++] = ',';
		out[to++] = digits[i];
	}
	out[to] = '\0';
	return out;
}

char *cop_html_size(double n, char out[COP_HTML_NUMBER])
{
	if (!isfinite(n) || n < 0)
		return put_unknown(out);
	return cop_format_size(n >= 0x1p63 ? UINT64_MAX >> 1 : (uint64_t)n, out);
}

char *cop_html_time(double s, char out[COP_HTML_NUMBER])
{
	double v = fabs(s);

	if (!isfinite(s))
		return put_unknown(out);
	if (v < 0.5e-9)
		snprintf(out, COP_HTML_NUMBER, "0 s");
	else if (v < 0.9995e-6)
		snprintf(out, COP_HTML_NUMBER, "%.3g ns", s * 1e9);
	else if (v < 0.0009995)
		snprintf(out, COP_HTML_NUMBER, "%.3g µs", s * 1e6);
	else if (v < 0.9995)
		snprintf(out, COP_HTML_NUMBER, "%.3g ms", s * 1e3);
	else if (v < 59.95)
		snprintf(out, COP_HTML_NUMBER, "%.3g s", s);
	else if (v < 3599.5)
		snprintf(out, COP_HTML_NUMBER, "%.0f min %02.0f s", trunc(round(s) / 60),
			fmod(round(v), 60));
	else if (v < 1e9)
		snprintf(out, COP_HTML_NUMBER, "%.0f h %02.0f min", trunc(round(s / 60) / 60),
			fmod(round(v / 60), 60));
	else
		snprintf(out, COP_HTML_NUMBER, "%.3g s", s);
	return out;
}

char *cop_html_share(double part, double of, char out[COP_HTML_NUMBER])
{
	double percent = 100 * part / of;

	if (!isfinite(percent))
		return put_unknown(out);
	snprintf(out, COP_HTML_NUMBER, percent > 0 && percent < 1 ? "under 1 %%" : "%.0f %%",
		percent);
	return out;
}
