/* SPDX-License-Identifier: BSD-3-Clause */
/* JOBDIR/logs/not_started.txt: one line with the rank of the node that most recently failed to
 * start, and the reason. */
#include <fcntl.h>
#include <sys/stat.h>

#include "job/dir/dir_priv.h"

#define NAME "%s/logs/not_started.txt"
#define LINE_SIZE 1024
/* Nodes of one start begin at slightly different times; a note that predates ours by more than this
 * is from another start. */
#define SAME_START_NS (1LL * 1000 * 1000 * 1000)

int64_t cop_job_file_time(const char *path)
{
	struct cop_dir at;
	struct stat st;
	int rc = cop_dir_of(path, &at);

	if (!rc)
		rc = fstatat(at.fd, at.name, &st, at.nofollow ? AT_SYMLINK_NOFOLLOW : 0);
	cop_dir_done(&at);
	return rc ? 0 : st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
}

int64_t cop_job_dir_time(const char *job_dir)
{
	int64_t now = 0;
	struct cop_dir at;
	struct stat st;
	char *path, *tmp = NULL;
	int fd;

	if (asprintf(&path, NAME, job_dir) < 0)
		return 0;
	fd = cop_dir_of(path, &at) ? -1 : cop_open_temp(&at, &tmp);
	if (fd >= 0) {
		if (fstat(fd, &st) == 0)
			now = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
		close(fd);
		unlinkat(at.fd, tmp, 0);
	}
	free(tmp);
	cop_dir_done(&at);
	free(path);
	return now;
}

void cop_job_failure_write(const char *job_dir, uint32_t rank, const char *text)
{
	struct cop_buf line = {0};
	struct cop_err ignored;
	char *path;

	if (cop_job_dir_make(job_dir, &ignored) || asprintf(&path, NAME, job_dir) < 0)
		return;
	cop_buf_printf(&line, "%" PRIu32 " %s\n", rank, text);
	if (line.data && !line.failed)
		cop_write_file(path, line.data, line.len, 0600);
	cop_buf_free(&line);
	free(path);
}

/* Others may be able to write to the job directory, so another user's file is ignored. */
static ssize_t read_own(const char *path, char line[LINE_SIZE], int64_t *when)
{
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, path, &size);
	struct stat st = {0};
	ssize_t n = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid())
		n = cop_read_full(fd, line, LINE_SIZE - 1);
	*when = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	close(fd);
	return n;
}

/* Turns the text into one line without control characters. */
static void make_plain(char line[LINE_SIZE], size_t len)
{
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
}

/* Parses "RANK TEXT". */
static bool parse_note(char *line, size_t len, uint32_t *rank, char *text, size_t size)
{
	unsigned long value;
	char *end;

	make_plain(line, len);
	if (*line < '0' || *line > '9')
		return false;
	value = strtoul(line, &end, 10);
	if (*end != ' ' || value > UINT32_MAX)
		return false;
	*rank = (uint32_t)value;
	snprintf(text, size, "%s", end + 1);
	return true;
}

bool cop_job_failure_read(
	const char *job_dir, int64_t began_ns, uint32_t *rank, char *text, size_t size)
{
	char line[LINE_SIZE], *path;
	int64_t when = 0;
	ssize_t n;

	if (asprintf(&path, NAME, job_dir) < 0)
		return false;
	n = read_own(path, line, &when);
	free(path);
	return n > 0 && when >= began_ns - SAME_START_NS &&
	       parse_note(line, (size_t)n, rank, text, size);
}

static bool is_word_of(const char *path, int64_t rank)
{
	char line[LINE_SIZE], text[LINE_SIZE];
	int64_t when;
	uint32_t whose;
	ssize_t n = read_own(path, line, &when);

	return n > 0 && parse_note(line, (size_t)n, &whose, text, sizeof(text)) && whose == rank;
}

/* Both names are in the same folder. */
static void link_back(const char *from, const char *to)
{
	struct cop_dir at;

	if (cop_dir_of(to, &at) == 0)
		(void)!linkat(at.fd, at.fd >= 0 ? strrchr(from, '/') + 1 : from, at.fd, at.name, 0);
	cop_dir_done(&at);
}

/* Another node may replace the note after we read it and before we remove it, so we move it aside
 * and read it again there. */
static void remove_note(const char *path, int64_t rank)
{
	char *aside;

	if (asprintf(&aside, "%s.%" PRId64 ".%d", path, rank, (int)getpid()) < 0)
		return;
	if (is_word_of(path, rank) && cop_rename(path, aside) == 0) {
		/* A newer note wins. */
		if (!is_word_of(aside, rank))
			link_back(aside, path);
		cop_unlink(aside);
	}
	free(aside);
}

void cop_job_failure_clear(const char *job_dir, int64_t rank)
{
	char *path;

	if (asprintf(&path, NAME, job_dir) < 0)
		return;
	if (rank < 0)
		cop_unlink(path);
	else
		remove_note(path, rank);
	free(path);
}
