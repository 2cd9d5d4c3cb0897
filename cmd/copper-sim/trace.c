/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what scripts/sim/record.sh wrote (scripts/sim/reduce.py describes the format), and makes
 * the answers: a listing is its header, an entry its attributes, both followed by zeros up to the
 * length that was recorded. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim.h"
#include "wire/wire.h"

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

/* Cuts the line at its blanks; the last field may contain some. */
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

static bool parse_kind(const char *word, struct sim_line *l)
{
	if (!strcmp(word, "end"))
		return true;
	for (unsigned i = 1; i < COP_ARRAY_SIZE(kinds); i++)
		if (kinds[i] && !strcmp(word, kinds[i]))
			l->kind = (enum cop_ask_kind)i;
	return l->kind != 0;
}

static bool parse_line(char *text, int32_t at, struct sim_line *l)
{
	uint64_t after, think, waited, calls, ret;
	char *f[FIELDS];
	bool first;

	*l = (struct sim_line){.dir = -1, .first = -1, .next = -1};
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

/* ---- what follows from all lines ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct sim_line *x = *(struct sim_line *const *)a, *y = *(struct sim_line *const *)b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->path, y->path);
}

const struct sim_line *cop_sim_trace_find(
	const struct sim_trace *t, enum cop_ask_kind kind, const char *path)
{
	struct sim_line key = {.kind = kind, .path = path}, *at = &key, **found;

	found = bsearch(&at, t->sorted, (size_t)t->lines - 1, sizeof(*t->sorted), compare_lines);
	return found ? *found : NULL;
}

/* An entry that is longer than the attributes has a link's target. */
static int make_entry(const struct sim_line *l, void **blob, size_t *len)
{
	struct cop_attr attr = {.version = SIM_VERSION, .mode = S_IFDIR | 0755};
	char target[4096];
	int rc = cop_entry_build(&attr, NULL, 0, blob, len);

	if (rc || l->bytes <= *len || l->bytes - *len >= sizeof(target))
		return rc;
	attr.mode = S_IFLNK | 0777;
	memset(target, 'x', sizeof(target));
	free(*blob);
	return cop_entry_build(&attr, target, l->bytes - *len, blob, len);
}

/* The name that a path has in this directory; NULL if it is not in it. */
static const char *name_in(const char *dir, const char *path)
{
	size_t len = strlen(dir);
	const char *name = len ? path + len + 1 : path;

	if (len && (strncmp(path, dir, len) != 0 || path[len] != '/'))
		return NULL;
	return *path && *name && !strchr(name, '/') ? name : NULL;
}

static bool has_directories(const struct sim_trace *t, const char *path)
{
	for (int32_t i = 0; i < t->lines - 1 && t->sorted[i]->kind == COP_ASK_LISTING; i++)
		if (!t->sorted[i]->ret && name_in(path, t->sorted[i]->path))
			return true;
	return false;
}

static bool is_small(const struct sim_trace *t, const char *path)
{
	for (size_t i = 0; i < t->smalls; i++)
		if (!strcmp(t->small[i].path, path))
			return true;
	return false;
}

/* An entry that is longer than the attributes has a link's target. */
static bool is_link(const struct sim_line *l)
{
	struct cop_attr attr = {.version = SIM_VERSION, .mode = S_IFDIR | 0755};
	size_t len = 0;
	void *blob = NULL;

	if (cop_entry_build(&attr, NULL, 0, &blob, &len))
		return false;
	free(blob);
	return l->bytes > len;
}

/* Names that a program asks for one by one have no attributes in the listing. */
static void add_asked(
	const struct sim_trace *t, const struct sim_line *l, struct cop_listing_builder *b)
{
	for (int32_t i = 0; i < t->lines - 1 && t->sorted[i]->kind <= COP_ASK_ENTRY; i++) {
		const struct sim_line *e = t->sorted[i];
		struct cop_attr dir = {.version = SIM_VERSION,
			.mode = S_IFDIR | 0755,
			.nlink = 2,
			.ino = 500000 + (uint64_t)i};
		const char *name = name_in(l->path, e->path);

		if (!name || e->ret || (i && !compare_lines(&t->sorted[i - 1], &t->sorted[i])))
			continue;
		dir.nlink += has_directories(t, e->path);
		if (e->kind == COP_ASK_LISTING)
			cop_listing_add(b, name, strlen(name), DT_DIR, &dir, NULL, 0);
		else if (e->kind == COP_ASK_ENTRY &&
			 !cop_sim_trace_find(t, COP_ASK_LISTING, e->path) && !is_small(t, e->path))
			cop_listing_add_bare(
				b, name, strlen(name), is_link(e) ? DT_LNK : DT_REG, 1);
	}
}

/* A listing gets only those names that the trace mentions. */
static int make_listing(
	const struct sim_trace *t, const struct sim_line *l, void **blob, size_t *len)
{
	struct cop_attr dir = {.version = SIM_VERSION, .mode = S_IFDIR | 0755};
	struct cop_listing_builder b = {0};
	size_t dir_len = strlen(l->path);

	for (size_t i = 0; i < t->smalls; i++) {
		const struct sim_small *s = &t->small[i];
		const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
		struct cop_attr attr = {.version = SIM_VERSION,
			.mode = S_IFREG | (uint32_t)s->mode,
			.uid = (uint32_t)s->uid,
			.gid = (uint32_t)s->gid,
			.size = s->size,
			.blocks = 8,
			.nlink = 1,
			.ino = 1000 + i};

		if ((size_t)(name - s->path) == dir_len + (slash != NULL) &&
			!memcmp(s->path, l->path, dir_len))
			cop_listing_add(&b, name, strlen(name), DT_REG, &attr, NULL, 0);
	}
	add_asked(t, l, &b);
	return cop_listing_build(&b, &dir, COP_LISTING_COMPLETE, blob, len);
}

static void *make_blob(const struct sim_trace *t, const struct sim_line *l)
{
	void *blob = NULL, *shared;
	size_t len = 0;

	if (l->kind == COP_ASK_LISTING || l->kind == COP_ASK_NAMES)
		make_listing(t, l, &blob, &len);
	else if (l->kind == COP_ASK_ENTRY)
		make_entry(l, &blob, &len);
	shared = cop_sim_memory_blob(COP_MAX(len, l->bytes));
	if (shared && blob)
		memcpy(shared, blob, len);
	free(blob);
	return shared;
}

/* Links each line to the lines that follow it, in their order. */
static void link_lines(struct sim_trace *t)
{
	t->first = -1;
	for (int32_t i = t->lines - 1; i >= 0; i--) {
		struct sim_line *l = &t->line[i];
		int32_t *head = l->after < 0 ? &t->first : &t->line[l->after].first;

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

static int check_trace(const struct sim_trace *t, const char *file, struct cop_err *err)
{
	if (!t->lines || t->line[t->lines - 1].kind)
		return cop_err_set(err, EINVAL,
			"%s: not a trace of copper-sim, or cut off: its last line is no `end` (see scripts/sim/record.sh)",
			file);
	for (int32_t i = 0; i < t->lines; i++) {
		const struct sim_line *l = &t->line[i];

		if ((!l->kind && i < t->lines - 1) || (l->after >= 0 && !t->line[l->after].waited))
			return cop_err_set(err, EINVAL,
				"%s: request %d follows one that nobody waits for", file, i);
	}
	return 0;
}

/* A chain of answers leads to the end; its pauses are the program's own work. */
static void add_think(struct sim_trace *t)
{
	for (int32_t i = t->lines - 1; i >= 0; i = t->line[i].after)
		t->think_ns += t->line[i].think_ns;
}

static void finish_trace(struct sim_trace *t)
{
	t->sorted = cop_sim_alloc((size_t)t->lines, sizeof(*t->sorted));
	for (int32_t i = 0; i < t->lines - 1; i++)
		t->sorted[i] = &t->line[i];
	qsort(t->sorted, (size_t)t->lines - 1, sizeof(*t->sorted), compare_lines);
	link_lines(t);
	find_dirs(t);
	add_think(t);
}

void cop_sim_trace_answers(struct sim_trace *t)
{
	for (int32_t i = 0; i < t->lines - 1; i++)
		if (t->line[i].kind != COP_ASK_CHUNK)
			t->line[i].blob = make_blob(t, &t->line[i]);
}

static void parse_comment(struct sim_trace *t, const char *line)
{
	struct sim_small *s = &t->small[t->smalls];
	int path = 0;

	if (sscanf(line, "# direct %" SCNu64 " %" SCNu64, &t->direct_ops, &t->direct_bytes) == 2)
		return;
	if (sscanf(line, "# small %" SCNo64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &s->mode,
		    &s->uid, &s->gid, &s->size, &path) == 4 &&
		line[path] && strlen(line + path) < 4096) {
		s->path = line + path;
		t->smalls++;
	}
}

static int parse_trace(struct sim_trace *t, const char *file, struct cop_err *err)
{
	unsigned at = 0;

	for (char *line = t->text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		at++;
		if (*line == '#')
			parse_comment(t, line);
		else if (t->lines == LINES_MAX)
			return cop_err_set(
				err, EINVAL, "%s: more than %d requests", file, LINES_MAX);
		else if (!parse_line(line, t->lines, &t->line[t->lines]))
			return cop_err_set(
				err, EINVAL, "%s: line %u is not a request of a trace", file, at);
		else
			t->lines++;
	}
	return check_trace(t, file, err);
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

int cop_sim_trace_read(const char *file, struct sim_trace *t, struct cop_err *err)
{
	size_t lines = 1;
	int rc;

	*t = (struct sim_trace){.text = read_file(file, err)};
	if (!t->text)
		return -EIO;
	for (const char *c = t->text; *c; c++)
		lines += *c == '\n';
	t->line = cop_sim_alloc(COP_MIN(lines, (size_t)LINES_MAX) + 1, sizeof(*t->line));
	t->small = cop_sim_alloc(lines + 1, sizeof(*t->small));
	rc = parse_trace(t, file, err);
	if (rc)
		cop_sim_trace_free(t);
	else
		finish_trace(t);
	return rc;
}

void cop_sim_trace_free(struct sim_trace *t)
{
	free(t->sorted);
	free(t->small);
	free(t->line);
	free(t->text);
	*t = (struct sim_trace){0};
}
