/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void cop_json_value(struct cop_json *j, const char *key)
{
	bool member = j->depth && j->objects >> (j->depth - 1) & 1;

	assert(member == (key != NULL));
	assert(j->depth || !j->comma); /* one value is all */
	if (j->comma)
		cop_buf_str(j->out, ",");
	j->comma = true;
	if (!key)
		return;
	cop_buf_json_str(j->out, key, strlen(key));
	cop_buf_str(j->out, ":");
}

static void open_level(struct cop_json *j, const char *key, bool object)
{
	cop_json_value(j, key);
	assert(j->depth < COP_JSON_DEPTH_MAX);
	j->objects &= ~((uint32_t)1 << j->depth);
	j->objects |= (uint32_t)object << j->depth++;
	j->comma = false;
	cop_buf_str(j->out, object ? "{" : "[");
}

void cop_json_object(struct cop_json *j, const char *key)
{
	open_level(j, key, true);
}

void cop_json_array(struct cop_json *j, const char *key)
{
	open_level(j, key, false);
}

void cop_json_end(struct cop_json *j)
{
	assert(j->depth);
	j->comma = true;
	cop_buf_str(j->out, j->objects >> --j->depth & 1 ? "}" : "]");
}

void cop_json_bytes(struct cop_json *j, const char *key, const char *text, size_t len)
{
	cop_json_value(j, key);
	cop_buf_json_str(j->out, text, len);
}

void cop_json_str(struct cop_json *j, const char *key, const char *text)
{
	cop_json_bytes(j, key, text, strlen(text));
}

void cop_json_u64(struct cop_json *j, const char *key, uint64_t value)
{
	cop_json_value(j, key);
	cop_buf_printf(j->out, "%" PRIu64, value);
}

void cop_json_bool(struct cop_json *j, const char *key, bool value)
{
	cop_json_value(j, key);
	cop_buf_str(j->out, value ? "true" : "false");
}

void cop_json_null(struct cop_json *j, const char *key)
{
	cop_json_value(j, key);
	cop_buf_str(j->out, "null");
}

void cop_json_double(struct cop_json *j, const char *key, double value, unsigned decimals)
{
	if (!isfinite(value)) {
		cop_json_null(j, key);
		return;
	}
	cop_json_value(j, key);
	cop_buf_printf(j->out, "%.*f", (int)decimals, value);
}
