/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a storage, using files and directories of a recording. The kernel's caches must not
 * distort the result: attributes are read with AT_STATX_FORCE_SYNC, which network file systems and
 * FUSE honour, small reads bypass the page cache where the storage allows it, and pages are dropped
 * before large reads. Each measurement takes its share of two seconds, and at least three
 * samples. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "report/predict/predict_priv.h"

#define SHARE_NS (300 * COP_NS_PER_MS)
#define SAMPLES_LEAST 3u
#define SAMPLES_MOST 1000u
#define READERS 16u
/* Only files of at least 1/LARGE_PART of the largest one's size are streamed. */
#define LARGE_PART 8
#define SMALL 4096
#define LARGE (512 * COP_KIB)
#define PIECE (2 * COP_MIB)
/* Faster operations are limited by the processors, not the storage. */
#define STORAGE_OP_US 50.0
/* For larger directories, Copper reads only the names. */
#define LISTING_ATTRS 64u

struct probe {
	int fd[PREDICT_PATHS];
	const char *path[PREDICT_PATHS];
	uint64_t size[PREDICT_PATHS];
	unsigned files, large; /* large: number of leading files that are worth streaming */
	uint64_t pieces;       /* pieces of the large files */
	int root;
	bool alone; /* only one thread streams */
	const struct cop_predict_needs *needs;
	uint64_t end_ns;
	_Atomic uint64_t turn, done, bytes; /* shared by the threads */
};

static uint64_t pieces_of(uint64_t size)
{
	return (size + PIECE - 1) / PIECE;
}

/* ---- one client ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median time of do_one in us; -1 on failure. */
static double median_us(struct probe *p, bool (*do_one)(struct probe *p, uint64_t i))
{
	double *us = calloc(SAMPLES_MOST, sizeof(*us)), median;
	uint64_t end = cop_now_ns() + SHARE_NS, began;
	unsigned n = 0;

	for (; us && n < SAMPLES_MOST && (n < SAMPLES_LEAST || cop_now_ns() < end); n++) {
		began = cop_now_ns();
		if (!do_one(p, n))
			break;
		us[n] = (double)(cop_now_ns() - began) / 1e3;
	}
	if (n)
		qsort(us, n, sizeof(*us), by_value);
	median = n ? us[n / 2] : -1;
	free(us);
	return median;
}

static bool ask_attributes(struct probe *p, uint64_t i)
{
	struct statx st;

	return statx(p->fd[i % p->files], "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
		       STATX_BASIC_STATS, &st) == 0;
}

/* Bypasses the page cache if the storage allows it; otherwise drops the pages first. */
static bool read_small(struct probe *p, uint64_t i)
{
	unsigned at = (unsigned)(i % p->files);
	uint64_t blocks = p->size[at] / SMALL, block = cop_hash64(&i, sizeof(i), 0);
	off_t offset = (off_t)(blocks ? block % blocks * SMALL : 0);
	int flags = fcntl(p->fd[at], F_GETFL);
	_Alignas(SMALL) char data[SMALL];
	ssize_t n = -1;

	if (fcntl(p->fd[at], F_SETFL, flags | O_DIRECT) == 0)
		n = pread(p->fd[at], data, sizeof(data), offset);
	fcntl(p->fd[at], F_SETFL, flags);
	if (n >= 0)
		return true;
	posix_fadvise(p->fd[at], offset, SMALL, POSIX_FADV_DONTNEED);
	return pread(p->fd[at], data, sizeof(data), offset) >= 0;
}

/* ---- several threads ---- */

/* Maps a piece number to its file and piece; pieces are numbered across all large files in
 * order. */
static unsigned file_of_piece(const struct probe *p, uint64_t piece, off_t *offset)
{
	unsigned at = 0;

	for (; at + 1 < p->large && piece >= pieces_of(p->size[at]); at++)
		piece -= pieces_of(p->size[at]);
	*offset = (off_t)(piece * PIECE);
	return at;
}

static ssize_t read_piece(struct probe *p, int fd, off_t offset, char *data)
{
	ssize_t n = 1;

	off_t began = offset;

	/* With several readers, each drops the pages of its piece first; a single reader keeps its
	 * read-ahead. */
	if (!p->alone)
		posix_fadvise(fd, began, PIECE, POSIX_FADV_DONTNEED);
	for (off_t end = offset + (off_t)PIECE; n > 0 && offset < end; offset += n) {
		n = cop_now_ns() < p->end_ns ? pread(fd, data, LARGE, offset) : 0;
		if (n > 0)
			atomic_fetch_add(&p->bytes, (uint64_t)n);
	}
	/* So that the next pass over the files reads from the storage. */
	if (p->alone)
		posix_fadvise(fd, began, PIECE, POSIX_FADV_DONTNEED);
	return n;
}

/* Reads like cp, with twice the default read-ahead, until time is up. No two threads read the same
 * piece or share an open file, because that would disturb read-ahead. */
static void *read_files(void *arg)
{
	struct probe *p = arg;
	char *data = malloc(LARGE);
	unsigned file = PREDICT_PATHS;
	off_t offset;
	int fd = -1;

	while (data && cop_now_ns() < p->end_ns) {
		uint64_t piece = atomic_fetch_add(&p->turn, 1) % p->pieces;
		unsigned at = file_of_piece(p, piece, &offset);

		if (at != file) {
			if (fd >= 0)
				close(fd);
			fd = openat(p->root, p->path[at], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
			file = at;
		}
		if (fd < 0 || read_piece(p, fd, offset, data) < 0)
			break;
	}
	if (fd >= 0)
		close(fd);
	free(data);
	return NULL;
}

static void *ask_on(void *arg)
{
	struct probe *p = arg;

	while (cop_now_ns() < p->end_ns && ask_attributes(p, atomic_fetch_add(&p->turn, 1)))
		atomic_fetch_add(&p->done, 1);
	return NULL;
}

/* Returns the total time in seconds, or 0 if no thread could be started. */
static double run_threads(struct probe *p, unsigned threads, void *(*run)(void *))
{
	pthread_t thread[COP_PREDICT_SLOTS_MAX];
	uint64_t began = cop_now_ns();
	unsigned started = 0;

	p->turn = p->done = p->bytes = 0;
	p->end_ns = began + SHARE_NS;
	while (started < threads && pthread_create(&thread[started], NULL, run, p) == 0)
		started++;
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	return started ? (double)(cop_now_ns() - began) / 1e9 : 0;
}

static double bandwidth(struct probe *p, unsigned threads)
{
	double took;

	for (unsigned i = 0; i < p->large; i++)
		posix_fadvise(p->fd[i], 0, 0, POSIX_FADV_DONTNEED);
	p->alone = threads == 1;
	took = run_threads(p, threads, read_files);
	return took > 0 && p->bytes ? (double)p->bytes / 1e6 / took : -1;
}

/* Little's law: concurrency = rate * latency. */
static double measure_slots(struct probe *p, double metadata_us)
{
	double took, slots;

	if (metadata_us < STORAGE_OP_US)
		return 0;
	took = run_threads(p, COP_PREDICT_SLOTS_MAX, ask_on);
	slots = took > 0 ? (double)p->done / took * metadata_us / 1e6 : 0;
	return slots > 0.8 * COP_PREDICT_SLOTS_MAX ? 0 : COP_MAX(slots, 1.0);
}

/* ---- directories ---- */

static void *count_children(void *arg)
{
	struct probe *p = arg;
	uint64_t i;

	while ((i = atomic_fetch_add(&p->turn, 1)) < p->needs->folders) {
		const char *path = p->needs->folder[i];
		int fd = openat(p->root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);
		uint64_t names = 0;

		/* the count includes . and .. */
		while (d && readdir(d))
			names++;
		if (d)
			closedir(d);
		else if (fd >= 0)
			close(fd);
		atomic_fetch_add(
			&p->bytes, names > 2 && names - 2 <= LISTING_ATTRS ? names - 2 : 0);
		atomic_fetch_add(&p->done, d != NULL);
	}
	return NULL;
}

static double measure_children(struct probe *p)
{
	run_threads(p, READERS, count_children);
	return p->done ? (double)p->bytes / (double)p->done : 0;
}

/* ---- a pack ---- */

double cop_predict_measure_pack(const char *source, const char *pack)
{
	int fd = open(pack, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t began = cop_now_ns(), bytes = 0;
	char *data = malloc(PIECE);
	struct stat at, of;
	ssize_t n = 1;

	if (fd < 0 || !data || fstat(fd, &of) || !S_ISREG(of.st_mode) || stat(source, &at) ||
		at.st_dev == of.st_dev)
		n = 0;
	if (n)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (n > 0 && cop_now_ns() < began + SHARE_NS) {
		n = pread(fd, data, PIECE, (off_t)bytes);
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	free(data);
	return (double)bytes * 1e3 / (double)(cop_now_ns() - began);
}

/* ---- all ---- */

static int open_probe(const char *source, struct probe *p, struct cop_err *err)
{
	const struct cop_predict_needs *n = p->needs;
	struct stat st;

	p->root = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->root < 0)
		return cop_err_set(
			err, errno, "cannot read the source %s: %s", source, strerror(errno));
	for (unsigned i = 0; i < n->paths; i++) {
		int fd = openat(p->root, n->path[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size) {
			p->size[p->files] = (uint64_t)st.st_size;
			p->path[p->files] = n->path[i];
			p->fd[p->files++] = fd;
		} else if (fd >= 0) {
			close(fd);
		}
	}
	while (p->large < p->files && p->size[p->large] >= p->size[0] / LARGE_PART)
		p->pieces += pieces_of(p->size[p->large++]);
	return p->files
		       ? 0
		       : cop_err_set(err, ENOENT,
				 "none of the files that the recording names can be read below %s: give the --source that it was made for",
				 source);
}

static void close_probe(struct probe *p)
{
	for (unsigned i = 0; i < p->files; i++)
		close(p->fd[i]);
	if (p->root >= 0)
		close(p->root);
}

static void measure(struct probe *p, struct cop_predict_storage *s)
{
	uint64_t began = cop_now_ns();

	if (s->metadata_us < 0)
		s->metadata_us = median_us(p, ask_attributes);
	if (s->read_us < 0)
		s->read_us = median_us(p, read_small);
	if (s->stream_mb_per_s < 0)
		s->stream_mb_per_s = bandwidth(p, 1);
	if (s->mb_per_s < 0)
		s->mb_per_s = COP_MAX(bandwidth(p, READERS), s->stream_mb_per_s);
	if (s->slots < 0)
		s->slots = measure_slots(p, s->metadata_us);
	if (s->children < 0)
		s->children = measure_children(p);
	s->measured_s = (double)(cop_now_ns() - began) / 1e9;
}

static bool is_complete(const struct cop_predict_storage *s)
{
	return s->metadata_us >= 0 && s->read_us >= 0 && s->stream_mb_per_s > 0 &&
	       s->mb_per_s > 0 && s->slots >= 0 && s->children >= 0;
}

int cop_predict_measure(const char *source, const struct cop_predict_needs *n,
	struct cop_predict_storage *s, struct cop_err *err)
{
	struct probe p = {.needs = n, .root = -1};
	int rc;

	if (is_complete(s))
		return 0;
	if (!n->files)
		return cop_err_set(err, ENODATA,
			"the recording names no file by which the storage could be measured: give its figures with --set");
	rc = open_probe(source, &p, err);
	if (!rc)
		measure(&p, s);
	if (!rc && !is_complete(s))
		rc = cop_err_set(err, EIO,
			"the storage of %s could not be measured: its files cannot be read",
			source);
	close_probe(&p);
	return rc;
}

/* ---- given figures ---- */

int cop_predict_set(struct cop_predict_storage *s, const char *text, struct cop_err *err)
{
	const struct {
		const char *name;
		double *value, least, most;
	} figures[] = {{"metadata_us", &s->metadata_us, 0, 1e9}, {"read_us", &s->read_us, 0, 1e9},
		{"stream_mb_per_s", &s->stream_mb_per_s, 0.001, 1e9},
		{"mb_per_s", &s->mb_per_s, 0.001, 1e9}, {"slots", &s->slots, 0, 1e6},
		{"children", &s->children, 0, LISTING_ATTRS},
		{"pack_mb_per_s", &s->pack_mb_per_s, 0, 1e9}};
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(figures) && len; i++) {
		char *end;
		double value;

		if (strlen(figures[i].name) != len || memcmp(figures[i].name, text, len) != 0)
			continue;
		value = strtod(equals + 1, &end);
		if (end == equals + 1 || *end ||
			!(value >= figures[i].least && value <= figures[i].most))
			return cop_err_set(err, EINVAL,
				"--set %s: a number from %g to %.0f is needed", text,
				figures[i].least, figures[i].most);
		*figures[i].value = value;
		return 0;
	}
	return cop_err_set(err, EINVAL,
		"--set %s: the figures are metadata_us, read_us, stream_mb_per_s, mb_per_s, slots, children and pack_mb_per_s",
		text);
}
