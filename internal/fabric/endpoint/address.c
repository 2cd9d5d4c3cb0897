/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as text. A book line is "ofi+tcp://127.0.0.11:34567", Mercury's syntax, which sites
 * already have in their address books. libfabric's own "fi_sockaddr_in://...", and the scheme
 * without "ofi+", are also accepted.
 *
 * A cxi address is one 32-bit number, 9 bits of process id below 20 bits of NIC address
 * (fi_cxi(7), struct cxip_addr). Provider versions differ in the upper bits and in the bytes
 * after it, so these are copied from this endpoint's own address: one job runs one version. */
#include "base/base/ip.h"
#include "fabric/endpoint/endpoint_priv.h"

#include <ctype.h>

#define CXI_PID_BITS 9
#define CXI_MASK ((1U << 29) - 1)

static const char *skip_prefix(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return text && strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* The text after "scheme://" or an alternative spelling; NULL for another scheme. */
static const char *skip_scheme(const char *scheme, enum cop_endpoint_form form, const char *text)
{
	static const char *const fi_names[] = {
		[COP_ENDPOINT_FORM_IP] = "fi_sockaddr_in",
		[COP_ENDPOINT_FORM_STR] = "fi_shm",
		[COP_ENDPOINT_FORM_CXI] = "fi_addr_cxi",
		[COP_ENDPOINT_FORM_RAW] = "raw",
	};
	const char *rest = skip_prefix(text, fi_names[form]), *ofi = skip_prefix(text, "ofi+");

	if (rest && form == COP_ENDPOINT_FORM_IP && *rest == '6')
		rest++;
	if (!rest) {
		rest = skip_prefix(ofi ? ofi : text, scheme);
		if (rest && *rest == ';')
			rest += strcspn(rest, ":");
	}
	return skip_prefix(rest, "://");
}

/* ---- IP ---- */

/* Splits "1.2.3.4:5" or "[::1]:5" into its two parts. */
static int split_host_port(const char *text, char node[64], char service[16])
{
	const char *colon = strrchr(text, ':');
	size_t len;

	if (!colon || !isdigit((unsigned char)colon[1]) || strlen(colon + 1) > 5)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (*text == '[') {
		if (len < 2 || text[len - 1] != ']')
			return -EINVAL;
		text++;
		len -= 2;
	}
	if (len == 0 || len >= 64)
		return -EINVAL;
	memcpy(node, text, len);
	node[len] = '\0';
	snprintf(service, 16, "%s", colon + 1);
	return 0;
}

static int parse_ip(
	const struct cop_endpoint_naming *n, const char *rest, void *raw, size_t *raw_len)
{
	char node[64], service[16];
	struct sockaddr_storage at;
	struct cop_ip ip, all = cop_ip_of4((struct in_addr){INADDR_ANY});
	uint64_t port;
	socklen_t len;
	int rc = split_host_port(rest, node, service);

	if (rc || cop_parse_u64(service, &port) || port == 0 || port > 65535 ||
		!cop_ip_parse(node, &ip) || cop_ip_is_none(&ip) || cop_ip_same(&ip, &all))
		return -EINVAL;
	len = cop_ip_to_socket(&ip, (uint16_t)port, &at);
	/* A socket of one IP version cannot reach an address of the other. */
	if (len != n->own_len)
		return -EINVAL;
	memcpy(raw, &at, len);
	*raw_len = len;
	return 0;
}

static int print_ip(const void *raw, size_t raw_len, char *out, size_t size)
{
	struct sockaddr_storage at = {0};
	char host[COP_IP_TEXT_SIZE];
	struct cop_ip ip;
	in_port_t port;
	bool six;

	memcpy(&at, raw, COP_MIN(raw_len, sizeof(at)));
	six = at.ss_family == AF_INET6;
	if (raw_len != (six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) ||
		!cop_ip_of_socket((struct sockaddr *)&at, &ip, &port))
		return -EINVAL;
	return snprintf(out, size, six ? "[%s]:%u" : "%s:%u", cop_ip_print(&ip, host), ntohs(port));
}

static bool read_ip(const char *address, struct cop_ip *out)
{
	const char *rest = strstr(address, "://");
	char node[64], service[16];

	return rest && !split_host_port(rest + 3, node, service) && cop_ip_parse(node, out);
}

bool cop_endpoint_is_within_machine(const char *address)
{
	struct cop_ip ip;

	return read_ip(address, &ip) && cop_ip_is_loopback(&ip);
}

bool cop_endpoint_is_slower_than_lz4(const char *address)
{
	return strncmp(address, "ofi+tcp://", 10) == 0 && !cop_endpoint_is_within_machine(address);
}

bool cop_endpoint_is_other_ip(const char *a, const char *b)
{
	struct cop_ip ip_a, ip_b;

	return read_ip(a, &ip_a) && read_ip(b, &ip_b) &&
	       cop_ip_family(&ip_a) != cop_ip_family(&ip_b);
}

/* ---- cxi ---- */

/* "0x00916600": 1 to 16 hexadecimal digits; the upper half of 16 is unused. */
static int parse_cxi_number(const char *rest, uint32_t *out)
{
	uint64_t value = 0;
	size_t digits = 0;

	rest = skip_prefix(rest, "0x");
	if (!rest)
		return -EINVAL;
	for (; isxdigit((unsigned char)*rest); rest++, digits++) {
		int c = tolower((unsigned char)*rest);

		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (*rest || digits == 0 || digits > 16)
		return -EINVAL;
	value &= UINT32_MAX;
	if ((value & CXI_MASK) == 0)
		return -EINVAL;
	*out = (uint32_t)value & CXI_MASK;
	return 0;
}

static int parse_cxi(
	const struct cop_endpoint_naming *n, const char *rest, void *raw, size_t *raw_len)
{
	uint32_t own, value;
	int rc = parse_cxi_number(rest, &value);

	if (rc || n->own_len < sizeof(own))
		return -EINVAL;
	memcpy(&own, n->own, sizeof(own));
	value |= own & ~CXI_MASK;
	memcpy(raw, n->own, n->own_len);
	memcpy(raw, &value, sizeof(value));
	*raw_len = n->own_len;
	return 0;
}

static int print_cxi(const void *raw, size_t raw_len, char *out, size_t size)
{
	uint32_t value;

	if (raw_len < sizeof(value))
		return -EINVAL;
	memcpy(&value, raw, sizeof(value));
	return snprintf(out, size, "0x%08" PRIx32, value & CXI_MASK);
}

/* ---- strings and other bytes ---- */

/* shm names are strings: "fi_shm://123" or, if named by the user, "fi_ns://...". Text starting with
 * "fi_" is kept unchanged. */
static int parse_str(const char *rest, void *raw, size_t *raw_len)
{
	int len;

	if (*rest == '\0' || strcmp(rest, "fi_shm://") == 0)
		return -EINVAL;
	len = snprintf(raw, COP_ENDPOINT_RAW_MAX, "%s%s",
		skip_prefix(rest, "fi_") ? "" : "fi_shm://", rest);
	if (len < 0 || len >= COP_ENDPOINT_RAW_MAX)
		return -EINVAL;
	*raw_len = (size_t)len + 1;
	return 0;
}

static int print_str(const void *raw, size_t raw_len, char *out, size_t size)
{
	const char *text = raw, *rest;

	if (raw_len == 0 || !memchr(text, '\0', raw_len))
		return -EINVAL;
	rest = skip_prefix(text, "fi_shm://");
	if (!rest || skip_prefix(rest, "fi_"))
		rest = text;
	return snprintf(out, size, "%s", rest);
}

static int parse_raw(
	const struct cop_endpoint_naming *n, const char *rest, void *raw, size_t *raw_len)
{
	unsigned char *out = raw;
	size_t len;

	rest = skip_prefix(rest, "0x");
	if (!rest || strlen(rest) != 2 * n->own_len || n->own_len == 0)
		return -EINVAL;
	for (len = 0; len < n->own_len; len++) {
		unsigned byte;

		if (!isxdigit((unsigned char)rest[2 * len]) ||
			!isxdigit((unsigned char)rest[2 * len + 1]) ||
			sscanf(rest + 2 * len, "%2x", &byte) != 1)
			return -EINVAL;
		out[len] = (unsigned char)byte;
	}
	*raw_len = len;
	return 0;
}

static int print_raw(const unsigned char *raw, size_t raw_len, char *out, size_t size)
{
	if (2 * raw_len + 3 > size)
		return -ENAMETOOLONG;
	memcpy(out, "0x", 3);
	for (size_t i = 0; i < raw_len; i++)
		snprintf(out + 2 + 2 * i, 3, "%02x", raw[i]);
	return (int)(2 + 2 * raw_len);
}

/* ---- all ---- */

int cop_endpoint_address_print(const struct cop_endpoint_naming *n, const void *raw, size_t raw_len,
	char *out, size_t size)
{
	int head = snprintf(out, size, "ofi+%s://", n->scheme), rc = -EINVAL;

	if (head < 0 || (size_t)head >= size)
		return -ENAMETOOLONG;
	out += head;
	size -= (size_t)head;
	switch (n->form) {
	case COP_ENDPOINT_FORM_IP:
		rc = print_ip(raw, raw_len, out, size);
		break;
	case COP_ENDPOINT_FORM_STR:
		rc = print_str(raw, raw_len, out, size);
		break;
	case COP_ENDPOINT_FORM_CXI:
		rc = print_cxi(raw, raw_len, out, size);
		break;
	case COP_ENDPOINT_FORM_RAW:
		rc = print_raw(raw, raw_len, out, size);
		break;
	}
	if (rc < 0)
		return rc;
	return (size_t)rc < size ? 0 : -ENAMETOOLONG;
}

int cop_endpoint_address_parse(
	const struct cop_endpoint_naming *n, const char *text, void *raw, size_t *raw_len)
{
	const char *rest;

	if (strnlen(text, COP_ENDPOINT_TEXT_MAX) == COP_ENDPOINT_TEXT_MAX)
		return -EINVAL;
	rest = skip_scheme(n->scheme, n->form, text);
	if (!rest)
		return -EINVAL;
	switch (n->form) {
	case COP_ENDPOINT_FORM_IP:
		return parse_ip(n, rest, raw, raw_len);
	case COP_ENDPOINT_FORM_STR:
		return parse_str(rest, raw, raw_len);
	case COP_ENDPOINT_FORM_CXI:
		return parse_cxi(n, rest, raw, raw_len);
	case COP_ENDPOINT_FORM_RAW:
		return parse_raw(n, rest, raw, raw_len);
	}
	return -EINVAL;
}

int cop_endpoint_address_split(
	const struct cop_endpoint_net_type *net, const char *text, char node[64], char service[16])
{
	const char *rest = skip_scheme(net->scheme, net->form, text);
	uint32_t value;

	if (!rest)
		return -EINVAL;
	if (net->form == COP_ENDPOINT_FORM_IP)
		return split_host_port(rest, node, service);
	if (net->form != COP_ENDPOINT_FORM_CXI || parse_cxi_number(rest, &value))
		return -EINVAL;
	/* cxi takes the NIC address as node and the process id as service. */
	snprintf(node, 64, "0x%" PRIx32, value >> CXI_PID_BITS);
	snprintf(service, 16, "%" PRIu32, value & ((1U << CXI_PID_BITS) - 1));
	return 0;
}
