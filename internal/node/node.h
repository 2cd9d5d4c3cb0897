/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process: an ordered start of everything, a wait, and the mirrored stop; the readiness of the tree, and what is done
 * on every node at once (stop, statistics). */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base.h"
#include "conf/conf.h"

/* Runs a node as the configuration says. In the background (unless conf->foreground) this returns in the
 * process that was started by the user, when the tree is ready (0) or with -errno and a sentence; the node itself lives on and
 * never returns from here. In the foreground it returns when the node has stopped. */
int cop_node_launch(const struct cop_conf *conf, struct cop_err *err);

/* Looks at everything that a start with this configuration needs, without mounting: a line for each, ok, warning or
 * failed, with the way out; or, with conf->json, one object. Returns how many failed, or -ENOMEM. */
int cop_node_check(const struct cop_conf *conf, struct cop_buf *out);

/* The libfabric providers that this program has on this machine, with commas between, for people. */
void cop_node_providers(char *out, size_t size);

/* Takes away the mount that a killed node left behind. 0 or -errno. */
int cop_node_unmount_dead(const char *mountpoint);

#endif
