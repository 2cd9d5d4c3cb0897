/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the output of scripts/sim/record.sh (scripts/sim/reduce.py describes the format), and
 * creates the replies: a listing is its header, an entry its attributes, both followed by zeros
 * up to the recorded length. */
#include <sys/stat.h>

#include "sim.h"
#include "fabric/wire/wire.h"

#define FIELDS 10
#define LINES_MAX 1000000
#define BLOB_MAX (64 * COP_MIB)

static const char *const kinds[] = {[COP_ASK_LISTING] = "listing",
	[COP_ASK_ENTRY] = "entry",
	[COP_ASK_CHUNK] = "chunk",
	[COP_ASK_NAMES] = "names",
	[COP_ASK_HOLES] = "holes",
	[COP_ASK_STATFS] = "statfs",
	[COP_ASK_CHECK] = "check"};

/* Splits the line at blanks; the last field may contain some. */
static bool split_fields(char *line, char *field[FIELDS])
{
	for (unsigned i = 0; i < FIELDS; i++) {
		field[i] = line;
		if (i == FIELDS - 1)
			return *line != '\0';
		line = strchr(line, ' ');
		if (!line)
			return false;
		*line++ = '\0';
	}
	return false;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	return cop_parse_u64(text, out) == 0 && *out <= max;
}

/* Parses the letters after a plus sign. */
static bool parse_flags(const char *flags, struct sim_line *l)
{
	for (; *flags; flags++)
		switch (*flags) {
		case 'b':
			l->background = true;
			break;
		case 'f':
			l->first = true;
			break;
		case 'j':
			l->joined = true;
			break;
		case 'u':
			l->use = true;
			break;
		default:
			return false;
		}
	return true;
}

static bool parse_kind(char *word, struct sim_line *l)
{
	char *flags = strchr(word, '+');

	if (!strcmp(word, "end"))
		return true;
	if (flags)
		*flags++ = '\0';
	for (unsigned i = 1; i < COP_ARRAY_SIZE(kinds); i++)
		if (kinds[i] && !strcmp(word, kinds[i]))
			l->kind = (enum cop_ask_kind)i;
	return l->kind != 0 && (!flags || parse_flags(flags, l));
}

static bool parse_line(char *text, int32_t at, struct sim_line *l)
{
	uint64_t after, think, waited, calls, ret;
	char *f[FIELDS];
	bool first;

	*l = (struct sim_line){.dir = -1, .follower = -1, .next = -1};
	if (!split_fields(text, f) || !parse_kind(f[0], l))
		return false;
	first = !strcmp(f[1], "-1");
	after = 0;
	if ((!first && (at == 0 || !parse_number(f[1], (uint64_t)at - 1, &after))) ||
		!parse_number(f[2], 86400000000, &think) || !parse_number(f[3], 1, &waited) ||
		!parse_number(f[4], BLOB_MAX, &l->bytes) ||
		!parse_number(f[5], INT64_MAX, &l->size) ||
		!parse_number(f[6], UINT32_MAX, &l->index) ||
		!parse_number(f[7], LINES_MAX, &calls) ||
		!parse_number(f[8] + (*f[8] == '-'), 4095, &ret) || strlen(f[9]) > 4095)
		return false;
	l->after = first ? -1 : (int32_t)after;
	l->think_ns = think * 1000;
	l->waited = waited;
	l->calls = (uint32_t)calls;
	l->ret = -(int)ret;
	l->path = strcmp(f[9], ".") ? f[9] : "";
	if (l->kind == COP_ASK_STATFS)
		l->path = "";
	return l->kind != COP_ASK_CHUNK || (l->size && !l->ret);
}

static bool has_ended(const struct sim_trace *t)
{
	return t->lines && !t->line[t->lines - 1].kind;
}

/* ---- derived from all lines ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct sim_line *x = *(struct sim_line *const *)a, *y = *(struct sim_line *const *)b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->path, y->path);
}

const struct sim_line *cop_sim_trace_find(
	const struct sim_trace *t, enum cop_ask_kind kind, const char *path)
{
	struct sim_line key = {.kind = kind, .path = path}, *at = &key, **found;

	found = bsearch(&at, t->sorted, (size_t)t->asked, sizeof(*t->sorted), compare_lines);
	return found ? *found : NULL;
}

/* An entry longer than the attributes has a link's target; one with bytes read by the program is
 * a file. */
static int make_entry(const struct sim_trace *t, const struct sim_line *l, void **blob, size_t *len)
{
	const struct sim_line *chunk = cop_sim_trace_find(t, COP_ASK_CHUNK, l->path);
	struct cop_attr attr = {.version = SIM_VERSION, .mode = S_IFDIR | 0755};
	char target[4096];
	int rc;

	if (chunk) {
		attr.mode = S_IFREG | 0644;
		attr.size = chunk->size;
		attr.blocks = 8;
	}
	rc = cop_entry_build(&attr, NULL, 0, blob, len);
	if (rc || l->bytes <= *len || l->bytes - *len >= sizeof(target))
		return rc;
	attr.mode = S_IFLNK | 0777;
	memset(target, 'x', sizeof(target));
	free(*blob);
	return cop_entry_build(&attr, target, l->bytes - *len, blob, len);
}

static int make_listing(void **blob, size_t *len)
{
	struct cop_attr dir = {.version = SIM_VERSION, .mode = S_IFDIR | 0755};
	struct cop_listing_builder b = {0};

	return cop_listing_build(&b, &dir, COP_LISTING_COMPLETE, blob, len);
}

static void *make_blob(const struct sim_trace *t, const struct sim_line *l)
{
	void *blob = NULL, *shared;
	size_t len = 0;

	if (l->kind == COP_ASK_LISTING || l->kind == COP_ASK_NAMES)
		make_listing(&blob, &len);
	else if (l->kind == COP_ASK_ENTRY)
		make_entry(t, l, &blob, &len);
	shared = cop_sim_memory_blob(COP_MAX(len, l->bytes));
	if (shared && blob)
		memcpy(shared, blob, len);
	free(blob);
	return shared;
}

/* Links each line to the lines that follow it, in order; those that share a message are
 * requested with its first line. */
static void link_lines(struct sim_trace *t)
{
	t->first = -1;
	for (int32_t i = t->lines - 1; i >= 0; i--) {
		struct sim_line *l = &t->line[i];
		int32_t *head = l->after < 0 ? &t->first : &t->line[l->after].follower;

		if (l->joined)
			continue;
		l->next = *head;
		*head = i;
	}
}

static void find_dirs(struct sim_trace *t)
{
	for (int32_t i = 0; i < t->lines - 1; i++) {
		struct sim_line *l = &t->line[i];
		const char *slash = strrchr(l->path, '/');
		char dir[4096] = "";
		const struct sim_line *listing;

		if (slash)
			memcpy(dir, l->path, (size_t)(slash - l->path));
		listing = cop_sim_trace_find(t, COP_ASK_LISTING, dir);
		if (listing && listing->ret == 0 && listing != l)
			l->dir = (int32_t)(listing - t->line);
	}
}

static void find_chunks(struct sim_trace *t)
{
	t->chunk = cop_sim_alloc((size_t)t->lines, sizeof(*t->chunk));
	for (int32_t i = 0; i < t->lines; i++)
		if (t->line[i].kind == COP_ASK_CHUNK) {
			t->line[i].nth_chunk = t->chunks;
			t->chunk[t->chunks++] = i;
		}
}

/* A four-round Feistel network permutes the numbers below a power of four; results not below n
 * are permuted again, which yields a permutation of the numbers below n. */
static uint64_t permute(uint64_t at, uint64_t n, uint64_t seed)
{
	unsigned half = 1;

	while (n > 1ULL << 2 * half)
		half++;
	do
		for (uint64_t round = 0; round < 4; round++) {
			uint64_t left = at >> half, right = at & ((1ULL << half) - 1);

			at = right << half |
			     (left ^ cop_sim_draw(seed + round, 'p', right, 1ULL << half));
		}
	while (at >= n);
	return at;
}

const struct sim_line *cop_sim_trace_shuffled(
	const struct sim_trace *t, const struct sim_line *l, uint64_t seed)
{
	if (l->kind != COP_ASK_CHUNK)
		return l;
	return &t->line[t->chunk[permute((uint64_t)l->nth_chunk, (uint64_t)t->chunks, seed)]];
}

/* A chain of replies leads to the end; its pauses are the program's own work. */
static void add_think(struct sim_trace *t)
{
	for (int32_t i = t->lines - 1; i >= 0; i = t->line[i].after)
		t->think_ns += t->line[i].think_ns;
}

/* A request without a waiter may bring the bytes that come with an entry, but no more. */
static int check_line(const struct sim_trace *t, int32_t i, const char *file, struct cop_err *err)
{
	const struct sim_line *l = &t->line[i];

	if (l->after >= 0 && !t->line[l->after].waited && !t->line[l->after].first)
		return cop_err_set(
			err, EINVAL, "%s: request %d follows one that nobody waits for", file, i);
	if (l->joined && (i == 0 || l->after != l[-1].after || l->think_ns != l[-1].think_ns))
		return cop_err_set(
			err, EINVAL, "%s: request %d does not leave with the one before", file, i);
	if (l->use && !cop_sim_trace_find(t, l->kind, l->path))
		return cop_err_set(
			err, EINVAL, "%s: request %d uses what nobody has asked for", file, i);
	return 0;
}

static int finish_trace(struct sim_trace *t, const char *file, struct cop_err *err)
{
	int rc = 0;

	if (!has_ended(t))
		return cop_err_set(err, EINVAL,
			"%s: not a trace of copper-sim, or cut off: its last line is no `end` (see scripts/sim/record.sh)",
			file);
	t->sorted = cop_sim_alloc((size_t)t->lines, sizeof(*t->sorted));
	for (int32_t i = 0; i < t->lines - 1; i++)
		if (!t->line[i].use)
			t->sorted[t->asked++] = &t->line[i];
	qsort(t->sorted, (size_t)t->asked, sizeof(*t->sorted), compare_lines);
	for (int32_t i = 0; i < t->lines && !rc; i++)
		rc = check_line(t, i, file, err);
	link_lines(t);
	find_dirs(t);
	find_chunks(t);
	add_think(t);
	return rc;
}

void cop_sim_trace_answers(struct sim_trace *t)
{
	for (int32_t i = 0; i < t->lines - 1; i++)
		if (t->line[i].kind != COP_ASK_CHUNK && !t->line[i].use)
			t->line[i].blob = make_blob(t, &t->line[i]);
}

static void parse_comment(struct sim_trace *t, const char *line)
{
	uint64_t ops, bytes;

	if (sscanf(line, "# direct %" SCNu64 " %" SCNu64, &ops, &bytes) != 2)
		return;
	t->direct_ops = ops;
	t->direct_bytes = bytes;
}

/* A line of the first recording, or of the second after the end of the first. */
static int add_line(
	struct sim_trace trace[2], char *text, unsigned at, const char *file, struct cop_err *err)
{
	struct sim_trace *t = &trace[has_ended(&trace[0])];

	if (t->lines == LINES_MAX)
		return cop_err_set(err, EINVAL, "%s: more than %d requests", file, LINES_MAX);
	if (has_ended(t) || !parse_line(text, t->lines, &t->line[t->lines]))
		return cop_err_set(
			err, EINVAL, "%s: line %u is not a request of a trace", file, at);
	t->lines++;
	return 0;
}

static int parse_text(struct sim_trace trace[2], const char *file, struct cop_err *err)
{
	unsigned at = 0;
	int rc = 0;

	for (char *line = trace->text, *next; line && *line && !rc; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		at++;
		if (*line == '#')
			parse_comment(trace, line);
		else
			rc = add_line(trace, line, at, file, err);
	}
	return rc;
}

static char *read_file(const char *file, struct cop_err *err)
{
	struct cop_buf text = {0};
	char block[65536];
	FILE *f = fopen(file, "re");
	size_t n;

	if (!f) {
		cop_err_set(err, errno, "cannot read %s: %s", file, strerror(errno));
		return NULL;
	}
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		cop_buf_add(&text, block, n);
	if (ferror(f) || text.failed) {
		cop_err_set(err, EIO, "cannot read %s: %s", file, strerror(errno));
		cop_buf_free(&text);
		fclose(f);
		return NULL;
	}
	fclose(f);
	cop_buf_add(&text, "", 1);
	return text.data;
}

int cop_sim_trace_read(const char *file, struct sim_trace trace[2], struct cop_err *err)
{
	size_t lines = 1;
	int rc;

	memset(trace, 0, 2 * sizeof(*trace));
	trace->text = read_file(file, err);
	if (!trace->text)
		return -EIO;
	for (const char *c = trace->text; *c; c++)
		lines += *c == '\n';
	for (int i = 0; i < 2; i++)
		trace[i].line = cop_sim_alloc(
			COP_MIN(lines, (size_t)LINES_MAX) + 1, sizeof(*trace[i].line));
	rc = parse_text(trace, file, err);
	for (int i = 0; i < 2 && !rc; i++)
		if (i == 0 || trace[i].lines)
			rc = finish_trace(&trace[i], file, err);
	trace[1].direct_ops = trace[0].direct_ops;
	trace[1].direct_bytes = trace[0].direct_bytes;
	if (rc)
		cop_sim_trace_free(trace);
	return rc;
}

void cop_sim_trace_free(struct sim_trace trace[2])
{
	free(trace->text);
	for (int i = 0; i < 2; i++) {
		free(trace[i].chunk);
		free(trace[i].sorted);
		free(trace[i].line);
	}
	memset(trace, 0, 2 * sizeof(*trace));
}
