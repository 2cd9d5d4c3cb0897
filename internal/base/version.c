/* SPDX-License-Identifier: BSD-3-Clause */
/* The Makefile compiles this file again when the version changes, and only this one. */
#include "base/base.h"

const char cop_version[] = COP_VERSION;
const char cop_build[] = COP_BUILD;
