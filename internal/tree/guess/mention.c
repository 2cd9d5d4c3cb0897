/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/grow.h"
#include "tree/guess/policy_priv.h"

/* Magic numbers of Python 3.8 and of 3.11, which changed the fields of code objects. */
#define MAGIC_FIRST 3400
#define MAGIC_FIELDS 3450
/* Python 2 has larger numbers than Python 3 will reach in two hundred versions. */
#define MAGIC_PYTHON_2 20000
#define HEADER 16
/* Further names are ignored, and longer dotted names are skipped. */
#define NAMES_MAX 1024u
#define DOTTED_MAX 128
/* High bit of a type: the object can be referenced later. */
#define FLAG_REF 0x80
/* Maximum nesting of functions and constants; Python itself allows 2000. */
#define DEPTH 100

struct text {
	const uint8_t *at; /* NULL: not a string */
	size_t len;
};

struct reader {
	const uint8_t *at, *end;
	struct text *ref; /* objects that can be referenced */
	size_t refs, room;
	unsigned depth;
	bool new_fields;
};

static const uint8_t *take(struct reader *r, size_t n)
{
	const uint8_t *at = r->at;

	if (n > (size_t)(r->end - at))
		return NULL;
	r->at += n;
	return at;
}

static bool take_u32(struct reader *r, uint32_t *v)
{
	const uint8_t *p = take(r, 4);

	if (p)
		*v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		     (uint32_t)p[3] << 24;
	return p != NULL;
}

/* A string with its length in one or four bytes. */
static bool take_text(struct reader *r, bool is_short, struct text *t)
{
	const uint8_t *p;
	uint32_t len;

	if (is_short) {
		p = take(r, 1);
		if (!p)
			return false;
		len = *p;
	} else if (!take_u32(r, &len)) {
		return false;
	}
	t->at = take(r, len);
	t->len = len;
	return t->at != NULL;
}

/* Adds an object that can be referenced; false without memory. */
static bool new_ref(struct reader *r)
{
	if (!COP_GROW(r->ref, r->refs, r->room))
		return false;
	r->ref[r->refs++] = (struct text){NULL, 0};
	return true;
}

static bool pass(struct reader *r, struct text *t);

static bool pass_objects(struct reader *r, uint32_t n)
{
	struct text t;

	while (n && pass(r, &t))
		n--;
	return !n;
}

/* The number of items in a tuple; in one byte for a small tuple. */
static bool take_count(struct reader *r, int type, uint32_t *n)
{
	const uint8_t *p;

	if (type != ')')
		return take_u32(r, n);
	p = take(r, 1);
	if (p)
		*n = *p;
	return p != NULL;
}

static bool pass_dict(struct reader *r)
{
	while (r->at < r->end && (*r->at & ~FLAG_REF) != '0')
		if (!pass_objects(r, 2))
			return false;
	return take(r, 1) != NULL;
}

/* Skips the fields before the constants of a function: numbers, then its instructions. */
static bool pass_to_constants(struct reader *r, struct text *instructions)
{
	return take(r, 4 * (r->new_fields ? 5 : 6)) && pass(r, instructions);
}

static bool pass_function(struct reader *r)
{
	struct text instructions;

	/* Constants, names, variable names and kinds (two or three objects), the file name, the
	 * function's name (two with its qualified name); first line; tables. */
	return pass_to_constants(r, &instructions) && pass_objects(r, 7) && take(r, 4) &&
	       pass_objects(r, r->new_fields ? 2 : 1);
}

static bool pass_ref(struct reader *r, struct text *t)
{
	uint32_t n;

	if (!take_u32(r, &n) || n >= r->refs)
		return false;
	*t = r->ref[n];
	return true;
}

/* An integer of any length, in two-byte digits; its sign is that of their number. */
static bool pass_long(struct reader *r)
{
	uint32_t n;

	if (!take_u32(r, &n))
		return false;
	if (n >> 31)
		n = -n;
	return take(r, 2 * (size_t)n) != NULL;
}

/* Skips the data after the type. */
static bool pass_rest(struct reader *r, int type, struct text *t)
{
	struct text number;
	uint32_t n;

	switch (type) {
	case 'N':
	case 'F':
	case 'T':
	case 'S':
	case '.':
		return true;
	case 'i':
		return take(r, 4) != NULL;
	case 'I':
	case 'g':
		return take(r, 8) != NULL;
	case 'y':
		return take(r, 16) != NULL;
	case 'l':
		return pass_long(r);
	case 'f':
		return take_text(r, true, &number);
	case 'x':
		return take_text(r, true, &number) && take_text(r, true, &number);
	case 's':
	case 't':
	case 'A':
	case 'a':
	case 'u':
		return take_text(r, false, t);
	case 'z':
	case 'Z':
		return take_text(r, true, t);
	case 'r':
		return pass_ref(r, t);
	case ')':
	case '(':
	case '[':
	case '<':
	case '>':
		return take_count(r, type, &n) && pass_objects(r, n);
	case '{':
	case '}':
		return pass_dict(r);
	case ':':
		return pass_objects(r, 3);
	case 'c':
		return pass_function(r);
	default:
		return false;
	}
}

/* Skips an object; *t is set if it is a string. */
static bool pass(struct reader *r, struct text *t)
{
	const uint8_t *type = take(r, 1);
	size_t own = r->refs;
	bool ok;

	*t = (struct text){NULL, 0};
	if (!type || ((*type & FLAG_REF) && !new_ref(r)) || r->depth == DEPTH)
		return false;
	r->depth++;
	ok = pass_rest(r, *type & ~FLAG_REF, t);
	r->depth--;
	if (ok && (*type & FLAG_REF))
		r->ref[own] = *t;
	return ok;
}

/* ---- the imports ---- */

/* The relevant instructions. Python 3.n starts with magic number 2900 + 50n; the number grows
 * during the development of n, and the opcodes are fixed from its first release candidate on. */
static const struct instructions {
	unsigned first, last;
	uint8_t extend, import_name, import_from;
	uint8_t flags; /* number of low bits in an import's argument before the name index */
} versions[] = {{MAGIC_FIRST, 3531, 144, 108, 109, 0} /* 3.8 to 3.12 */,
	{3571, 3599, 71, 75, 74, 0} /* 3.13 */, {3626, 3649, 69, 73, 72, 0} /* 3.14 */,
	{3666, 3699, 67, 72, 71, 2} /* 3.15 */};

/* Flag of an import that is deferred until the first use of its name (PEP 810). */
#define IMPORT_LAZY 1u

static const struct instructions *find_version(unsigned magic)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(versions); i++)
		if (magic >= versions[i].first && magic <= versions[i].last)
			return &versions[i];
	return NULL;
}

struct names {
	uint32_t n;
	struct text at[NAMES_MAX];
};

/* The names of the function being read, after its constants. */
static bool take_names(struct reader *r, struct names *names)
{
	const uint8_t *type = take(r, 1);
	struct text t;
	uint32_t n;

	if (!type || ((*type & FLAG_REF) && !new_ref(r)))
		return false;
	if ((*type & ~FLAG_REF) != ')' && (*type & ~FLAG_REF) != '(')
		return false;
	if (!take_count(r, *type & ~FLAG_REF, &n))
		return false;
	for (names->n = 0; n; n--) {
		if (!pass(r, &t) || !t.at)
			return false;
		if (names->n < NAMES_MAX)
			names->at[names->n++] = t;
	}
	return true;
}

static void tell(const struct text *t, cop_mention_fn fn, void *arg)
{
	if (t->len)
		fn(arg, (const char *)t->at, t->len);
}

/* A name imported from a module may itself be a module. */
static void tell_member(
	const struct text *module, const struct text *member, cop_mention_fn fn, void *arg)
{
	char dotted[DOTTED_MAX];
	size_t len = module->len;

	if (len + 1 + member->len > sizeof(dotted))
		return;
	if (len) {
		memcpy(dotted, module->at, len);
		dotted[len++] = '.';
	}
	memcpy(dotted + len, member->at, member->len);
	fn(arg, dotted, len + member->len);
}

/* The module of an import at module level; NULL if it is lazy or its index is invalid. */
static const struct text *imported(
	const struct instructions *v, uint32_t value, const struct names *names)
{
	uint32_t name = value >> v->flags;

	return name < names->n && !(v->flags && (value & IMPORT_LAZY)) ? &names->at[name] : NULL;
}

static void tell_imports(const struct instructions *v, const struct text *code,
	const struct names *names, cop_mention_fn fn, void *arg)
{
	const struct text *module = NULL;
	uint32_t value = 0;

	for (size_t i = 0; i + 1 < code->len; i += 2) {
		uint8_t what = code->at[i];

		value = value << 8 | code->at[i + 1];
		if (what == v->extend)
			continue;
		if (what == v->import_name) {
			module = imported(v, value, names);
			if (module)
				tell(module, fn, arg);
		} else if (what == v->import_from && value < names->n && module) {
			tell_member(module, &names->at[value], fn, arg);
		}
		value = 0;
	}
}

/* The magic number; 0 if this is not the header of a compiled module. */
static unsigned magic_of(const uint8_t *head, size_t len)
{
	if (len < HEADER || head[2] != '\r' || head[3] != '\n')
		return 0;
	return (unsigned)head[0] | (unsigned)head[1] << 8;
}

unsigned cop_mention_new_python(const void *data, size_t len)
{
	unsigned magic = magic_of(data, len);

	return magic > MAGIC_FIRST && magic < MAGIC_PYTHON_2 && !find_version(magic) ? magic : 0;
}

bool cop_mention_python(const void *data, size_t len, cop_mention_fn fn, void *arg)
{
	const uint8_t *head = data, *type;
	const struct instructions *version = find_version(magic_of(head, len));
	struct reader r = {.at = head, .end = head + len};
	struct names *names;
	struct text code;
	bool ok;

	if (!version || !take(&r, HEADER))
		return false;
	names = malloc(sizeof(*names));
	r.new_fields = magic_of(head, len) >= MAGIC_FIELDS;
	type = take(&r, 1);
	ok = names && type && (*type & ~FLAG_REF) == 'c' && (!(*type & FLAG_REF) || new_ref(&r)) &&
	     pass_to_constants(&r, &code) && pass_objects(&r, 1) && take_names(&r, names);
	if (ok && code.at)
		tell_imports(version, &code, names, fn, arg);
	free(names);
	free(r.ref);
	return ok;
}
