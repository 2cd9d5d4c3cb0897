/* SPDX-License-Identifier: BSD-3-Clause */
/* pin: puts the threads of a node on the processors that --cpus names: a list, or those near the
 * network card. Without --cpus they keep the affinity that the node was started with; this module
 * never chooses processors by itself. */
#ifndef COP_NODE_PIN_H
#define COP_NODE_PIN_H

#include "base/base/base.h"
#include "fabric/endpoint/endpoint.h"

/* Pins this process to a list such as "0-3,8"; does nothing for "near" and NULL. 0 or -errno with a
 * sentence. */
int cop_pin_listed(const char *cpus, struct cop_err *err);
/* "near": pins the process near the card of the endpoint (f NULL: there is none). If the card's
 * location is unknown, logs that and changes nothing. If cpus is NULL and the launcher has given
 * this process only a core or two, that is logged, too. */
void cop_pin_near(const char *cpus, const struct cop_endpoint *f);

#endif
