/* SPDX-License-Identifier: BSD-3-Clause */
/* pin: on which processors the threads of a node run, as --cpus says: a list, those near the card
 * of the network, or, without it, where whoever started the node put it. It refuses to choose any
 * by itself. */
#ifndef COP_PIN_H
#define COP_PIN_H

#include "base/base.h"
#include "fabric/fabric.h"

/* Pins this process to a list such as "0-3,8"; nothing for "near" and NULL. 0 or -errno with a
 * sentence. */
int cop_pin_listed(const char *cpus, struct cop_err *err);
/* "near": pins it near the card that the endpoint has (NULL: there is none). A machine that does
 * not tell where its card is, is used as it is, which is logged; so is, where cpus is NULL, that
 * the launcher has given this process a core or two. */
void cop_pin_near(const char *cpus, const struct cop_fabric *f);

#endif
