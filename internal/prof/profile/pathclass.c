/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/profile/profile.h"

static const char *const names[COP_PATHCLASSES] = {
	[COP_PATHCLASS_PYTHON_ZIP] = "python_zip_probe",
	[COP_PATHCLASS_VIRTUAL_ENV] = "virtual_env_probe",
	[COP_PATHCLASS_HWCAPS] = "glibc_hwcaps_probe",
	[COP_PATHCLASS_MISSING_LIBRARY] = "missing_shared_library_probe",
	[COP_PATHCLASS_NEGATIVE] = "negative_probe_path",
	[COP_PATHCLASS_TORCH_NATIVE] = "torch_native_library",
	[COP_PATHCLASS_TORCH_PYTHON] = "torch_python_package",
	[COP_PATHCLASS_SITE_PACKAGES] = "python_site_packages",
	[COP_PATHCLASS_STDLIB] = "python_stdlib",
	[COP_PATHCLASS_BIN] = "environment_bin",
	[COP_PATHCLASS_SHARED_LIBRARY] = "shared_library",
	[COP_PATHCLASS_PREFIX] = "environment_prefix",
};

/* The first matching row wins; a row without strings always matches. */
static const struct rule {
	bool absence; /* applies to cached absences instead of the tables */
	const char *contains, *ends;
	enum cop_pathclass class;
} rules[] = {
	{true, "python", ".zip", COP_PATHCLASS_PYTHON_ZIP},
	{true, NULL, "/pyvenv.cfg", COP_PATHCLASS_VIRTUAL_ENV},
	{true, "glibc-hwcaps", NULL, COP_PATHCLASS_HWCAPS},
	{true, ".so", NULL, COP_PATHCLASS_MISSING_LIBRARY},
	{true, NULL, NULL, COP_PATHCLASS_NEGATIVE},
	{false, "/site-packages/torch/lib/", NULL, COP_PATHCLASS_TORCH_NATIVE},
	{false, "/site-packages/torch", NULL, COP_PATHCLASS_TORCH_PYTHON},
	{false, "/site-packages", NULL, COP_PATHCLASS_SITE_PACKAGES},
	{false, "/lib/python", NULL, COP_PATHCLASS_STDLIB},
	{false, "/bin/", NULL, COP_PATHCLASS_BIN},
	{false, ".so", NULL, COP_PATHCLASS_SHARED_LIBRARY},
};

static bool rule_matches(const struct rule *r, const char *path, size_t len)
{
	size_t tail = r->ends ? strlen(r->ends) : 0;

	if (r->contains && !memmem(path, len, r->contains, strlen(r->contains)))
		return false;
	return tail <= len && (!tail || memcmp(path + len - tail, r->ends, tail) == 0);
}

enum cop_pathclass cop_pathclass_of(bool absence, const char *path, size_t len)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rules); i++)
		if (rules[i].absence == absence && rule_matches(&rules[i], path, len))
			return rules[i].class;
	return COP_PATHCLASS_PREFIX;
}

const char *cop_pathclass_name(enum cop_pathclass class)
{
	return names[class];
}

#define BIT(class) (1u << (class))
#define ALWAYS (~0u)
#define ABSENCES BIT(COP_PATHCLASSES)

static const struct {
	unsigned when; /* shown if any of these classes (bits) was seen */
	const char *text;
} advice[] = {
	{ALWAYS,
		"Leave the core of the environment alone: its root, `bin`, `lib`, `lib/python*` and `site-packages`."},
	{BIT(COP_PATHCLASS_TORCH_NATIVE),
		"Torch's own shared libraries are in use: look for savings around them, not among them."},
	{BIT(COP_PATHCLASS_TORCH_PYTHON) | BIT(COP_PATHCLASS_SITE_PACKAGES) |
			BIT(COP_PATHCLASS_STDLIB),
		"Python packages and the standard library are in use: first take duplicate entries out of `PYTHONPATH` and "
		"uninstall packages that the program does not need, and only then think about the interpreter's own tree."},
	{ABSENCES,
		"The program keeps asking for names that do not exist. Look for duplicate and stale entries in `LD_LIBRARY_PATH`, "
		"`PATH` and `PYTHONPATH`; leave the ENOENT TTL on."},
	{BIT(COP_PATHCLASS_MISSING_LIBRARY),
		"The loader looks for shared libraries in folders that do not have them: a shorter `LD_LIBRARY_PATH`, without old "
		"compilers and runtimes and without repetitions, is the cure with the least risk."},
	{BIT(COP_PATHCLASS_PYTHON_ZIP) | BIT(COP_PATHCLASS_VIRTUAL_ENV) | BIT(COP_PATHCLASS_HWCAPS),
		"`python*.zip`, `pyvenv.cfg` and `glibc-hwcaps` are asked for by every Python and every loader at the start: that is normal and "
		"not a fault of the program."},
	{ALWAYS,
		"In this order: duplicate search entries, then those that do not exist, then stale ones, and last a reduced copy of "
		"the tree."},
	{ALWAYS,
		"Try a reduced tree as a copy. That a path was not used in this run does not prove that no run needs it."},
};

void cop_pathclass_advice(struct cop_buf *out, unsigned seen, bool absences_served)
{
	if (absences_served)
		seen |= ABSENCES;
	for (size_t i = 0; i < COP_ARRAY_SIZE(advice); i++)
		if (advice[i].when == ALWAYS || (advice[i].when & seen))
			cop_buf_printf(out, "- %s\n", advice[i].text);
}
