/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <zlib.h>

#include "trace_out.h"

struct trace_out {
	struct cop_dir at;
	char *tmp;
	gzFile file;
};

/* The file to remove on a signal. */
static struct trace_out *volatile current;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};

static void on_signal(int number)
{
	const struct trace_out *o = current;

	if (o)
		unlinkat(o->at.fd, o->tmp, 0);
	signal(number, SIG_DFL);
	raise(number);
}

/* An ignored signal, as under nohup, stays ignored. A file that grows too large is a write
 * error. */
static void catch_signals(void (*handler)(int))
{
	struct sigaction now;

	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
			signal(signals[i], handler);
	signal(SIGXFSZ, SIG_IGN);
}

/* zlib writes both formats; mode T means uncompressed. */
static gzFile open_form(int fd, const char *path)
{
	size_t len = strlen(path);
	bool gz = len > 3 && !strcmp(path + len - 3, ".gz");
	gzFile file = gzdopen(fd, gz ? "wb" : "wbT");

	if (file)
		gzbuffer(file, 128 * COP_KIB);
	return file;
}

static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Signals are blocked until their handler has the temporary file. */
static int create(struct trace_out *o)
{
	sigset_t block, before;
	int fd;

	sigemptyset(&block);
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		sigaddset(&block, signals[i]);
	sigprocmask(SIG_BLOCK, &block, &before);
	fd = cop_open_temp(&o->at, &o->tmp);
	if (fd >= 0) {
		current = o;
		catch_signals(on_signal);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

static int open_out(struct trace_out *o, const char *path, struct cop_err *err)
{
	struct stat st;
	int fd, rc = cop_dir_of(path, &o->at);

	if (!rc && !stat(path, &st) && !S_ISREG(st.st_mode))
		return cop_err_set(
			err, EINVAL, "%s is not a regular file, so it is not replaced", path);
	fd = rc ? rc : create(o);
	if (fd < 0)
		return cop_err_set(err, -fd, "%s cannot be written: %s", path, strerror(-fd));
	if (fchmod(fd, usual_mode()))
		rc = -errno;
	o->file = rc ? NULL : open_form(fd, path);
	if (o->file)
		return 0;
	close(fd);
	return cop_err_set(err, rc ? -rc : ENOMEM, "%s cannot be written: %s", path,
		strerror(rc ? -rc : ENOMEM));
}

int cop_trace_out_open(const char *path, struct trace_out **out, struct cop_err *err)
{
	struct trace_out *o = calloc(1, sizeof(*o));
	int rc;

	*out = NULL;
	if (!o)
		return cop_err_set(err, ENOMEM, "no memory to write %s", path);
	rc = open_out(o, path, err);
	if (rc)
		return cop_trace_out_close(o, rc);
	*out = o;
	return 0;
}

int cop_trace_out_put(struct trace_out *o, const char *data, size_t len)
{
	errno = 0;
	while (len) {
		unsigned part = (unsigned)COP_MIN(len, (size_t)COP_MIB);

		if (gzwrite(o->file, data, part) != (int)part)
			return errno ? -errno : -EIO;
		data += part;
		len -= part;
	}
	return 0;
}

int cop_trace_out_close(struct trace_out *o, int rc)
{
	if (!o)
		return rc;
	errno = 0;
	if (o->file && gzclose(o->file) != Z_OK && !rc)
		rc = errno ? -errno : -EIO;
	if (!rc && renameat(o->at.fd, o->tmp, o->at.fd, o->at.name))
		rc = -errno;
	if (rc && o->tmp)
		unlinkat(o->at.fd, o->tmp, 0);
	catch_signals(SIG_DFL);
	current = NULL;
	free(o->tmp);
	cop_dir_done(&o->at);
	free(o);
	return rc;
}
