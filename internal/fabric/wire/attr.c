/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/wire/listing_priv.h"

#include <sys/stat.h>

uint64_t cop_attr_version(const struct cop_attr *a)
{
	const uint64_t fields[6] = {a->ino, a->size, (uint64_t)a->mtime_s, a->mtime_nsec,
		(uint64_t)a->ctime_s, a->ctime_nsec};
	uint64_t version = cop_hash64(fields, sizeof(fields), 0) & ~(uint64_t)1;

	return version ? version : 2;
}

/* The kernel's timestamp clock ticks at least every 10 ms; coarser file systems store seconds or
 * tenths of a second. */
static uint32_t tick_ms(uint32_t nsec)
{
	return nsec == 0 ? 1000 : nsec % (100 * COP_NS_PER_MS) == 0 ? 100 : 10;
}

/* No clock produces a timestamp further in the future, and waiting for one to pass could take
 * forever. */
#define AHEAD_S 60

static bool is_young(int64_t s, uint32_t nsec, int64_t now_ns)
{
	int64_t now_s = now_ns / (int64_t)COP_NS_PER_S, stamp_ns;

	if (s < now_s - AHEAD_S || s >= now_s + AHEAD_S)
		return false;
	stamp_ns = s * (int64_t)COP_NS_PER_S + nsec;
	return stamp_ns + 2 * (int64_t)tick_ms(nsec) * (int64_t)COP_NS_PER_MS > now_ns;
}

/* mtime is considered too: programs cannot set ctime, but some file systems do not maintain it. */
uint64_t cop_attr_version_at(const struct cop_attr *a, int64_t now_ns)
{
	bool young = is_young(a->ctime_s, a->ctime_nsec, now_ns) ||
		     is_young(a->mtime_s, a->mtime_nsec, now_ns);

	return cop_attr_version(a) | young;
}

uint64_t cop_attr_young_ms(const struct cop_attr *a)
{
	return 2 * (uint64_t)COP_MAX(tick_ms(a->ctime_nsec), tick_ms(a->mtime_nsec));
}

struct cop_attr cop_attr_clean(const struct cop_attr *a)
{
	struct cop_attr clean = *a;

	if (!clean.version)
		clean.version = cop_attr_version(a);
	return clean;
}

/* A size above 2^63 would be negative in struct stat; a time has only one encoding. */
bool cop_attr_valid(const struct cop_attr *a)
{
	return a->version && a->size <= INT64_MAX && a->atime_nsec < COP_NS_PER_S &&
	       a->mtime_nsec < COP_NS_PER_S && a->ctime_nsec < COP_NS_PER_S;
}

bool cop_attr_target_valid(const char *target, size_t len)
{
	return len > 0 && len <= COP_WIRE_TARGET_MAX && !memchr(target, '\0', len);
}

bool cop_attr_may_link(uint32_t mode)
{
	return S_ISLNK(mode) || !(mode & S_IFMT);
}
