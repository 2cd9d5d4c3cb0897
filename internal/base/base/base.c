/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#include <ctype.h>
#include <stdarg.h>
#include <time.h>

int cop_err_set(struct cop_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return -code;
}

bool cop_is_shortage(int rc)
{
	return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS;
}

/* Parses digits; *end points to the first byte that is not one. */
static int parse_digits(const char *text, const char **end, uint64_t *out)
{
	uint64_t value = 0;
	const char *p = text;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	*end = p;
	*out = value;
	return 0;
}

int cop_parse_u64(const char *text, uint64_t *out)
{
	const char *end;
	uint64_t value;
	int rc = parse_digits(text, &end, &value);

	if (rc)
		return rc;
	if (*end)
		return -EINVAL;
	*out = value;
	return 0;
}

int cop_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t value;
	unsigned shift = 0;
	int rc = parse_digits(text, &end, &value);

	if (rc)
		return rc;
	if (*end && (unit = strchr(units, toupper((unsigned char)*end)))) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i' || *end == 'I')
			end++;
	}
	if (*end == 'B' || *end == 'b')
		end++;
	if (*end)
		return -EINVAL;
	if (shift && value > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = value << shift;
	return 0;
}

char *cop_format_size(uint64_t bytes, char out[16])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t u = 0;

	while (value >= 1024 && u + 1 < COP_ARRAY_SIZE(units)) {
		value /= 1024;
		u++;
	}
	snprintf(out, 16, u ? "%.1f %s" : "%.0f %s", value, units[u]);
	return out;
}

void cop_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

struct timespec cop_moment(uint64_t now_ns)
{
	return (struct timespec){.tv_sec = (time_t)(now_ns / COP_NS_PER_S),
		.tv_nsec = (long)(now_ns % COP_NS_PER_S)};
}
