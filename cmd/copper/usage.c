/* SPDX-License-Identifier: BSD-3-Clause */
#include "usage.h"

#include "cmd.h"
#include "node/ctl/ctl.h"
#include "report/usage/usage.h"

/* A node with a million objects needs some seconds to list them. */
#define TIMEOUT_MS 120000

static int report_failure(const struct cop_err *err)
{
	fprintf(stderr, "copper cache-stats: %s\n", err->text);
	return 1;
}

/* Prints the summary, and the written files. */
static int print_usage(const struct cop_usage *u, bool json)
{
	struct cop_buf out = {0};
	int rc;

	if (json)
		cop_usage_json(u, &out);
	else
		cop_usage_text(u, &out);
	rc = cop_cmd_print("copper cache-stats", &out, NULL);
	cop_buf_free(&out);
	return rc;
}

static int write_summary(const struct cop_usage *u, const char *dir, struct cop_err *err)
{
	int rc = cop_make_dirs(dir, 0755);

	if (rc)
		return cop_err_set(err, -rc, "cannot create %s: %s", dir, strerror(-rc));
	return cop_usage_write(u, dir, err);
}

int cop_cmd_usage_from(const char *from, const char *output_dir, bool json)
{
	struct cop_usage u = {0};
	struct cop_err err = {0};
	int rc = cop_usage_read(&u, from, &err), code;

	if (u.named.len)
		fprintf(stderr, "%s", u.named.data);
	if (!rc && output_dir)
		rc = write_summary(&u, output_dir, &err);
	code = rc ? report_failure(&err) : print_usage(&u, json);
	cop_usage_free(&u);
	return code;
}

/* ---- a node's reply: three times "budget LIMIT USED", then "table NAME LENGTH" and LENGTH
 * bytes ---- */

struct listing {
	struct cop_usage usage;
	struct {
		const char *text;
		size_t len;
	} table[COP_USAGE_TABLES];
};

struct input {
	const char *text;
	size_t left;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(in->left, len);

	memcpy(data, in->text, n);
	in->text += n;
	in->left -= n;
	return (ssize_t)n;
}

static int parse_table(struct listing *l, const char **at, const char *end)
{
	static const char *const names[COP_USAGE_TABLES] = {"data", "tree", "md"};
	char name[8];
	const char *why = NULL;
	struct input in;
	size_t len;
	int n = 0;

	if (sscanf(*at, "table %7s %zu%n", name, &len, &n) != 2 || (*at)[n] != '\n' ||
		len > (size_t)(end - *at - n - 1))
		return -EBADMSG;
	*at += n + 1;
	for (unsigned t = 0; t < COP_USAGE_TABLES; t++) {
		if (strcmp(name, names[t]))
			continue;
		l->table[t].text = *at;
		l->table[t].len = len;
		in = (struct input){*at, len};
		*at += len;
		return cop_usage_add(&l->usage, t, read_input, &in, &why) || why ? -EBADMSG : 0;
	}
	return -EBADMSG;
}

static int parse_listing(const struct cop_ctl_reply *reply, struct listing *l)
{
	const char *at = reply->text, *end = at + reply->len;
	int n = 0, rc = 0;

	if (sscanf(at, "budget %" SCNu64 " %" SCNu64 "%n", &l->usage.limit_bytes,
		    &l->usage.used_bytes, &n) != 2 ||
		at[n] != '\n')
		return -EBADMSG;
	l->usage.has_budget = true;
	at += n + 1;
	for (unsigned t = 0; t < COP_USAGE_TABLES && !rc; t++)
		rc = parse_table(l, &at, end);
	return rc;
}

static int write_listing(const struct listing *l, const char *dir, struct cop_err *err)
{
	int rc = write_summary(&l->usage, dir, err);

	for (unsigned t = 0; t < COP_USAGE_TABLES && !rc; t++) {
		char *path;

		if (asprintf(&path, "%s/%s", dir, cop_usage_name(t)) < 0)
			return cop_err_set(err, ENOMEM, "no memory to write into %s", dir);
		rc = cop_write_file(path, l->table[t].text, l->table[t].len, 0644);
		if (rc)
			cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
		free(path);
	}
	return rc;
}

int cop_cmd_usage_ask(const char *socket, const char *output_dir, bool json)
{
	struct cop_ctl_reply reply = {0};
	struct listing l = {0};
	struct cop_err err = {0};
	int rc = cop_ctl_call(socket, "sizes", TIMEOUT_MS, &reply, &err);

	if (!rc && reply.status)
		rc = cop_err_set(&err, EIO, "%.*s", (int)strcspn(reply.text, "\n"), reply.text);
	if (!rc && parse_listing(&reply, &l))
		rc = cop_err_set(&err, EBADMSG,
			"cannot understand the node's answer; it may run another version of copper");
	if (!rc)
		rc = write_listing(&l, output_dir, &err);
	rc = rc ? report_failure(&err) : print_usage(&l.usage, json);
	cop_usage_free(&l.usage);
	free(reply.text);
	return rc;
}
