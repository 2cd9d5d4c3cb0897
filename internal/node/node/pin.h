/* SPDX-License-Identifier: BSD-3-Clause */
/* pin: binds a node's threads to the processors given by --cpus: a list, or those near the network
 * card. Without --cpus the node keeps its initial affinity; this module never picks processors on
 * its own. */
#ifndef COP_NODE_PIN_H
#define COP_NODE_PIN_H

#include "base/base/base.h"
#include "fabric/endpoint/endpoint.h"

/* Binds this process to a list such as "0-3,8"; does nothing for "near" and NULL. 0 or -errno with
 * a sentence. */
int cop_pin_listed(const char *cpus, struct cop_err *err);
/* "near": binds the process near the endpoint's card (f NULL: no endpoint). If the card's location
 * is unknown, logs that and changes nothing. If cpus is NULL and the launcher has restricted this
 * process to a core or two, logs that too. */
void cop_pin_near(const char *cpus, const struct cop_endpoint *f);

#endif
