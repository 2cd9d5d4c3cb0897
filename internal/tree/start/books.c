/* SPDX-License-Identifier: BSD-3-Clause */
/* The root writes these files about the ranks into the job directory. They are for other programs;
 * Copper itself does not read them during a job, except when the root is restarted. */
#include "tree/start/start_priv.h"

#include <limits.h>

#include "base/log/log.h"

#define BOOK_MAX (64 * COP_MIB)
#define PATH_SIZE (PATH_MAX + 64)

/* Copies the site's address book unchanged, because the original may change between jobs. */
static int copy_book(const char *from, const char *to, struct cop_err *err)
{
	char *text;
	size_t len;
	int rc = cop_read_file(from, BOOK_MAX, &text, &len);

	if (rc)
		return cop_err_set(
			err, -rc, "cannot read the address book %s: %s", from, strerror(-rc));
	rc = cop_write_file(to, text, len, 0644);
	free(text);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", to, strerror(-rc)) : 0;
}

/* ---- reports of the ranks ---- */

/* By rank. A copy, because a restarted rank may report again at any time. */
struct known {
	char **address, **networks;
	uint32_t count, missing;
};

static void known_fini(struct known *k)
{
	for (uint32_t r = 0; r < k->count; r++) {
		free(k->address ? k->address[r] : NULL);
		free(k->networks ? k->networks[r] : NULL);
	}
	free(k->address);
	free(k->networks);
}

static int known_copy(struct cop_start *j, struct known *k)
{
	*k = (struct known){.count = j->conf.hosts->count};
	k->address = calloc(k->count, sizeof(char *));
	k->networks = calloc(k->count, sizeof(char *));
	if (!k->address || !k->networks)
		return -ENOMEM;
	pthread_mutex_lock(&j->lock);
	for (uint32_t r = 0; r < k->count; r++) {
		const struct arrival *a = &j->arrival[r];

		k->missing += !a->address;
		k->address[r] = a->address ? strdup(a->address) : NULL;
		k->networks[r] = a->networks ? strdup(a->networks) : NULL;
	}
	pthread_mutex_unlock(&j->lock);
	return 0;
}

static void fill_gaps(char **into, char **from, uint32_t count)
{
	for (uint32_t r = 0; r < count; r++) {
		if (into[r])
			free(from[r]);
		else
			into[r] = from[r];
	}
}

/* A restarted root has reports only from itself and from other restarted ranks; it reads the rest
 * from the books that it wrote earlier. */
static int fill_from_files(struct cop_start *j, struct known *k, const char *book,
	const char *table, struct cop_err *err)
{
	char **was = k->missing ? calloc(k->count, sizeof(char *)) : NULL;
	int rc;

	if (!k->missing)
		return 0;
	if (!was)
		return cop_err_set(err, ENOMEM, "out of memory for the address book");
	rc = cop_job_book_load(book, j->conf.hosts, NULL, was, err);
	if (!rc) {
		fill_gaps(k->address, was, k->count);
		if (cop_job_table_read(table, j->conf.hosts, was) == 0)
			fill_gaps(k->networks, was, k->count);
	}
	free(was);
	return rc;
}

/* Uses a report from another rank only if it is well-formed. */
static int write_table(struct cop_start *j, struct known *k, const char *path, struct cop_err *err)
{
	for (uint32_t r = 0; r < k->count; r++)
		if (k->networks[r] && !cop_job_networks_ok(k->networks[r])) {
			cop_log_warn("networks of a node cannot be parsed rank=%u", r);
			k->networks[r][0] = '\0';
		}
	return cop_job_table_write(path, j->conf.hosts, k->networks, err);
}

static int write_addresses(struct cop_start *j, struct known *k, struct cop_err *err)
{
	char book[PATH_SIZE], table[PATH_SIZE];
	int rc;

	snprintf(book, sizeof(book), "%s/logs/copper_address_book.txt", j->job_dir);
	snprintf(table, sizeof(table), "%s/logs/copper_address_book_full_output.txt", j->job_dir);
	rc = fill_from_files(j, k, book, table, err);
	if (!rc)
		rc = cop_job_book_write(book, j->conf.hosts, k->address, err);
	if (!rc)
		rc = j->conf.address_book ? copy_book(j->conf.address_book, table, err)
					  : write_table(j, k, table, err);
	return rc;
}

/* ---- all books ---- */

/* A tree of one node without a host list has no addresses to write. */
static int write_alone(const char *path, struct cop_err *err)
{
	char line[258] = "localhost";
	int rc;

	gethostname(line, sizeof(line) - 2);
	strcat(line, "\n");
	rc = cop_write_file(path, line, strlen(line), 0644);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

void cop_start_write_books(struct cop_start *j)
{
	const struct cop_job_hosts *hosts = j->conf.hosts;
	char path[PATH_SIZE];
	struct cop_err err = {0};
	struct known known;

	j->books_written = true;
	if (!j->job_dir)
		return;
	snprintf(path, sizeof(path), "%s/logs/node_file.txt", j->job_dir);
	if (hosts->count ? cop_job_node_file_write(path, hosts, &err) : write_alone(path, &err))
		cop_log_warn("%s", err.text);
	if (!hosts->count)
		return;
	if (known_copy(j, &known))
		cop_log_warn("no memory for the address book");
	else if (write_addresses(j, &known, &err))
		cop_log_warn("%s", err.text);
	known_fini(&known);
	/* Measured from the start of this node; most of this time is spent waiting for reports. */
	cop_log_info("prepared address book generation took %llu s",
		(unsigned long long)(cop_now_ns() - j->conf.started_ns) / 1000000000);
}
