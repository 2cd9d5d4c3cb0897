/* SPDX-License-Identifier: BSD-3-Clause */
/* A JSON writer (RFC 8259), without white space, in call order, into a struct cop_buf, whose
 * `failed` reports a lack of memory at the end. It adds commas, quotes and escapes, and asserts
 * that calls nest. It accepts any string: bytes that are not UTF-8 become U+FFFD.
 *
 * 	struct cop_json j = cop_json_to(out);
 *
 * 	cop_json_object(&j, NULL);
 * 	cop_json_u64(&j, "rank", 3);
 * 	cop_json_array(&j, "peers");
 * 	cop_json_end(&j);
 * 	cop_json_end(&j);			{"rank":3,"peers":[]}
 *
 * key: in an object the member's name, a string as for cop_json_str; NULL in an array and at the
 * top level. */
#ifndef COP_BASE_JSON_H
#define COP_BASE_JSON_H

#include "base/base/base.h"

#define COP_JSON_DEPTH_MAX 32u

struct cop_json {
	struct cop_buf *out;
	uint32_t objects; /* one bit per open level: set for an object, clear for an array */
	unsigned depth;
	bool comma; /* the current level already has a value */
};

static inline struct cop_json cop_json_to(struct cop_buf *out)
{
	return (struct cop_json){.out = out};
}

void cop_json_object(struct cop_json *j, const char *key);
void cop_json_array(struct cop_json *j, const char *key);
/* Ends the innermost object or array. */
void cop_json_end(struct cop_json *j);

void cop_json_str(struct cop_json *j, const char *key, const char *text);
void cop_json_bytes(struct cop_json *j, const char *key, const char *text, size_t len);
void cop_json_u64(struct cop_json *j, const char *key, uint64_t value);
void cop_json_bool(struct cop_json *j, const char *key, bool value);
void cop_json_null(struct cop_json *j, const char *key);
/* Writes value with this many decimals; infinities and NaN become null. */
void cop_json_double(struct cop_json *j, const char *key, double value, unsigned decimals);
/* The length of the well-formed UTF-8 sequence at the start of text, which has `left` bytes (at
 * least 1); 0 if malformed (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF). */
size_t cop_utf8_len(const char *text, size_t left);
/* Prepares for a complete value that the caller then appends to the buffer. */
void cop_json_value(struct cop_json *j, const char *key);

#endif
