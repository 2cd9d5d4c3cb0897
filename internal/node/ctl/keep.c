/* SPDX-License-Identifier: BSD-3-Clause */
/* Cleaners of /tmp remove files that nobody has used for days. systemd-tmpfiles(8) skips
 * directories locked with flock(2) (tmpfiles.d(5)), so each node holds a shared lock on the folder
 * of its socket. For cleaners that check only a file's age, the node touches its files daily. It
 * also restores files that were removed, including the socket and the folder. */
#include "node/ctl/ctl_priv.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log/log.h"

#define LOOK_MS 5000u
#define TOUCH_MS (24u * 3600u * 1000u)

static bool is_gone(const char *path)
{
	struct stat st;

	return lstat(path, &st) && errno == ENOENT;
}

static void folder_of(const struct cop_ctl_socket *s, char out[COP_CTL_PATH_SIZE])
{
	snprintf(out, COP_CTL_PATH_SIZE, "%.*s", (int)(strrchr(s->path, '/') - s->path), s->path);
}

static void lock_shared(struct cop_ctl_socket *s)
{
	char dir[COP_CTL_PATH_SIZE];

	if (s->folder >= 0)
		close(s->folder);
	folder_of(s, dir);
	s->folder = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->folder >= 0 && flock(s->folder, LOCK_SH | LOCK_NB))
		cop_log_debug("%s is not locked against cleaners: %s", dir, strerror(errno));
}

void cop_ctl_keep_begin(struct cop_ctl_socket *s, const char *key)
{
	s->key = strdup(key);
	s->look_ms = cop_now_ms() + LOOK_MS;
	s->touch_ms = cop_now_ms() + TOUCH_MS;
	lock_shared(s);
}

void cop_ctl_keep_end(struct cop_ctl_socket *s)
{
	if (s->folder >= 0)
		close(s->folder);
	s->folder = -1;
	free(s->key);
	free(s->note);
	s->key = s->note = NULL;
}

int cop_ctl_socket_note(struct cop_ctl_socket *s, const char *words)
{
	free(s->note);
	s->note = strdup(words);
	return cop_ctl_note(s->path, words);
}

/* Listens at the path again. The descriptor keeps its number, because the server's thread polls
 * that. */
static int bind_again(struct cop_ctl_socket *s)
{
	struct cop_ctl_socket now = {.fd = -1};
	int rc;

	memcpy(now.path, s->path, sizeof(now.path));
	now.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (now.fd < 0)
		return -errno;
	rc = cop_ctl_socket_bind(&now, s->key, NULL);
	if (!rc && dup3(now.fd, s->fd, O_CLOEXEC) < 0)
		rc = -errno;
	close(now.fd);
	if (rc)
		return rc;
	s->dev = now.dev;
	s->ino = now.ino;
	return 1;
}

static int replace_socket(struct cop_ctl_socket *s)
{
	char dir[COP_CTL_PATH_SIZE];
	int lock, rc;

	folder_of(s, dir);
	if (mkdir(dir, 0700) == 0)
		lock_shared(s);
	else if (errno != EEXIST)
		return -errno;
	lock = cop_ctl_lock_folder(s->path, NULL);
	if (lock < 0)
		return lock;
	rc = is_gone(s->path) ? bind_again(s) : 0;
	cop_ctl_unlock_folder(s->path, lock);
	return rc;
}

static void put_back(const char *file, const char *words)
{
	if (words && is_gone(file))
		cop_write_file(file, words, strlen(words), 0600);
}

static void touch_all(const struct cop_ctl_socket *s, const char *key, const char *note)
{
	utimensat(AT_FDCWD, s->path, NULL, AT_SYMLINK_NOFOLLOW);
	utimensat(AT_FDCWD, key, NULL, AT_SYMLINK_NOFOLLOW);
	utimensat(AT_FDCWD, note, NULL, AT_SYMLINK_NOFOLLOW);
}

int cop_ctl_keep(struct cop_ctl_socket *s)
{
	char key[COP_CTL_PATH_SIZE], note[COP_CTL_PATH_SIZE];
	uint64_t now = cop_now_ms();
	int rc = 0;

	if (now < s->look_ms || !s->key)
		return 0;
	s->look_ms = now + LOOK_MS;
	if (is_gone(s->path))
		rc = replace_socket(s);
	if (rc)
		cop_log_info("the control socket was removed and is put back: %s",
			rc < 0 ? strerror(-rc) : s->path);
	if (is_gone(s->path))
		return rc;
	cop_ctl_key_path(s->path, key);
	cop_ctl_note_path(s->path, note);
	put_back(key, s->key);
	put_back(note, s->note);
	if (now >= s->touch_ms) {
		touch_all(s, key, note);
		s->touch_ms = now + TOUCH_MS;
	}
	return rc;
}
