/* SPDX-License-Identifier: BSD-3-Clause */
/* copper trace merge and copper trace timeline: one timeline, as JSON or as a page. */
#include "cmd.h"
#include "trace.h"
#include "trace/timeline/timeline.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <zlib.h>

/* A large output file that gets its final name only when complete. Until then, it has a temporary
 * name in the same directory, and is removed if the process fails or receives a signal that can be
 * caught. Only one per process at a time. */
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

/* A signal that is ignored, as under nohup, stays ignored. Exceeding the file size limit is
 * reported as a write error. */
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

/* Signals stay blocked until the handler knows the temporary file. */
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

/* Renames the file to its final name if rc is 0, else removes it; frees o, which may be NULL.
 * Returns rc, or -errno on failure. */
static int close_output(struct trace_out *o, int rc)
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

/* Opens the output, compressed with gzip if the path ends in ".gz". Returns 0, or -errno with a
 * message and *out NULL. */
static int open_output(const char *path, struct trace_out **out, struct cop_err *err)
{
	struct trace_out *o = calloc(1, sizeof(*o));
	int rc;

	*out = NULL;
	if (!o)
		return cop_err_set(err, ENOMEM, "no memory to write %s", path);
	rc = open_out(o, path, err);
	if (rc)
		return close_output(o, rc);
	*out = o;
	return 0;
}

/* Returns 0 or -errno. */
static int put_output(struct trace_out *o, const char *data, size_t len)
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

struct args {
	struct trace_select select; /* first */
	const char *output;
	uint64_t limit;
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "output", struct args, output,
		"the timeline; compressed if FILE ends in .gz", .letter = 'o', .arg = "FILE"),
	TRACE_SELECT_EVENT_ROWS,
};
static const struct cop_opt page_rows[] = {
	COP_OPT(STRING, "output", struct args, output, "the page", .letter = 'o', .arg = "FILE"),
	COP_OPT(U64, "limit", struct args, limit, "draw at most the N longest spans", .arg = "N",
		.min = 1000, .max = 4000000, .initial = "1000000"),
	TRACE_SELECT_EVENT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_merge_options = {.command = "copper trace merge",
	.summary = "merge all traces into one timeline, for Perfetto and Chromium's viewer",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
const struct cop_opt_table cop_cmd_trace_timeline_options = {.command = "copper trace timeline",
	.summary = "write the timeline as one HTML page, for any browser",
	COP_OPT_ROWS(page_rows),
	COP_OPT_OPERANDS(operands)};

struct job {
	struct trace_run run;
	const struct cop_opt_table *table;
	const char *path;
	size_t limit;
	struct cop_merge *merge;
	struct cop_timeline *page; /* for trace timeline */
	struct trace_out *out;
	int out_rc; /* error of writing it */
	uint64_t bytes;
};

static bool is_page(const struct job *job)
{
	return job->table == &cop_cmd_trace_timeline_options;
}

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_merge_free(job->merge);
	cop_timeline_free(job->page);
	job->merge = NULL;
	job->page = NULL;
	if (is_page(job))
		job->page = cop_timeline_new(run->threads, cop_cmd_trace_temp(), job->limit);
	else
		job->merge = cop_merge_new(run->threads, cop_cmd_trace_temp());
	return job->page || job->merge ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return job->page ? cop_timeline_add(job->page, worker, e)
			 : cop_merge_add(job->merge, worker, e);
}

static int put(void *arg, const char *data, size_t len)
{
	struct job *job = arg;

	job->bytes += len;
	cop_cmd_trace_progress(&job->run, job->bytes / COP_MIB, "MiB written");
	job->out_rc = put_output(job->out, data, len);
	return job->out_rc;
}

/* Closes the file in any case, so that a failure of close is reported, too. */
static int write_output(struct job *job)
{
	struct cop_err err = {0};
	int written = job->page ? cop_timeline_write(job->page, job->run.files, put, job)
				: cop_merge_write(job->merge, job->run.files, put, job);
	int rc = close_output(job->out, written);

	job->out = NULL;
	cop_cmd_trace_progress_end(&job->run);
	if (!rc)
		return 0;
	if (written && !job->out_rc)
		cop_err_set(&err, -written, "the events cannot be put in order in %s: %s",
			cop_cmd_trace_temp(), strerror(-written));
	else
		cop_err_set(&err, -rc, "%s cannot be written: %s", job->path, strerror(-rc));
	return cop_cmd_trace_fail(&job->run, &err);
}

/* The output may be in a directory that is being read. */
static int begin_output(struct job *job)
{
	struct cop_err err = {0};

	if (cop_trace_files_leave_out(job->run.files, job->path))
		fprintf(stderr, "%s: %s is not read, because it is the output\n",
			job->table->command, job->path);
	if (!cop_trace_files_count(job->run.files))
		cop_err_set(&err, ENOENT, "there is no file to read");
	else
		open_output(job->path, &job->out, &err);
	return err.text[0] ? cop_cmd_trace_fail(&job->run, &err) : 0;
}

static int run(const struct cop_opt_table *table, int argc, char **argv)
{
	struct args a = {0};
	struct job job = {.table = table};
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	if (!a.output || !*a.output) {
		cop_err_set(&err, EINVAL,
			"-o FILE is missing: name the file that receives the timeline");
		return cop_opt_misuse(table, &err);
	}
	job.path = a.output;
	job.limit = (size_t)a.limit;
	code = cop_cmd_trace_open(&job.run, table, &a.select, &a.paths);
	if (!code)
		code = begin_output(&job);
	if (!code)
		code = cop_cmd_trace_read(&job.run, &(struct trace_reading){.names = true,
							    .whole = true,
							    .make = make,
							    .add = add_event,
							    .arg = &job,
							    .temp = cop_cmd_trace_temp()});
	if (!code)
		code = write_output(&job);
	close_output(job.out, -ECANCELED);
	cop_merge_free(job.merge);
	cop_timeline_free(job.page);
	cop_cmd_trace_close(&job.run);
	return code;
}

int cop_cmd_trace_merge(int argc, char **argv)
{
	return run(&cop_cmd_trace_merge_options, argc, argv);
}

int cop_cmd_trace_timeline(int argc, char **argv)
{
	return run(&cop_cmd_trace_timeline_options, argc, argv);
}
