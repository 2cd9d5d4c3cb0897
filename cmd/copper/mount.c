/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/check/check.h"
#include "cmd.h"
#include "job/conf/conf.h"
#include "node/launch/launch.h"
#include "sweep.h"

/* The user asked for a report, so a failed check is not an error of this command. */
static int check_machine(const struct cop_conf *conf, const char *command)
{
	struct cop_buf out = {0};
	int failed = cop_check_run(conf, &out);

	out.failed |= failed < 0;
	failed |= cop_cmd_print(command, &out, NULL);
	cop_buf_free(&out);
	return failed ? 1 : 0;
}

static int mount_or_serve(const struct cop_opt_table *table, int argc, char **argv)
{
	struct cop_conf conf;
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &conf, &code))
		return code;
	if (conf.check)
		return check_machine(&conf, table->command);
	cop_cmd_sweep(conf.runtime_dir);
	if (!cop_launch(&conf, argv, &err))
		return 0;
	fprintf(stderr, "%s: %s\n", table->command, err.text);
	return 1;
}

int cop_cmd_mount(int argc, char **argv)
{
	return mount_or_serve(&cop_conf_mount_table, argc, argv);
}

int cop_cmd_serve(int argc, char **argv)
{
	return mount_or_serve(&cop_conf_serve_table, argc, argv);
}
