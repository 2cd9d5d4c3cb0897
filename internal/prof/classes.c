/* SPDX-License-Identifier: BSD-3-Clause */
/* What kind of path it is, by its name, and what that suggests for a smaller environment. */
#include <string.h>

#include "prof/prof_priv.h"

static const char *const names[CLASSES] = {
	[CLASS_PYTHON_ZIP] = "python_zip_probe",
	[CLASS_VIRTUAL_ENV] = "virtual_env_probe",
	[CLASS_HWCAPS] = "glibc_hwcaps_probe",
	[CLASS_MISSING_LIBRARY] = "missing_shared_library_probe",
	[CLASS_NEGATIVE] = "negative_probe_path",
	[CLASS_TORCH_NATIVE] = "torch_native_library",
	[CLASS_TORCH_PYTHON] = "torch_python_package",
	[CLASS_SITE_PACKAGES] = "python_site_packages",
	[CLASS_STDLIB] = "python_stdlib",
	[CLASS_BIN] = "environment_bin",
	[CLASS_SHARED_LIBRARY] = "shared_library",
	[CLASS_PREFIX] = "environment_prefix",
};

/* The first row that fits decides; a row without words fits always. */
static const struct rule {
	bool absence; /* for remembered absences, else for the tables */
	const char *contains, *ends;
	enum path_class class;
} rules[] = {
	{true, "python", ".zip", CLASS_PYTHON_ZIP},
	{true, NULL, "/pyvenv.cfg", CLASS_VIRTUAL_ENV},
	{true, "glibc-hwcaps", NULL, CLASS_HWCAPS},
	{true, ".so", NULL, CLASS_MISSING_LIBRARY},
	{true, NULL, NULL, CLASS_NEGATIVE},
	{false, "/site-packages/torch/lib/", NULL, CLASS_TORCH_NATIVE},
	{false, "/site-packages/torch", NULL, CLASS_TORCH_PYTHON},
	{false, "/site-packages", NULL, CLASS_SITE_PACKAGES},
	{false, "/lib/python", NULL, CLASS_STDLIB},
	{false, "/bin/", NULL, CLASS_BIN},
	{false, ".so", NULL, CLASS_SHARED_LIBRARY},
};

static bool fits(const struct rule *r, const char *path, size_t len)
{
	size_t tail = r->ends ? strlen(r->ends) : 0;

	if (r->contains && !memmem(path, len, r->contains, strlen(r->contains)))
		return false;
	return tail <= len && (!tail || memcmp(path + len - tail, r->ends, tail) == 0);
}

enum path_class cop_prof_class(enum category c, const char *path, size_t len)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(rules); i++)
		if (rules[i].absence == (c == CATEGORY_TTL) && fits(&rules[i], path, len))
			return rules[i].class;
	return CLASS_PREFIX;
}

const char *cop_prof_class_name(enum path_class class)
{
	return names[class];
}

#define BIT(class) (1u << (class))
#define ALWAYS (~0u)
#define ABSENCES BIT(CLASSES)

static const struct {
	unsigned when; /* any of these was seen */
	const char *text;
} advice[] = {
	{ALWAYS, "Leave the core of the environment alone: its root, `bin`, `lib`, `lib/python*` and `site-packages`."},
	{BIT(CLASS_TORCH_NATIVE), "Torch's own shared libraries are in use: look for savings around them, not among them."},
	{BIT(CLASS_TORCH_PYTHON) | BIT(CLASS_SITE_PACKAGES) | BIT(CLASS_STDLIB),
		"Python packages and the standard library are in use: first take duplicate entries out of `PYTHONPATH` and "
		"uninstall packages that the program does not need, and only then think about the interpreter's own tree."},
	{ABSENCES, "The program keeps asking for names that do not exist. Look for duplicate and stale entries in `LD_LIBRARY_PATH`, "
		"`PATH` and `PYTHONPATH`; leave the ENOENT TTL on."},
	{BIT(CLASS_MISSING_LIBRARY),
		"The loader looks for shared libraries in folders that do not have them: a shorter `LD_LIBRARY_PATH`, without old "
		"compilers and runtimes and without repetitions, is the cure with the least risk."},
	{BIT(CLASS_PYTHON_ZIP) | BIT(CLASS_VIRTUAL_ENV) | BIT(CLASS_HWCAPS),
		"`python*.zip`, `pyvenv.cfg` and `glibc-hwcaps` are asked for by every Python and every loader at the start: that is normal and "
		"not a fault of the program."},
	{ALWAYS, "In this order: duplicate search entries, then those that do not exist, then stale ones, and last a reduced copy of "
		"the tree."},
	{ALWAYS, "Try a reduced tree as a copy. That a path was not used in this run does not prove that no run needs it."},
};

void cop_prof_advice(struct cop_buf *out, unsigned seen, bool absences_served)
{
	if (absences_served)
		seen |= ABSENCES;
	for (size_t i = 0; i < COP_ARRAY_SIZE(advice); i++)
		if (advice[i].when == ALWAYS || (advice[i].when & seen))
			cop_buf_printf(out, "- %s\n", advice[i].text);
}
