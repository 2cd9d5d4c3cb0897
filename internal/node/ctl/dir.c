/* SPDX-License-Identifier: BSD-3-Clause */
/* The location of the sockets. */
#include "node/ctl/ctl_priv.h"

#include <dirent.h>
#include <sys/stat.h>

#define LIST_MAX 1024
#define DIGITS 16
#define LOGINS "/run/user/"

int cop_ctl_dir_check(const char *dir, struct cop_err *err)
{
	struct stat st;

	if (lstat(dir, &st))
		return cop_err_set(err, errno, "cannot look at the control directory %s: %m", dir);
	if (!S_ISDIR(st.st_mode))
		return cop_err_set(err, ENOTDIR,
			"the control directory %s is not a directory; remove it", dir);
	if (st.st_uid != geteuid())
		return cop_err_set(err, EACCES,
			"the control directory %s belongs to user %u, not to you; set XDG_RUNTIME_DIR "
			"to a directory of yours",
			dir, (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return cop_err_set(err, EACCES,
			"the control directory %s is open to others (mode %o); chmod 700 it", dir,
			st.st_mode & 07777);
	return 0;
}

static int make_dir(const char *dir, struct cop_err *err)
{
	if (mkdir(dir, 0700) && errno != EEXIST)
		return cop_err_set(err, errno, "cannot create the control directory %s: %m", dir);
	return cop_ctl_dir_check(dir, err);
}

static int put_dir(char *out, size_t size, struct cop_err *err, const char *dir, const char *rest)
{
	int n = snprintf(out, size, "%s%s", dir, rest);

	if (n < 0 || (size_t)n >= size)
		return cop_err_set(err, ENAMETOOLONG,
			"the control directory %s%s has too long a name", dir, rest);
	return make_dir(out, err);
}

/* Whether dir is the absolute path of a directory that this user owns, as the XDG_RUNTIME_DIR
 * specification requires. The directory of a login (pam_systemd(8)) does not suit a node: a job has
 * none or a different one, and it is removed when the ssh login that started the node ends. */
static bool is_usable(const char *dir)
{
	struct stat st;

	return dir && strncmp(dir, LOGINS, strlen(LOGINS)) != 0 && dir[0] == '/' &&
	       stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int cop_ctl_dir(const char *override, char *out, size_t size, struct cop_err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char uid[24];

	if (override)
		return put_dir(out, size, err, override, "");
	if (is_usable(runtime) && put_dir(out, size, NULL, runtime, "/copper") == 0)
		return 0;
	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	return put_dir(out, size, err, "/tmp/copper-", uid);
}

int cop_ctl_path(const char *dir, const char *key, char *out, size_t size)
{
	size_t len = strnlen(key, COP_CTL_KEY_MAX + 1);
	int n;

	if (len == 0 || len > COP_CTL_KEY_MAX)
		return -EINVAL;
	n = snprintf(out, size, "%s/%016" PRIx64 ".sock", dir, cop_hash64(key, len, 0));
	return n < 0 || (size_t)n >= COP_MIN(size, (size_t)COP_CTL_PATH_SIZE) ? -ENAMETOOLONG : 0;
}

int cop_ctl_place(const struct cop_ctl_place *p, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE];
	int rc = cop_ctl_dir(p->runtime_dir, dir, sizeof(dir), err);

	if (rc)
		return rc;
	if (*p->mountpoint)
		snprintf(key, COP_CTL_KEY_MAX + 1, "%s", p->mountpoint);
	else
		snprintf(key, COP_CTL_KEY_MAX + 1, "serve:%s:%u", p->host, p->port);
	rc = cop_ctl_path(dir, key, path, COP_CTL_PATH_SIZE);
	return rc ? cop_err_set(err, -rc,
			    "%s: the path of the control socket is too long; choose a shorter --runtime-dir",
			    dir)
		  : 0;
}

static void path_beside(const char *path, const char *ending, char out[COP_CTL_PATH_SIZE])
{
	int stem = (int)strlen(path) - (int)strlen(".sock");

	snprintf(out, COP_CTL_PATH_SIZE, "%.*s%s", stem, path, ending);
}

void cop_ctl_key_path(const char *path, char out[COP_CTL_PATH_SIZE])
{
	path_beside(path, ".key", out);
}

void cop_ctl_note_path(const char *path, char out[COP_CTL_PATH_SIZE])
{
	path_beside(path, ".note", out);
}

/* A node that is killed while it writes a key or a note leaves a temporary file, named like the
 * final file plus a dot and a suffix. */
static void remove_unfinished(const char *path)
{
	const char *stem = strrchr(path, '/') + 1;
	char dir[COP_CTL_PATH_SIZE];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%.*s", (int)(stem - path), path);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, stem, DIGITS) &&
			(!strncmp(e->d_name + DIGITS, ".key.", 5) ||
				!strncmp(e->d_name + DIGITS, ".note.", 6)))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

void cop_ctl_forget(const char *path)
{
	char beside[COP_CTL_PATH_SIZE];

	remove_unfinished(path);
	path_beside(path, ".key", beside);
	unlink(beside);
	path_beside(path, ".note", beside);
	unlink(beside);
}

int cop_ctl_note(const char *path, const char *words)
{
	char file[COP_CTL_PATH_SIZE];

	path_beside(path, ".note", file);
	return cop_write_file(file, words, strlen(words), 0600);
}

void cop_ctl_noted(const char *path, char words[COP_CTL_NOTE_SIZE])
{
	char file[COP_CTL_PATH_SIZE], *text;
	struct stat st;
	size_t len;

	words[0] = '\0';
	path_beside(path, ".note", file);
	if (lstat(file, &st) || !S_ISREG(st.st_mode) ||
		cop_read_file(file, COP_CTL_NOTE_SIZE - 1, &text, &len))
		return;
	memcpy(words, text, len + 1);
	free(text);
}

bool cop_ctl_name_is(const char *name, const char *ending)
{
	return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, ending) == 0;
}

/* A key file is valid if its name is the hash of its text and the socket exists. */
static int read_key(const char *dir, const char *name, char **key, char path[COP_CTL_PATH_SIZE])
{
	char *file = NULL;
	struct stat st;
	int rc = -EINVAL;
	size_t len;

	if (asprintf(&file, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (lstat(file, &st) == 0 && S_ISREG(st.st_mode))
		rc = cop_read_file(file, COP_CTL_KEY_MAX, key, &len);
	free(file);
	if (rc)
		return rc;
	if (strlen(*key) == len && cop_ctl_path(dir, *key, path, COP_CTL_PATH_SIZE) == 0 &&
		strncmp(strrchr(path, '/') + 1, name, DIGITS) == 0 && lstat(path, &st) == 0 &&
		S_ISSOCK(st.st_mode))
		return 0;
	free(*key);
	return -EINVAL;
}

int cop_ctl_list(
	const char *dir, void (*found)(void *ctx, const char *key, const char *path), void *ctx)
{
	char path[COP_CTL_PATH_SIZE], *key;
	DIR *d = opendir(dir);
	struct dirent *e;
	int count = 0, rc = 0, one;

	if (!d)
		return -errno;
	while (count < LIST_MAX && (e = readdir(d))) {
		one = cop_ctl_name_is(e->d_name, ".key") ? read_key(dir, e->d_name, &key, path)
							 : -EINVAL;
		if (one == -EMFILE || one == -ENFILE || one == -ENOMEM)
			rc = one;
		if (one)
			continue;
		found(ctx, key, path);
		free(key);
		count++;
	}
	closedir(d);
	return rc ? rc : count;
}
