/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MANIFEST_PRIV_H
#define COP_MANIFEST_PRIV_H

#define MANIFEST_MAGIC "copper-manifest"

#endif
