/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <math.h>

#include "trace/checkpoint/checkpoint_priv.h"

static unsigned find_tier(const struct cop_ckpt_conf *conf, const char *name, size_t len)
{
	unsigned i = 0;

	while (i < conf->tiers &&
		(strlen(conf->tier[i]) != len || memcmp(conf->tier[i], name, len)))
		i++;
	return i;
}

static int add_prefix(
	struct cop_ckpt_conf *conf, unsigned tier, const char *prefix, struct cop_err *err)
{
	size_t len = strlen(prefix);

	if (conf->prefixes == COP_CKPT_PREFIXES_MAX)
		return cop_err_set(
			err, EINVAL, "--tier: more than %u prefixes", COP_CKPT_PREFIXES_MAX);
	while (len && prefix[len - 1] == '/')
		len--;
	conf->prefix[conf->prefixes++] = (struct cop_ckpt_prefix){prefix, len, tier};
	return 0;
}

int cop_ckpt_add_tier(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err)
{
	const char *equals = strchr(word, '=');
	unsigned i;

	if (!equals || equals == word || !equals[1])
		return cop_err_set(
			err, EINVAL, "--tier: '%s' is not NAME=PREFIX, as in ssd=/mnt/ssd", word);
	i = find_tier(conf, word, (size_t)(equals - word));
	if (i == COP_CKPT_TIERS_MAX)
		return cop_err_set(err, EINVAL, "--tier: more than %u tiers", COP_CKPT_TIERS_MAX);
	if (i == conf->tiers) {
		conf->tier[i] = strndup(word, (size_t)(equals - word));
		if (!conf->tier[i])
			return cop_err_set(err, ENOMEM, "no memory");
		conf->tiers++;
	}
	return add_prefix(conf, i, equals + 1, err);
}

/* Parses a bandwidth such as "2.5GB/s": a number, optionally followed by a unit, "/s", and "/node"
 * if it is the bandwidth of each node. Units with a B but no i are decimal, as vendors use them; a
 * bare K, M, G or T is binary, as elsewhere in Copper. Returns 0 if invalid. */
static double parse_bandwidth(const char *text, bool *per_node)
{
	static const char units[] = "KMGTP";
	const char *unit;
	double value, base = 1024;
	char *end;

	value = strtod(text, &end);
	if (end == text)
		return 0;
	end += *end == ' ';
	if (*end && (unit = strchr(units, toupper((unsigned char)*end)))) {
		end++;
		if (*end == 'B' || *end == 'b')
			base = 1000;
		else
			end += *end == 'i';
		value *= pow(base, (double)(unit - units + 1));
	}
	end += *end == 'B' || *end == 'b';
	end += !strncmp(end, "/s", 2) ? 2 : 0;
	*per_node = !strcmp(end, "/node");
	return *end && !*per_node ? 0 : value;
}

int cop_ckpt_add_model(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err)
{
	const char *equals = strchr(word, '=');
	double value;
	unsigned i;

	if (!equals || equals == word)
		return cop_err_set(
			err, EINVAL, "--model: '%s' is not NAME=BYTES/S, as in ssd=2GiB", word);
	i = find_tier(conf, word, (size_t)(equals - word));
	if (i == conf->tiers)
		return cop_err_set(err, EINVAL,
			"--model: '%.*s' is not a tier; --tier NAME=PREFIX says where one is",
			(int)(equals - word), word);
	value = parse_bandwidth(equals + 1, &conf->per_node[i]);
	if (!(value > 0 && value < 1e18))
		return cop_err_set(err, EINVAL,
			"--model: '%s' is not a number of bytes per second, as 1500000000, 2.5GB/s or 2GiB",
			equals + 1);
	conf->bandwidth[i] = value;
	return 0;
}

/* Returns the factor of a scheme such as "xor:8"; 0 if unknown. */
static double factor_of(const char *word)
{
	unsigned n = 8, k = 2;
	double factor;
	char *end;
	char rest;

	if (!strcmp(word, "single"))
		return 1;
	if (!strcmp(word, "partner"))
		return 2;
	if (!strcmp(word, "xor") || sscanf(word, "xor:%u%c", &n, &rest) == 1)
		return n > 1 ? 1 + 1 / (double)(n - 1) : 0;
	if (!strcmp(word, "rs") || sscanf(word, "rs:%u:%u%c", &n, &k, &rest) == 2)
		return n > k ? 1 + k / (double)(n - k) : 0;
	factor = strtod(word, &end);
	return end != word && !*end && factor >= 1 && factor < 100 ? factor : 0;
}

int cop_ckpt_add_scheme(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err)
{
	double factor = factor_of(word);

	if (!(factor > 0))
		return cop_err_set(err, EINVAL,
			"--scheme: '%s' is neither single, partner, xor:N, rs:N:K nor a factor from 1",
			word);
	if (conf->schemes == COP_CKPT_SCHEMES_MAX)
		return cop_err_set(
			err, EINVAL, "--scheme: more than %u schemes", COP_CKPT_SCHEMES_MAX);
	conf->scheme[conf->schemes++] = (struct cop_ckpt_scheme){word, factor};
	return 0;
}

int cop_ckpt_add_nodes(struct cop_ckpt_conf *conf, const char *list, struct cop_err *err)
{
	const char *p = list;
	unsigned long n;
	char *end;

	do {
		n = strtoul(p, &end, 10);
		if (end == p || !n || n > 10000000 || (*end && *end != ',') || *p == '-')
			return cop_err_set(err, EINVAL,
				"--nodes: '%s' is not numbers of nodes, as 16 or 16,64,256", list);
		if (conf->nodes_n == COP_CKPT_NODES_MAX)
			return cop_err_set(
				err, EINVAL, "--nodes: more than %u numbers", COP_CKPT_NODES_MAX);
		conf->nodes[conf->nodes_n++] = n;
		p = end + 1;
	} while (*end);
	return 0;
}

int cop_ckpt_set_mtbf(struct cop_ckpt_conf *conf, const char *word, struct cop_err *err)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	double value;
	char *end;

	value = strtod(word, &end);
	for (size_t i = 0; i < COP_ARRAY_SIZE(units) && end != word && *end; i++)
		if (end[0] == units[i].unit && !end[1]) {
			value *= units[i].seconds;
			end++;
		}
	if (end == word || *end || !(value > 0 && value < 1e12))
		return cop_err_set(err, EINVAL,
			"--mtbf: '%s' is not a time between failures, as 90m, 24h or 7d", word);
	conf->mtbf_s = value;
	return 0;
}

void cop_ckpt_conf_fini(struct cop_ckpt_conf *conf)
{
	for (unsigned i = 0; i < conf->tiers; i++)
		free((char *)conf->tier[i]);
	conf->tiers = 0;
}
