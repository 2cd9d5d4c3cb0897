/* SPDX-License-Identifier: BSD-3-Clause */
#include "socket.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/ctl/ctl.h"
#include "node/mountdir/mountdir.h"
#include "mount/fuse/fuse.h"

int cop_cmd_realpath(const char *mountpoint, char *out)
{
	char copy[PATH_MAX], dir[PATH_MAX];
	size_t len;

	if (realpath(mountpoint, out))
		return 0;
	/* A dead mount cannot be examined, but its parent can. */
	if (errno != ENOTCONN && errno != ENOENT)
		return -errno;
	snprintf(copy, sizeof(copy), "%s", mountpoint);
	for (len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	snprintf(dir, sizeof(dir), "%s", copy);
	if (!realpath(dirname(dir), out))
		return -errno;
	len = strlen(out);
	snprintf(out + len, PATH_MAX - len, "%s%s", len > 1 ? "/" : "", basename(copy));
	return 0;
}

/* Which of the listed nodes to consider. */
enum {
	OF_THIS_JOB = 1, /* those of the scheduler's job in which the command is given */
	LIVING = 2,      /* those whose process exists, even if it does not answer now */
};

struct search {
	unsigned which;
	unsigned count;
	char path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1]; /* of the last node found */
	struct cop_buf keys;
};

#define ASK_MS 1000

static bool is_living(const char *path)
{
	struct cop_ctl_reply reply = {0};
	int rc = cop_ctl_call(path, "process", ASK_MS, &reply, NULL);

	free(reply.text);
	return rc != -ECONNREFUSED && rc != -ENOENT;
}

static void keep_if_wanted(void *ctx, const char *key, const char *path)
{
	struct search *s = ctx;

	if (((s->which & OF_THIS_JOB) && cop_mountdir_noted_job(path) != cop_mountdir_job()) ||
		((s->which & LIVING) && !is_living(path)))
		return;
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->key, sizeof(s->key), "%s", key);
	cop_buf_printf(&s->keys, "%s%s", s->count++ ? ", " : "", key);
}

static void search_dir(struct search *s, const char *dir, unsigned which)
{
	cop_buf_free(&s->keys);
	*s = (struct search){.which = which};
	cop_ctl_list(dir, keep_if_wanted, s);
}

/* Considers the nodes of this job, else all, else those that are not dead, until only one is left:
 * two jobs of a user may share a machine, and a killed node leaves its socket. */
static void narrow_search(struct search *s, const char *dir)
{
	if (cop_mountdir_job())
		search_dir(s, dir, OF_THIS_JOB);
	if (s->count == 0)
		search_dir(s, dir, 0);
	if (s->count > 1) {
		struct search living = {0};

		search_dir(&living, dir, s->which | LIVING);
		if (living.count == 1) {
			cop_buf_free(&s->keys);
			*s = living;
		} else {
			cop_buf_free(&living.keys);
		}
	}
}

static int the_only_one(const char *dir, char *path, struct cop_err *err)
{
	struct search s = {0};
	int rc = 0;

	narrow_search(&s, dir);
	if (s.count == 0)
		rc = cop_err_set(err, ENOENT, "no copper node of this user runs here");
	else if (s.count > 1)
		rc = cop_err_set(
			err, EINVAL, "several copper nodes run here; name one of: %s", s.keys.data);
	else
		snprintf(path, COP_CTL_PATH_SIZE, "%s", s.path);
	cop_buf_free(&s.keys);
	return rc;
}

int cop_cmd_only_mount(const char *runtime_dir, char *out)
{
	char dir[COP_CTL_PATH_SIZE];
	struct search s = {0};
	int rc = cop_ctl_dir(runtime_dir, dir, sizeof(dir), NULL);

	if (rc)
		return rc;
	narrow_search(&s, dir);
	if (s.count == 1 && s.key[0] == '/' && strlen(s.key) < PATH_MAX)
		memcpy(out, s.key, strlen(s.key) + 1);
	else
		rc = -ENOENT;
	cop_buf_free(&s.keys);
	return rc;
}

static int is_copper_on(void *dir, const char *at, const char *type)
{
	return strcmp(at, dir) == 0 && strcmp(type, "fuse.copper") == 0;
}

/* A list of the existing nodes helps a user who mistyped a name, or named a directory below the
 * mount. */
static int no_node_there(const char *dir, char *key, struct cop_err *err)
{
	struct search s = {0};

	if (cop_mounts_each(is_copper_on, key) == 1 && !cop_fuse_is_dead(key))
		return cop_err_set(err, EBUSY,
			"a copper node is mounted at %s, but does not listen in %s: it was started by another user, in another "
			"container, or with another --runtime-dir",
			key, dir);
	search_dir(&s, dir, 0);
	cop_err_set(err, ENOENT,
		"no copper node of this user runs at %s on this machine: it was not started here, or was stopped%s%s",
		key, s.count ? "; there are: " : "", s.count ? s.keys.data : "");
	cop_buf_free(&s.keys);
	return -ENOENT;
}

int cop_cmd_socket(const char *mountpoint, const char *runtime_dir, char *path, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE], key[PATH_MAX];
	int rc = cop_ctl_dir(runtime_dir, dir, sizeof(dir), err);

	if (rc)
		return rc;
	if (!mountpoint)
		return the_only_one(dir, path, err);
	/* A node without a mount has the name that the list shows. */
	if (strncmp(mountpoint, "serve:", 6) == 0)
		snprintf(key, sizeof(key), "%s", mountpoint);
	else if ((rc = cop_cmd_realpath(mountpoint, key)))
		return cop_err_set(err, -rc, "%s: %s", mountpoint, strerror(-rc));
	rc = cop_ctl_path(dir, key, path, COP_CTL_PATH_SIZE);
	if (rc)
		return cop_err_set(
			err, -rc, "%s: the path of its control socket is too long", mountpoint);
	return access(path, F_OK) ? no_node_there(dir, key, err) : 0;
}
