/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <sys/stat.h>

#include "report/paths/paths_priv.h"

#define BUFFER (256 * COP_KIB)

int cop_paths_out_open(struct out *o, const char *dir, const char *name)
{
	*o = (struct out){.fd = -1, .at = {.fd = -1}};
	if (asprintf(&o->path, "%s/%s", dir, name) < 0)
		o->path = NULL;
	o->data = malloc(BUFFER);
	if (!o->path || !o->data)
		return o->rc = -ENOMEM;
	o->rc = cop_dir_of(o->path, &o->at);
	if (o->rc)
		return o->rc;
	o->fd = cop_open_temp(&o->at, &o->tmp);
	if (o->fd < 0)
		o->rc = o->fd;
	else if (fchmod(o->fd, 0644))
		o->rc = -errno;
	return o->rc;
}

static void flush_output(struct out *o)
{
	ssize_t n = o->rc ? 0 : cop_write_full(o->fd, o->data, o->len);

	if (n < 0)
		o->rc = (int)n;
	o->len = 0;
}

void cop_paths_out_add(struct out *o, const char *data, size_t len)
{
	while (len && !o->rc) {
		size_t n = COP_MIN(len, BUFFER - o->len);

		memcpy(o->data + o->len, data, n);
		o->len += n;
		data += n;
		len -= n;
		if (o->len == BUFFER)
			flush_output(o);
	}
}

int cop_paths_out_finish(struct out *o)
{
	flush_output(o);
	if (o->fd >= 0 && close(o->fd) && !o->rc)
		o->rc = -errno;
	if (o->fd < 0 && !o->rc)
		o->rc = -EBADF;
	o->fd = -1;
	return o->rc;
}

int cop_paths_out_close(struct out *o, bool keep)
{
	int rc = o->rc;

	if (o->fd >= 0)
		close(o->fd);
	if (keep && !rc && renameat(o->at.fd, o->tmp, o->at.fd, o->at.name))
		rc = -errno;
	if ((!keep || rc) && o->tmp)
		unlinkat(o->at.fd, o->tmp, 0);
	cop_dir_done(&o->at);
	free(o->path);
	free(o->tmp);
	free(o->data);
	*o = (struct out){.fd = -1, .at = {.fd = -1}};
	return rc;
}
