/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening socket. A process holds a lock on a file in the folder while it tests a socket and
 * replaces or removes it. Otherwise two processes that start at once could both find the socket
 * stale, and the second would remove the new socket of the first. Each running node also holds a
 * lock on the folder itself (keep.c). */
#include "node/ctl/ctl_priv.h"
#include "base/base/sock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LOCK_WAIT_MS 5000

static void lock_path(const char *path, char out[COP_CTL_PATH_SIZE])
{
	snprintf(out, COP_CTL_PATH_SIZE, "%.*s/lock", (int)(strrchr(path, '/') - path), path);
}

/* Whether the file still has this name, because the previous holder of the lock has removed it. */
static bool is_named(int fd, const char *name)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && lstat(name, &named) == 0 && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

/* 0: locked; -EWOULDBLOCK: held by another process. */
static int try_lock(const char *name, int *fd)
{
	int rc;

	*fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd < 0)
		return -errno;
	rc = flock(*fd, LOCK_EX | LOCK_NB) ? -errno : is_named(*fd, name) ? 0 : -EWOULDBLOCK;
	if (rc)
		close(*fd);
	return rc;
}

int cop_ctl_lock_folder(const char *path, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE], name[COP_CTL_PATH_SIZE];
	uint64_t until = cop_now_ms() + LOCK_WAIT_MS;
	int fd, rc;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	lock_path(path, name);
	rc = cop_ctl_dir_check(dir, err);
	if (rc)
		return rc;
	while ((rc = try_lock(name, &fd)) == -EWOULDBLOCK && cop_now_ms() <= until)
		usleep(10000);
	return rc ? cop_err_set(err, -rc, "cannot lock the control directory %s: %s", dir,
			    strerror(-rc))
		  : fd;
}

void cop_ctl_unlock_folder(const char *path, int lock)
{
	char name[COP_CTL_PATH_SIZE];

	lock_path(path, name);
	unlink(name);
	close(lock);
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	memcpy(sa.sun_path, path, strlen(path) + 1);
	return sa;
}

/* Returns 0 if no process is listening at path, having removed the file. A full backlog means that
 * a process is alive. */
static int clear_stale(const char *path, struct cop_err *err)
{
	struct sockaddr_un sa = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return cop_err_set(err, errno, "cannot create a socket: %m");
	rc = cop_sock_connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? errno : 0;
	close(fd);
	if (rc == ENOENT)
		return 0;
	if (rc == 0 || rc == EAGAIN)
		return cop_err_set(err, EADDRINUSE,
			"a Copper process is running here already (it listens at %s); stop it first",
			path);
	if (rc == ECONNREFUSED && unlink(path) == 0)
		return 0;
	errno = rc;
	return cop_err_set(err, rc, "cannot replace the control socket %s: %m", path);
}

int cop_ctl_socket_bind(struct cop_ctl_socket *s, const char *key, struct cop_err *err)
{
	struct sockaddr_un sa = address_of(s->path);
	char key_path[COP_CTL_PATH_SIZE];
	struct stat st;
	int rc;

	cop_ctl_key_path(s->path, key_path);
	/* bind(2) gives the file the mode of the socket's inode. */
	if (fchmod(s->fd, 0600) || bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return cop_err_set(err, errno, "cannot create the control socket %s: %m", s->path);
	rc = lstat(s->path, &st) || cop_sock_listen(s->fd, COP_CTL_CLIENTS) ? -errno : 0;
	if (!rc)
		rc = cop_write_file(key_path, key, strlen(key), 0600);
	if (rc) {
		unlink(s->path);
		errno = -rc;
		return cop_err_set(err, -rc, "cannot listen at the control socket %s: %m", s->path);
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

int cop_ctl_socket_open(
	struct cop_ctl_socket *s, const char *path, const char *key, struct cop_err *err)
{
	const char *name = strrchr(path, '/');
	int lock, rc;

	*s = (struct cop_ctl_socket){.fd = -1, .folder = -1};
	if (!name || !cop_ctl_name_is(name + 1, ".sock") || strlen(path) >= sizeof(s->path))
		return cop_err_set(err, EINVAL, "%s is not the path of a control socket", path);
	memcpy(s->path, path, strlen(path) + 1);
	lock = cop_ctl_lock_folder(path, err);
	if (lock < 0)
		return lock;
	rc = clear_stale(path, err);
	if (rc)
		goto out;
	cop_ctl_forget(path);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	rc = s->fd < 0 ? cop_err_set(err, errno, "cannot create a socket: %m")
		       : cop_ctl_socket_bind(s, key, err);
	if (rc && s->fd >= 0) {
		close(s->fd);
		s->fd = -1;
	}
	if (!rc)
		cop_ctl_keep_begin(s, key);
out:
	cop_ctl_unlock_folder(path, lock);
	return rc;
}

int cop_ctl_clear(const char *path, struct cop_err *err)
{
	int lock = cop_ctl_lock_folder(path, err), rc;

	if (lock < 0)
		return lock;
	rc = clear_stale(path, err);
	if (!rc)
		cop_ctl_forget(path);
	cop_ctl_unlock_folder(path, lock);
	return rc;
}

/* Removes the files before closing the socket, so that every socket with a name has a listener. */
void cop_ctl_socket_close(struct cop_ctl_socket *s)
{
	struct stat st;
	int lock;

	if (s->fd < 0)
		return;
	lock = cop_ctl_lock_folder(s->path, NULL);
	if (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino) {
		cop_ctl_forget(s->path);
		unlink(s->path);
	}
	if (lock >= 0)
		cop_ctl_unlock_folder(s->path, lock);
	cop_ctl_keep_end(s);
	close(s->fd);
	s->fd = -1;
}
