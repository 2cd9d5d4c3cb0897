/* SPDX-License-Identifier: BSD-3-Clause */
/* STORE.d: one file per record that could not be written to the store. */
#include "writers/runs/store_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static int folder_of(const char *path, char out[PATH_MAX])
{
	return snprintf(out, PATH_MAX, "%s.d", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int make_folder(const char *path, char dir[PATH_MAX])
{
	int rc = folder_of(path, dir);

	return !rc && mkdir(dir, 0777) && errno != EEXIST ? -errno : rc;
}

/* A reader that has imported all records removes the directory, perhaps during this write. */
int cop_store_put_beside(const char *path, const struct cop_runrec *r, struct cop_err *err)
{
	char dir[PATH_MAX], file[PATH_MAX + 64];
	struct cop_buf text = {0};
	int rc = -ENOENT;

	cop_runrec_write(r, &text);
	for (unsigned tries = 0; tries < 3 && rc == -ENOENT && !text.failed; tries++) {
		rc = make_folder(path, dir);
		if (rc)
			break;
		snprintf(file, sizeof(file), "%s/%s" COP_RUNREC_SUFFIX, dir, r->id);
		rc = cop_write_file(file, text.data, text.len, 0644);
	}
	if (text.failed)
		rc = -ENOMEM;
	cop_buf_free(&text);
	return rc ? cop_err_set(err, -rc, "%s.d: %s", path, strerror(-rc)) : 0;
}

void cop_store_drop_beside(const char *path, const char *id)
{
	char dir[PATH_MAX], file[PATH_MAX + 64];

	if (folder_of(path, dir))
		return;
	snprintf(file, sizeof(file), "%s/%s" COP_RUNREC_SUFFIX, dir, id);
	unlink(file);
	rmdir(dir);
}

int cop_store_read_record(const char *file, struct cop_runrec *r, struct cop_err *err)
{
	uint64_t size = 0;
	int fd = cop_open_regular(AT_FDCWD, file, &size), rc;
	char *text = fd >= 0 && size <= COP_RUNREC_FILE_MAX ? malloc(size + 1) : NULL;
	ssize_t n = text ? cop_read_full(fd, text, size) : -ENOMEM;

	if (fd >= 0)
		close(fd);
	if (fd < 0 || size > COP_RUNREC_FILE_MAX || n < 0) {
		free(text);
		rc = fd < 0 ? -fd : size > COP_RUNREC_FILE_MAX ? EFBIG : (int)-n;
		return cop_err_set(err, rc, "%s: %s", file, strerror(rc));
	}
	rc = cop_runrec_parse(text, (size_t)n, file, r, err);
	free(text);
	return rc;
}

static bool is_record(const char *name)
{
	size_t len = strlen(name);

	return len == COP_RUNREC_ID_LEN + strlen(COP_RUNREC_SUFFIX) &&
	       strcmp(name + COP_RUNREC_ID_LEN, COP_RUNREC_SUFFIX) == 0;
}

struct each {
	int (*take)(void *arg, const struct cop_runrec *r, struct cop_err *err);
	void *arg;
	bool keep;
	struct cop_buf *notes;
};

/* Returns whether the record remains. */
static bool take_file(const struct each *e, const char *file)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = cop_store_read_record(file, &r, &err);

	/* Another reader has imported it. */
	if (rc == -ENOENT)
		return false;
	if (rc && e->notes)
		cop_buf_printf(e->notes, "%s\n", err.text);
	if (!rc)
		rc = e->take(e->arg, &r, &err);
	if (!rc && !e->keep)
		unlink(file);
	cop_runrec_free(&r);
	return rc != 0;
}

size_t cop_store_each_beside(const char *path,
	int (*take)(void *arg, const struct cop_runrec *r, struct cop_err *err), void *arg,
	bool keep, struct cop_buf *notes)
{
	struct each e = {take, arg, keep, notes};
	char dir[PATH_MAX], file[PATH_MAX + NAME_MAX + 2];
	DIR *d = folder_of(path, dir) ? NULL : opendir(dir);
	struct dirent *entry;
	size_t left = 0;

	while (d && (entry = readdir(d))) {
		if (!is_record(entry->d_name))
			continue;
		snprintf(file, sizeof(file), "%s/%s", dir, entry->d_name);
		left += take_file(&e, file);
	}
	if (d)
		closedir(d);
	if (d && !left && !keep)
		rmdir(dir);
	return left;
}
