/* SPDX-License-Identifier: BSD-3-Clause */
/* Records the programs and files seen so far, so that each is counted once. */
#include "node/bypass/bypass_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/log/log.h"

static uint64_t hash_of(const struct cop_bypass_process *q)
{
	uint64_t of[3] = {(uint64_t)q->pid, q->began, q->pages};

	return cop_hash64(of, sizeof(of), 0);
}

bool cop_bypass_is_known(const struct cop_bypass *p, const struct cop_bypass_process *q)
{
	return q->pages && cop_seen_has(&p->looked, hash_of(q));
}

void cop_bypass_know(struct cop_bypass *p, const struct cop_bypass_process *q)
{
	if (q->pages && cop_seen_add(&p->looked, hash_of(q), COP_BYPASS_TABLE) == COP_SEEN_FULL)
		cop_seen_forget(&p->looked);
}

/* One storage request per path, which the client of a network file system may serve from its cache,
 * because a program has just opened the file. */
static bool size_of(const char *path, uint64_t *bytes)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE,
		    &st) ||
		!S_ISREG(st.stx_mode))
		return false;
	*bytes = st.stx_size;
	return true;
}

static void count_process(struct cop_bypass *p, struct cop_bypass_process *q)
{
	uint64_t of[2] = {(uint64_t)q->pid, q->began};

	if (q->counted)
		return;
	q->counted = true;
	if (cop_seen_add(&p->processes, cop_hash64(of, sizeof(of), 0), COP_BYPASS_TABLE) ==
		COP_SEEN_NEW)
		cop_bypass_count(p, COP_PAST_PROGRAMS, 1, NULL);
}

static void count_file(
	struct cop_bypass *p, const struct cop_bypass_process *q, const char *path, uint64_t bytes)
{
	if (!p->counted.count)
		cop_log_info("a program uses files of the source past the mount pid=%d file=\"%s\"",
			(int)q->pid, path);
	cop_bypass_count(p, COP_PAST_FILES, 1, path);
	cop_bypass_count(p, COP_PAST_BYTES, bytes, NULL);
}

void cop_bypass_found(struct cop_bypass *p, struct cop_bypass_process *q, const char *path)
{
	uint64_t hash = cop_hash64(path, strlen(path), 0), bytes;

	switch (cop_seen_add(&p->files, hash, COP_BYPASS_TABLE)) {
	case COP_SEEN_FULL:
		cop_bypass_count(p, COP_PAST_BEYOND, 1, NULL);
		return;
	case COP_SEEN_NEW:
		if (!size_of(path, &bytes))
			return;
		count_file(p, q, path, bytes);
		cop_seen_add(&p->counted, hash, COP_BYPASS_TABLE);
		break;
	case COP_SEEN_BEFORE:
		if (!cop_seen_has(&p->counted, hash))
			return;
	}
	count_process(p, q);
}
