/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of wire. */
#ifndef COP_FABRIC_WIRE_PRIV_H
#define COP_FABRIC_WIRE_PRIV_H

#include "fabric/wire/wire.h"

#define COP_HANDSHAKE_TAG 32

/* BLAKE2b, keyed by the secret, of context and two byte strings, each preceded by its length:
 * distinct inputs have distinct encodings. out_len is 16 to 64. */
void cop_wire_derive(const struct cop_wire_secret *s, const char *context, const void *a,
	size_t a_len, const void *b, size_t b_len, uint8_t *out, size_t out_len);

/* Writes the final length into the frame at w->start, including a tag of tag_len bytes to be
 * appended. */
void cop_frame_set_len(struct cop_wr *w, size_t tag_len);

#endif
