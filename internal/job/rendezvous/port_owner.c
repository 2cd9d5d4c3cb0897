/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the owner of a port with proc(5): /proc/net/tcp lists the socket and its user, and the
 * owner is the process that has this socket open. We cannot see the descriptors of other users'
 * processes. */
#include <ctype.h>
#include <dirent.h>

#include "job/rendezvous/rendezvous.h"

#define LISTENS 0x0a

struct listener {
	uint64_t inode;
	unsigned uid;
};

/* Parses an address as the kernel prints it: 32-bit words in hexadecimal, in host byte order. */
static bool read_address(const char *text, struct cop_ip *out)
{
	struct in_addr word[4];
	size_t len = strlen(text), count = len / 8;
	char digits[9] = "";

	if (len != 8 && len != 32)
		return false;
	for (size_t i = 0; i < count; i++) {
		memcpy(digits, text + 8 * i, 8);
		word[i].s_addr = (in_addr_t)strtoul(digits, NULL, 16);
	}
	if (count == 1)
		*out = cop_ip_of4(word[0]);
	else
		memcpy(&out->six, word, sizeof(out->six));
	return true;
}

/* Whether a socket at this address blocks one at want; want is all zeros for any address. */
static bool in_the_way(const char *address, const struct cop_ip *want)
{
	bool all = strspn(address, "0") == strlen(address);
	struct cop_ip at;

	return all ||
	       (read_address(address, &at) && (cop_ip_is_none(want) || cop_ip_same(&at, want)));
}

static bool find_listener(
	const char *table, const struct cop_ip *want, uint16_t port, struct listener *out)
{
	FILE *f = fopen(table, "re");
	char line[512], address[40];
	unsigned at, state;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line,
				"%*d: %39[0-9A-F]:%x %*39[0-9A-F]:%*x %x %*s %*s %*s %u %*d %" SCNu64,
				address, &at, &state, &out->uid, &out->inode) == 5 &&
			state == LISTENS && at == port && in_the_way(address, want);
	if (f)
		fclose(f);
	return found;
}

static bool has_open(const char *pid, uint64_t inode)
{
	char path[300], want[40], target[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(want, sizeof(want), "socket:[%" PRIu64 "]", inode);
	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		found = strcmp(target, want) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

static void name_process(const char *pid, char *out, size_t size)
{
	char path[64], *name = NULL;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	if (cop_read_file(path, 256, &name, &len))
		name = NULL;
	if (name)
		name[strcspn(name, "\n")] = '\0';
	snprintf(out, size, "process %.20s (%s)", pid, name ? name : "?");
	free(name);
}

bool cop_job_port_owner(const char *host, uint16_t port, char *out, size_t size)
{
	struct cop_ip want;
	struct listener l;
	struct dirent *e;
	DIR *d;

	cop_ip_parse(host, &want);
	if (!find_listener("/proc/net/tcp", &want, port, &l) &&
		!find_listener("/proc/net/tcp6", &want, port, &l))
		return false;
	snprintf(out, size, "a process of user %u", l.uid);
	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]) || !has_open(e->d_name, l.inode))
			continue;
		name_process(e->d_name, out, size);
		break;
	}
	if (d)
		closedir(d);
	return true;
}
