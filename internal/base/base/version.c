/* SPDX-License-Identifier: BSD-3-Clause */
/* On a version change, the Makefile recompiles only this file. */
#include "base/base/base.h"

const char cop_version[] = COP_VERSION;
const char cop_build[] = COP_BUILD;
