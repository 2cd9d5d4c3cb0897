/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of other modules: a spill with an already open file. */
#ifndef COP_STORAGE_SPILL_TESTING_H
#define COP_STORAGE_SPILL_TESTING_H

#include "storage/spill/spill.h"

/* The spill closes fd, even on failure. 0 or -errno. */
int cop_spill_start(const struct cop_spill_conf *conf, int fd, struct cop_spill **out);

#endif
