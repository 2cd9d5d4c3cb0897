/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces. Ordinary users may mount only in a user namespace of their own. The process keeps its
 * user and group ids there, so programs that compare ids still work. A process that enters a user
 * namespace has all capabilities in it, and loses them when it executes another program. */
#include "mount/view/view_priv.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log/log.h"

/* Maximum number of supplementary groups to map; the kernel allows 340 lines per map. */
#define GROUPS_MAX 64

extern char **environ;

bool cop_view_ns_may_mount(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[CAP_SYS_ADMIN / 32].effective & (1U << CAP_SYS_ADMIN % 32));
}

/* ---- reasons for failure ---- */

static bool sysctl_is(const char *path, long value)
{
	char *text;
	size_t len;
	bool same;

	if (cop_read_file(path, 64, &text, &len))
		return false;
	same = strtol(text, NULL, 10) == value;
	free(text);
	return same;
}

static int refuse_namespaces(int code, struct cop_err *err)
{
	static const char what[] = "this machine refuses user namespaces to ordinary users";

	if (sysctl_is("/proc/sys/user/max_user_namespaces", 0))
		return cop_err_set(err, code,
			"%s (user.max_user_namespaces is 0): ask its administrator", what);
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", 0))
		return cop_err_set(err, code,
			"%s (kernel.unprivileged_userns_clone is 0): ask its administrator", what);
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1))
		return cop_err_set(err, code,
			"%s (AppArmor: kernel.apparmor_restrict_unprivileged_userns is 1): ask its administrator",
			what);
	if (code == ENOSPC)
		return cop_err_set(err, code,
			"no further user namespace is allowed here (user.max_user_namespaces, or 32 levels of nesting)");
	return cop_err_set(err, code, "%s (%s): a container or a security module may refuse them",
		what, strerror(code));
}

static int refuse_mount_namespace(int code, struct cop_err *err)
{
	if (code != ENOSPC)
		return refuse_namespaces(code, err);
	return cop_err_set(err, code,
		"no further mount namespace is allowed here (user.max_mnt_namespaces, or fs.mount-max mounts): ask the administrator of this machine");
}

/* ---- a new one ---- */

static int write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Maps this process's user and group to themselves, with lines that need no privilege
 * (user_namespaces(7)). user and group are the ids outside the namespace. */
static int map_self(uid_t user, gid_t group, bool groups_are_mapped)
{
	char users[64], groups[64];
	int rc = 0;

	snprintf(users, sizeof(users), "%u %u 1\n", (unsigned)user, (unsigned)user);
	snprintf(groups, sizeof(groups), "%u %u 1\n", (unsigned)group, (unsigned)group);
	if (!groups_are_mapped)
		rc = write_map("/proc/self/setgroups", "deny");
	if (!rc)
		rc = write_map("/proc/self/uid_map", users);
	return rc || groups_are_mapped ? rc : write_map("/proc/self/gid_map", groups);
}

static int unshare_user(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	return unshare(CLONE_NEWUSER) ? -errno : map_self(user, group, false);
}

/* Runs in a child, which creates the namespace, lets its parent map groups, reports the results,
 * and stays until the parent has opened the descriptor. */
static void be_first_in_it(int said, int stay)
{
	uid_t user = geteuid();
	gid_t group = getegid();
	int rc = unshare(CLONE_NEWUSER) ? -errno : 0;
	bool mapped;
	char end;

	if (cop_write_full(said, &rc, sizeof(rc)) != sizeof(rc) || rc ||
		cop_read_full(stay, &mapped, sizeof(mapped)) != sizeof(mapped))
		_exit(0);
	rc = map_self(user, group, mapped);
	if (cop_write_full(said, &rc, sizeof(rc)) == sizeof(rc) && !rc)
		cop_read_full(stay, &end, 1);
	_exit(0);
}

/* ---- supplementary groups ---- */

/* newgidmap(1) maps the groups that the administrator has granted to this user in subgid(5). */
static bool run_newgidmap(char **args)
{
	posix_spawn_file_actions_t quiet;
	int status, rc;
	pid_t pid;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&pid, args[0], &quiet, NULL, args, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (rc)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs "newgidmap PID G G 1 H H 1 ...", which maps all groups or none. */
static bool map_groups(pid_t pid)
{
	gid_t group[GROUPS_MAX + 1] = {getegid()};
	char text[GROUPS_MAX + 2][16], *args[3 * (GROUPS_MAX + 1) + 3] = {(char *)"newgidmap"};
	int found = access("/etc/subgid", R_OK) ? 0 : getgroups(GROUPS_MAX, group + 1), n = 2;

	snprintf(text[GROUPS_MAX + 1], sizeof(text[0]), "%d", (int)pid);
	args[1] = text[GROUPS_MAX + 1];
	for (int i = 0; i <= found; i++) {
		bool again = false;

		for (int k = 0; k < i; k++)
			again = again || group[k] == group[i];
		if (again)
			continue;
		snprintf(text[i], sizeof(text[i]), "%u", (unsigned)group[i]);
		args[n] = args[n + 1] = text[i];
		args[n + 2] = (char *)"1";
		n += 3;
	}
	return n > 5 && run_newgidmap(args);
}

static int open_ns_of(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Returns a descriptor, or -errno with a sentence. */
static int open_ns(struct cop_err *err)
{
	int said[2], stay[2], rc = -EIO, fd = -1;
	bool mapped;
	pid_t pid;

	if (pipe2(said, O_CLOEXEC))
		return cop_err_set(err, errno, "cannot create a pipe: %m");
	if (pipe2(stay, O_CLOEXEC)) {
		close(said[0]);
		close(said[1]);
		return cop_err_set(err, errno, "cannot create a pipe: %m");
	}
	pid = fork();
	if (pid == 0) {
		close(said[0]);
		close(stay[1]);
		be_first_in_it(said[1], stay[0]);
	}
	close(said[1]);
	close(stay[0]);
	if (pid > 0 && cop_read_full(said[0], &rc, sizeof(rc)) == sizeof(rc) && !rc) {
		mapped = map_groups(pid);
		rc = -EIO;
		if (cop_write_full(stay[1], &mapped, sizeof(mapped)) == sizeof(mapped) &&
			cop_read_full(said[0], &rc, sizeof(rc)) == sizeof(rc) && !rc)
			rc = fd = open_ns_of(pid);
	}
	close(said[0]);
	close(stay[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return rc < 0 ? refuse_namespaces(-rc, err) : fd;
}

int cop_view_ns_open(void)
{
	struct cop_err why;
	int fd;

	if (cop_view_ns_may_mount())
		return -1;
	fd = open_ns(&why);
	if (fd >= 0)
		return fd;
	cop_log_info("copper run can only use the view env: %s", why.text);
	return -1;
}

/* ---- the mounts ---- */

static int refuse_private(int code, const char *way_out, struct cop_err *err)
{
	return cop_err_set(err, code, "cannot make the mounts of this process private: %s; %s",
		strerror(code), way_out);
}

/* The last chroot(2) needs a capability; without it the process could not return to its root. */
static int slave_from_above(int root, int ns)
{
	int rc;

	if (root < 0 || ns < 0)
		return -errno;
	if (fchdir(root) || chroot(".") || setns(ns, CLONE_NEWNS))
		return -errno;
	rc = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? -errno : 0;
	return fchdir(root) || chroot(".") ? -ENOTRECOVERABLE : rc;
}

/* In a chroot, the root directory may not be a mount point, and then no path leads to the mounts
 * above it. Calling setns(2) with its own namespace takes the process to the namespace's real root.
 * A bind mount of the root over itself would also work, but would appear in all namespaces that
 * share the mount above. */
static int make_slave_in_chroot(void)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC),
	    ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), rc = slave_from_above(root, ns);

	if (cwd >= 0 && fchdir(cwd) && !rc)
		rc = -errno;
	if (root >= 0)
		close(root);
	if (cwd >= 0)
		close(cwd);
	if (ns >= 0)
		close(ns);
	return rc;
}

static int make_slave(struct cop_err *err)
{
	int rc = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? -errno : 0;

	if (rc == -EINVAL) {
		rc = make_slave_in_chroot();
		if (rc)
			return refuse_private(-rc,
				"the root directory of this chroot is no mount point: 'mount --bind DIR DIR' before chroot DIR makes it one",
				err);
	}
	return rc ? refuse_private(-rc, "a container may forbid it", err) : 0;
}

/* ---- entering ---- */

static void look_at_rights(struct cop_view_rights *r)
{
	*r = (struct cop_view_rights){.securebits = prctl(PR_GET_SECUREBITS), .parent = getppid()};
	for (int has; r->caps < 64 && (has = prctl(PR_CAPBSET_READ, r->caps)) >= 0; r->caps++)
		r->bounding |= (uint64_t)has << r->caps;
	prctl(PR_GET_PDEATHSIG, &r->death_signal);
}

/* A process that is already in the node's namespace cannot enter it again, so it creates a nested
 * one. */
static int enter_user(int user_ns, bool *alone)
{
	if (user_ns < 0)
		return unshare_user();
	if (setns(user_ns, CLONE_NEWUSER) == 0)
		return 0;
	*alone = true;
	return errno == EINVAL || errno == EPERM ? unshare_user() : -errno;
}

/* An unprivileged process can be in a view only in the node's namespace, and comparing namespaces
 * costs less than reading the mount table. */
bool cop_view_ns_may_have_view(int user_ns)
{
	struct stat theirs, own;

	if (user_ns < 0 || cop_view_ns_may_mount() || fstat(user_ns, &theirs) ||
		stat("/proc/self/ns/user", &own))
		return true;
	return theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

/* The kernel may have reset the death signal, and the parent may have exited in the meantime. */
static void keep_death_signal(const struct cop_view_rights *rights)
{
	if (!rights->death_signal)
		return;
	prctl(PR_SET_PDEATHSIG, rights->death_signal);
	if (getppid() != rights->parent)
		raise(rights->death_signal);
}

int cop_view_ns_enter(int user_ns, struct cop_view_rights *rights, struct cop_err *err)
{
	int rc;

	look_at_rights(rights);
	if (!cop_view_ns_may_mount()) {
		rc = enter_user(user_ns, &rights->alone);
		if (rc)
			return refuse_namespaces(-rc, err);
		rights->apart = true;
	}
	if (unshare(CLONE_NEWNS))
		return refuse_mount_namespace(errno, err);
	rc = make_slave(err);
	if (!rc)
		keep_death_signal(rights);
	return rc;
}

int cop_view_ns_restore(const struct cop_view_rights *rights, struct cop_err *err)
{
	if (!rights->apart)
		return 0;
	for (int cap = 0; cap < rights->caps; cap++)
		if (!(rights->bounding & (1ULL << cap)) && prctl(PR_CAPBSET_DROP, cap))
			return cop_err_set(
				err, errno, "cannot drop a capability: %s", strerror(errno));
	if (prctl(PR_GET_SECUREBITS) != rights->securebits &&
		prctl(PR_SET_SECUREBITS, rights->securebits))
		return cop_err_set(err, errno, "cannot restore the securebits of this process: %s",
			strerror(errno));
	return 0;
}
