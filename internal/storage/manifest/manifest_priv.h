/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_STORAGE_MANIFEST_PRIV_H
#define COP_STORAGE_MANIFEST_PRIV_H

#define MANIFEST_MAGIC "copper-manifest"

#endif
