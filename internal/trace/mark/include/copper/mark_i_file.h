/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/mark.h: the file of a process. The caller holds its lock. */

COPPER_MARK_I_COLD long long copper_mark_i_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * COPPER_MARK_I_S + t.tv_nsec;
}

COPPER_MARK_I_COLD void copper_mark_i_make_dirs(const char *dir, mode_t mode)
{
	char path[4200];
	size_t i;

	snprintf(path, sizeof(path), "%s/", dir);
	for (i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		mkdir(path, mode);
		path[i] = '/';
	}
}

/* Sets the n-th candidate name. A file may already exist: of an earlier process with the same id,
 * of one in another container, or of this process before an exec. */
COPPER_MARK_I_COLD void copper_mark_i_path(struct copper_mark_i_process *p, int n)
{
	const char *mark = strchr(p->name, 1);
	int before = mark ? (int)(mark - p->name) : (int)strlen(p->name);
	char own[32] = "", again[32] = "";

	if (mark || n)
		snprintf(own, sizeof(own), mark ? "%d" : "-%d", p->pid);
	if (n && (mark || n > 1))
		snprintf(again, sizeof(again), "-%d", mark ? n + 1 : n);
	snprintf(p->path, sizeof(p->path), "%s/%.*s%s%s%s.pfw", p->dir, before, p->name, own,
		mark ? mark + 1 : "", again);
}

/* Moves fd above the standard descriptors. Returns -1 and sets errno on error. */
COPPER_MARK_I_COLD int copper_mark_i_above(int fd)
{
	int other, error;

	if (fd < 0 || fd > 2)
		return fd;
	other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	error = errno;
	close(fd);
	errno = error;
	return other;
}

COPPER_MARK_I_COLD int copper_mark_i_create(struct copper_mark_i_process *p)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fd = -1, n, made = 0;

	for (n = 0; n < 1000; n++) {
		copper_mark_i_path(p, n);
		fd = open(p->path, flags, 0666);
		if (fd < 0 && errno == ENOENT && !made) {
			copper_mark_i_make_dirs(p->dir, p->in_job ? 0700 : 0777);
			made = 1;
			fd = open(p->path, flags, 0666);
		}
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return copper_mark_i_above(fd);
}

/* Opens the file, or reopens it if the program closed the descriptor or reused its number. */
COPPER_MARK_I_COLD int copper_mark_i_open(struct copper_mark_i_process *p)
{
	struct stat st;

	if (p->fd && !fstat(p->fd, &st) && st.st_dev == p->device && st.st_ino == p->inode)
		return 0;
	p->fd = p->end ? copper_mark_i_above(open(p->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW))
		       : copper_mark_i_create(p);
	if (p->fd >= 0 && !fstat(p->fd, &st) &&
		(!p->end || (st.st_dev == p->device && st.st_ino == p->inode))) {
		p->device = st.st_dev;
		p->inode = st.st_ino;
		return 0;
	}
	if (p->fd >= 0) { /* the descriptor now refers to another file */
		close(p->fd);
		errno = ESTALE;
	}
	p->fd = 0;
	return -1;
}

/* Returns false if a write up to `end` would exceed RLIMIT_FSIZE, which would kill the program. */
COPPER_MARK_I_COLD int copper_mark_i_fits(long long end)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY ||
		end <= (long long)most.rlim_cur)
		return 1;
	errno = EFBIG;
	return 0;
}

/* Writes len bytes and the closing bracket at the end of the file. Undoes a short write by
 * restoring the closing bracket at the old end, where the file already has its blocks. */
COPPER_MARK_I_COLD int copper_mark_i_append(struct copper_mark_i_process *p, char *text, size_t len)
{
	const char *closing = p->object ? "\n]}\n" : "\n]\n";
	size_t more = strlen(closing);
	ssize_t n;
	int error;

	if (!copper_mark_i_fits(p->end + (long long)(len + more)) || copper_mark_i_open(p))
		return -1;
	memcpy(text + len, closing, more);
	do
		n = pwrite(p->fd, text, len + more, (off_t)p->end);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)(len + more)) {
		p->end += (long long)len;
		return 0;
	}
	error = n < 0 ? errno : ENOSPC;
	if (n > 0 && p->end && pwrite(p->fd, closing, more, (off_t)p->end) < (ssize_t)more)
		error = EIO;
	if (n > 0 && ftruncate(p->fd, (off_t)(p->end ? p->end + (long long)more : 0)))
		error = errno;
	errno = error;
	return -1;
}

/* Errors such as ENOMEM, EMFILE and ENOSPC may be transient, so events stay buffered; a permission
 * error is permanent. */
COPPER_MARK_I_COLD void copper_mark_i_failed(struct copper_mark_i_process *p, int error)
{
	static const int passing[] = {
		ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EIO, EAGAIN, EFBIG, EINTR, ESTALE};
	size_t i;
	int again = p->end != 0;

	for (i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		again |= error == passing[i];
	p->retry_ns = copper_mark_i_now() + COPPER_MARK_I_S;
	if (!again)
		__atomic_store_n(&p->state, 1, __ATOMIC_RELEASE);
	if (!p->told) {
		char why[256];

		snprintf(why, sizeof(why), ": %s; the program goes on, %s", strerror(error),
			again ? "events beyond its buffers are left out" : "without marks");
		copper_mark_i_say("cannot write ", p->path, why);
	}
	p->told = 1;
}
