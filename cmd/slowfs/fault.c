/* SPDX-License-Identifier: BSD-3-Clause */
#include "state_priv.h"

/* Copies path without any slashes at either end. */
static int trim_path(const char *path, char out[COP_SLOWFS_PATH_MAX])
{
	size_t len;

	while (*path == '/')
		path++;
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	if (len >= COP_SLOWFS_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, path, len);
	out[len] = '\0';
	return 0;
}

static int add_fault(struct cop_slowfs_state *s, enum cop_slowfs_fault kind, int64_t bytes,
	const char *path, struct cop_err *err)
{
	char trimmed[COP_SLOWFS_PATH_MAX];
	uint32_t n;
	int rc = trim_path(path, trimmed);

	if (rc)
		return cop_err_set(err, -rc, "the path of the fault is too long");
	cop_slowfs_state_lock(s);
	n = atomic_load(&s->faults_set);
	if (n < COP_SLOWFS_MAX_FAULTS) {
		s->fault[n].kind = kind;
		s->fault[n].bytes = bytes;
		memcpy(s->fault[n].path, trimmed, sizeof(trimmed));
		atomic_store(&s->faults_set, n + 1);
	}
	cop_slowfs_state_unlock(s);
	if (n >= COP_SLOWFS_MAX_FAULTS)
		return cop_err_set(err, ENOSPC, "%d faults are set already; clear them first",
			COP_SLOWFS_MAX_FAULTS);
	return 0;
}

/* Parses BYTES:PATH, with or without a sign. */
static int add_size(struct cop_slowfs_state *s, const char *text, struct cop_err *err)
{
	char *end;
	long long bytes;

	errno = 0;
	bytes = strtoll(text, &end, 10);
	if (errno || end == text || *end != ':')
		return cop_err_set(err, EINVAL, "'%s' is not BYTES:PATH", text);
	return add_fault(s, SLOWFS_SIZE, bytes, end + 1, err);
}

int cop_slowfs_fault_set(struct cop_slowfs_state *s, const char *text, struct cop_err *err)
{
	if (!strcmp(text, "clear")) {
		atomic_store(&s->faults_set, 0);
		return 0;
	}
	if (!strncmp(text, "eio=", 4))
		return add_fault(s, SLOWFS_EIO, 0, text + 4, err);
	if (!strncmp(text, "enoent=", 7))
		return add_fault(s, SLOWFS_ENOENT, 0, text + 7, err);
	if (!strncmp(text, "hang=", 5))
		return add_fault(s, SLOWFS_HANG, 0, text + 5, err);
	if (!strncmp(text, "size=", 5))
		return add_size(s, text + 5, err);
	return cop_err_set(err, EINVAL,
		"unknown fault '%s'; say eio=PATH, enoent=PATH, hang=PATH, size=BYTES:PATH or clear",
		text);
}

bool cop_slowfs_fault_any(struct cop_slowfs_state *s)
{
	return atomic_load(&s->faults_set) != 0;
}

static bool fault_covers(const char *fault_path, const char *path)
{
	size_t len = strlen(fault_path);

	if (len == 0)
		return true;
	return !strncmp(fault_path, path, len) && (path[len] == '\0' || path[len] == '/');
}

enum cop_slowfs_fault cop_slowfs_fault_of(struct cop_slowfs_state *s, const char *path)
{
	enum cop_slowfs_fault found = SLOWFS_NO_FAULT;
	uint32_t n;

	cop_slowfs_state_lock(s);
	n = COP_MIN(atomic_load(&s->faults_set), (uint32_t)COP_SLOWFS_MAX_FAULTS);
	for (uint32_t i = 0; i < n && found == SLOWFS_NO_FAULT; i++) {
		if (s->fault[i].kind != SLOWFS_SIZE && fault_covers(s->fault[i].path, path))
			found = s->fault[i].kind;
	}
	cop_slowfs_state_unlock(s);
	return found;
}

int64_t cop_slowfs_fault_size(struct cop_slowfs_state *s, const char *path)
{
	int64_t bytes = 0;
	uint32_t n;

	cop_slowfs_state_lock(s);
	n = COP_MIN(atomic_load(&s->faults_set), (uint32_t)COP_SLOWFS_MAX_FAULTS);
	for (uint32_t i = 0; i < n && !bytes; i++)
		if (s->fault[i].kind == SLOWFS_SIZE && fault_covers(s->fault[i].path, path))
			bytes = s->fault[i].bytes;
	cop_slowfs_state_unlock(s);
	return bytes;
}
