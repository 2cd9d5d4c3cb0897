/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* "2.5GB/s": a number, a unit, "/s"; the last two may be left out. Units with a B and without an i
 * are decimal, as vendors have them; a bare K, M, G, T is binary, as elsewhere in Copper. Zero: it
 * is none. */
static double parse_bandwidth(const char *text)
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
	return *end && strcmp(end, "/s") ? 0 : value;
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
	value = parse_bandwidth(equals + 1);
	if (!(value > 0 && value < 1e18))
		return cop_err_set(err, EINVAL,
			"--model: '%s' is not a number of bytes per second, as 1500000000, 2.5GB/s or 2GiB",
			equals + 1);
	conf->bandwidth[i] = value;
	return 0;
}

void cop_ckpt_conf_fini(struct cop_ckpt_conf *conf)
{
	for (unsigned i = 0; i < conf->tiers; i++)
		free((char *)conf->tier[i]);
	conf->tiers = 0;
}
