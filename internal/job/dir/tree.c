/* SPDX-License-Identifier: BSD-3-Clause */
/* JOBDIR/logs/copper_tree.txt: what a command needs to know to contact a tree's nodes, as "KEY
 * VALUE" lines with the hosts last. It says where the secret is, but does not contain it. Unknown
 * keys come from a later version and are skipped. */
#include "job/dir/dir_priv.h"

#define TREE_MAX (64 * COP_MIB)

static char *tree_path(const char *job_dir)
{
	char *path;

	return asprintf(&path, "%s/logs/copper_tree.txt", job_dir) < 0 ? NULL : path;
}

/* ---- writing ---- */

static void add_text(struct cop_buf *out, const char *key, const char *value)
{
	/* A path may contain any byte, even a newline, which this format cannot hold. */
	if (*value && !strchr(value, '\n'))
		cop_buf_printf(out, "%s %s\n", key, value);
}

static void print_tree(const struct cop_job_tree *t, struct cop_buf *out)
{
	cop_buf_str(out, "# The nodes of this job directory, for 'copper stop --job-dir'.\n");
	cop_buf_printf(out, "state %s\n", t->stopped ? "stopped" : "running");
	cop_buf_printf(out,
		"terms %016" PRIx64 "\nfanout %" PRIu32 "\ntrees %" PRIu32
		"\npeer_timeout_ms %" PRIu32 "\n",
		t->config_hash, t->fanout, t->trees, t->peer_timeout_ms);
	cop_buf_printf(out, "insecure %d\nbook %d\n", t->insecure, t->book);
	add_text(out, "net_type", t->net_type);
	add_text(out, "secret_file", t->secret_file);
	add_text(out, "source", t->source);
	add_text(out, "socket", t->socket);
	if (t->has_ends)
		cop_buf_printf(out, "commands %" PRIu32 " %" PRIu32 "\n", t->commands, t->good);
	for (uint32_t i = 0; i < t->left_count; i++)
		cop_buf_printf(out, "left %" PRIu32 "\n", t->left[i]);
	for (uint32_t i = 0; i < t->hosts.count; i++) {
		const struct cop_job_host *h = &t->hosts.host[i];

		cop_buf_printf(out, "host %s %u %u\n", h->name, h->port, h->second_port);
	}
}

int cop_job_tree_write(const char *job_dir, const struct cop_job_tree *t, struct cop_err *err)
{
	char *path = tree_path(job_dir);
	struct cop_buf out = {0};
	int rc;

	print_tree(t, &out);
	rc = out.failed || !path ? -ENOMEM : cop_write_file(path, out.data, out.len, 0644);
	if (rc)
		cop_err_set(err, -rc, "cannot write %s/logs/copper_tree.txt: %s", job_dir,
			strerror(-rc));
	cop_buf_free(&out);
	free(path);
	return rc;
}

/* ---- reading ---- */

struct value {
	const char *text;
	size_t len;
};

static bool parse_number(struct value v, int base, uint64_t most, uint64_t *out)
{
	char text[24], *end;

	if (!v.len || v.len >= sizeof(text))
		return false;
	memcpy(text, v.text, v.len);
	text[v.len] = '\0';
	if (strspn(text, base == 16 ? "0123456789abcdef" : "0123456789") != v.len)
		return false;
	errno = 0;
	*out = strtoull(text, &end, base);
	return !errno && *out <= most;
}

static bool parse_u32(struct value v, uint32_t *out)
{
	uint64_t n;
	bool ok = parse_number(v, 10, UINT32_MAX, &n);

	*out = ok ? (uint32_t)n : 0;
	return ok;
}

static bool parse_bool(struct value v, bool *out)
{
	uint64_t n;
	bool ok = parse_number(v, 10, 1, &n);

	*out = ok && n;
	return ok;
}

static bool parse_text(struct value v, char *out, size_t size)
{
	if (v.len >= size || memchr(v.text, 0, v.len))
		return false;
	memcpy(out, v.text, v.len);
	out[v.len] = '\0';
	return true;
}

/* Splits the first word off v. */
static struct value next_word(struct value *v)
{
	const char *space = memchr(v->text, ' ', v->len);
	struct value w = {v->text, space ? (size_t)(space - v->text) : v->len};
	size_t used = w.len + (space != NULL);

	v->text += used;
	v->len -= used;
	return w;
}

static bool parse_host(struct value v, struct cop_job_builder *b)
{
	struct value name = next_word(&v), first = next_word(&v);
	uint64_t port, second;

	if (!cop_job_name_ok(name.text, name.len) || !parse_number(first, 10, UINT16_MAX, &port) ||
		!port || !parse_number(v, 10, UINT16_MAX, &second) ||
		cop_job_builder_add(b, name.text, name.len, (uint16_t)port))
		return false;
	b->hosts.host[b->hosts.count - 1].second_port = (uint16_t)second;
	return true;
}

static bool parse_left(struct value v, struct cop_job_tree *t)
{
	return t->left_count < COP_JOB_TREE_LEFT && parse_u32(v, &t->left[t->left_count++]);
}

static bool parse_ends(struct value v, struct cop_job_tree *t)
{
	struct value all = next_word(&v);

	t->has_ends = true;
	return parse_u32(all, &t->commands) && parse_u32(v, &t->good) && t->good <= t->commands;
}

static bool key_is(struct value key, const char *name)
{
	return key.len == strlen(name) && memcmp(key.text, name, key.len) == 0;
}

static bool parse_field(
	struct cop_job_tree *t, struct cop_job_builder *b, struct value key, struct value v)
{
	if (key_is(key, "state")) {
		t->stopped = key_is(v, "stopped");
		return t->stopped || key_is(v, "running");
	}
	if (key_is(key, "terms"))
		return parse_number(v, 16, UINT64_MAX, &t->config_hash);
	if (key_is(key, "fanout"))
		return parse_u32(v, &t->fanout);
	if (key_is(key, "trees"))
		return parse_u32(v, &t->trees);
	if (key_is(key, "peer_timeout_ms"))
		return parse_u32(v, &t->peer_timeout_ms) && t->peer_timeout_ms;
	if (key_is(key, "insecure"))
		return parse_bool(v, &t->insecure);
	if (key_is(key, "book"))
		return parse_bool(v, &t->book);
	if (key_is(key, "net_type"))
		return parse_text(v, t->net_type, sizeof(t->net_type));
	if (key_is(key, "secret_file"))
		return parse_text(v, t->secret_file, sizeof(t->secret_file));
	if (key_is(key, "source"))
		return parse_text(v, t->source, sizeof(t->source));
	if (key_is(key, "socket"))
		return parse_text(v, t->socket, sizeof(t->socket));
	if (key_is(key, "commands"))
		return parse_ends(v, t);
	if (key_is(key, "left"))
		return parse_left(v, t);
	return !key_is(key, "host") || parse_host(v, b);
}

/* A file without an end line is truncated; we cannot know what is missing. */
int cop_job_tree_parse(
	const char *text, size_t len, const char *name, struct cop_job_tree *t, struct cop_err *err)
{
	struct cop_job_builder b = {0};
	const char *end = text + len, *next;
	unsigned number = 0;
	bool ok = true;

	*t = (struct cop_job_tree){.peer_timeout_ms = 3000};
	for (; ok && text < end; text = next) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct value line = {text, stop ? (size_t)(stop - text) : 0}, key;

		number++;
		ok = stop != NULL;
		next = stop ? stop + 1 : end;
		key = next_word(&line);
		ok = ok && (!key.len || key.text[0] == '#' || parse_field(t, &b, key, line));
	}
	t->hosts = b.hosts;
	if (!ok)
		cop_err_set(err, EINVAL, "%s: line %u does not belong in a list of a tree's nodes",
			name, number);
	else if (!t->hosts.count || !t->fanout || !t->trees || !t->net_type[0])
		ok = cop_err_set(err, EINVAL, "%s is not a list of a tree's nodes, or is truncated",
			     name) == 0;
	if (!ok)
		cop_job_tree_free(t);
	return ok ? 0 : -EINVAL;
}

int cop_job_tree_read(const char *job_dir, struct cop_job_tree *t, struct cop_err *err)
{
	char *path = tree_path(job_dir), *text = NULL;
	size_t len = 0;
	int rc = path ? cop_read_file(path, TREE_MAX, &text, &len) : -ENOMEM;

	*t = (struct cop_job_tree){0};
	if (rc)
		cop_err_set(err, -rc, "cannot read %s/logs/copper_tree.txt: %s", job_dir,
			strerror(-rc));
	else
		rc = cop_job_tree_parse(text, len, path, t, err);
	free(text);
	free(path);
	return rc;
}

void cop_job_tree_free(struct cop_job_tree *t)
{
	cop_job_hosts_free(&t->hosts);
	*t = (struct cop_job_tree){0};
}
