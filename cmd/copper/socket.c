/* SPDX-License-Identifier: BSD-3-Clause */
#include "socket.h"

#include <libgen.h>
#include <limits.h>

#include "job/hosts/hosts.h"
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
	if (!realpath(dirname(dir), out)) {
		if (errno != ENOENT || *copy != '/')
			return -errno;
		/* The same applies to a mount point whose directory was removed. */
		memcpy(out, copy, strlen(copy) + 1);
		return 0;
	}
	len = strlen(out);
	snprintf(out + len, PATH_MAX - len, "%s%s", len > 1 ? "/" : "", basename(copy));
	return 0;
}

/* ---- which nodes ---- */

enum whose { OF_THIS_JOB, OF_NO_JOB, OF_ALL };

struct choosing {
	struct cop_cmd_nodes *out;
	enum whose whose;
	uint64_t job; /* of this command; 0: none */
	void (*found)(void *ctx, const char *key, const char *path);
	void *ctx;
};

static void choose_one(void *ctx, const char *key, const char *path)
{
	struct choosing *c = ctx;
	uint64_t job = c->whose == OF_ALL ? 0 : cop_mountdir_noted_job(path);

	if (c->whose != OF_ALL && job != (c->whose == OF_THIS_JOB ? c->job : 0))
		return;
	c->out->count++;
	c->found(c->ctx, key, path);
}

#define ASK_MS 1000

static bool is_living(const char *path)
{
	struct cop_ctl_reply reply = {0};
	int rc = cop_ctl_call(path, "process", ASK_MS, &reply, NULL);

	free(reply.text);
	return rc != -ECONNREFUSED && rc != -ENOENT;
}

/* Ignores the sockets that killed nodes leave behind. */
static void add_if_living(void *ctx, const char *key, const char *path)
{
	struct cop_buf *names = ctx;

	if (!is_living(path))
		return;
	cop_buf_printf(names, "%s%s", names->len ? ", " : "", key);
}

int cop_cmd_nodes_find(const char *dir, struct cop_cmd_nodes *out,
	void (*found)(void *ctx, const char *key, const char *path), void *ctx)
{
	struct choosing c = {.out = out, .job = cop_mountdir_job(), .found = found, .ctx = ctx};
	int rc;

	*out = (struct cop_cmd_nodes){0};
	c.whose = c.job ? OF_THIS_JOB : OF_ALL;
	rc = cop_ctl_list(dir, choose_one, &c);
	if (rc < 0 || out->count || !c.job)
		return COP_MIN(rc, 0);
	c.whose = OF_NO_JOB;
	rc = cop_ctl_list(dir, choose_one, &c);
	if (rc >= 0 && !out->count)
		rc = cop_ctl_list(dir, add_if_living, &out->other);
	return COP_MIN(rc, 0);
}

int cop_cmd_nodes_none(
	const struct cop_cmd_nodes *n, const char *start, const char *option, struct cop_err *err)
{
	char job[COP_JOB_MARK_SIZE];

	if (!n->other.len || !cop_job_identity(job))
		return cop_err_set(err, ENOENT, "no copper node of this user runs here%s", start);
	return cop_err_set(err, ENOENT,
		"no copper node of this job (%s) runs here%s; nodes of other jobs, which %s can name, are: %s",
		job, start, option, n->other.data);
}

/* ---- the only one ---- */

struct search {
	bool living; /* consider only nodes whose process exists, even if it does not reply now */
	unsigned count;
	char path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1]; /* of the last node found */
	struct cop_buf keys;
	struct cop_cmd_nodes nodes;
};

static void keep_if_wanted(void *ctx, const char *key, const char *path)
{
	struct search *s = ctx;

	if (s->living && !is_living(path))
		return;
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->key, sizeof(s->key), "%s", key);
	cop_buf_printf(&s->keys, "%s%s", s->count++ ? ", " : "", key);
}

static void free_search(struct search *s)
{
	cop_buf_free(&s->keys);
	cop_buf_free(&s->nodes.other);
}

/* If there are several, prefers the live ones. */
static void search_nodes(struct search *s, const char *dir)
{
	struct search living = {.living = true};

	*s = (struct search){0};
	cop_cmd_nodes_find(dir, &s->nodes, keep_if_wanted, s);
	if (s->count <= 1)
		return;
	cop_cmd_nodes_find(dir, &living.nodes, keep_if_wanted, &living);
	if (living.count) {
		free_search(s);
		*s = living;
	} else {
		free_search(&living);
	}
}

static int the_only_one(const char *dir, char *path, struct cop_err *err)
{
	struct search s;
	int rc = 0;

	search_nodes(&s, dir);
	if (s.count == 0)
		rc = cop_cmd_nodes_none(&s.nodes, "", "MOUNTPOINT", err);
	else if (s.count > 1)
		rc = cop_err_set(err, EINVAL, "several copper nodes %s here; name one of: %s",
			s.living ? "run" : "were killed", s.keys.data);
	else
		snprintf(path, COP_CTL_PATH_SIZE, "%s", s.path);
	free_search(&s);
	return rc;
}

int cop_cmd_only_mount(const char *runtime_dir, char *out)
{
	char dir[COP_CTL_PATH_SIZE];
	struct search s;
	int rc = cop_ctl_dir(runtime_dir, dir, sizeof(dir), NULL);

	if (rc)
		return rc;
	search_nodes(&s, dir);
	if (s.count == 1 && s.key[0] == '/' && strlen(s.key) < PATH_MAX)
		memcpy(out, s.key, strlen(s.key) + 1);
	else
		rc = -ENOENT;
	free_search(&s);
	return rc;
}

static int is_copper_on(void *dir, const char *at, const char *type)
{
	return strcmp(at, dir) == 0 && strcmp(type, "fuse.copper") == 0;
}

/* Lists the existing nodes, for users who mistyped a name or gave a directory below the mount. */
static int no_node_there(const char *dir, char *key, struct cop_err *err)
{
	struct cop_buf names = {0};

	if (cop_mounts_each(is_copper_on, key) == 1 && !cop_fuse_is_dead(key))
		return cop_err_set(err, EBUSY,
			"a copper node is mounted at %s, but does not listen in %s: it was started by another user, in another "
			"container, or with another --runtime-dir",
			key, dir);
	cop_ctl_list(dir, add_if_living, &names);
	cop_err_set(err, ENOENT,
		"no copper node of this user runs at %s on this machine: it was not started here, or was stopped%s%s",
		key, names.len ? "; there are: " : "", names.len ? names.data : "");
	cop_buf_free(&names);
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
	/* A node without a mount is named as in the list. */
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
