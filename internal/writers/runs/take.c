/* SPDX-License-Identifier: BSD-3-Clause */
/* Imports program logs into the store: all files of one directory, in one transaction. Reading
 * continues where the last import stopped, so a job's rank 0 reads every line once. */
#include "base/base/grow.h"
#include "writers/runs/store_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "job/dir/dir.h"
#include "writers/runs/line_priv.h"
#include "writers/runs/take_priv.h"

#define SUFFIX ".log"
#define CHUNK (256 * COP_KIB)
/* The rest is read in the next round. */
#define FILE_PER_ROUND (256 * COP_MIB)
#define NOTES_PER_FILE 3
/* A program that has been silent for this long is over, and its file is not read again. */
#define STALE_S (7 * 86400.0)

struct log_file {
	char *name;
	uint64_t taken, lines; /* already in the store */
	bool grown;            /* since the last scan */
	uint64_t next, next_lines;
	unsigned damaged;
	char id[COP_RUNREC_ID_LEN + 1]; /* from its first line; "": unknown so far */
	double written_s;               /* time of the last write */
	bool foreign, ended;
};

struct cop_take {
	bool quick;          /* see cop_take_quickly */
	struct log_file *at; /* sorted by name */
	size_t n;
	char failed[COP_RUNREC_VALUE_MAX + 64]; /* why a program reported failure */
};

/* One call of cop_take_logs. */
struct round {
	struct cop_take *take;
	const char *dir, *job; /* job: the run to import; NULL: each file names its own */
	struct rows rows;
	uint64_t deadline_ms;
	bool late;      /* the deadline has passed; the next round imports the rest */
	double began_s; /* start of the job, by its directory's clock; 0: unknown */
	struct cop_buf *notes;
};

struct cop_take *cop_take_new(void)
{
	return calloc(1, sizeof(struct cop_take));
}

void cop_take_quickly(struct cop_take *t, bool quick)
{
	t->quick = quick;
}

void cop_take_free(struct cop_take *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		free(t->at[i].name);
	if (t)
		free(t->at);
	free(t);
}

/* ---- one line ---- */

/* A file without a run belongs to the job, unless it is older than the job. */
static bool is_of_job(const struct round *r, const struct log_file *f, const char *id)
{
	return *id == '-' ? f->written_s > r->began_s : strcmp(id, r->job) == 0;
}

static void take_head(struct round *r, struct log_file *f, const struct logline *l)
{
	const char *id = r->job && *l->key == '-' ? r->job : l->key;

	f->foreign = r->job ? !is_of_job(r, f, l->key) : *id == '-';
	snprintf(f->id, sizeof(f->id), "%s", f->foreign ? "" : id);
	if (!f->foreign && !r->job)
		cop_rows_time(&r->rows, ROWS_RUN, f->id, l->time_s);
}

static void take_status(struct round *r, struct log_file *f, const struct logline *l)
{
	f->ended = l->status != COP_RUNREC_RUNNING;
	if (!r->job)
		cop_rows_status(&r->rows, f->id, l->status, l->value, l->time_s);
	else if (l->status == COP_RUNREC_FAILED && !*r->take->failed)
		snprintf(r->take->failed, sizeof(r->take->failed), "the program failed%s%s",
			*l->value ? ": " : "", l->value);
}

static void take_line(struct round *r, struct log_file *f, const struct logline *l)
{
	f->ended = false;
	switch (l->kind) {
	case LOGLINE_HEAD:
		take_head(r, f, l);
		break;
	case LOGLINE_NAME:
		cop_rows_text(&r->rows, ROWS_NAME, f->id, l->value);
		break;
	case LOGLINE_PAIR:
		cop_rows_pair(&r->rows, f->id, l->list, l->key, l->value);
		break;
	case LOGLINE_POINT:
		cop_rows_point(&r->rows, f->id, l->key, l->step, l->time_s, l->number);
		break;
	case LOGLINE_STATUS:
		take_status(r, f, l);
		break;
	}
}

static void note(struct round *r, const struct log_file *f, const char *what)
{
	if (r->notes)
		cop_buf_printf(r->notes, "%s/%s: line %llu %s\n", r->dir, f->name,
			(unsigned long long)f->next_lines, what);
}

/* text has len bytes, followed by one more writable byte. */
static void read_line(struct round *r, struct log_file *f, char *text, size_t len)
{
	struct logline l;

	f->next_lines++;
	if (f->foreign)
		return;
	text[len] = '\0';
	if (cop_logline_parse(text, len, &l) || (l.kind != LOGLINE_HEAD && !*f->id)) {
		f->foreign = f->next_lines == 1;
		if (f->foreign)
			note(r, f,
				"is not the first one of what a program logs: the file is skipped");
		else if (f->damaged++ < NOTES_PER_FILE)
			note(r, f,
				f->damaged < NOTES_PER_FILE
					? "is damaged, and skipped"
					: "is damaged, and skipped like others after it");
	} else if (l.kind == LOGLINE_HEAD && l.form != LOG_FORM) {
		note(r, f, "is of another version of Copper: the file is skipped");
		f->foreign = true;
	} else {
		take_line(r, f, &l);
	}
}

/* ---- one file ---- */

/* Reads the complete lines of text, and returns their length in bytes. Each piece of an overlong
 * line counts as a damaged line. */
static size_t read_lines(struct round *r, struct log_file *f, char *text, size_t len)
{
	size_t done = 0;

	while (done < len) {
		char *end = memchr(text + done, '\n', len - done);
		size_t n = end ? (size_t)(end - text) - done : len - done;

		if (!end && n < LOG_LINE_MAX)
			break;
		read_line(r, f, text + done, n);
		done += n + (end != NULL);
	}
	return done;
}

static void read_file(struct round *r, struct log_file *f, int fd)
{
	char *text = malloc(CHUNK + 1);
	uint64_t most = f->next + FILE_PER_ROUND;
	size_t done = 1;

	r->rows.code = text ? r->rows.code : SQLITE_NOMEM;
	while (!r->rows.code && done && f->next < most) {
		ssize_t n = pread(fd, text, CHUNK, (off_t)f->next);

		done = n > 0 ? read_lines(r, f, text, (size_t)n) : 0;
		f->next += done;
	}
	free(text);
}

static bool is_over(const struct log_file *f, const struct stat *st)
{
	return f->ended || (*f->id && (double)cop_wall_ns() / 1e9 - (double)st->st_mtime > STALE_S);
}

/* Opening a file refreshes the size that a network file system has cached. */
static int open_log(int dir, const struct log_file *f)
{
	return openat(dir, f->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static void take_file(struct round *r, int dir, struct log_file *f)
{
	int fd = open_log(dir, f);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		f->written_s = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
		read_file(r, f, fd);
		if (!r->job && *f->id)
			cop_rows_time(&r->rows, ROWS_SEEN, f->id, (double)st.st_mtime);
		f->ended = is_over(f, &st);
	}
	close(fd);
}

/* ---- the directory ---- */

static struct log_file *file_of(struct cop_take *t, const char *name)
{
	size_t low = 0, high = t->n;
	char *copy;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, t->at[middle].name);

		if (order == 0)
			return &t->at[middle];
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	copy = strdup(name);
	if (!copy || !COP_GROW_PLAIN(t->at, t->n)) {
		free(copy);
		return NULL;
	}
	memmove(t->at + low + 1, t->at + low, (t->n - low) * sizeof(*t->at));
	t->at[low] = (struct log_file){.name = copy};
	t->n++;
	return &t->at[low];
}

static bool is_log(const char *name)
{
	size_t len = strlen(name), end = strlen(SUFFIX);

	return *name != '.' && len > end && strcmp(name + len - end, SUFFIX) == 0;
}

static bool has_more(int dir, const struct log_file *f, bool quick)
{
	int fd = quick ? -1 : open_log(dir, f);
	struct stat st;
	bool more;

	if (fd < 0 && (!quick || fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW)))
		return false;
	more = (quick || !fstat(fd, &st)) && S_ISREG(st.st_mode) && (uint64_t)st.st_size > f->taken;
	if (fd >= 0)
		close(fd);
	return more;
}

static bool is_late(struct round *r)
{
	r->late |= cop_now_ms() >= r->deadline_ms;
	return r->late;
}

/* Scans the directory, marks files that have grown, and returns whether any has. */
static bool look(struct round *r, int dir)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *e;
	bool more = false;

	if (d)
		rewinddir(d);
	while (d && !is_late(r) && (e = readdir(d))) {
		struct log_file *f = is_log(e->d_name) ? file_of(r->take, e->d_name) : NULL;

		if (f)
			f->grown = !f->foreign && has_more(dir, f, r->take->quick);
		more |= f && f->grown;
	}
	if (d)
		closedir(d);
	return more;
}

/* ---- the transactions ---- */

static void take_files(struct round *r, int dir)
{
	for (size_t i = 0; i < r->take->n; i++) {
		struct log_file *f = &r->take->at[i];

		f->next = f->taken;
		f->next_lines = f->lines;
		/* Without a job, also record when a program last wrote. */
		if (!f->foreign && (f->grown || !r->job) && !r->rows.code && !is_late(r))
			take_file(r, dir, f);
	}
	if (r->job && *r->take->failed)
		cop_rows_text(&r->rows, ROWS_JOB_FAILED, r->job, r->take->failed);
}

/* Removes the files of finished programs, but keeps a job's. First reads lines appended in the
 * meantime; a program that appends later detects the removal and logs everything again. */
static void remove_files(struct round *r, int dir)
{
	for (size_t i = 0; i < r->take->n && !r->rows.code; i++) {
		struct log_file *f = &r->take->at[i];
		int fd = !f->ended || f->foreign ? -1 : open_log(dir, f);

		if (fd >= 0 && !unlinkat(dir, f->name, 0))
			read_file(r, f, fd);
		if (fd >= 0)
			close(fd);
		f->ended &= fd < 0;
	}
}

/* When the job started, by the modification time of the file that it created. Earlier logs in the
 * directory do not belong to it. */
static double began_at(int dir)
{
	struct stat st;

	return fstatat(dir, "../" COP_JOB_ENVIRONMENT, &st, 0)
		       ? 0
		       : (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
}

bool cop_take_has_logs(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool any = false;

	while (d && !any && (e = readdir(d)))
		any = is_log(e->d_name);
	if (d)
		closedir(d);
	return any;
}

static bool any_ended(const struct cop_take *t)
{
	bool any = false;

	for (size_t i = 0; i < t->n; i++)
		any |= t->at[i].ended && !t->at[i].foreign;
	return any;
}

struct work {
	struct round *r;
	int dir;
	const char *store;
	void (*put)(struct round *r, int dir);
};

static int put_rows(void *arg, sqlite3 *db, struct cop_err *err)
{
	struct work *w = arg;
	int code;

	cop_rows_open(&w->r->rows, db);
	w->put(w->r, w->dir);
	code = cop_rows_close(&w->r->rows);
	return code ? cop_store_fail(db, w->store, code, err) : 0;
}

static int in_transaction(struct round *r, int dir, sqlite3 *db, const char *store,
	void (*put)(struct round *r, int dir), struct cop_err *err)
{
	int rc =
		cop_store_db_transact(db, store, put_rows, &(struct work){r, dir, store, put}, err);

	for (size_t i = 0; i < r->take->n && !rc; i++) {
		r->take->at[i].taken = r->take->at[i].next;
		r->take->at[i].lines = r->take->at[i].next_lines;
	}
	return rc;
}

static int take_all(struct round *r, int dir, const char *store, struct cop_err *err)
{
	sqlite3 *db = NULL;
	int rc = cop_store_db_change(store, r->deadline_ms, &db, err);

	if (!rc)
		rc = in_transaction(r, dir, db, store, take_files, err);
	if (!rc && !r->job && any_ended(r->take))
		rc = in_transaction(r, dir, db, store, remove_files, err);
	sqlite3_close(db);
	return rc;
}

int cop_take_logs(struct cop_take *t, const char *dir, const char *job, const char *store,
	uint64_t deadline_ms, struct cop_buf *notes, struct cop_err *err)
{
	struct round r = {
		.take = t, .dir = dir, .job = job, .deadline_ms = deadline_ms, .notes = notes};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno == ENOENT ? 0
				       : cop_err_set(err, errno, "%s: %s", dir, strerror(errno));
	r.began_s = job ? began_at(fd) : 0;
	if (look(&r, fd))
		rc = take_all(&r, fd, store, err);
	close(fd);
	if (!rc && r.late)
		rc = cop_err_set(err, ETIMEDOUT,
			"%s: not all files were taken into the store in time; the next copper runs takes the rest",
			dir);
	return rc;
}

int cop_take_into(sqlite3 *db, const char *dir, struct cop_err *err)
{
	struct cop_take *t = cop_take_new();
	struct round r = {.take = t, .dir = dir, .deadline_ms = UINT64_MAX};
	int fd = t ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, rc = 0;

	if (fd >= 0 && look(&r, fd))
		rc = in_transaction(&r, fd, db, dir, take_files, err);
	if (fd >= 0)
		close(fd);
	cop_take_free(t);
	return rc;
}
