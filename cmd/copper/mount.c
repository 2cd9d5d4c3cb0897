/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "cmd.h"
#include "conf/conf.h"
#include "node/node.h"

static int launch(const struct cop_opt_table *table, int argc, char **argv)
{
	struct cop_conf conf;
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &conf, &code))
		return code;
	if (cop_node_launch(&conf, &err) == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", table->command, err.text);
	return 1;
}

int cop_cmd_mount(int argc, char **argv)
{
	return launch(&cop_conf_mount_table, argc, argv);
}

int cop_cmd_serve(int argc, char **argv)
{
	return launch(&cop_conf_serve_table, argc, argv);
}
