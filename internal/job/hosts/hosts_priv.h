/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_HOSTS_PRIV_H
#define COP_JOB_HOSTS_PRIV_H

#include "job/hosts/hosts.h"

#define COP_JOB_NAME_MAX 253                    /* bytes of a host name (RFC 1035) */
#define COP_JOB_FILE_MAX ((size_t)64 * COP_MIB) /* a host file or an address book */

/* ---- hosts ---- */

/* A host as users write it, cut in two: the name is a part of the text, without brackets if it is
 * an address of IPv6. */
struct cop_job_word {
	const char *name;
	size_t len;
	uint16_t port;
};
/* Cuts "name", "name:port", "fd77::1" or "[fd77::1]:port" (len bytes); -EINVAL with a sentence that
 * begins with the text. */
int cop_job_split_port(const char *text, size_t len, uint16_t default_port,
	struct cop_job_word *out, struct cop_err *err);
/* The address of IPv6 that a name (len bytes) is; false for any other. */
bool cop_job_name_is_six(const char *name, size_t len, struct cop_ip *out);
/* Appends what a LIST (len bytes) means: commas, brackets, ports. */
int cop_job_list_expand(const char *text, size_t len, uint16_t default_port,
	struct cop_job_builder *b, struct cop_err *err);
/* Counts what it means, without memory; -EINVAL, and -E2BIG if one of its items means more than
 * COP_JOB_MAX_HOSTS. */
int cop_job_list_count(const char *text, size_t len, uint64_t *count, struct cop_err *err);
/* Appends the hosts of a file's text. A host that is listed twice is refused or, with once, kept
 * once (PBS lists one per slot). */
int cop_job_lines_parse(const char *text, size_t len, uint16_t default_port, bool once,
	struct cop_job_builder *b, struct cop_err *err);

/* slurm.c: fills in the addresses that Slurm has for the hosts on this machine. Returns how many
 * of slurm.conf's nodes it wrote out for that, at most COP_JOB_MAX_HOSTS. */
uint64_t cop_job_slurm_addresses(struct cop_job_hosts *h);

/* ---- a table of texts ---- */

/* Open addressing from text to number. Keys are not copied. */
struct cop_job_map {
	struct cop_job_slot *slot;
	size_t mask;
};
#define COP_JOB_ABSENT UINT32_MAX
/* Allocates slots for count keys. */
int cop_job_map_init(struct cop_job_map *m, uint32_t count);
void cop_job_map_fini(struct cop_job_map *m);
/* The number stored for key and port, or COP_JOB_ABSENT. */
uint32_t cop_job_map_get(const struct cop_job_map *m, const char *key, size_t len, uint16_t port);
/* Stores value unless there is a number already: returns that one, or COP_JOB_ABSENT. */
uint32_t cop_job_map_put(
	struct cop_job_map *m, const char *key, size_t len, uint16_t port, uint32_t value);

/* ---- lines ---- */

struct cop_job_lines {
	const char *p, *end;
	unsigned number; /* of the current line, from 1 */
};
/* The next line that holds more than white space and a comment, trimmed of both. */
bool cop_job_lines_next(struct cop_job_lines *l, const char **text, size_t *len);
/* For messages: at most 60 bytes of a hostile text, without control characters. */
const char *cop_job_quote(const char *text, size_t len, char out[64]);

/* The text parsers behind the functions on files, for tests and fuzzing. */
int cop_job_book_parse(const char *text, size_t len, const char *name,
	const struct cop_job_hosts *hosts, const char *network, char **address,
	struct cop_err *err);

/* ---- raw tables ---- */

#define COP_JOB_NETWORKS_MAX 64 /* columns */
#define COP_JOB_NETWORK_MAX 32  /* bytes of a network's name, its NUL included */

/* Which column of a table is wanted. */
struct cop_job_column {
	const char *network; /* "" or NULL: the first with an address */
	unsigned at; /* 0: the first with an address; beyond the limit: the table has none */
};
/* Finds the column from a table's first line, which may be a header; false if that line does not
 * decide it and the next one has to. */
bool cop_job_column_find(struct cop_job_column *c, const char *text, size_t len);
/* The address in a row, trimmed; false if it is NA or missing. */
bool cop_job_column_cut(const struct cop_job_column *c, const char *text, size_t len,
	const char **address, size_t *address_len);

#endif
