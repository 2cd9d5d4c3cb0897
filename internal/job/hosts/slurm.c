/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's addresses of its nodes, which save queries to the name service. There are two local
 * sources:
 *
 *     SLURM_NODE_ALIASES   "n1:10.0.0.1:host,n2:[fd77::2]:host", in jobs on cloud nodes
 *     slurm.conf           "NodeName=n[1-4] NodeAddr=10.0.0.[1-4] ...", and files that it includes
 *
 * We do not ask the controller, because ten thousand nodes would do so at once. Unrecognized text
 * is skipped, because we can still look up the names. A loopback address is skipped too: several
 * slurmd on one machine share it. */
#include <fcntl.h>
#include <strings.h>

#include "job/hosts/hosts_priv.h"
#include "base/log/log.h"

#define CONF_MAX (16 * COP_MIB)
#define INCLUDES_MAX 16 /* files in total */
/* Nodes in all files; Slurm lists each node once. */
#define NAMES_MAX ((uint64_t)COP_JOB_MAX_HOSTS)

struct learning {
	struct cop_job_hosts *hosts;
	struct cop_job_map
		ranks;    /* by name, with port 0; the first of adjacent hosts with the same name */
	unsigned files;   /* read so far */
	uint64_t names;   /* node names expanded so far */
	const char *path; /* the file being read */
	bool told;
};

static void learn_address(struct learning *l, const char *name, size_t len, const char *text)
{
	struct cop_ip address;
	uint32_t i = cop_job_map_get(&l->ranks, name, len, 0);

	if (i == COP_JOB_ABSENT || !cop_ip_parse(text, &address) || cop_ip_is_loopback(&address) ||
		cop_ip_is_link_local(&address))
		return;
	for (struct cop_job_host *h = l->hosts->host; i < l->hosts->count; i++) {
		if (strlen(h[i].name) != len || memcmp(h[i].name, name, len))
			break;
		h[i].address = address;
	}
}

/* ---- the environment ---- */

static void learn_aliases(struct learning *l, const char *text)
{
	while (text && *text) {
		size_t len = strcspn(text, ","), name = strcspn(text, ":,");
		const char *at = text + name + (text[name] == ':');
		char address[COP_IP_TEXT_SIZE] = "";
		bool bracket = *at == '[';

		at += bracket;
		snprintf(address, sizeof(address), "%.*s", (int)strcspn(at, bracket ? "]," : ":,"),
			at);
		learn_address(l, text, name, address);
		text += len + (text[len] == ',');
	}
}

/* ---- slurm.conf ---- */

/* Logged only once: we can still get the addresses from the name service. */
static void leave_out(struct learning *l, const char *path, const char *why)
{
	if (!l->told)
		cop_log_warn(
			"addresses of Slurm's nodes are left out, so the name service decides path=\"%s\" why=\"%s\"",
			path, why);
	l->told = true;
}

/* Whether both lists have the same number of items and the total stays within the limit. We only
 * count them, because a file may ask for any number. */
static bool lists_fit(struct learning *l, const char *names, size_t names_len,
	const char *addresses, size_t addresses_len)
{
	uint64_t n, a;
	struct cop_err err = {0};
	int rc = cop_job_list_count(names, names_len, &n, &err);

	if (!rc)
		rc = cop_job_list_count(addresses, addresses_len, &a, &err);
	if (rc == -E2BIG)
		leave_out(l, l->path, err.text);
	if (rc || n != a)
		return false;
	if (l->names + n > NAMES_MAX) {
		leave_out(l, l->path, "it names more than 200000 nodes");
		return false;
	}
	l->names += n;
	return true;
}

static void learn_lists(struct learning *l, const char *names, size_t names_len,
	const char *addresses, size_t addresses_len)
{
	struct cop_job_builder n = {0}, a = {0};

	if (!lists_fit(l, names, names_len, addresses, addresses_len))
		return;
	if (cop_job_list_expand(names, names_len, 0, &n, NULL) == 0 &&
		cop_job_list_expand(addresses, addresses_len, 0, &a, NULL) == 0)
		for (uint32_t i = 0; i < n.hosts.count; i++)
			learn_address(l, n.hosts.host[i].name, strlen(n.hosts.host[i].name),
				a.hosts.host[i].name);
	cop_job_hosts_free(&n.hosts);
	cop_job_hosts_free(&a.hosts);
}

/* What follows "Key=" on the line; NULL if it is not there. */
static const char *value_of(const char *line, size_t len, const char *key, size_t *value_len)
{
	size_t key_len = strlen(key);

	for (const char *p = line, *end = line + len; p < end;) {
		size_t word;

		while (p < end && strchr(" \t\r", *p))
			p++;
		for (word = 0; p + word < end && !strchr(" \t\r", p[word]); word++)
			;
		if (word > key_len + 1 && p[key_len] == '=' && strncasecmp(p, key, key_len) == 0) {
			*value_len = word - key_len - 1;
			return p + key_len + 1;
		}
		p += word;
	}
	return NULL;
}

static void read_conf(struct learning *l, const char *path);

static void read_included(struct learning *l, const char *from, const char *name, size_t len)
{
	const char *slash = strrchr(from, '/');
	char path[4096];
	int n;

	while (len && strchr(" \t", *name))
		name++, len--;
	while (len && strchr(" \t\r", name[len - 1]))
		len--;
	n = *name == '/' || !slash ? snprintf(path, sizeof(path), "%.*s", (int)len, name)
				   : snprintf(path, sizeof(path), "%.*s/%.*s", (int)(slash - from),
					     from, (int)len, name);
	if (len && n < (int)sizeof(path))
		read_conf(l, path);
}

static void read_line(struct learning *l, const char *path, const char *line, size_t len)
{
	size_t names_len, addresses_len;
	const char *names = value_of(line, len, "NodeName", &names_len);
	const char *addresses = value_of(line, len, "NodeAddr", &addresses_len);

	if (names && addresses)
		learn_lists(l, names, names_len, addresses, addresses_len);
	else if (len > 8 && strncasecmp(line, "Include", 7) == 0 && strchr(" \t", line[7]))
		read_included(l, path, line + 8, len - 8);
}

/* Opening a fifo for reading would block until someone opens it for writing. */
static bool is_file(const char *path)
{
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, path, &size);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void read_text(struct learning *l, const char *path, char *text, size_t len)
{
	struct cop_job_lines lines = {.p = text, .end = text + len};
	const char *line, *before = l->path;

	/* A backslash at the end of a line continues it. */
	for (char *p = text; (p = strstr(p, "\\\n"));)
		p[0] = p[1] = ' ';
	l->path = path;
	while (cop_job_lines_next(&lines, &line, &len))
		read_line(l, path, line, len);
	l->path = before;
}

static void read_conf(struct learning *l, const char *path)
{
	size_t len;
	char *text;
	int rc;

	if (l->files == INCLUDES_MAX) {
		leave_out(l, path, "more than 16 files are included");
		return;
	}
	if (!is_file(path))
		return;
	rc = cop_read_file(path, CONF_MAX, &text, &len);
	if (rc) {
		leave_out(l, path, strerror(-rc));
		return;
	}
	l->files++;
	read_text(l, path, text, len);
	free(text);
}

/* ---- both ---- */

uint64_t cop_job_slurm_addresses(struct cop_job_hosts *h)
{
	/* In configless mode, slurmd keeps the configuration in one of the last two. */
	static const char *const places[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
		"/var/spool/slurmd/conf-cache/slurm.conf"};
	struct learning l = {.hosts = h};
	const char *conf = getenv("SLURM_CONF");

	if (cop_job_map_init(&l.ranks, h->count))
		return 0;
	for (uint32_t i = 0; i < h->count; i++)
		cop_job_map_put(&l.ranks, h->host[i].name, strlen(h->host[i].name), 0, i);
	if (conf && *conf)
		read_conf(&l, conf);
	for (size_t i = 0; i < COP_ARRAY_SIZE(places) && !l.files; i++)
		read_conf(&l, places[i]);
	learn_aliases(&l, getenv("SLURM_NODE_ALIASES"));
	cop_job_map_fini(&l.ranks);
	return l.names;
}
