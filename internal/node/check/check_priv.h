/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_NODE_CHECK_PRIV_H
#define COP_NODE_CHECK_PRIV_H

#include "base/base/json.h"
#include "cache/cache/cache.h"
#include "node/check/check.h"
#include "node/ctl/ctl.h"
#include "fabric/endpoint/endpoint.h"
#include "mount/fuse/fuse.h"
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "storage/origin/origin.h"
#include "storage/spill/spill.h"
#include "fabric/wire/wire.h"

enum check_state { CHECK_OK, CHECK_WARNING, CHECK_FAILED };

struct check {
	const struct cop_conf *conf;
	struct cop_buf *out;
	struct cop_json json; /* written to out with --json */
	unsigned warnings, failed;

	/* Results that later checks need. */
	char source[4096];
	uint32_t nodes; /* 0: the hosts are unknown */
	struct cop_job_hosts hosts;
	uint32_t rank;
	struct cop_job_secret secret;
	char **book; /* address per rank, or NULL */
	bool tcp;    /* the fabric address is a TCP address */
};

/* Prints one line, or one JSON object. */
void cop_check_say(struct check *c, const char *name, enum check_state state, const char *fmt, ...)
	COP_PRINTF(4, 5);

/* machine.c */
void cop_check_network(struct check *c);
void cop_check_memory(struct check *c);
void cop_check_spill(struct check *c);

/* peers.c: probes the ports of the other hosts. */
void cop_check_peers(struct check *c);

#endif
