/* SPDX-License-Identifier: BSD-3-Clause */
/* One file, cut into blocks of whole events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/read/read_priv.h"

static const char too_long[] = "an event of more than 1 MiB";

static uint64_t count_lines(const char *p, const char *end)
{
	uint64_t n = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		n++;
	}
	return n;
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
	s->carry = malloc(BLOCK_MAX + SCAN_PAD);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->turned, NULL);
	if (s->carry && !cop_inflate_open(fd, &s->in))
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
	pthread_cond_destroy(&s->turned);
	pthread_mutex_destroy(&s->lock);
	free(s->carry);
	close(s->fd);
	free(s);
}

/* Reads on, up to this many bytes in all, and recognizes their format. -errno. */
static int sniff_upto(
	struct source *s, struct judge *judge, size_t upto, size_t *skip, const char **why)
{
	struct beginning b = {.data = s->carry, .anywhere = s->meant};
	ssize_t n = cop_inflate_read(s->in, s->carry + s->carried, upto - s->carried);

	if (n < 0)
		return (int)n;
	s->carried += (size_t)n;
	cop_trace_pad(s->carry + s->carried);
	b.len = s->carried;
	b.whole = s->carried < upto;
	*why = cop_trace_detect(judge, &b, &s->form, &s->split, skip);
	if (b.whole && (*why || !b.len) && cop_inflate_fault(s->in))
		*why = cop_inflate_fault(s->in);
	return 0;
}

/* Afterwards carry has the beginning, without what is not an event. */
static int sniff(struct source *s, const char **why)
{
	struct judge *judge = cop_trace_judge_new(false);
	size_t skip = 0;
	int rc = judge ? 0 : -ENOMEM;

	s->carried = 0;
	if (!rc)
		rc = sniff_upto(s, judge, SNIFF_BYTES, &skip, why);
	if (!rc && (*why || s->split.state == SPLIT_SEEK) && s->carried == SNIFF_BYTES &&
		strchr("[{", s->carry[0]))
		rc = sniff_upto(s, judge, SNIFF_MAX, &skip, why);
	cop_trace_judge_free(judge);
	if (rc || *why)
		return rc;
	s->line = 1 + count_lines(s->carry, s->carry + skip);
	s->carried -= skip;
	memmove(s->carry, s->carry + skip, s->carried);
	return 0;
}

struct source *cop_trace_source_open(
	const struct file *file, size_t index, const char **why, int *rc)
{
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, file->name, &size);
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
	if (!*rc && !*why)
		return s;
	cop_trace_source_free(s);
	return NULL;
}

int cop_trace_source_rewind(struct source *s)
{
	const char *why = NULL;
	int rc;

	cop_inflate_close(s->in);
	s->in = NULL;
	s->ended = s->skip_line = false;
	s->blocks = s->broken = 0;
	rc = cop_inflate_open(s->fd, &s->in);
	return rc ? rc : sniff(s, &why);
}

/* ---- filling ---- */

/* Leaves out the first n bytes. */
static void skip_bytes(struct source *s, struct block *b, size_t n)
{
	s->line += count_lines(b->memory, b->memory + n);
	b->len -= n;
	memmove(b->memory, b->memory + n, b->len);
}

/* Reads more bytes behind those that are there; fewer than fit only at the end of the file. */
static int more(struct source *s, struct block *b)
{
	size_t upto =
		b->len < BLOCK_BYTES / 2 ? BLOCK_BYTES : COP_MIN(b->len + BLOCK_BYTES, BLOCK_MAX);
	ssize_t n = cop_inflate_read(s->in, b->memory + b->len, upto - b->len);

	if (n < 0)
		return (int)n;
	b->len += (size_t)n;
	s->ended = b->len < upto;
	return 0;
}

static void tell_too_long(struct source *s)
{
	if (!s->broken++)
		s->broken_line = s->line;
	s->broken_why = too_long;
}

/* Reading of a document resumes at a line that begins with an object. */
static void resync(struct source *s, struct block *b)
{
	const char *p = b->memory, *end = p + b->len;

	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		const char *q = p + 1;

		while (q < end && (*q == ' ' || *q == '\t'))
			q++;
		if (q < end && *q == '{') {
			skip_bytes(s, b, (size_t)(q - b->memory));
			s->split.state = SPLIT_EVENTS;
			return;
		}
		p = q;
	}
	skip_bytes(s, b, b->len);
}

static void skip_line(struct source *s, struct block *b)
{
	const char *p = memchr(b->memory, '\n', b->len);

	skip_bytes(s, b, p ? (size_t)(p + 1 - b->memory) : b->len);
	s->skip_line = !p;
}

/* The array of an object ends at a line that begins like this; other members may follow. */
static void end_array(struct source *s, struct block *b)
{
	const char *end = memmem(b->memory, b->len, "\n]", 2);
	bool first = b->len && b->memory[0] == ']';

	if (!end && !first)
		return;
	b->len = first ? 0 : (size_t)(end + 1 - b->memory);
	s->ended = true;
}

/* How many bytes are whole events; drops what comes before the first. */
static size_t cut_block(struct source *s, struct block *b)
{
	const char *last;
	bool over;
	size_t n;

	if (s->form == FORM_LINES) {
		if (s->skip_line)
			skip_line(s, b);
		if (s->split.lines)
			end_array(s, b);
		last = memrchr(b->memory, '\n', b->len);
		return s->ended ? b->len : last ? (size_t)(last + 1 - b->memory) : 0;
	}
	if (s->split.state == SPLIT_SEEK)
		skip_bytes(s, b, cop_trace_split_seek(&s->split, b->memory, b->len));
	if (s->split.state == SPLIT_RESYNC)
		resync(s, b);
	if (s->split.state != SPLIT_EVENTS)
		return 0;
	n = cop_trace_split_events(b->memory, b->len, &over);
	if (over)
		s->split = (struct split){
			.state = SPLIT_SEEK, .depth = s->split.found, .found = s->split.found};
	return over || !s->ended ? n : b->len;
}

static void give_up_record(struct source *s, struct block *b)
{
	tell_too_long(s);
	if (s->form == FORM_LINES)
		s->skip_line = true;
	else
		s->split.state = SPLIT_RESYNC;
	skip_bytes(s, b, b->len);
}

int cop_trace_source_fill(struct source *s, struct block *b)
{
	size_t n = 0;
	int rc;

	b->len = s->carried;
	memcpy(b->memory, s->carry, s->carried);
	s->carried = 0;
	while (!n) {
		if (b->len == BLOCK_MAX)
			give_up_record(s, b);
		if (s->ended && !b->len)
			return 0;
		rc = s->ended ? 0 : more(s, b);
		if (rc)
			return rc;
		n = cut_block(s, b);
		if (s->ended && !n)
			return 0;
	}
	s->carried = b->len - n;
	memcpy(s->carry, b->memory + n, s->carried);
	b->data = b->memory;
	b->len = n;
	b->line = s->line;
	b->lines = s->form == FORM_LINES;
	b->seq = s->blocks++;
	s->line += count_lines(b->data, b->data + n);
	cop_trace_pad(b->memory + n);
	return 1;
}
