/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader. Lines are independent and invalid ones are skipped, so a truncated manifest, or one
 * from a later version, is still useful. */
#include "storage/manifest/manifest.h"
#include "storage/manifest/manifest_priv.h"

/* A line without its newline. */
struct line {
	const char *p, *end;
};

static bool next_line(const char *data, size_t len, size_t *at, struct line *line)
{
	const char *start = data + *at, *nl;

	if (*at >= len)
		return false;
	nl = memchr(start, '\n', len - *at);
	*line = (struct line){start, nl ? nl : data + len};
	*at = nl ? (size_t)(nl - data) + 1 : len;
	return true;
}

static bool expect_word(struct line *l, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(l->end - l->p) < n || memcmp(l->p, word, n) != 0)
		return false;
	l->p += n;
	return true;
}

/* Parses decimal digits, at least one; false if the number exceeds 64 bits. */
static bool parse_number(struct line *l, uint64_t *out)
{
	const char *begin = l->p;

	for (*out = 0; l->p < l->end && *l->p >= '0' && *l->p <= '9'; l->p++) {
		uint64_t digit = (uint64_t)(*l->p - '0');

		if (*out > (UINT64_MAX - digit) / 10)
			return false;
		*out = *out * 10 + digit;
	}
	return l->p > begin;
}

/* Parses exactly nine digits. */
static bool parse_nanoseconds(struct line *l, uint32_t *out)
{
	const char *begin = l->p;
	uint64_t n;

	if (!parse_number(l, &n) || l->p - begin != 9)
		return false;
	*out = (uint32_t)n;
	return true;
}

/* Parses decimal seconds with nine decimals; version 1 had an integer number of nanoseconds. */
static bool parse_time(struct line *l, struct cop_manifest_item *item)
{
	bool minus = expect_word(l, "-");
	uint64_t whole;
	uint32_t nsec = 0;

	if (!parse_number(l, &whole))
		return false;
	if (!expect_word(l, ".")) {
		nsec = (uint32_t)(whole % COP_NS_PER_S);
		whole /= COP_NS_PER_S;
	} else if (!parse_nanoseconds(l, &nsec)) {
		return false;
	}
	if (whole > (uint64_t)INT64_MAX + (minus && !nsec))
		return false;
	if (minus && nsec) {
		whole++;
		nsec = (uint32_t)COP_NS_PER_S - nsec;
	}
	item->mtime_s = minus ? -1 - (int64_t)(whole - 1) : (int64_t)whole;
	item->mtime_nsec = nsec;
	return true;
}

/* Copies the rest of the line with \n and \\ unescaped; -1 if it does not fit or ends within an
 * escape. */
static ssize_t unescape_path(const struct line *l, char *out, size_t size)
{
	size_t n = 0;

	for (const char *p = l->p; p < l->end; p++) {
		char c = *p;

		if (c == '\\') {
			if (++p == l->end || (*p != 'n' && *p != '\\'))
				return -1;
			c = *p == 'n' ? '\n' : '\\';
		}
		if (n + 1 >= size)
			return -1;
		out[n++] = c;
	}
	out[n] = '\0';
	return (ssize_t)n;
}

bool cop_manifest_path_ok(const char *path, size_t len)
{
	size_t part = 0;

	if (len > COP_MANIFEST_PATH_MAX || memchr(path, '\0', len))
		return false;
	for (size_t i = 0; i <= len && len; i++) {
		if (i < len && path[i] != '/')
			continue;
		if (i == part || i - part > 255 || (i - part == 1 && path[part] == '.') ||
			(i - part == 2 && path[part] == '.' && path[part + 1] == '.'))
			return false;
		part = i + 1;
	}
	return true;
}

/* ---- the header ---- */

int cop_manifest_head(const char *data, size_t len, char *source, size_t *body, struct cop_err *err)
{
	struct line line;
	uint64_t version;
	ssize_t n = -1;

	*body = 0;
	if (!next_line(data, len, body, &line) || !expect_word(&line, MANIFEST_MAGIC " ") ||
		!parse_number(&line, &version) || line.p != line.end)
		return cop_err_set(err, EBADMSG, "it does not begin like a manifest");
	if (version < 1 || version > COP_MANIFEST_VERSION)
		return cop_err_set(err, EPROTO,
			"it is of version %llu, and this copper knows versions 1 to %d",
			(unsigned long long)version, COP_MANIFEST_VERSION);
	if (next_line(data, len, body, &line) && expect_word(&line, "source "))
		n = unescape_path(&line, source, COP_MANIFEST_PATH_MAX + 1);
	if (n <= 0 || source[0] != '/' || memchr(source, '\0', (size_t)n))
		return cop_err_set(err, EBADMSG, "its second line does not name a source");
	return 0;
}

/* ---- items ---- */

static bool parse_ranges(struct line *l, struct cop_manifest_item *item)
{
	uint64_t start, end, last = 0;

	if (expect_word(l, "- "))
		return true;
	do {
		if (item->ranges == COP_MANIFEST_RANGES_MAX || !parse_number(l, &start) ||
			!expect_word(l, "-") || !parse_number(l, &end) || start >= end ||
			(item->ranges && start <= last))
			return false;
		item->range[item->ranges++] = (struct cop_range){start, end};
		last = end;
	} while (expect_word(l, ","));
	return expect_word(l, " ");
}

static bool parse_fields(struct line *l, struct cop_manifest_item *item)
{
	*item = (struct cop_manifest_item){.kind = COP_MANIFEST_DIR};
	if (expect_word(l, "d "))
		return true;
	item->kind = COP_MANIFEST_NAME;
	if (expect_word(l, "n "))
		return true;
	item->kind = COP_MANIFEST_FILE;
	return expect_word(l, "f ") && parse_number(l, &item->size) && expect_word(l, " ") &&
	       parse_time(l, item) && expect_word(l, " ") && parse_ranges(l, item);
}

static bool parse_item(
	struct cop_manifest_reader *r, struct line *l, struct cop_manifest_item *item)
{
	ssize_t n;

	if ((size_t)(l->end - l->p) > COP_MANIFEST_LINE_MAX || !parse_fields(l, item))
		return false;
	n = unescape_path(l, r->path, sizeof(r->path));
	if (n == 1 && r->path[0] == '.') {
		r->path[0] = '\0';
		n = 0;
	} else if (n <= 0 || !cop_manifest_path_ok(r->path, (size_t)n)) {
		return false;
	}
	/* Only a directory can be the source itself. */
	if (n == 0 && item->kind != COP_MANIFEST_DIR)
		return false;
	item->path = r->path;
	item->len = (size_t)n;
	return true;
}

/* Whether a line consists of this word and a number. */
static bool is_count(const struct line *line, const char *word, uint64_t *count)
{
	struct line l = *line;

	return expect_word(&l, word) && parse_number(&l, count) && l.p == l.end;
}

/* "part IDLE PATH": the following items belong to another program. */
static bool begin_part(struct cop_manifest_reader *r, const struct line *line)
{
	struct line l = *line;
	uint64_t idle;
	ssize_t n;

	if (!expect_word(&l, "part ") || !parse_number(&l, &idle) || !expect_word(&l, " "))
		return false;
	n = unescape_path(&l, r->path, sizeof(r->path));
	if (n <= 0 || !cop_manifest_path_ok(r->path, (size_t)n))
		return false;
	if (r->parts < COP_MANIFEST_PARTS) {
		r->parts++;
		r->idle = (unsigned)COP_MIN(idle, COP_MANIFEST_IDLE_JOBS);
		memcpy(r->part_path, r->path, (size_t)n + 1);
	}
	r->unused = 0;
	return true;
}

bool cop_manifest_next(struct cop_manifest_reader *r, struct cop_manifest_item *item)
{
	struct line line, rest;
	uint64_t count;

	while (next_line(r->data, r->len, &r->at, &line)) {
		if (is_count(&line, "end ", &count)) {
			r->ended = count == r->items && r->at == r->len;
			continue;
		}
		if (is_count(&line, "unused ", &count)) {
			r->unused = (unsigned)COP_MIN(count, COP_MANIFEST_UNUSED_JOBS);
			continue;
		}
		if (begin_part(r, &line))
			continue;
		rest = line;
		if (parse_item(r, &rest, item)) {
			item->unused = r->unused;
			item->part = r->parts ? r->parts - 1 : 0;
			r->items++;
			return true;
		}
		r->bad += line.p < line.end;
	}
	return false;
}

size_t cop_manifest_piece(const char *body, size_t len, size_t at)
{
	size_t n = len - COP_MIN(at, len);
	const char *nl;

	if (n <= COP_MANIFEST_PIECE)
		return n;
	nl = memrchr(body + at, '\n', COP_MANIFEST_PIECE);
	return nl ? (size_t)(nl - (body + at)) + 1 : COP_MANIFEST_PIECE;
}
