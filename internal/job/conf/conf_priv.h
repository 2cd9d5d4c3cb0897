/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_CONF_PRIV_H
#define COP_JOB_CONF_PRIV_H

#include "job/conf/conf.h"

/* Checks --cache-size and --spill, which depend on each other and on --chunk. -EINVAL with err
 * set. */
int cop_conf_check_cache(const struct cop_conf *conf, struct cop_err *err);

#endif
