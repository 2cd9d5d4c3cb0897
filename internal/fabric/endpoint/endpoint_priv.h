/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of endpoint: the interface between the public functions and the two
 * implementations (libfabric in ofi_*.c, the fake in endpoint_fake*.c), and address text. */
#ifndef COP_FABRIC_ENDPOINT_PRIV_H
#define COP_FABRIC_ENDPOINT_PRIV_H

#include "fabric/endpoint/endpoint.h"

#define COP_ENDPOINT_TEXT_MAX 256 /* longest address text, its NUL included */
#define COP_ENDPOINT_RAW_MAX 256  /* longest binary address of a provider */
#define COP_ENDPOINT_DEVICE_MAX 128

struct cop_endpoint_ops {
	void (*close)(struct cop_endpoint *f);
	int (*post)(struct cop_endpoint *f, struct cop_list *works);
	void (*keep_ticking)(struct cop_endpoint *f, bool on);
	int (*peer)(struct cop_endpoint *f, const char *address, cop_endpoint_peer_t *peer);
	void (*peer_drop)(struct cop_endpoint *f, cop_endpoint_peer_t peer);
	int (*send)(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *msg, size_t len,
		cop_endpoint_done *done, void *arg);
	int (*write)(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *buf, size_t len,
		uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg);
	int (*reg)(struct cop_endpoint *f, void *buf, size_t len, struct cop_endpoint_mr **mr,
		uint64_t *addr, uint64_t *key);
	void (*unreg)(struct cop_endpoint_mr *mr);
	void (*admit)(struct cop_endpoint *f, const char *address); /* may be NULL */
	/* NULL: endpoints that are not on a network of the machine. */
	void (*networks)(const struct cop_endpoint *f, struct cop_buf *out);
	void (*near_cpus)(const struct cop_endpoint *f, struct cop_buf *out);
};

/* First member of both implementations. */
struct cop_endpoint {
	const struct cop_endpoint_ops *ops;
	struct cop_stats *stats, *rejected;
	struct cop_endpoint_events events;
	unsigned tick_ms;
	char address[COP_ENDPOINT_TEXT_MAX];
	char provider[64];
	char network[COP_ENDPOINT_NETWORK_MAX]; /* the system's name of its network; "" if it has
						 * none
						 */
};

struct cop_endpoint_mr {
	struct cop_endpoint *fabric;
};

/* ---- net types (providers.c) ---- */

/* The forms of a provider's binary addresses. */
enum cop_endpoint_form {
	COP_ENDPOINT_FORM_IP,  /* struct sockaddr_in or sockaddr_in6 */
	COP_ENDPOINT_FORM_STR, /* a string, as for shm */
	COP_ENDPOINT_FORM_CXI, /* 9 bits of process id below 20 bits of NIC address */
	COP_ENDPOINT_FORM_RAW, /* anything else: written as hexadecimal bytes */
};

struct cop_endpoint_net_type {
	char scheme[32];                      /* "tcp", as in "ofi+tcp://" */
	char provider[64];                    /* "tcp;ofi_rxm", the name passed to fi_getinfo */
	char device[COP_ENDPOINT_DEVICE_MAX]; /* "lo", "cxi1", "127.0.0.11" or empty */
	enum cop_endpoint_form form;
};

/* The card if all of the text after "ofi+" is a card name, e.g. "cxi1"; NULL for any other text. */
const char *cop_endpoint_bare_card(const char *text);
/* "tcp", "tcp://lo", "ofi+tcp", "cxi://cxi1", "cxi1", "tcp;ofi_rxm"; NULL means "tcp". -EINVAL. */
int cop_endpoint_net_type_parse(const char *text, struct cop_endpoint_net_type *out);
/* Sets the libfabric variables that this module relies on, unless the user has set them. Call it
 * before any libfabric function: libfabric reads its environment once, at first use. */
void cop_endpoint_prepare_env(void);

/* ---- address text (address.c) ---- */

struct cop_endpoint_naming {
	const char *scheme;
	enum cop_endpoint_form form;
	/* This endpoint's own address. It determines the IP version and supplies the bits of a cxi
	 * address that are missing in the text. */
	unsigned char own[COP_ENDPOINT_RAW_MAX];
	size_t own_len;
};

/* Converts a binary address to address book text. -EINVAL, -ENAMETOOLONG. */
int cop_endpoint_address_print(const struct cop_endpoint_naming *n, const void *raw, size_t raw_len,
	char *out, size_t size);
/* Converts text to a binary address; raw has COP_ENDPOINT_RAW_MAX bytes. Host names are refused
 * because resolving one could block. -EINVAL. */
int cop_endpoint_address_parse(
	const struct cop_endpoint_naming *n, const char *text, void *raw, size_t *raw_len);
/* Splits the text of a bind address into node and service for fi_getinfo. -EINVAL. */
int cop_endpoint_address_split(
	const struct cop_endpoint_net_type *net, const char *text, char node[64], char service[16]);

#endif
