/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of copper/run.h: the file of a process. The caller holds the lock. */

COPPER_RUN_I_COLD long long copper_run_i_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

COPPER_RUN_I_COLD void copper_run_i_say(const char *what, int error)
{
	struct copper_run_i *r = &copper_run_i_1;
	char text[5000];
	int len =
		snprintf(text, sizeof(text), "copper-run: %s%s%s%s\n", error ? "cannot write " : "",
			error ? r->path : "", error ? ": " : what, error ? strerror(error) : "");

	if (!r->told &&
		write(2, text, len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1) < 0)
		len = 0;
	r->told = 1;
}

/* ---- which run ---- */

/* All processes of one launch share a run, identified by an FNV-1a hash of the launch's identity.
 * Returns 0 outside a launch; a batch script or an interactive job shell is not a launch. */
COPPER_RUN_I_COLD unsigned long long copper_run_i_launch(void)
{
	static const char *const names[] = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID",
		"SLURM_RESTART_COUNT", "FLUX_JOB_ID", "PMIX_NAMESPACE"};
	unsigned long long hash = 0xcbf29ce484222325ULL;
	size_t i;

	if (!getenv("SLURM_STEP_ID") && !getenv("FLUX_TASK_RANK") && !getenv("PMIX_NAMESPACE"))
		return 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		for (; value && *value; value++)
			hash = (hash ^ (unsigned char)*value) * 0x100000001b3ULL;
		hash = (hash ^ '\n') * 0x100000001b3ULL;
	}
	return hash;
}

COPPER_RUN_I_COLD unsigned long long copper_run_i_random(void)
{
	unsigned long long n = 0;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		n = (unsigned long long)copper_run_i_now() * 0x9e3779b97f4a7c15ULL ^
		    (unsigned long long)getpid();
	if (fd >= 0)
		close(fd);
	return n;
}

COPPER_RUN_I_COLD void copper_run_i_name(int in_job)
{
	struct copper_run_i *r = &copper_run_i_1;
	const char *given = getenv("COPPER_RUN_ID");
	unsigned long long n;

	if (*r->id)
		return;
	if (given && strlen(given) == 16 && strspn(given, "0123456789abcdef") == 16) {
		memcpy(r->id, given, 17);
	} else if (in_job) {
		strcpy(r->id, "-");
	} else {
		n = copper_run_i_launch();
		snprintf(r->id, sizeof(r->id), "%016llx", n ? n : r->random);
	}
}

/* ---- file header ---- */

/* Writes resource information for a run outside of a Copper job. Returns the number of bytes
 * written. */
COPPER_RUN_I_COLD size_t copper_run_i_resource(char *out, size_t size, const char *host)
{
	static const char *const of[][2] = {{"slurm.job_id", "SLURM_JOB_ID"},
		{"slurm.partition", "SLURM_JOB_PARTITION"},
		{"slurm.nodelist", "SLURM_JOB_NODELIST"},
		{"slurm.gpus_on_node", "SLURM_GPUS_ON_NODE"},
		{"slurm.mem_per_node", "SLURM_MEM_PER_NODE"},
		{"slurm.cluster_name", "SLURM_CLUSTER_NAME"},
		{"slurm.num_nodes", "SLURM_JOB_NUM_NODES"}, {"pbs.job_id", "PBS_JOBID"},
		{"pbs.job_name", "PBS_JOBNAME"}, {"pbs.queue", "PBS_QUEUE"},
		{"flux.job_id", "FLUX_JOB_ID"}, {"flux.uri", "FLUX_URI"}};
	size_t len = (size_t)snprintf(out, size, "resource\thost.name\t%s\n", host), i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const char *value = getenv(of[i][1]);

		if (value && *value && !strpbrk(value, "\\\t\n\r") && strlen(value) < 250)
			len += (size_t)snprintf(
				out + len, size - len, "resource\t%s\t%s\n", of[i][0], value);
	}
	return len;
}

COPPER_RUN_I_COLD size_t copper_run_i_head(char *out, size_t size)
{
	struct copper_run_i *r = &copper_run_i_1;
	const char *in_job = getenv("COPPER_JOB_DIR"), *job = getenv("SLURM_JOB_NAME");
	long long now_ns = copper_run_i_now();
	size_t len = (size_t)snprintf(out, size, "copper-log\t1\t%s\t%lld.%06lld\t%s\n", r->id,
		now_ns / 1000000000, now_ns / 1000 % 1000000, r->host);

	if (in_job && *in_job)
		return len;
	if (job && *job && !strpbrk(job, "\\\t\n\r"))
		len += (size_t)snprintf(out + len, size - len, "name\t%.200s\n", job);
	return len + copper_run_i_resource(out + len, size - len, r->host);
}

/* ---- opening ---- */

/* Runs in a forked child: drops the parent's file. */
COPPER_RUN_I_COLD void copper_run_i_forked(void)
{
	if (copper_run_i_1.fd > 0)
		close(copper_run_i_1.fd);
	copper_run_i_1.fd = 0;
	copper_run_i_1.path[0] = '\0';
	pthread_mutex_unlock(&copper_run_i_lock_1);
}
COPPER_RUN_I_COLD void copper_run_i_hold(void)
{
	pthread_mutex_lock(&copper_run_i_lock_1);
}
COPPER_RUN_I_COLD void copper_run_i_let_go(void)
{
	pthread_mutex_unlock(&copper_run_i_lock_1);
}

/* Runs before any thread can hold the lock, because a child forked without these handlers could
 * inherit it locked forever; and before any fork, so that all children inherit the same random
 * run. */
__attribute__((constructor)) COPPER_RUN_I_COLD void copper_run_i_load(void)
{
	if (copper_run_i_1.hooked)
		return;
	pthread_atfork(copper_run_i_hold, copper_run_i_let_go, copper_run_i_forked);
	copper_run_i_1.random = copper_run_i_random();
	copper_run_i_1.hooked = 1;
}

/* Decides once where to write lines. */
COPPER_RUN_I_COLD int copper_run_i_start(void)
{
	struct copper_run_i *r = &copper_run_i_1;
	const char *job = getenv("COPPER_JOB_DIR"), *store = getenv("COPPER_STORE");
	struct rlimit most;
	struct utsname u;
	char cwd[2048] = "";
	int len;

	r->state = 1;
	if ((!job || !*job) && (!store || !*store)) {
		copper_run_i_say(
			"no job of Copper, and no $COPPER_STORE: nothing is recorded of this run",
			0);
		return 0;
	}
	if (job && *job) {
		len = snprintf(r->dir, sizeof(r->dir), "%s/runs", job);
	} else {
		if (*store != '/' && !getcwd(cwd, sizeof(cwd)))
			strcpy(cwd, ".");
		len = snprintf(r->dir, sizeof(r->dir), "%s%s%s.d", cwd, *cwd ? "/" : "", store);
	}
	if (len >= (int)sizeof(r->dir) - 200) {
		snprintf(r->path, sizeof(r->path), "%.4000s", r->dir);
		copper_run_i_say("", ENAMETOOLONG);
		return 0;
	}
	copper_run_i_name(job && *job);
	snprintf(r->host, sizeof(r->host), "%.64s", uname(&u) ? "localhost" : u.nodename);
	r->most = getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY
			  ? 0
			  : (long long)most.rlim_cur;
	r->state = 2;
	return 1;
}

static inline int copper_run_i_on(void)
{
	return copper_run_i_1.state ? copper_run_i_1.state == 2 : copper_run_i_start();
}

/* Creates the file under its n-th candidate name. Earlier names may belong to a process that had
 * the same PID before or has it in another container, or to this process before an exec. */
COPPER_RUN_I_COLD int copper_run_i_create(int n)
{
	struct copper_run_i *r = &copper_run_i_1;
	char again[16] = "";

	if (n)
		snprintf(again, sizeof(again), "-%d", n + 1);
	snprintf(r->path, sizeof(r->path), "%.4000s/%.16s-%.64s-%s%ld%s.log", r->dir,
		r->id[1] ? r->id : "job", r->host, r->shared ? "u" : "",
		r->shared ? (long)geteuid() : (long)getpid(), again);
	return open(r->path,
		O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (r->shared ? 0 : O_EXCL),
		0666);
}

/* Moves fd far above the descriptors that the program will get next. */
COPPER_RUN_I_COLD int copper_run_i_above(int fd)
{
	int other = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 200);

	if (fd >= 0 && other < 0)
		other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		close(fd);
	return other;
}

/* Returns 0 or a positive errno; on error, sets r->fd to its negation. */
COPPER_RUN_I_COLD int copper_run_i_open(void)
{
	struct copper_run_i *r = &copper_run_i_1;
	int fd = -1, n, made = 0;
	struct stat st;
	char last;

	if (*r->path && !r->shared) /* the program closed the descriptor */
		fd = open(r->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	for (n = 0; fd < 0 && n < 1000; n++) {
		fd = copper_run_i_create(n);
		if (fd < 0 && errno == ENOENT && !made) {
			made = 1;
			if (!mkdir(r->dir, 0777) || errno == EEXIST)
				fd = copper_run_i_create(n);
		}
		/* The file may belong to another user. */
		if (fd < 0 && errno != EEXIST && (errno != EACCES || access(r->dir, W_OK | X_OK)))
			break;
	}
	fd = copper_run_i_above(fd);
	if (fd < 0 || fstat(fd, &st)) {
		r->fd = -errno;
		return errno;
	}
	r->fd = fd;
	r->device = st.st_dev;
	r->inode = st.st_ino;
	r->size = st.st_size;
	/* Another process may have ended in the middle of a line. */
	if (st.st_size && pread(fd, &last, 1, st.st_size - 1) == 1)
		r->torn = last != '\n';
	return 0;
}

/* ---- writing ---- */

/* The program may close our descriptor, and its number may be reused for another file. Checking
 * costs as much as a write, so check at most once per millisecond. The same limit applies to
 * retries after a failed open. */
COPPER_RUN_I_COLD int copper_run_i_check(long long now_ns)
{
	struct copper_run_i *r = &copper_run_i_1;
	struct stat st;
	int error;

	if (r->fd && now_ns >= r->checked_ns && now_ns < r->checked_ns + 1000000)
		return r->fd < 0 ? -r->fd : 0;
	r->checked_ns = now_ns;
	if (r->fd > 0 && !fstat(r->fd, &st) && st.st_dev == r->device && st.st_ino == r->inode &&
		st.st_nlink)
		return 0;
	error = copper_run_i_open();
	/* These errors are permanent, and retrying is expensive. */
	if (error == EACCES || error == EPERM || error == EROFS || error == ENOENT ||
		error == ENOTDIR || error == EEXIST || error == ELOOP)
		r->state = 1;
	return error;
}

COPPER_RUN_I_COLD int copper_run_i_append(const char *text, size_t len)
{
	struct copper_run_i *r = &copper_run_i_1;
	ssize_t n;

	if (r->most && r->size + (long long)len > r->most)
		return EFBIG;
	do
		n = write(r->fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	r->size += n;
	r->torn = (size_t)n < len;
	return r->torn ? ENOSPC : 0;
}

/* Terminates a partial line with more separators than any valid line has, so that it cannot be
 * mistaken for a complete one. */
COPPER_RUN_I_COLD int copper_run_i_mend(void)
{
	return copper_run_i_append("\t\t\t\t\t\n", 6);
}

COPPER_RUN_I_COLD void copper_run_i_write(const char *line, size_t len, long long now_ns)
{
	struct copper_run_i *r = &copper_run_i_1;
	int old = errno, error = copper_run_i_check(now_ns);

	if (!error && r->torn)
		error = copper_run_i_mend();
	if (!error && !r->size) {
		char head[5000];

		error = copper_run_i_append(head, copper_run_i_head(head, sizeof(head)));
		if (error && r->torn && !ftruncate(r->fd, 0))
			r->size = r->torn = 0;
	}
	if (!error)
		error = copper_run_i_append(line, len);
	if (error)
		copper_run_i_say("", error);
	errno = old;
}
