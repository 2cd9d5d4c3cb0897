/* SPDX-License-Identifier: BSD-3-Clause */
/* Only this file is recompiled when the version changes (Makefile). */
#include "base/base/base.h"

const char cop_version[] = COP_VERSION;
const char cop_build[] = COP_BUILD;
