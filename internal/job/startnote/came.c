/* SPDX-License-Identifier: BSD-3-Clause */
/* JOBDIR/logs/came.RANK: the host of a node that is waiting for rank 0. Only a node that has waited
 * for a while creates one, so a normal start leaves none. */
#include "job/dir/dir.h"
#include "job/startnote/startnote.h"

#include <dirent.h>
#include <fcntl.h>

#define HOST_MAX 256
#define NAMED 16 /* any more are only counted */

static void came_path(const char *dir, uint32_t rank, char out[4200])
{
	snprintf(out, 4200, "%.4000s/logs/came.%u", dir, rank);
}

void cop_startnote_come(const char *dir, uint32_t rank)
{
	char path[4200], host[HOST_MAX] = "";
	struct cop_err ignored;

	if (gethostname(host, sizeof(host) - 1) || cop_job_dir_make(dir, &ignored))
		return;
	came_path(dir, rank, path);
	cop_write_file(path, host, strlen(host), 0600);
}

/* Sorts by rank, ascending. */
static int by_rank(const struct dirent **a, const struct dirent **b)
{
	unsigned long x = strtoul((*a)->d_name + 5, NULL, 10);
	unsigned long y = strtoul((*b)->d_name + 5, NULL, 10);

	return x < y ? -1 : x > y;
}

static int is_came(const struct dirent *entry)
{
	return strncmp(entry->d_name, "came.", 5) == 0 && entry->d_name[5] >= '0' &&
	       entry->d_name[5] <= '9';
}

static void add_host(const char *dir, const char *name, struct cop_buf *out)
{
	char path[4400], *host = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%.4000s/logs/%.260s", dir, name);
	if (cop_read_file(path, HOST_MAX, &host, &len) || !len)
		snprintf(path, sizeof(path), "rank %.20s", name + 5);
	else
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(host, "\n"), host);
	cop_buf_printf(out, "%s%s", out->len ? ", " : "", path);
	free(host);
}

void cop_startnote_came(const char *dir, struct cop_buf *out)
{
	struct dirent **entry;
	char path[4200];
	int n;

	snprintf(path, sizeof(path), "%.4000s/logs", dir);
	n = scandir(path, &entry, is_came, by_rank);
	for (int i = 0; i < n; i++) {
		if (i < NAMED)
			add_host(dir, entry[i]->d_name, out);
		free(entry[i]);
	}
	if (n > NAMED)
		cop_buf_printf(out, " and %d more", n - NAMED);
	if (n >= 0)
		free(entry);
}

/* Rank 0 stores the secret of each tree that it is starting there. */
bool cop_startnote_is_elsewhere(const char *step_dir, const char *dir)
{
	const char *own = strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir;
	DIR *d = opendir(step_dir);
	struct dirent *entry;
	bool found = false;
	char path[4400];

	while (d && !found && (entry = readdir(d))) {
		snprintf(path, sizeof(path), "%.4000s/%.260s/secret", step_dir, entry->d_name);
		found = entry->d_name[0] != '.' && strcmp(entry->d_name, own) != 0 &&
			access(path, F_OK) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

void cop_startnote_uncome(const char *dir, int64_t rank)
{
	char path[4400];
	struct dirent *entry;
	DIR *d;

	if (rank >= 0) {
		came_path(dir, (uint32_t)rank, path);
		unlink(path);
		return;
	}
	snprintf(path, sizeof(path), "%.4000s/logs", dir);
	d = opendir(path);
	while (d && (entry = readdir(d)))
		if (is_came(entry))
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
}
