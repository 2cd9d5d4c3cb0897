/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/mountdir/mountdir_priv.h"

#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "node/ctl/ctl.h"
#include "mount/fuse/fuse.h"
#include "job/hosts/hosts.h"

#define CHECKS 5
/* How long to wait until a killed node has exited; it holds its locks until then. */
#define END_MS 30000
#define PLACES_MAX 256 /* most nodes of a job on one machine */
#define RETRIES 16     /* how often a folder may vanish between creating and locking it */
#define MISSING                                                                                    \
	"%s: there is no such directory, and it cannot be created: %s; name a mount point below a directory that you may write to, or none"

/* ---- names ---- */

uint64_t cop_mountdir_job(void)
{
	char label[COP_JOB_MARK_SIZE];

	return cop_job_identity(label);
}

static void real_source(const struct cop_conf *conf, char out[PATH_MAX])
{
	if (!realpath(conf->source, out))
		snprintf(out, PATH_MAX, "%s", conf->source);
}

/* A number that the nodes of one job share, and that no other job of this user on this machine
 * has. */
static uint64_t hash_of(const struct cop_conf *conf, const char *source)
{
	const char *parts[] = {source, conf->job_dir, conf->hosts};
	uint64_t hash = cop_mountdir_job();

	for (size_t i = 0; i < COP_ARRAY_SIZE(parts); i++)
		hash = cop_hash64(parts[i] ? parts[i] : "", parts[i] ? strlen(parts[i]) : 0, hash);
	return hash;
}

/* The names of the folder of the private place with this number, and of the mount point in it. */
static int private_names(const struct cop_conf *conf, unsigned number, char folder[PATH_MAX],
	char path[PATH_MAX], struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE], source[PATH_MAX], suffix[16] = "";
	int rc = cop_ctl_dir(conf->runtime_dir, dir, sizeof(dir), err);
	const char *name;

	if (rc)
		return rc;
	real_source(conf, source);
	name = basename(source);
	if (strcmp(name, "/") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		name = "root";
	if (number)
		snprintf(suffix, sizeof(suffix), ".%u", number);
	real_source(conf, path);
	snprintf(folder, PATH_MAX, "%s/" COP_MOUNTDIR_FOLDER "%016" PRIx64 "%s", dir,
		hash_of(conf, path), suffix);
	if (snprintf(path, PATH_MAX, "%.300s/%.300s", folder, name) >= PATH_MAX)
		return cop_err_set(err, ENAMETOOLONG, "%s: its name is too long", folder);
	return 0;
}

int cop_mountdir_name(const struct cop_conf *conf, char out[4096], struct cop_err *err)
{
	char folder[PATH_MAX];
	int rc;

	if (!conf->mountpoint)
		return private_names(conf, 0, folder, out, err);
	rc = cop_mountdir_resolve(conf->mountpoint, out, 0);
	return rc ? cop_err_set(err, -rc, "%s: %s", conf->mountpoint, strerror(-rc)) : 0;
}

/* ---- its control socket ---- */

static int socket_of(const struct cop_conf *conf, const char *path, char out[COP_CTL_PATH_SIZE])
{
	char dir[COP_CTL_PATH_SIZE];
	int rc = cop_ctl_dir(conf->runtime_dir, dir, sizeof(dir), NULL);

	return rc ? rc : cop_ctl_path(dir, path, out, COP_CTL_PATH_SIZE);
}

void cop_mountdir_note(const struct cop_mountdir *p, struct cop_buf *out)
{
	cop_buf_printf(out, " %016" PRIx64 " %u %" PRIu64 " %" PRIu64 " %d", cop_mountdir_job(),
		p->made, p->dev, p->ino, (int)getpid());
}

uint64_t cop_mountdir_noted_job(const char *socket)
{
	char words[COP_CTL_NOTE_SIZE];
	uint64_t job;

	cop_ctl_noted(socket, words);
	return sscanf(words, "%*s %" SCNx64, &job) == 1 ? job : 0;
}

void cop_mountdir_wait_ended(const char *socket)
{
	char words[COP_CTL_NOTE_SIZE];
	struct pollfd ended = {.events = POLLIN, .fd = -1};
	int pid;

	cop_ctl_noted(socket, words);
	if (sscanf(words, "%*s %*s %*s %*s %*s %d", &pid) == 1 && pid > 1)
		ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (ended.fd < 0)
		return;
	poll(&ended, 1, END_MS);
	close(ended.fd);
}

/* Takes over the directories that the killed node of that socket created, as its note lists
 * them. */
static void inherit(struct cop_mountdir *p, const char *socket)
{
	char words[COP_CTL_NOTE_SIZE];
	unsigned made;
	uint64_t dev, ino;

	cop_ctl_noted(socket, words);
	if (sscanf(words, "%*s %*s %u %" SCNu64 " %" SCNu64, &made, &dev, &ino) != 3 ||
		made > COP_MOUNTDIR_MADE_MAX)
		return;
	p->made = made;
	p->dev = dev;
	p->ino = ino;
}

/* ---- creation and removal ---- */

/* The note can still be read while a guard removes the rest, because cop_mountdir_clear removes it
 * last. */
static void remove_dead_mount(struct cop_mountdir *p, const char *mountpoint)
{
	char path[PATH_MAX], socket[COP_CTL_PATH_SIZE];
	bool known = cop_mountdir_resolve(mountpoint, path, 0) == 0;
	struct stat st;

	if (known && socket_of(p->conf, path, socket) == 0)
		inherit(p, socket);
	if (cop_fuse_is_dead(mountpoint) && cop_fuse_unmount_dead(mountpoint) == 0)
		fprintf(stderr, "copper: note: removed the dead mount of an earlier node from %s\n",
			mountpoint);
	if (known && lstat(path, &st) == 0 && (st.st_dev != p->dev || st.st_ino != p->ino))
		p->made = 0;
}

/* ---- a named place ---- */

static mode_t mode_of(const struct cop_conf *conf)
{
	return conf->allow_other ? 0755 : 0700;
}

/* Once the dead mount is gone, the guard of the killed node removes that node's directories, which
 * it identifies by inode. So this atomically replaces the directory with an empty one of the same
 * name but with another inode. */
static void replace_inherited(struct cop_mountdir *p)
{
	char fresh[PATH_MAX + 16];

	snprintf(fresh, sizeof(fresh), "%s.%d", p->path, (int)getpid());
	if (mkdir(fresh, mode_of(p->conf)))
		return;
	if (rename(fresh, p->path))
		rmdir(fresh);
	else
		cop_mountdir_remember(p);
}

static int acquire_named(struct cop_mountdir *p, struct cop_err *err)
{
	const char *name = p->conf->mountpoint;
	unsigned made = 0;
	int rc;

	remove_dead_mount(p, name);
	rc = cop_mountdir_make_dirs(name, mode_of(p->conf), &made);
	p->made = COP_MAX(made, p->made);
	/* If the directory exists but is inaccessible, check_taken reports the reason. */
	if (rc && access(name, F_OK) && errno == ENOENT)
		return cop_err_set(err, -rc, MISSING, name, strerror(-rc));
	rc = cop_mountdir_resolve(name, p->path, 0);
	if (rc)
		return cop_err_set(err, -rc, "%s: %s", name, strerror(-rc));
	if (made)
		cop_mountdir_remember(p);
	else if (p->made)
		replace_inherited(p);
	return 0;
}

/* ---- a private place ---- */

static bool is_mounted_on(const char *path)
{
	char parent[PATH_MAX];
	struct stat st, above;

	cop_mountdir_above(path, parent);
	return lstat(path, &st) == 0 && lstat(parent, &above) == 0 && st.st_dev != above.st_dev;
}

/* Call it with the folder locked. -EBUSY: something is mounted there nevertheless. */
static int occupy(struct cop_mountdir *p, struct cop_err *err)
{
	remove_dead_mount(p, p->path);
	if (mkdir(p->path, 0700) && errno != EEXIST)
		return cop_err_set(err, errno, "cannot create the mount point %s: %s", p->path,
			strerror(errno));
	if (is_mounted_on(p->path))
		return -EBUSY;
	p->made = 2;
	cop_mountdir_remember(p);
	return 0;
}

static int try_private(struct cop_mountdir *p, unsigned number, struct cop_err *err)
{
	char folder[PATH_MAX];
	int rc = private_names(p->conf, number, folder, p->path, err);

	/* Retry, because a process that releases the folder also removes it. */
	for (unsigned tries = 0; !rc && p->folder_fd < 0; tries++) {
		rc = cop_mountdir_make_folder(folder, err);
		if (!rc)
			p->folder_fd = rc = cop_mountdir_lock(folder, err);
		rc = rc >= 0 || (rc == -ENOENT && tries < RETRIES) ? 0 : rc;
	}
	if (!rc)
		rc = occupy(p, err);
	if (rc && p->folder_fd >= 0) {
		close(p->folder_fd);
		p->folder_fd = -1;
	}
	return rc;
}

static int acquire_private(struct cop_mountdir *p, struct cop_err *err)
{
	for (unsigned number = 0; number < PLACES_MAX; number++) {
		int rc = try_private(p, number, err);

		if (rc != -EWOULDBLOCK && rc != -EBUSY)
			return rc;
	}
	return cop_err_set(err, EBUSY,
		"%u nodes of this job have a mount point on this machine already (the last is %s): name one",
		PLACES_MAX, p->path);
}

/* ---- called by the node ---- */

/* The guard of a killed node may be removing that node's directories just now, so they are
 * recreated. */
static int check_taken(struct cop_mountdir *p, struct cop_err *err)
{
	const char *name = p->conf->mountpoint ? p->conf->mountpoint : p->path;
	int rc = cop_fuse_check(name, err);

	for (int tries = 0; rc == -ENOENT && tries < CHECKS; tries++) {
		cop_mountdir_renew(p);
		rc = cop_fuse_check(name, err);
	}
	return rc;
}

int cop_mountdir_acquire(const struct cop_conf *conf, struct cop_mountdir *p, struct cop_err *err)
{
	struct cop_err shared = {0};
	int rc;

	*p = (struct cop_mountdir){.conf = conf, .folder_fd = -1};
	if (conf->serve_only)
		return 0;
	rc = conf->mountpoint ? acquire_named(p, err) : acquire_private(p, err);
	if (!rc)
		rc = check_taken(p, err);
	if (!rc && cop_fuse_check_shared(p->path, &shared))
		fprintf(stderr, "copper: warning: %s\n", shared.text);
	if (rc)
		cop_mountdir_leave(p);
	return rc;
}

/* Whether the rest can be created depends on the nearest directory that exists. */
int cop_mountdir_check(const struct cop_conf *conf, struct cop_buf *out, struct cop_err *err)
{
	const char *name = conf->mountpoint;
	char path[PATH_MAX], parent[PATH_MAX];
	int rc;

	if (!name) {
		rc = private_names(conf, 0, parent, path, err);
		cop_buf_printf(
			out, "none is given: %s will be created, and removed at the end", path);
		return rc ? rc : cop_fuse_check_machine(err);
	}
	if (access(name, F_OK) == 0 || errno != ENOENT) {
		cop_buf_printf(out, "%s is an empty directory", name);
		return cop_fuse_check(name, err);
	}
	snprintf(path, sizeof(path), "%s", name);
	do {
		cop_mountdir_above(path, parent);
		snprintf(path, sizeof(path), "%s", parent);
	} while (access(path, F_OK) && errno == ENOENT);
	if (access(path, W_OK | X_OK))
		return cop_err_set(err, errno, MISSING, name, strerror(errno));
	cop_buf_printf(out, "%s will be created, and removed at the end", name);
	return cop_fuse_check_machine(err);
}

void cop_mountdir_renew(struct cop_mountdir *p)
{
	unsigned made = 0;

	if (!p->path[0] || access(p->path, F_OK) == 0 || errno != ENOENT)
		return;
	cop_mountdir_make_dirs(p->path, mode_of(p->conf), &made);
	if (made) {
		p->made = COP_MAX(made, p->made);
		cop_mountdir_remember(p);
	}
}

void cop_mountdir_leave(struct cop_mountdir *p)
{
	cop_mountdir_remove_made(p);
	p->made = 0;
	if (p->folder_fd >= 0)
		close(p->folder_fd);
	p->folder_fd = -1;
}

/* Locks a private place's folder during the removal; -EWOULDBLOCK if a node uses it. */
static int remove_unless_taken(const struct cop_mountdir *p)
{
	char folder[PATH_MAX];
	int fd = -1;

	cop_mountdir_above(p->path, folder);
	if (strncmp(basename(folder), COP_MOUNTDIR_FOLDER, strlen(COP_MOUNTDIR_FOLDER)) == 0) {
		fd = cop_mountdir_lock(folder, NULL);
		if (fd < 0)
			return fd;
	}
	cop_mountdir_remove_made(p);
	if (fd >= 0)
		close(fd);
	return 0;
}

void cop_mountdir_clear(const struct cop_mountdir *p)
{
	char socket[COP_CTL_PATH_SIZE];

	if (!p->made || socket_of(p->conf, p->path, socket))
		return;
	cop_mountdir_wait_ended(socket);
	/* Whoever removes a mount that still exists needs the note beside the socket. */
	if (!cop_fuse_is_dead(p->path) && remove_unless_taken(p) == 0)
		cop_ctl_clear(socket, NULL);
}

int cop_mountdir_remove_dead(const char *mountpoint, const char *socket)
{
	struct cop_mountdir p = {.folder_fd = -1};
	bool dead = cop_fuse_is_dead(mountpoint);
	int rc;

	snprintf(p.path, sizeof(p.path), "%s", mountpoint);
	if (socket)
		inherit(&p, socket);
	rc = dead ? cop_fuse_unmount_dead(mountpoint) : 0;
	/* The guard may already have removed the directory; if something is mounted there since,
	 * the inode differs. */
	if (p.made && !cop_fuse_is_dead(mountpoint))
		remove_unless_taken(&p);
	return rc ? rc : dead;
}
