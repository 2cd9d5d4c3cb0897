/* SPDX-License-Identifier: BSD-3-Clause */
/* The capabilities that the mount requests from the kernel (FUSE_INIT). Each is an optimization:
 * without it, the mount shows the same files, but the kernel sends more requests. The kernel or
 * libfuse may lack a capability, and COPPER_DISABLE_CAPS disables it while debugging a program. */
#include "mount/fuse/fuse_priv.h"

static const struct {
	unsigned cap;
	const char *name;
} caps[] = {
	{FUSE_CAP_ASYNC_READ, "async_read"},
	{FUSE_CAP_READDIRPLUS, "readdirplus"},
	{FUSE_CAP_PARALLEL_DIROPS, "parallel_dirops"},
	{FUSE_CAP_CACHE_SYMLINKS, "cache_symlinks"},
	{FUSE_CAP_EXPLICIT_INVAL_DATA, "explicit_inval_data"},
	{FUSE_CAP_NO_OPEN_SUPPORT, "no_open"},
	{FUSE_CAP_NO_OPENDIR_SUPPORT, "no_opendir"},
	{CAP_ABSENT_ENTRIES, "absent_entries"},
};

static unsigned find_cap(const char *name, size_t len)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(caps); i++)
		if (strlen(caps[i].name) == len && memcmp(caps[i].name, name, len) == 0)
			return caps[i].cap;
	return 0;
}

int cop_fuse_caps_parse(const char *list, unsigned *off, struct cop_err *err)
{
	*off = 0;
	for (const char *at = list ? list : ""; *at; at += *at == ',') {
		size_t len = strcspn(at, ",");
		unsigned cap = find_cap(at, len);
		struct cop_buf known = {0};

		if (!cap) {
			for (size_t i = 0; i < COP_ARRAY_SIZE(caps); i++)
				cop_buf_printf(&known, "%s%s", i ? ", " : "", caps[i].name);
			cop_err_set(err, EINVAL,
				"COPPER_DISABLE_CAPS: there is no capability \"%.*s\"; the capabilities are %s",
				(int)COP_MIN(len, 64u), at, known.failed ? "others" : known.data);
			cop_buf_free(&known);
			return -EINVAL;
		}
		*off |= cap;
		at += len;
	}
	return 0;
}

unsigned cop_fuse_caps_want(const struct cop_fuse *fs, unsigned capable)
{
	bool paths = cop_prof_level(fs->conf.prof) >= COP_PROF_TOP;
	unsigned want = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(caps); i++)
		want |= caps[i].cap & (capable | CAP_ABSENT_ENTRIES);
	if (fs->deliver_opens || fs->conf.observe || paths)
		want &= ~(unsigned)(FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT);
	/* Names returned by READDIRPLUS are never looked up, so a profile of paths would miss
	 * them. */
	if (fs->conf.observe || paths)
		want &= ~(unsigned)FUSE_CAP_READDIRPLUS;
	/* /proc/self differs for each reader, but the setting applies to the whole mount. */
	if (fs->conf.observe || fs->deliver_opens)
		want &= ~(unsigned)FUSE_CAP_CACHE_SYMLINKS;
	if (fs->conf.observe)
		want &= ~CAP_ABSENT_ENTRIES;
	return want & ~fs->caps_off;
}

void cop_fuse_caps_json(unsigned in_use, struct cop_json *j)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(caps); i++)
		if (in_use & caps[i].cap)
			cop_json_str(j, NULL, caps[i].name);
}
