/* SPDX-License-Identifier: BSD-3-Clause */
/* Determines where a file's index is, and the file's key: size, mtime and checksums of both
 * ends. */
#include <sys/stat.h>

#include "trace/read/index_priv.h"

#define END_BYTES (64 * COP_KIB)

static int hash_at(int fd, uint64_t at, char *room, size_t len, uint64_t *out)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, room + got, len - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		got += (size_t)n;
	}
	*out = cop_hash64(room, len, 0);
	return 0;
}

int cop_index_key(int fd, struct index_key *out)
{
	char *room = malloc(END_BYTES);
	size_t len;
	struct stat st;
	int rc = room ? 0 : -ENOMEM;

	if (!rc && fstat(fd, &st))
		rc = -errno;
	if (!rc) {
		*out = (struct index_key){.size = (uint64_t)st.st_size,
			.mtime_ns = (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) +
				    (uint64_t)st.st_mtim.tv_nsec};
		len = (size_t)COP_MIN(out->size, (uint64_t)END_BYTES);
		rc = hash_at(fd, 0, room, len, &out->head);
		if (!rc)
			rc = hash_at(fd, out->size - len, room, len, &out->tail);
	}
	free(room);
	return rc;
}

/* In the cache directory, an index is named after a checksum of the file's path. */
static char *in_cache(const char *file)
{
	const char *dir = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *real = realpath(file, NULL), *out = NULL;
	bool given = dir && *dir == '/';

	if (real && (given || (home && *home == '/' && !access(home, X_OK))) &&
		asprintf(&out, "%s%s/copper/trace-index/%016llx" COP_TRACE_INDEX_END,
			given ? dir : home, given ? "" : "/.cache",
			(unsigned long long)cop_hash64(real, strlen(real), 0)) < 0)
		out = NULL;
	free(real);
	return out;
}

char *cop_index_place(const char *file, unsigned i)
{
	char *out;

	if (i)
		return in_cache(file);
	return asprintf(&out, "%s" COP_TRACE_INDEX_END, file) < 0 ? NULL : out;
}
