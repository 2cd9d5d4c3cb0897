/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by listing.c, entry.c and attr.c: the rules for attributes, link targets and names. */
#ifndef COP_FABRIC_WIRE_LISTING_PRIV_H
#define COP_FABRIC_WIRE_LISTING_PRIV_H

#include "fabric/wire/wire.h"

#define COP_WIRE_TARGET_MAX 4095
#define COP_WIRE_NAME_MAX 255

/* Blobs are used in place: their memory layout is the wire format. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blobs are little endian in place");
_Static_assert(sizeof(struct cop_attr) == 96, "attribute records have no padding");

/* A copy that can be stored in a blob: it always has a version. */
struct cop_attr cop_attr_clean(const struct cop_attr *a);
/* Whether attributes from outside satisfy the invariants of cop_attr. */
bool cop_attr_valid(const struct cop_attr *a);
/* A link target that can be returned as a C string: 1 to 4095 bytes, no NUL. */
bool cop_attr_target_valid(const char *target, size_t len);
/* Cookies derive from 62 bits of a name's hash. */
#define COP_WIRE_HASH_BITS 62
uint64_t cop_wire_name_hash(const char *name, size_t len);
/* Whether an object with this mode can have a link target; a mode without type bits can. */
bool cop_attr_may_link(uint32_t mode);

#endif
