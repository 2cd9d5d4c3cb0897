/* SPDX-License-Identifier: BSD-3-Clause */
/* When the version changes, the Makefile recompiles this file and no other. */
#include "base/base/base.h"

const char cop_version[] = COP_VERSION;
const char cop_build[] = COP_BUILD;
