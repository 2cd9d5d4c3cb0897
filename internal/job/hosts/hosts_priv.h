/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_HOSTS_PRIV_H
#define COP_JOB_HOSTS_PRIV_H

#include "job/hosts/hosts.h"

#define COP_JOB_NAME_MAX 253 /* maximum length of a host name, in bytes (RFC 1035) */
#define COP_JOB_FILE_MAX ((size_t)64 * COP_MIB) /* maximum size of a host file or address book */

/* ---- hosts ---- */

/* A host as the user wrote it, split in two. The name points into the text and excludes the
 * brackets of an IPv6 address. */
struct cop_job_word {
	const char *name;
	size_t len;
	uint16_t port;
};
/* Splits "name", "name:port", "fd77::1" or "[fd77::1]:port" (len bytes). On -EINVAL, err begins
 * with the text. */
int cop_job_split_port(const char *text, size_t len, uint16_t default_port,
	struct cop_job_word *out, struct cop_err *err);
/* Parses a name (len bytes) that is an IPv6 address; false if it is anything else. */
bool cop_job_name_is_six(const char *name, size_t len, struct cop_ip *out);
/* Appends the hosts of a LIST (len bytes): commas, brackets, ports. */
int cop_job_list_expand(const char *text, size_t len, uint16_t default_port,
	struct cop_job_builder *b, struct cop_err *err);
/* Counts the hosts of a LIST without allocating. Returns -EINVAL, or -E2BIG if one item alone has
 * more than COP_JOB_MAX_HOSTS. */
int cop_job_list_count(const char *text, size_t len, uint64_t *count, struct cop_err *err);
/* Appends the hosts in the text of a file. A duplicate host is refused or, with once, skipped (PBS
 * lists a host once per slot). */
int cop_job_lines_parse(const char *text, size_t len, uint16_t default_port, bool once,
	struct cop_job_builder *b, struct cop_err *err);

/* slurm.c: fills in the hosts' addresses from Slurm's local files and variables. Returns how many
 * node names of slurm.conf it had to expand for that, at most COP_JOB_MAX_HOSTS. */
uint64_t cop_job_slurm_addresses(struct cop_job_hosts *h);

/* ---- a map from text to numbers ---- */

/* A hash table with open addressing. Keys are not copied. */
struct cop_job_map {
	struct cop_job_slot *slot;
	size_t mask;
};
#define COP_JOB_ABSENT UINT32_MAX
/* Allocates slots for count keys. */
int cop_job_map_init(struct cop_job_map *m, uint32_t count);
void cop_job_map_fini(struct cop_job_map *m);
/* The value for key and port, or COP_JOB_ABSENT. */
uint32_t cop_job_map_get(const struct cop_job_map *m, const char *key, size_t len, uint16_t port);
/* Stores value unless the key already has one. Returns the old value, or COP_JOB_ABSENT. */
uint32_t cop_job_map_put(
	struct cop_job_map *m, const char *key, size_t len, uint16_t port, uint32_t value);

/* ---- lines ---- */

struct cop_job_lines {
	const char *p, *end;
	unsigned number; /* of the current line, from 1 */
};
/* Finds the next line that is neither blank nor just a comment, and strips its comment and
 * surrounding white space. */
bool cop_job_lines_next(struct cop_job_lines *l, const char **text, size_t *len);
/* Quotes untrusted text for a message: at most 60 bytes, without control characters. */
const char *cop_job_quote(const char *text, size_t len, char out[64]);

/* The parsers behind the functions that read files, for tests and fuzzing. */
int cop_job_book_parse(const char *text, size_t len, const char *name,
	const struct cop_job_hosts *hosts, const char *network, char **address,
	struct cop_err *err);

/* ---- raw tables ---- */

#define COP_JOB_NETWORKS_MAX 64 /* maximum number of columns */
#define COP_JOB_NETWORK_MAX 32  /* maximum size of a network's name, with its NUL */

/* Selects a column of a raw table. */
struct cop_job_column {
	const char *network; /* "" or NULL: the first column with an address */
	unsigned at; /* 0: the first column with an address; beyond the limit: the table has no such
			column */
};
/* Finds the column from the first line of a table, which may be a header. Returns false if the next
 * line is needed, too. */
bool cop_job_column_find(struct cop_job_column *c, const char *text, size_t len);
/* Finds the address in a row, trimmed; false if it is NA or missing. */
bool cop_job_column_cut(const struct cop_job_column *c, const char *text, size_t len,
	const char **address, size_t *address_len);

#endif
