/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a file and cuts it into blocks of whole events. */
#include <fcntl.h>

#include "trace/read/index_priv.h"

static const char
	too_long[] = "an event of more than 16 MiB",
	too_long_otlp[] =
		"a line of OpenTelemetry of more than 16 MiB: have the exporter write smaller batches";

static uint64_t count_lines(const char *p, const char *end)
{
	uint64_t n = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		n++;
	}
	return n;
}

int cop_trace_room(char **at, size_t *room, size_t len)
{
	char *grown;

	if (*at && len <= *room)
		return 0;
	grown = realloc(*at, len + COP_JSON_PAD);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*room = len;
	return 0;
}

/* ---- opening ---- */

static struct source *source_new(int fd, size_t index, bool meant)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->index = index;
	s->meant = meant;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turned, NULL);
	if (!cop_trace_room(&s->carry, &s->carry_room, SNIFF_BYTES) &&
		!cop_inflate_open(fd, &s->in))
		return s;
	cop_trace_source_free(s);
	return NULL;
}

void cop_trace_source_free(struct source *s)
{
	if (!s)
		return;
	cop_trace_pairs_end(&s->pairs);
	cop_trace_names_free(&s->names);
	cop_inflate_close(s->in);
	cop_plan_free(s->plan);
	pthread_cond_destroy(&s->turned);
	pthread_mutex_destroy(&s->lock);
	free(s->carry);
	close(s->fd);
	free(s);
}

/* Reads up to `upto` bytes in total, and recognizes their format. -errno. */
static int sniff_upto(struct source *s, size_t upto, const char **why)
{
	struct beginning b = {.anywhere = s->meant};
	ssize_t n = cop_trace_room(&s->carry, &s->carry_room, upto);

	n = n ? n : cop_inflate_read(s->in, s->carry + s->carried, upto - s->carried);
	if (n < 0)
		return (int)n;
	s->carried += (size_t)n;
	cop_json_pad(s->carry + s->carried);
	b.data = s->carry;
	b.len = s->carried;
	b.whole = s->carried < upto;
	*why = cop_trace_look(&b, &s->first);
	if (b.whole && (*why || !b.len) && cop_inflate_fault(s->in))
		*why = cop_inflate_fault(s->in);
	return 0;
}

/* Recognizes the format, and leaves the first bytes in carry. */
static int sniff(struct source *s, const char **why)
{
	int rc;

	s->carried = 0;
	s->split = (struct split){0};
	s->line = 1;
	s->stop = UINT64_MAX;
	s->skipped = (struct cop_trace_result){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
	rc = sniff_upto(s, SNIFF_BYTES, why);
	if (!rc && *why && s->first.may_come)
		rc = sniff_upto(s, SNIFF_MAX, why);
	s->pending = !rc && *why && s->first.may_come && s->carry[s->first.skip] != '[';
	if (s->pending)
		*why = NULL; /* a document whose events come later */
	if (rc || *why)
		return rc;
	s->raw = s->first.skip;
	s->carried -= s->first.skip;
	memmove(s->carry, s->carry + s->first.skip, s->carried + COP_JSON_PAD);
	return 0;
}

/* ---- the base time of a file ---- */

#define TAIL_BYTES (64 * COP_KIB)
/* Times of real-time clocks are above this (March 1973), in microseconds. */
#define REAL_US INT64_C(100000000000000)

/* Searches for members outside of the events. */
static void take_members(struct source *s, const char *p, const char *end)
{
	struct split split = {0};
	enum cut next;
	bool event;
	size_t n;

	while (p < end) {
		if (split.where == AT_OBJECT) {
			p += cop_trace_split_seek(&split, p, (size_t)(end - p));
			continue;
		}
		n = cop_trace_cut(&split, p, (size_t)(end - p), &next, &event);
		p += n;
		if (next != CUT_NONE)
			cop_trace_split_enter(&split, next == CUT_ARRAY, false);
		else if (!n)
			break;
	}
	if (split.has_base)
		s->tail_base_ns = split.base_ns;
}

/* Takes the members that follow the events of a plain file. If another array follows, only a full
 * read can tell whether a member belongs to the document. */
static void take_tail(struct source *s, off_t size)
{
	char *data = malloc(TAIL_BYTES + COP_JSON_PAD);
	off_t from = COP_MAX(size - (off_t)TAIL_BYTES, 0);
	ssize_t n = data ? pread(s->fd, data, TAIL_BYTES, from) : 0;
	const char *name = n > 0 ? memmem(data, (size_t)n, "\"baseTimeNanoseconds\"", 21) : NULL;
	struct field f = {.type = T_NUMBER};
	int64_t v;

	if (name && memchr(name, '[', (size_t)(data + n - name))) {
		s->seeks_base = true;
	} else if (name) {
		cop_json_pad(data + n);
		f.at = cop_json_blanks(name + 21);
		f.at += *f.at == ':';
		f.at = cop_json_blanks(f.at);
		f.len = (uint32_t)strspn(f.at, "0123456789");
		if (f.len && cop_trace_number(&f, 1, &v))
			s->tail_base_ns = v;
	}
	free(data);
}

static void find_base(struct source *s, uint64_t size)
{
	if (!s->first.document || s->first.first_us > REAL_US)
		return;
	take_members(s, s->carry, s->carry + s->carried);
	if (s->tail_base_ns)
		return;
	if (cop_inflate_is_plain(s->in))
		take_tail(s, (off_t)size);
	else
		s->seeks_base = s->carried >= SNIFF_BYTES;
}

void cop_trace_source_end_names(struct source *s)
{
	if (!s->tail_base_ns && s->split.has_base)
		s->tail_base_ns = s->split.base_ns;
}

static int open_file(const struct file *file, uint64_t *size)
{
	int fd;
	off_t end;

	if (file->fd < 0)
		return cop_open_regular(AT_FDCWD, file->name, size);
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	*size = end < 0 ? 0 : (uint64_t)end;
	return fd < 0 ? -errno : fd;
}

struct source *cop_trace_source_open(
	const struct file *file, size_t index, const char **why, int *rc)
{
	uint64_t size = 0;
	int fd = open_file(file, &size);
	struct source *s;

	*why = NULL;
	*rc = fd < 0 ? fd : -ENOMEM;
	if (fd < 0)
		return NULL;
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	s = source_new(fd, index, file->meant);
	if (!s)
		return NULL;
	*rc = sniff(s, why);
	if (!*rc && !*why) {
		find_base(s, size);
		return s;
	}
	cop_trace_source_free(s);
	return NULL;
}

int cop_trace_source_rewind(struct source *s)
{
	const char *why = NULL;
	int rc;

	cop_inflate_close(s->in);
	s->in = NULL;
	s->ended = s->seeks_base = false;
	s->blocks = s->broken = 0;
	rc = cop_inflate_open(s->fd, &s->in);
	return rc ? rc : sniff(s, &why);
}

/* ---- filling ---- */

/* Drops the first n bytes of the block. */
static void skip_bytes(struct source *s, struct block *b, size_t n)
{
	s->line += count_lines(b->memory, b->memory + n);
	s->raw += n;
	b->len -= n;
	memmove(b->memory, b->memory + n, b->len);
}

/* Appends more bytes to the block; fills its buffer except at the end of the file or where a plan
 * stops. */
static int more(struct source *s, struct block *b)
{
	size_t upto = b->len < BLOCK_BYTES / 2 ? BLOCK_BYTES : COP_MIN(2 * b->len, BLOCK_MAX);
	bool stops = s->stop - s->raw <= upto;
	ssize_t n;

	upto = stops ? (size_t)(s->stop - s->raw) : upto;
	n = cop_trace_room(&b->memory, &b->room, upto);
	n = n ? n : cop_inflate_read(s->in, b->memory + b->len, upto - b->len);
	if (n < 0)
		return (int)n;
	b->len += (size_t)n;
	s->ended = b->len < upto || stops;
	cop_json_pad(b->memory + b->len);
	return 0;
}

static void tell_too_long(struct source *s, bool otlp)
{
	if (!s->broken++)
		s->broken_line = s->line;
	s->broken_why = otlp ? too_long_otlp : too_long;
}

/* Whether an object begins like a line of OTLP: with spans, metrics or logs. */
static bool begins_otlp(const char *p)
{
	static const char *const names[] = {
		"\"resourceSpans\"", "\"resourceMetrics\"", "\"resourceLogs\""};

	p = cop_json_blanks(p);
	p = *p == '{' ? cop_json_blanks(p + 1) : p;
	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (strncmp(p, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Handles an object that does not fit into a block. It may be a document whose events come
 * later. */
static void give_up_record(struct source *s, const struct block *b, bool event)
{
	bool otlp = begins_otlp(b->memory),
	     lost = event || otlp || s->split.where == AT_ARRAY || s->blocks;

	if (lost)
		tell_too_long(s, otlp);
	s->split.found |= otlp;
	cop_trace_split_enter(&s->split, 0, lost);
}

/* Returns how many bytes at the start of the block are whole events; drops other data. */
static size_t cut_block(struct source *s, struct block *b, enum cut *next)
{
	bool event;
	size_t n;

	*next = CUT_NONE;
	if (s->split.where == AT_OBJECT)
		skip_bytes(s, b, cop_trace_split_seek(&s->split, b->memory, b->len));
	if (s->split.where == AT_OBJECT || !b->len)
		return 0;
	n = cop_trace_cut(&s->split, b->memory, b->len, next, &event);
	if (*next == CUT_NONE && s->ended)
		return b->len;
	if (!n && *next == CUT_NONE && b->len == BLOCK_MAX)
		give_up_record(s, b, event);
	return n;
}

/* Copies what the block's document defines outside its events. */
static void take_document(const struct source *s, int where, struct block *b)
{
	const struct split *split = &s->split;
	bool has = where == AT_ARRAY;

	b->base_ns = !has ? 0 : split->has_base ? split->base_ns : s->tail_base_ns;
	b->rank_len = has ? split->rank_len : 0;
	memcpy(b->rank, split->rank, sizeof(b->rank));
}

/* Fills the block from the file. Returns 1; 0 at the end; -errno. */
static int fill(struct source *s, struct block *b)
{
	enum cut next = CUT_NONE;
	bool need = false;
	int rc, where = s->split.where;
	size_t n = 0;

	b->len = (size_t)COP_MIN((uint64_t)s->carried, s->stop - s->raw);
	rc = cop_trace_room(&b->memory, &b->room, b->len);
	if (rc)
		return rc;
	s->ended |= b->len < s->carried;
	memcpy(b->memory, s->carry, b->len);
	cop_json_pad(b->memory + b->len);
	s->carried = 0;
	while (!n) {
		if (s->ended && !b->len)
			return 0;
		if (!s->ended && (need || b->len < BLOCK_BYTES))
			rc = more(s, b);
		if (rc)
			return rc;
		n = cut_block(s, b, &next);
		need = !n && next == CUT_NONE;
		where = s->split.where;
		s->block_split = s->split;
		if (next != CUT_NONE)
			cop_trace_split_enter(&s->split, next == CUT_ARRAY, false);
	}
	s->block_raw = s->raw;
	s->raw += n;
	take_document(s, where, b);
	rc = cop_trace_room(&s->carry, &s->carry_room, b->len - n);
	if (rc)
		return rc;
	s->carried = b->len - n;
	memcpy(s->carry, b->memory + n, s->carried);
	b->data = b->memory;
	b->len = n;
	b->line = s->line;
	b->seq = s->blocks++;
	s->line += count_lines(b->data, b->data + n);
	cop_json_pad(b->memory + n);
	return 1;
}

int cop_trace_source_fill(struct source *s, struct block *b)
{
	int rc;

	for (;;) {
		rc = s->plan ? cop_plan_step(s->plan, s, b) : 0;
		if (rc == -ENODATA)
			return 0;
		if (!rc)
			rc = fill(s, b);
		else if (rc > 0)
			b->seq = s->blocks++;
		if (rc || s->stop == UINT64_MAX)
			return rc;
		s->raw = s->stop; /* only data other than events was left before it */
	}
}
