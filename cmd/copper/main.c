/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of subcommands. */
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <lz4.h>
#include <rdma/fabric.h>
#include <sodium.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/base/base.h"
#include "node/check/check.h"
#include "cmd.h"
#include "base/opt/opt.h"
#include "writers/runs/runs.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* In the order of the help, and in its groups. */
static const struct cop_cmd commands[] = {
	{"mount", "start this node, mount, return when the tree is ready", cop_cmd_mount},
	{"serve", "start a node without a mount (a root or a relay)", cop_cmd_serve},
	{"run", "run a command with the tree in place of its source", cop_cmd_run},
	{"stop", "stop every node of the job, or this one", cop_cmd_stop},
	{"cache-stats", "show what the nodes hold, serve and wait for", cop_cmd_cache_stats},
	{"aggregate", "add up the profiles of a job's ranks", cop_cmd_aggregate},
	{"paths", "list the paths that a job used and did not use", cop_cmd_paths},
	{"report", "write an HTML report of a finished job", cop_cmd_report},
	{"predict", "predict how long a recorded program takes to start on N nodes",
		cop_cmd_predict},
	{"runs", "list, show and compare the runs of a store", cop_cmd_runs},
	{"mark", "mark a command or a region of a script in a trace", cop_cmd_mark},
	{"trace", "analyse the traces of nodes and programs", cop_cmd_trace},
};
static const struct {
	const char *heading,
		*first; /* heading of the group that begins with the subcommand first */
} groups[] = {{"start and stop", "mount"}, {"look", "cache-stats"}, {"after the job", "aggregate"},
	{"traces", "mark"}};

static const char usage[] = "usage: copper SUBCOMMAND [options] [arguments]\n";

static int print_help(void)
{
	fputs(usage, stdout);
	fputs("A shared tree, read once from the storage and served to every node of a job.\n",
		stdout);
	for (size_t i = 0, group = 0; i < COP_ARRAY_SIZE(commands); i++) {
		if (group < COP_ARRAY_SIZE(groups) &&
			!strcmp(groups[group].first, commands[i].name))
			printf("\n%s:\n", groups[group++].heading);
		printf("  %-13s%s\n", commands[i].name, commands[i].summary);
	}
	fputs("\n  copper help SUBCOMMAND or copper SUBCOMMAND --help: its options\n"
	      "  copper --version: this program and the libraries in it\n",
		stdout);
	return fflush(stdout) ? 1 : 0;
}

static int print_version(void)
{
	uint32_t fabric = fi_version();
	unsigned xxhash = XXH_versionNumber();
	char providers[512];

	cop_check_providers(providers, sizeof(providers));

	printf("copper %s\n", cop_version);
	printf("build %s, " COMPILER "\n", cop_build);
	printf("libfuse %s\n", fuse_pkgversion());
	printf("libfabric %u.%u\n", FI_MAJOR(fabric), FI_MINOR(fabric));
	printf("providers %s\n", providers[0] ? providers : "none");
	printf("lz4 %s\n", LZ4_versionString());
	printf("libsodium %s\n", sodium_version_string());
	printf("xxhash %u.%u.%u\n", xxhash / 10000, xxhash / 100 % 100, xxhash % 100);
	printf("zlib %s\n", zlibVersion());
	printf("sqlite %s\n", cop_store_library());
	return fflush(stdout) ? 1 : 0;
}

static const struct cop_cmd *find_command(const char *name)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int refuse_subcommand(const char *word)
{
	const char *names[COP_ARRAY_SIZE(commands) + 4] = {NULL}, *near;
	const char *what = word[0] == '-' ? "option" : "subcommand";
	size_t n = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(commands); i++)
		names[n++] = commands[i].name;
	names[n++] = "help";
	names[n++] = "--help";
	names[n] = "--version";
	near = cop_opt_suggest(word, names);
	if (near)
		fprintf(stderr, "copper: unknown %s '%s' (did you mean '%s'?)\n", what, word, near);
	else
		fprintf(stderr, "copper: unknown %s '%s' (see copper --help)\n", what, word);
	return 2;
}

static int help_on(char *word)
{
	static char ask[] = "--help";
	const struct cop_cmd *command = find_command(word);
	char *argv[] = {word, ask, NULL};

	return command ? command->run(2, argv) : refuse_subcommand(word);
}

/* If a standard stream is closed, the next file opened gets its number. That file, for example the
 * connection to the kernel's FUSE, would then be written to as standard output or closed as
 * standard input. */
static void open_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct cop_cmd *command;

	open_standard_streams();
	if (argc < 2) {
		fputs(usage, stderr);
		fputs("copper: a subcommand is missing (see copper --help)\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "help") && argc > 2)
		return help_on(argv[2]);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return print_help();
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return print_version();
	command = find_command(argv[1]);
	return command ? command->run(argc - 1, argv + 1) : refuse_subcommand(argv[1]);
}
