/* SPDX-License-Identifier: BSD-3-Clause */
#include "state_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>

static const char magic[8] = "slowfs2";

static const char *const counter_names[SLOWFS_COUNTERS] = {
	[SLOWFS_LOOKUP] = "lookup",
	[SLOWFS_GETATTR] = "getattr",
	[SLOWFS_READLINK] = "readlink",
	[SLOWFS_ACCESS] = "access",
	[SLOWFS_OPEN] = "open",
	[SLOWFS_OPENDIR] = "opendir",
	[SLOWFS_READDIR] = "readdir",
	[SLOWFS_READ] = "read",
	[SLOWFS_STATFS] = "statfs",
	[SLOWFS_LSEEK] = "lseek",
	[SLOWFS_IOCTL] = "ioctl",
	[SLOWFS_RELEASE] = "release",
	[SLOWFS_RELEASEDIR] = "releasedir",
	[SLOWFS_FORGET] = "forget",
	[SLOWFS_NEGATIVE] = "negative",
	[SLOWFS_ERRORS] = "errors",
	[SLOWFS_BYTES] = "bytes",
	[SLOWFS_MAX_SERVED] = "max_served",
	[SLOWFS_MAX_OUTSTANDING] = "max_outstanding",
};

/* A process that dies while holding the lock leaves only simple values, each of which is valid on
 * its own, so nothing needs repair. */
void cop_slowfs_state_lock(struct cop_slowfs_state *s)
{
	if (pthread_mutex_lock(&s->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&s->lock);
}

void cop_slowfs_state_unlock(struct cop_slowfs_state *s)
{
	pthread_mutex_unlock(&s->lock);
}

static int init_lock(struct cop_slowfs_state *s)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return -rc;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	rc = pthread_mutex_init(&s->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	if (!rc)
		memcpy(s->magic, magic, sizeof(magic));
	return -rc;
}

/* The caller holds the file's flock, so one process initialises a new file and the others find it
 * complete. */
static int map_file(int fd, const char *path, struct cop_slowfs_state **out, struct cop_err *err)
{
	struct cop_slowfs_state *s;
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st) < 0)
		return cop_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_size == 0 && ftruncate(fd, sizeof(*s)) < 0)
		return cop_err_set(err, errno, "cannot size %s: %s", path, strerror(errno));
	if (st.st_size != 0 && st.st_size != (off_t)sizeof(*s))
		return cop_err_set(err, EINVAL, "%s is not a slowfs state file", path);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return cop_err_set(err, errno, "cannot map %s: %s", path, strerror(errno));
	if (st.st_size == 0)
		rc = init_lock(s);
	else if (memcmp(s->magic, magic, sizeof(magic)))
		rc = -EINVAL;
	if (rc) {
		munmap(s, sizeof(*s));
		return cop_err_set(err, -rc, "%s is not a slowfs state file", path);
	}
	*out = s;
	return 0;
}

static int map_memory(struct cop_slowfs_state **out, struct cop_err *err)
{
	struct cop_slowfs_state *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (s == MAP_FAILED)
		return cop_err_set(err, errno, "no memory for the state: %s", strerror(errno));
	rc = init_lock(s);
	if (rc) {
		munmap(s, sizeof(*s));
		return cop_err_set(err, -rc, "no lock for the state: %s", strerror(-rc));
	}
	*out = s;
	return 0;
}

int cop_slowfs_state_open(const char *path, struct cop_slowfs_state **out, struct cop_err *err)
{
	int fd, rc;

	if (!path)
		return map_memory(out, err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return cop_err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX) < 0)
		rc = cop_err_set(err, errno, "cannot lock %s: %s", path, strerror(errno));
	else
		rc = map_file(fd, path, out, err);
	/* The mapping keeps the open file alive, and with it the lock. */
	flock(fd, LOCK_UN);
	close(fd);
	return rc;
}

void cop_slowfs_state_close(struct cop_slowfs_state *s)
{
	if (s)
		munmap(s, sizeof(*s));
}

int cop_slowfs_state_join(struct cop_slowfs_state *s, uint32_t *index)
{
	uint32_t i, living = 0, place = COP_SLOWFS_MAX_MOUNTS;

	cop_slowfs_state_lock(s);
	for (i = 0; i < COP_SLOWFS_MAX_MOUNTS; i++) {
		struct mount *m = &s->mounts[i];

		if (m->pid && (kill(m->pid, 0) == 0 || errno != ESRCH)) {
			living++;
			continue;
		}
		m->pid = 0;
		m->outstanding = 0;
		if (place == COP_SLOWFS_MAX_MOUNTS)
			place = i;
	}
	/* Times from the monotonic clock are invalid after a reboot. */
	if (living == 0) {
		s->link_free_ns = 0;
		memset(s->slot_free_ns, 0, sizeof(s->slot_free_ns));
	}
	if (place < COP_SLOWFS_MAX_MOUNTS)
		s->mounts[place].pid = getpid();
	cop_slowfs_state_unlock(s);
	*index = place;
	return place < COP_SLOWFS_MAX_MOUNTS ? 0 : -ENOSPC;
}

void cop_slowfs_state_leave(struct cop_slowfs_state *s, uint32_t index)
{
	cop_slowfs_state_lock(s);
	s->mounts[index].pid = 0;
	s->mounts[index].outstanding = 0;
	cop_slowfs_state_unlock(s);
}

void cop_slowfs_state_count(
	struct cop_slowfs_state *s, enum cop_slowfs_counter counter, uint64_t amount)
{
	atomic_fetch_add_explicit(&s->count[counter], amount, memory_order_relaxed);
}

static uint64_t count_outstanding(const struct cop_slowfs_state *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < COP_SLOWFS_MAX_MOUNTS; i++)
		sum += s->mounts[i].outstanding;
	return sum;
}

/* The caller holds the lock, so a plain comparison is sufficient. */
static void raise_to(struct cop_slowfs_state *s, enum cop_slowfs_counter counter, uint64_t value)
{
	if (value > atomic_load(&s->count[counter]))
		atomic_store(&s->count[counter], value);
}

void cop_slowfs_state_enter(struct cop_slowfs_state *s, uint32_t index)
{
	cop_slowfs_state_lock(s);
	s->mounts[index].outstanding++;
	raise_to(s, SLOWFS_MAX_OUTSTANDING, count_outstanding(s));
	cop_slowfs_state_unlock(s);
}

void cop_slowfs_state_exit(struct cop_slowfs_state *s, uint32_t index)
{
	cop_slowfs_state_lock(s);
	if (s->mounts[index].outstanding)
		s->mounts[index].outstanding--;
	cop_slowfs_state_unlock(s);
}

static uint32_t first_free(const struct cop_slowfs_state *s, uint32_t slots)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < slots; i++) {
		if (s->slot_free_ns[i] < s->slot_free_ns[best])
			best = i;
	}
	return best;
}

/* The number of busy slots at the time `when`, including the one just taken. */
static uint64_t busy_at(const struct cop_slowfs_state *s, uint32_t slots, uint64_t when)
{
	uint64_t busy = 0;

	for (uint32_t i = 0; i < slots; i++)
		busy += s->slot_free_ns[i] > when;
	return busy;
}

uint64_t cop_slowfs_state_reserve(struct cop_slowfs_state *s, const struct cop_slowfs_costs *c,
	uint64_t cost_ns, uint64_t bytes)
{
	uint64_t now = cop_now_ns(), begin = now, end;
	uint32_t slot = 0;

	cop_slowfs_state_lock(s);
	if (c->slots) {
		slot = first_free(s, c->slots);
		begin = COP_MAX(now, s->slot_free_ns[slot]);
	}
	end = begin + cost_ns;
	if (c->bytes_per_s && bytes) {
		end = COP_MAX(end, s->link_free_ns);
		end += (uint64_t)((double)bytes * 1e9 / (double)c->bytes_per_s);
		s->link_free_ns = end;
	}
	if (c->slots)
		s->slot_free_ns[slot] = end;
	raise_to(s, SLOWFS_MAX_SERVED,
		c->slots ? COP_MAX(1U, busy_at(s, c->slots, begin)) : count_outstanding(s));
	cop_slowfs_state_unlock(s);
	return end;
}

void cop_slowfs_state_print(struct cop_slowfs_state *s, struct cop_buf *out)
{
	for (int i = 0; i < SLOWFS_COUNTERS; i++)
		cop_buf_printf(out, "%s %llu\n", counter_names[i],
			(unsigned long long)atomic_load(&s->count[i]));
}

void cop_slowfs_state_reset(struct cop_slowfs_state *s)
{
	cop_slowfs_state_lock(s);
	for (int i = 0; i < SLOWFS_COUNTERS; i++)
		atomic_store(&s->count[i], 0);
	cop_slowfs_state_unlock(s);
}
