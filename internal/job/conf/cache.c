/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of the cache and of its spill on disk. */
#include "job/conf/conf_priv.h"

/* A chunk that filled the whole budget could never be replaced by the next one. */
#define CHUNKS_MIN 4

/* Least memory for the spill: a single read from storage may evict this much at once. */
#define SPILL_MEMORY_MIN (4 * COP_MIB)
#define SPILL_SHARE 16

uint64_t cop_conf_spill_memory(const struct cop_conf *conf, uint64_t cache_bytes)
{
	uint64_t least = COP_MAX(SPILL_MEMORY_MIN, 2 * conf->chunk);

	return conf->spill ? COP_MAX(cache_bytes / SPILL_SHARE, least) : 0;
}

/* Memory needed for in-flight requests, on top of the spill's. */
static uint64_t least_for_flights(const struct cop_conf *conf)
{
	return CHUNKS_MIN * conf->chunk + cop_conf_spill_memory(conf, 0);
}

uint64_t cop_conf_cache_least(const struct cop_conf *conf)
{
	return COP_MAX(COP_CONF_CACHE_MIN, least_for_flights(conf));
}

int cop_conf_spill(const struct cop_conf *conf, char dir[COP_CONF_DIR_SIZE], uint64_t *size,
	struct cop_err *err)
{
	const char *comma = strrchr(conf->spill, ',');
	size_t len = comma ? (size_t)(comma - conf->spill) : strlen(conf->spill);

	*size = 0;
	if (!len || len >= COP_CONF_DIR_SIZE)
		return cop_err_set(err, EINVAL,
			"--spill: '%s' names no directory; give DIR or DIR,SIZE, such as /local/scratch,200G",
			conf->spill);
	memcpy(dir, conf->spill, len);
	dir[len] = '\0';
	if (!comma)
		return 0;
	if (cop_parse_size(comma + 1, size) || *size < COP_CONF_SPILL_MIN ||
		*size > UINT64_C(1) << 50)
		return cop_err_set(err, EINVAL,
			"--spill: '%s' is not a size from 16M to 1024T; give DIR or DIR,SIZE, such as /local/scratch,200G",
			comma + 1);
	return 0;
}

int cop_conf_check_cache(const struct cop_conf *conf, struct cop_err *err)
{
	char dir[COP_CONF_DIR_SIZE], has[16], needs[16];
	uint64_t size;

	if (conf->spill && cop_conf_spill(conf, dir, &size, err))
		return -EINVAL;
	if (!conf->cache_size || conf->cache_size >= least_for_flights(conf))
		return 0;
	if (!conf->spill)
		return cop_err_set(err, EINVAL,
			"--cache-size: %llu bytes hold fewer than %d chunks of %llu (--chunk)",
			(unsigned long long)conf->cache_size, CHUNKS_MIN,
			(unsigned long long)conf->chunk);
	return cop_err_set(err, EINVAL,
		"--cache-size: %s are too few: %d chunks (--chunk) and what is on its way to the disk (--spill) need %s",
		cop_format_size(conf->cache_size, has), CHUNKS_MIN,
		cop_format_size(least_for_flights(conf), needs));
}
