/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/listing_priv.h"

#include <string.h>
#include <sys/stat.h>

uint64_t cop_attr_version(const struct cop_attr *a)
{
	const uint64_t fields[6] = {a->ino, a->size, (uint64_t)a->mtime_s, a->mtime_nsec, (uint64_t)a->ctime_s, a->ctime_nsec};
	uint64_t version = cop_hash64(fields, sizeof(fields), 0);

	return version ? version : 1;
}

struct cop_attr cop_attr_clean(const struct cop_attr *a)
{
	struct cop_attr clean = *a;

	if (!clean.version)
		clean.version = cop_attr_version(a);
	return clean;
}

/* Sizes past 2^63 would turn negative in a struct stat; a time has one form. */
bool cop_attr_valid(const struct cop_attr *a)
{
	return a->version && a->size <= INT64_MAX && a->atime_nsec < COP_NS_PER_S && a->mtime_nsec < COP_NS_PER_S &&
		a->ctime_nsec < COP_NS_PER_S;
}

bool cop_attr_target_valid(const char *target, size_t len)
{
	return len > 0 && len <= COP_WIRE_TARGET_MAX && !memchr(target, '\0', len);
}

bool cop_attr_may_link(uint32_t mode)
{
	return S_ISLNK(mode) || !(mode & S_IFMT);
}
