/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that the scanner declines, read by json-c: nested values, exponents, and any other JSON.
 * json-c is used in its lenient mode, because writers of traces are not careful. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "trace/read/read_priv.h"

#define DEPTH 64

struct judge {
	struct json_tokener *tokener;
	bool args;
};

struct judge *cop_trace_judge_new(bool args)
{
	struct judge *j = calloc(1, sizeof(*j));

	if (j)
		j->args = args;
	if (j)
		j->tokener = json_tokener_new_ex(DEPTH);
	if (j && !j->tokener) {
		free(j);
		return NULL;
	}
	return j;
}

void cop_trace_judge_free(struct judge *j)
{
	if (j)
		json_tokener_free(j->tokener);
	free(j);
}

char *cop_trace_scratch(struct scratch *s, size_t len)
{
	char *at = s->at + s->used;

	if (len > s->size - s->used)
		return NULL;
	s->used += len;
	return at;
}

/* Copies a value as the scanner would have given it; nested values count as absent. */
static bool copy_value(struct scratch *s, struct json_object *value, struct field *f)
{
	const char *text;
	char *copy;
	size_t len;

	switch (json_object_get_type(value)) {
	case json_type_string:
		text = json_object_get_string(value);
		len = (size_t)json_object_get_string_len(value);
		f->type = T_STRING;
		break;
	case json_type_int:
	case json_type_double:
		text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
		len = strlen(text);
		f->type = T_NUMBER;
		break;
	case json_type_boolean:
	case json_type_null:
		text = value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)
			     : "null";
		len = strlen(text);
		f->type = T_WORD;
		break;
	default:
		return true;
	}
	copy = cop_trace_scratch(s, len);
	if (!copy)
		return false;
	memcpy(copy, text, len);
	f->at = copy;
	f->len = (uint32_t)len;
	return true;
}

static void set(struct fields *out, unsigned i, struct field f)
{
	out->f[i] = f;
	out->seen |= 1U << i;
}

/* Takes the object as text, if the caller wants it. */
static bool take_args(
	const struct judge *j, struct scratch *s, struct json_object *value, struct fields *out)
{
	const char *text;
	struct field f = {.at = "", .type = T_WORD};
	size_t len;
	char *copy;

	if (j->args) {
		text = json_object_to_json_string_ext(
			value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
		len = text ? strlen(text) : 0;
		copy = cop_trace_scratch(s, len);
		if (!text || !copy)
			return false;
		memcpy(copy, text, len);
		f.at = copy;
		f.len = (uint32_t)len;
	}
	set(out, F_ARGS, f);
	return true;
}

static bool take_id2(struct scratch *s, struct json_object *value, struct fields *out)
{
	static const char *const names[] = {"local", "global"};
	static const unsigned fields[] = {F_ID2_LOCAL, F_ID2_GLOBAL};
	struct json_object *id;

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++) {
		struct field f = {.type = T_ABSENT};

		if (!json_object_object_get_ex(value, names[i], &id))
			continue;
		if (!copy_value(s, id, &f))
			return false;
		if (f.type != T_ABSENT)
			set(out, fields[i], f);
	}
	return true;
}

static bool take_members(struct judge *j, struct scratch *s, struct json_object *object, bool args,
	struct fields *out)
{
	json_object_object_foreach(object, key, value)
	{
		unsigned i = cop_trace_field(key, strlen(key), args);
		struct field f = {.type = T_ABSENT};

		if (!args && !strcmp(key, "args") && json_object_is_type(value, json_type_object) &&
			!(take_args(j, s, value, out) && take_members(j, s, value, true, out)))
			return false;
		if (!args && !strcmp(key, "id2") && json_object_is_type(value, json_type_object) &&
			!take_id2(s, value, out))
			return false;
		if (i == FIELDS)
			continue;
		if (!copy_value(s, value, &f))
			return false;
		if (f.type != T_ABSENT)
			set(out, i, f);
	}
	return true;
}

const char *cop_trace_judge(struct judge *j, const char *p, const char *end, struct scratch *s,
	struct fields *out, const char **why)
{
	struct json_object *object;
	const char *after = NULL;
	size_t used = s->used;

	out->seen = 0;
	json_tokener_reset(j->tokener);
	object = json_tokener_parse_ex(j->tokener, p, (int)(end - p));
	if (!object) {
		*why = json_tokener_get_error(j->tokener) == json_tokener_continue
			       ? "the event is cut off"
			       : json_tokener_error_desc(json_tokener_get_error(j->tokener));
		return NULL;
	}
	if (!json_object_is_type(object, json_type_object)) {
		*why = "no object";
	} else if (!take_members(j, s, object, false, out)) {
		*why = "an event that is too long";
		s->used = used;
	} else {
		after = p + json_tokener_get_parse_end(j->tokener);
	}
	json_object_put(object);
	return after;
}
