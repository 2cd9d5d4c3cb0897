/* SPDX-License-Identifier: BSD-3-Clause */
/* The fallback if namespaces are refused: rewrites the environment variables through which programs
 * find each other. copper-guide(7) shows how to do the same by hand. */
#include "mount/view/view_priv.h"

#include <libgen.h>

static const char *const names[] = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
	"CONDA_PREFIX", "VIRTUAL_ENV", "PERL5LIB", "MODULEPATH"};

bool cop_view_is_below(const char *path, const char *dir)
{
	size_t len = strcmp(dir, "/") ? strlen(dir) : 0;

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]);
}

static bool is_replaced(const struct cop_view *v, const char *path)
{
	for (unsigned i = 0; i < v->belows; i++)
		if (cop_view_is_below(path, v->below[i]))
			return true;
	return !v->belows && cop_view_is_below(path, v->source);
}

void cop_view_env_path(const struct cop_view *v, const char *path, char out[PATH_MAX])
{
	size_t source = strcmp(v->source, "/") ? strlen(v->source) : 0;
	char copy[PATH_MAX], dir[PATH_MAX], whole[2 * PATH_MAX];

	out[0] = '\0';
	if (path[0] != '/' || strlen(path) >= sizeof(copy))
		return;
	/* Resolve links in the directory part, but not the last name, which may be a link on
	 * purpose. */
	strcpy(copy, path);
	if (realpath(dirname(copy), dir)) {
		strcpy(copy, path);
		snprintf(
			whole, sizeof(whole), "%s/%s", strcmp(dir, "/") ? dir : "", basename(copy));
	} else {
		snprintf(whole, sizeof(whole), "%s", path);
	}
	if (is_replaced(v, whole) && !cop_view_is_below(whole, v->mountpoint))
		snprintf(out, PATH_MAX, "%.*s%.*s", PATH_MAX / 2, v->mountpoint, PATH_MAX / 2 - 1,
			whole + source);
}

static int rewrite_variable(const struct cop_view *v, const char *name, struct cop_err *err)
{
	const char *value = getenv(name);
	struct cop_buf out = {0};
	int rc = 0;

	for (const char *at = value; at && *at;) {
		size_t len = strcspn(at, ":");
		char one[PATH_MAX], moved[PATH_MAX] = "";

		if (len < sizeof(one)) {
			snprintf(one, sizeof(one), "%.*s", (int)len, at);
			cop_view_env_path(v, one, moved);
		}
		if (moved[0])
			cop_buf_str(&out, moved);
		else
			cop_buf_add(&out, at, len);
		at += len;
		if (*at == ':') {
			cop_buf_str(&out, ":");
			at++;
		}
	}
	if (out.failed || (out.len && setenv(name, out.data, 1)))
		rc = cop_err_set(err, ENOMEM, "out of memory for %s", name);
	cop_buf_free(&out);
	return rc;
}

int cop_view_env(const struct cop_view *v, struct cop_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(names) && !rc; i++)
		rc = rewrite_variable(v, names[i], err);
	return rc;
}

/* Reads the directory from the line "home = DIR" of a virtual environment. */
static bool read_home(const char *command, char home[PATH_MAX])
{
	char copy[PATH_MAX], file[PATH_MAX + 32], *text, *at;
	size_t len;
	bool found;

	if (strlen(command) >= sizeof(copy))
		return false;
	strcpy(copy, command);
	snprintf(file, sizeof(file), "%s/../pyvenv.cfg", dirname(copy));
	if (cop_read_file(file, 65536, &text, &len))
		return false;
	at = strstr(text, "home = ");
	found = at && (at == text || at[-1] == '\n') && sscanf(at, "home = %4095[^\n]", home) == 1;
	free(text);
	return found;
}

void cop_view_env_python(const struct cop_view *v, const char *command)
{
	char home[PATH_MAX], moved[PATH_MAX];

	if (!strchr(command, '/') || getenv("PYTHONHOME") || !read_home(command, home))
		return;
	cop_view_env_path(v, dirname(home), moved);
	if (moved[0])
		setenv("PYTHONHOME", moved, 1);
}
